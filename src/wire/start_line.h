// The two lines by which a remote shell's two ends find each other. The one who starts writes a
// request to the far side's standard input; the far side prints its answer on standard output,
// possibly amid noise (banners, shell start-up files) in front of, behind, and around it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fgsync/options.h"
#include "fgsync/status.h"

namespace fgsync::wire {

struct StartRequest {
  std::uint16_t version_min = 0;
  std::uint16_t version_max = 0;
  IoEngine io_engine = IoEngine::kAuto;
  std::uint16_t streams = 1;
  PortRange ports;
  bool allow_public = false;
  AddressFamily family = AddressFamily::kAny;
  std::string
      facing;  // an address of the starting host: listen on the address that reaches it; or empty
};

// "fgsync-start ...\n". Bounded by limits::kStartRequestBytesMax.
std::string encode(const StartRequest& request);
// With or without its newline. kProtocolError for what encode() would not have produced; unknown
// keys are ignored, so that a newer starter may say more.
Result<StartRequest> decode_start_request(const std::string& line);

// How the far side chose its address, for the message when it cannot be reached.
enum class AddressChoice : std::uint8_t { kReached, kFacing, kLoopback };

struct StartAnswer {
  std::string address;  // literal, with scope where needed
  std::uint16_t port = 0;
  AddressChoice choice = AddressChoice::kReached;
  std::array<std::byte, 32> psk{};  // fresh, for this session alone; never logged
  std::array<std::byte, 16> session_id{};
};
struct StartRefusal {
  int exit_code = 0;  // 1..99
  std::string message;
};

// One line beginning with a marker that ordinary text does not contain, ending in a check value and
// '\n'.
std::string encode(const StartAnswer& answer);
std::string encode(const StartRefusal& refusal);

// Finds the answer in whatever comes. Nothing in the noise is taken for a length; at most
// limits::kStartNoiseBytesMax are looked through.
class StartAnswerScanner {
 public:
  struct Found {
    std::optional<StartAnswer> answer;  // exactly one of the two
    std::optional<StartRefusal> refusal;
  };
  // nullopt: not yet. kProtocolError: too much noise.
  Result<std::optional<Found>> feed(std::span<const std::byte> bytes);
  // The first 100 bytes of what was not the answer, raw; for the message when none comes.
  const std::string& noise_start() const { return noise_start_; }

 private:
  std::optional<Found> take(char byte);
  void reject_pending();
  void add_noise(std::string_view bytes);

  std::string pending_;  // an unfinished line, or the tail that may begin a marker
  std::string noise_start_;
  // Behind a rejected answer, up to the end of its line: may hold a key, so it is no noise to show.
  bool hidden_ = false;
  std::size_t seen_ = 0;
};

}  // namespace fgsync::wire
