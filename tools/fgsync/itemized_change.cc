#include "itemized_change.h"

#include "text.h"

namespace fgsync::tools {
namespace {

char done(const EntryChange& change, bool to_another_host) {
  if (!change.is_replicated) return '.';
  if (change.kind != EntryKind::kFile) return 'c';
  return to_another_host ? '<' : '>';
}

char kind_letter(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFile:
      return 'f';
    case EntryKind::kDirectory:
      return 'd';
    case EntryKind::kSymlink:
      return 'L';
  }
  return '?';
}

std::string attributes(const EntryDifferences& differences) {
  if (differences.has(EntryDifferences::kNew)) return "+++++++++";
  struct Letter {
    std::uint16_t bit;
    char letter;
  };
  constexpr Letter kLetters[] = {
      {EntryDifferences::kContents, 'c'}, {EntryDifferences::kSize, 's'},
      {EntryDifferences::kTime, 't'},     {EntryDifferences::kMode, 'p'},
      {EntryDifferences::kOwner, 'o'},    {EntryDifferences::kGroup, 'g'}};
  std::string text;
  for (const Letter& letter : kLetters) text += differences.has(letter.bit) ? letter.letter : '.';
  return text + "...";  // access times, ACLs and extended attributes
}

}  // namespace

std::string itemized_change(const EntryChange& change, bool to_another_host) {
  std::string line(1, done(change, to_another_host));
  line += kind_letter(change.kind);
  line += attributes(change.differences) + " " + escape_name(change.path);
  if (change.kind == EntryKind::kSymlink) line += " -> " + escape_name(change.symlink_target);
  return line;
}

}  // namespace fgsync::tools
