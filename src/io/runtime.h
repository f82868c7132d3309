// The production runtime: real threads, real clock, real kernel.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fgsync/options.h"
#include "fgsync/status.h"
#include "io/io.h"

namespace fgsync::io {

// Runs coroutines on one control worker (the calling thread) and several data workers (a thread
// each), over the engine that was asked for.
class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual Io& control() = 0;
  virtual std::size_t worker_count() const = 0;
  virtual Io& worker(std::size_t index) = 0;
  virtual Environment& environment() = 0;
  // "uring" or "posix".
  virtual const char* engine_name() const = 0;
  // Runs `main` on the control worker to its end, then stops the other workers. Once. Every task
  // that was spawned must have ended by then.
  virtual void run(Task<void> main) = 0;
};

struct RuntimeOptions {
  IoEngine engine = IoEngine::kAuto;
  std::size_t workers = 1;
  std::size_t blocking_threads = 4;
};

// kUnsupported when io_uring was demanded and the kernel (or a seccomp filter) refuses it.
Result<std::unique_ptr<Runtime>> create_runtime(const RuntimeOptions& options);

// Why io_uring is not available here, or empty when it is: "io_uring_setup: Operation not permitted
// (...)".
std::string uring_unavailable_reason();

// How many descriptors this process may have open, after raising the soft limit to the hard one.
std::size_t raise_descriptor_limit();
// Cores this process may run on.
std::size_t usable_cores();
// Whether the processor has AES instructions; without them ChaCha20-Poly1305 is faster.
bool processor_has_aes();

}  // namespace fgsync::io
