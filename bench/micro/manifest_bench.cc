// What a file costs on the control connection: its entry in the manifest, and the decision about
// it.
#include <benchmark/benchmark.h>

#include <string>
#include <utility>
#include <variant>

#include "base/limits.h"
#include "check.h"
#include "wire/message.h"

namespace fgsync::bench {
namespace {

wire::ManifestEntry make_entry(std::uint64_t number) {
  wire::ManifestEntry entry;
  entry.id = number + 1;
  entry.parent = number % 200;
  entry.mode = 0644;
  entry.uid = entry.gid = 1000;
  entry.mtime_seconds = 1'700'000'000 + std::int64_t(number);
  entry.size = 512 * number;
  entry.inode = 900'000 + number;
  entry.name = "shard-" + std::to_string(10'000 + number) + ".bin";
  return entry;
}

void manifest_batch(benchmark::State& state) {
  wire::ManifestBatch batch;
  for (std::uint64_t i = 0; i < limits::kManifestBatchEntries; ++i) {
    batch.entries.push_back(make_entry(i));
  }
  const wire::Message message(std::move(batch));
  const auto& sent = std::get<wire::ManifestBatch>(message).entries;
  for (auto _ : state) {
    const auto decoded = wire::decode_message(wire::encode(message));
    require(decoded.ok(), "a manifest batch");
    const auto* const came = std::get_if<wire::ManifestBatch>(&*decoded);
    require(came != nullptr && came->entries.size() == sent.size(), "its entries");
    const wire::ManifestEntry &last = sent.back(), &last_came = came->entries.back();
    require(last_came.name == last.name && last_came.size == last.size &&
                last_came.inode == last.inode && last_came.mtime_seconds == last.mtime_seconds,
            "its last entry");
  }
  state.SetItemsProcessed(state.iterations() * std::int64_t(sent.size()));
}
BENCHMARK(manifest_batch);

void plan_batch(benchmark::State& state) {
  wire::PlanBatch batch;
  for (std::uint64_t i = 0; i < limits::kManifestBatchEntries; ++i) {
    const auto action = i % 3 == 0 ? wire::PlanAction::kSend : wire::PlanAction::kUnchanged;
    batch.decisions.push_back({i + 1, action});
  }
  const wire::Message message(std::move(batch));
  const auto& sent = std::get<wire::PlanBatch>(message).decisions;
  for (auto _ : state) {
    const auto decoded = wire::decode_message(wire::encode(message));
    require(decoded.ok(), "a plan batch");
    const auto* const came = std::get_if<wire::PlanBatch>(&*decoded);
    require(came != nullptr && came->decisions.size() == sent.size(), "its decisions");
    require(came->decisions.back().id == sent.back().id &&
                came->decisions.back().action == sent.back().action &&
                came->decisions.front().action == wire::PlanAction::kSend,
            "a decision");
  }
  state.SetItemsProcessed(state.iterations() * std::int64_t(sent.size()));
}
BENCHMARK(plan_batch);

void entry_description(benchmark::State& state) {
  const wire::ManifestEntry entry = make_entry(1);
  const std::string path = "d001/" + entry.name;
  const wire::Checksum content = wire::checksum_of(contents(512));
  const wire::Checksum expected = wire::describe(entry, path, content);
  for (auto _ : state) {
    require(wire::describe(entry, path, content) == expected, "a description");
  }
  require(wire::describe(entry, path, wire::Checksum{}) != expected, "another description");
}
BENCHMARK(entry_description);

}  // namespace
}  // namespace fgsync::bench
