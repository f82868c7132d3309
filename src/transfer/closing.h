// How a session ends at the receiver, whatever it was for.
#pragma once

#include "transfer/session.h"

namespace fgsync::transfer {

// After this side's own summary: the sender's errors, notes and summary. With it the session is
// complete; else it has failed.
io::Task<void> receive_last_words(Session& session, wire::Summary* sender_summary);

}  // namespace fgsync::transfer
