#include "process.h"

#include <algorithm>
#include <cerrno>

#include "base/assert.h"
#include "io/operation_steps.h"
#include "io/sync.h"

namespace fgsync::sim {
namespace {

constexpr std::int64_t kEpochSeconds = 1'700'000'000;

}  // namespace

// ---- Host

io::FileTime Host::wall_time() {
  const std::int64_t now = world.now().time_since_epoch().count();
  last_nanosecond = std::max(now, last_nanosecond + 1);
  return {kEpochSeconds + last_nanosecond / 1'000'000'000,
          std::uint32_t(last_nanosecond % 1'000'000'000)};
}

void Host::kill_all() {
  while (!processes.empty()) processes.back()->kill();
}

void Host::cut_power() {
  world.trace("power cut", 0, 0, name);
  while (!processes.empty()) processes.back()->kill(true);
  locks.clear();
  disk.crash(world.random());
  full = false;
  ++boot;
  if (on_power_cut) on_power_cut();
}

// ---- SimIo

void SimIo::post(std::coroutine_handle<> coroutine) {
  process_.world().soon([coroutine] { coroutine.resume(); }, process_.actor());
}

void SimIo::complete(io::Operation& operation, std::int64_t result) {
  operation.result = result;
  operation.in_flight = false;
  post(operation.waiter);
}

void SimIo::sleep(io::Operation& operation) {
  const std::uint64_t number = next_sleep_++;
  operation.timer_index = number;
  sleeping_.emplace(number, &operation);
  World& world = process_.world();
  const io::Duration time = std::max(io::Duration::zero(), operation.deadline - world.now());
  // Not before its deadline, and as punctual as a busy machine.
  const io::Duration late{std::int64_t(world.random().skewed(2'000'000))};
  world.after(time + late, [this, number] {
    const auto found = sleeping_.find(number);
    if (found == sleeping_.end()) return;
    io::Operation& slept = *found->second;
    sleeping_.erase(found);
    complete(slept, 0);
  });
}

void SimIo::cancel_sleep(io::Operation& operation) {
  const auto found = sleeping_.find(operation.timer_index);
  if (found == sleeping_.end() || found->second != &operation) return;
  sleeping_.erase(found);
  complete(operation, -ECANCELED);
}

void SimIo::submit(io::Operation& operation) {
  FGSYNC_ASSERT(!operation.in_flight);
  operation.in_flight = true;
  operation.transferred = 0;
  switch (operation.kind) {
    case io::Operation::Kind::kSleep:
      return sleep(operation);
    case io::Operation::Kind::kRun:
    case io::Operation::Kind::kRead:
    case io::Operation::Kind::kWrite:
      return run_job(operation);
    default:
      return process_.network().submit(operation);
  }
}

void SimIo::run_job(io::Operation& operation) {
  World& world = process_.world();
  io::Duration time{std::int64_t(5'000 + world.random().skewed(3'000'000))};
  if (world.now() < process_.host().slow_until) {
    time += std::chrono::milliseconds(world.random().below(2'000));
  }
  world.after(
      time, [this, &operation] { work_on(operation); }, process_.actor());
}

// A transfer that ends short goes on with another call, as in the engines.
void SimIo::work_on(io::Operation& operation) {
  if (operation.kind == io::Operation::Kind::kRun) {
    operation.job();
    return complete(operation, 0);
  }
  const iovec& piece = operation.vectors[0];
  auto* const bytes = static_cast<std::byte*>(piece.iov_base);
  const std::uint64_t offset = operation.offset + operation.transferred;
  const bool reads = operation.kind == io::Operation::Kind::kRead;
  SimFileSystem& files = process_.files();
  const std::int64_t count =
      reads ? files.read_at(operation.descriptor, {bytes, piece.iov_len}, offset)
            : files.write_at(operation.descriptor, {bytes, piece.iov_len}, offset);
  if (count < 0) return complete(operation, count);
  const bool ended = reads && count == 0;
  if (ended || io::absorb(operation, std::size_t(count))) {
    return complete(operation, std::int64_t(operation.transferred));
  }
  run_job(operation);
}

io::Environment& SimIo::environment() { return process_.runtime().environment(); }

// ---- SimNetwork

SimNetwork::~SimNetwork() { FGSYNC_ASSERT(endpoints_.empty() && listeners_.empty()); }

Result<io::Socket> SimNetwork::listen(const io::SocketAddress& address) {
  auto listener = std::make_shared<Listener>();
  listener->owner = &process_;
  listener->address = address;
  if (address.port() == 0) listener->address.set_port(wire_.next_port());
  if (wire_.is_taken(listener->address)) return Status::from_errno(EADDRINUSE, "listening");
  const int descriptor = process_.host().next_descriptor++;
  listeners_.emplace(descriptor, listener);
  wire_.listen(listener);
  return io::Socket(this, descriptor);
}

Result<io::Socket> SimNetwork::create(const io::SocketAddress& peer,
                                      const std::optional<io::SocketAddress>& /*local*/) {
  auto endpoint = std::make_shared<Endpoint>();
  endpoint->owner = &process_;
  endpoint->local = *io::SocketAddress::parse(process_.host().address, wire_.next_port());
  endpoint->remote = peer;
  return io::Socket(this, adopt(std::move(endpoint)));
}

int SimNetwork::adopt(EndpointPointer endpoint) {
  const int descriptor = process_.host().next_descriptor++;
  endpoints_.emplace(descriptor, std::move(endpoint));
  return descriptor;
}

Result<io::SocketAddress> SimNetwork::local_address(const io::Socket& socket) {
  const auto listener = listeners_.find(socket.descriptor());
  if (listener != listeners_.end()) return listener->second->address;
  return endpoints_.at(socket.descriptor())->local;
}

Result<io::SocketAddress> SimNetwork::peer_address(const io::Socket& socket) {
  return endpoints_.at(socket.descriptor())->remote;
}

Result<io::SocketAddress> SimNetwork::source_address_for(const io::SocketAddress& /*peer*/) {
  return io::SocketAddress::parse(process_.host().address, 0);
}

Result<std::vector<io::InterfaceAddress>> SimNetwork::interfaces() {
  auto address = io::SocketAddress::parse(process_.host().address, 0);
  return std::vector<io::InterfaceAddress>{{"sim0", *address}};
}

void SimNetwork::submit(io::Operation& operation) {
  if (operation.kind == io::Operation::Kind::kAccept) {
    return wire_.accept(listeners_.at(operation.descriptor), operation);
  }
  const EndpointPointer endpoint = endpoints_.at(operation.descriptor);
  switch (operation.kind) {
    case io::Operation::Kind::kConnect:
      return wire_.connect(endpoint, operation, process_.alive());
    case io::Operation::Kind::kSend:
      return wire_.send(endpoint, operation);
    default:
      return wire_.receive(endpoint, operation);
  }
}

void SimNetwork::shutdown(int descriptor) {
  const auto listener = listeners_.find(descriptor);
  if (listener != listeners_.end()) return wire_.shut_down(listener->second);
  const EndpointPointer endpoint = endpoints_.at(descriptor);
  wire_.shut_down(endpoint);
}

void SimNetwork::close(int descriptor) {
  if (const auto listener = listeners_.find(descriptor); listener != listeners_.end()) {
    wire_.close(listener->second);
    listeners_.erase(listener);
    return;
  }
  const EndpointPointer endpoint = endpoints_.at(descriptor);
  endpoints_.erase(descriptor);
  wire_.close(endpoint);
}

void SimNetwork::drop_all(bool powerless) {
  for (const auto& [descriptor, listener] : listeners_) {
    wire_.shut_down(listener);
    for (const EndpointPointer& endpoint : listener->waiting) wire_.drop(endpoint, powerless);
  }
  const auto endpoints = endpoints_;
  for (const auto& [descriptor, endpoint] : endpoints) wire_.drop(endpoint, powerless);
}

// ---- SimEnvironment

io::TimePoint SimEnvironment::now() { return process_.world().now(); }

std::chrono::system_clock::time_point SimEnvironment::wall_clock() {
  const auto since = std::chrono::seconds(kEpochSeconds) + now().time_since_epoch();
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(since));
}

void SimEnvironment::random_bytes(std::span<std::byte> bytes) {
  process_.world().random().fill(bytes);
}

bool SimEnvironment::has_aes() { return process_.host().has_aes; }

std::array<std::byte, 16> SimEnvironment::host_identity() {
  std::array<std::byte, 16> identity{};
  identity[0] = std::byte(process_.host().disk.device());
  identity[1] = std::byte(process_.host().boot);
  return identity;
}

io::FileSystem& SimEnvironment::files() { return process_.files(); }
io::Network& SimEnvironment::network() { return process_.network(); }

// ---- SimRuntime

SimRuntime::SimRuntime(Process& process, std::size_t workers) : environment_(process) {
  for (std::size_t i = 0; i <= workers; ++i) ios_.push_back(std::make_unique<SimIo>(process));
}

void SimRuntime::run(io::Task<void> /*main*/) {
  FGSYNC_ASSERT(false && "the world runs simulated processes");
}

// ---- Process

Process::Process(Host& host, Wire& wire, std::string name, std::size_t workers)
    : host_(host),
      name_(std::move(name)),
      actor_(host.world.new_actor()),
      files_(*this),
      network_(*this, wire),
      runtime_(*this, workers) {
  host_.processes.push_back(this);
}

Process::~Process() { std::erase(host_.processes, this); }

void Process::set_finished() {
  finished_ = true;
  std::erase(host_.processes, this);
}

void Process::kill(bool powerless) {
  if (!alive_ || finished_) return;
  world().trace(powerless ? "loses its power" : "is killed", 0, 0, name_);
  alive_ = false;
  std::erase(host_.processes, this);
  files_.drop_locks();
  network_.drop_all(powerless);
}

}  // namespace fgsync::sim
