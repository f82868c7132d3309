#include "transfer/closing.h"

namespace fgsync::transfer {

io::Task<void> receive_last_words(Session& session, wire::Summary* sender_summary) {
  while (true) {
    Result<wire::Message> message = co_await receive_message(session);
    if (!message.ok()) co_return;
    if (auto* errors = std::get_if<wire::ErrorBatch>(&*message)) {
      for (ErrorEntry& error : errors->errors) session.add_peer_error(std::move(error));
    } else if (const auto* notes = std::get_if<wire::NoteBatch>(&*message)) {
      for (const std::string& note : notes->notes) session.add_peer_note(note);
    } else if (const auto* summary = std::get_if<wire::Summary>(&*message)) {
      *sender_summary = *summary;
      session.complete();
      co_return;
    } else {
      session.fail(Status(ErrorCode::kProtocolError, "a message that a sender does not send now")
                       .with_context(session.peer()));
      co_return;
    }
  }
}

}  // namespace fgsync::transfer
