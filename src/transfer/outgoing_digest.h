// A digest that the receiver asks for, of an entry that was announced.
#pragma once

#include "transfer/digest_lanes.h"
#include "transfer/outgoing_table.h"
#include "transfer/session.h"

namespace fgsync::transfer {

// Reads the file and tells the receiver, in a FileEnd; what cannot be read is an error of this
// side. The session and the entry's tree outlive the reading.
DigestRequest digest_request(Session& session, const OutgoingEntry& outgoing);

}  // namespace fgsync::transfer
