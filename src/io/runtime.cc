#include "io/runtime.h"

#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "io/blocking_pool.h"
#include "io/posix_environment.h"
#include "io/posix_io.h"
#include "io/reactor.h"
#include "io/sync.h"
#include "io/thread.h"
#include "io/uring_io.h"

namespace fgsync::io {
namespace {

using MakeIo = Result<std::unique_ptr<Reactor>> (*)(Environment&, BlockingPool&);

struct Engine {
  const char* name;
  MakeIo make;
};

constexpr Engine kUringEngine = {"uring", &make_uring_io};
constexpr Engine kPosixEngine = {"posix", &make_posix_io};

Task<void> run_then_stop(Task<void> main, Reactor& control) {
  co_await main;
  control.stop();
}

class ThreadedRuntime final : public Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(const Engine& engine,
                                                 const RuntimeOptions& options);
  ~ThreadedRuntime() override { stop_workers(); }

  Io& control() override { return *control_; }
  std::size_t worker_count() const override { return workers_.size(); }
  Io& worker(std::size_t index) override {
    FGSYNC_ASSERT(index < workers_.size());
    return *workers_[index];
  }
  Environment& environment() override { return *environment_; }
  const char* engine_name() const override { return engine_name_; }
  void run(Task<void> main) override;

 private:
  explicit ThreadedRuntime(const Engine& engine) : engine_name_(engine.name) {}
  void stop_workers();

  // In the order of their making: the threads end before what they post to, and all before the
  // environment.
  const char* const engine_name_;
  const std::unique_ptr<Environment> environment_ = make_posix_environment();
  // Set once in create. The pool's threads may still be inside a post when the last task has ended,
  // so they are joined, like the workers, before any reactor goes away.
  std::unique_ptr<Reactor> control_;
  std::vector<std::unique_ptr<Reactor>> workers_;
  std::unique_ptr<BlockingPool> blocking_pool_;
  std::vector<Thread> threads_;
};

Result<std::unique_ptr<Runtime>> ThreadedRuntime::create(const Engine& engine,
                                                         const RuntimeOptions& options) {
  std::unique_ptr<ThreadedRuntime> runtime(new ThreadedRuntime(engine));
  auto pool = BlockingPool::create(options.blocking_threads);
  if (!pool.ok()) return pool.status();
  runtime->blocking_pool_ = std::move(*pool);
  for (std::size_t i = 0; i <= options.workers; ++i) {
    auto reactor = engine.make(*runtime->environment_, *runtime->blocking_pool_);
    if (!reactor.ok()) return reactor.status();
    if (i == 0) {
      runtime->control_ = std::move(*reactor);
    } else {
      runtime->workers_.push_back(std::move(*reactor));
    }
  }
  for (std::size_t i = 0; i < options.workers; ++i) {
    Reactor* const reactor = runtime->workers_[i].get();
    auto thread = Thread::start("fgsync-w" + std::to_string(i), [reactor] { reactor->run(); });
    if (!thread.ok()) return thread.status();
    runtime->threads_.push_back(std::move(*thread));
  }
  return std::unique_ptr<Runtime>(std::move(runtime));
}

void ThreadedRuntime::run(Task<void> main) {
  TaskGroup group;
  group.spawn(*control_, run_then_stop(std::move(main), *control_));
  control_->run();
  stop_workers();
}

void ThreadedRuntime::stop_workers() {
  for (const auto& worker : workers_) worker->stop();
  threads_.clear();  // joins them
}

}  // namespace

Result<std::unique_ptr<Runtime>> create_runtime(const RuntimeOptions& options) {
  FGSYNC_ASSERT(options.workers <= limits::kWorkersMax);
  if (options.engine == IoEngine::kPosix) return ThreadedRuntime::create(kPosixEngine, options);
  const Status probe = probe_uring();
  if (probe.ok()) {
    auto runtime = ThreadedRuntime::create(kUringEngine, options);
    if (runtime.ok() || options.engine == IoEngine::kUring) return runtime;
  } else if (options.engine == IoEngine::kUring) {
    return probe;
  }
  return ThreadedRuntime::create(kPosixEngine, options);
}

std::string uring_unavailable_reason() { return probe_uring().message(); }

}  // namespace fgsync::io
