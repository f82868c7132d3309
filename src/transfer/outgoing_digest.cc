#include "transfer/outgoing_digest.h"

namespace fgsync::transfer {
namespace {

void tell(Session& session, std::uint64_t id, const std::string& display,
          const Result<wire::Checksum>& digest) {
  if (!digest.ok()) session.errors().add(display, digest.status());
  session.push(wire::FileEnd{
      .entry = id, .complete = digest.ok(), .digest = digest.ok() ? *digest : wire::Checksum()});
}

}  // namespace

DigestRequest digest_request(Session& session, const OutgoingEntry& outgoing) {
  const wire::ManifestEntry& entry = outgoing.entry;
  return {
      .place = {.directories = outgoing.tree->directories,
                .directory = outgoing.directory,
                .name = outgoing.name,
                .identity = {entry.size, {entry.mtime_seconds, entry.mtime_nanoseconds}}},
      .chunk_bytes = session.parameters.chunk_bytes,
      .settle = [&session, id = entry.id,
                 display = outgoing.tree->display_path(outgoing.directory, outgoing.name)](
                    const Result<wire::Checksum>& digest) { tell(session, id, display, digest); }};
}

}  // namespace fgsync::transfer
