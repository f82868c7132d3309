// Marks at branches that are rarely taken (each retry, fall-back and refusal), so that a test can
// tell whether it has been there: the simulation fails when one of them was never reached in a
// campaign (docs/testing.md). Always compiled: in production it is one load that finds nobody.
#pragma once

#include <atomic>

namespace fgsync {

using MarkObserver = void (*)(const char* name);
// Set before anything runs, by a test; called on any thread.
inline constinit std::atomic<MarkObserver> mark_observer{nullptr};

// `name` is a literal, unlike any other: LAYER_what_happened.
inline void mark(const char* name) {
  const MarkObserver observer = mark_observer.load(std::memory_order_relaxed);
  if (observer != nullptr) [[unlikely]]
    observer(name);
}

}  // namespace fgsync
