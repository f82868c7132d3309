// A process on a simulated host, with everything that the I/O seam gives it. When it is killed, it
// is cut off from the world at that instant: every later call of it fails without effect, and its
// coroutines unwind by themselves. So its memory goes back as after any failed run, which is a test
// of the unwinding too, while for the world it is dead.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "host.h"
#include "io/runtime.h"
#include "sim_file_system.h"
#include "wire_model.h"

namespace fgsync::sim {

// An executor: its coroutines become events of the world.
class SimIo final : public io::Io {
 public:
  explicit SimIo(Process& process) : process_(process) {}
  void submit(io::Operation& operation) override;
  void cancel_sleep(io::Operation& operation) override;
  void post(std::coroutine_handle<> coroutine) override;
  void register_region(std::span<std::byte> /*region*/) override {}
  io::Environment& environment() override;

 private:
  void run_job(io::Operation& operation);
  void work_on(io::Operation& operation);
  void complete(io::Operation& operation, std::int64_t result);
  void sleep(io::Operation& operation);

  Process& process_;
  // Sleepers by number, so that one which is cancelled and gone is not touched at its deadline.
  std::unordered_map<std::uint64_t, io::Operation*> sleeping_;
  std::uint64_t next_sleep_ = 1;
};

// The socket half of the seam, as one process sees it.
class SimNetwork final : public io::Network {
 public:
  SimNetwork(Process& process, Wire& wire) : process_(process), wire_(wire) {}
  ~SimNetwork() override;
  Result<io::Socket> listen(const io::SocketAddress& address) override;
  Result<io::Socket> create(const io::SocketAddress& peer,
                            const std::optional<io::SocketAddress>& local) override;
  void prepare_accepted(const io::Socket& /*socket*/) override {}
  Result<io::SocketAddress> local_address(const io::Socket& socket) override;
  Result<io::SocketAddress> peer_address(const io::Socket& socket) override;
  Result<io::SocketAddress> source_address_for(const io::SocketAddress& peer) override;
  Result<std::vector<io::InterfaceAddress>> interfaces() override;
  void shutdown(int descriptor) override;
  void close(int descriptor) override;

  void submit(io::Operation& operation);
  // A connection that a listener of this process has taken; its descriptor.
  int adopt(EndpointPointer endpoint);
  void drop_all(bool powerless);

 private:
  Process& process_;
  Wire& wire_;
  std::map<int, EndpointPointer> endpoints_;
  std::map<int, std::shared_ptr<Listener>> listeners_;
};

class SimEnvironment final : public io::Environment {
 public:
  explicit SimEnvironment(Process& process) : process_(process) {}
  io::TimePoint now() override;
  std::chrono::system_clock::time_point wall_clock() override;
  void random_bytes(std::span<std::byte> bytes) override;
  std::array<std::byte, 16> host_identity() override;
  double cpu_seconds() override { return 1; }
  std::uint64_t peak_memory_bytes() override { return 1 << 20; }
  std::size_t usable_cores() override { return 2; }
  bool has_aes() override;
  io::FileSystem& files() override;
  io::Network& network() override;

 private:
  Process& process_;
};

// Everything on one thread; the world's loop runs it.
class SimRuntime final : public io::Runtime {
 public:
  SimRuntime(Process& process, std::size_t workers);
  io::Io& control() override { return *ios_.front(); }
  std::size_t worker_count() const override { return ios_.size() - 1; }
  io::Io& worker(std::size_t index) override { return *ios_[index + 1]; }
  io::Environment& environment() override { return environment_; }
  const char* engine_name() const override { return "sim"; }
  void run(io::Task<void> main) override;

 private:
  SimEnvironment environment_;
  std::vector<std::unique_ptr<SimIo>> ios_;
};

class Process {
 public:
  Process(Host& host, Wire& wire, std::string name, std::size_t workers);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool alive() const { return alive_; }
  void kill(bool powerless = false);
  // Its task has ended by itself, dead or alive.
  bool finished() const { return finished_; }
  void set_finished();
  // Whatever it changes from now on is a violation.
  void forbid_changes() { may_change_ = false; }
  bool may_change() const { return may_change_; }

  World& world() { return host_.world; }
  Host& host() { return host_; }
  const Host& host() const { return host_; }
  const std::string& name() const { return name_; }
  Actor actor() const { return actor_; }
  SimFileSystem& files() { return files_; }
  SimNetwork& network() { return network_; }
  SimRuntime& runtime() { return runtime_; }

 private:
  Host& host_;
  const std::string name_;
  const Actor actor_;
  bool alive_ = true;
  bool finished_ = false;
  bool may_change_ = true;
  SimFileSystem files_;
  SimNetwork network_;
  SimRuntime runtime_;
};

}  // namespace fgsync::sim
