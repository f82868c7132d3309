// A far host that a remote shell reaches: each far side is a program that it starts there.
#pragma once

#include <memory>
#include <optional>

#include "fgsync/options.h"
#include "fgsync/transfer.h"
#include "transfer/far_side.h"
#include "transfer/remote_run.h"

namespace fgsync::transfer {

class RemoteShellHost final : public FarHost {
 public:
  // `streams`: how many the far side is to be able to serve.
  RemoteShellHost(io::Runtime& runtime, const TransferOptions& options, const Location& location,
                  std::uint16_t streams, CancelToken& cancel)
      : runtime_(runtime),
        options_(options),
        location_(location),
        streams_(streams),
        cancel_(cancel) {}

  // As FarSide::start fails, and kRefused for addresses that may not be used.
  io::Task<Result<FarAddress>> start(std::chrono::milliseconds patience) override;
  io::Task<void> finish(bool succeeded) override;
  void drain() override;

 private:
  Result<FarAddress> start_now(std::chrono::milliseconds patience);
  Result<FarAddress> choose_addresses(std::optional<io::SocketAddress> local) const;

  io::Runtime& runtime_;
  const TransferOptions& options_;
  const Location& location_;
  const std::uint16_t streams_;
  CancelToken& cancel_;
  bool started_before_ = false;
  std::unique_ptr<FarSide> far_side_;
};

}  // namespace fgsync::transfer
