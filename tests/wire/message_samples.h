// One valid message of each kind, with nothing left at its default: for round trips, truncation and
// fuzzing.
#pragma once

#include <cstddef>
#include <vector>

#include "wire/message.h"

namespace fgsync::wire {

Hello sample_hello();
Setup sample_setup();
SourceOffer sample_source_offer();
TargetAccept sample_target_accept();
ManifestBatch sample_manifest_batch();
Summary sample_summary();

// Every kind, in the order of Message.
std::vector<Message> sample_messages();

Checksum sample_checksum();

}  // namespace fgsync::wire
