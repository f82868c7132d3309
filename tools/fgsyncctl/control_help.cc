#include "control_help.h"

namespace fgsync::tools {

std::string control_help_text() {
  return "Usage: fgsyncctl COMMAND [OPTIONS] ...\n"
         "\n"
         "Everything about fgsync that is not a transfer.\n"
         "\n"
         "Commands:\n"
         "  verify      check a tree against its receipt, or against its source\n"
         "  keygen      make keys for fgsyncd (not in this version)\n"
         "  doctor      look for what hinders a transfer (not in this version)\n"
         "  bench       measure disks, processor and network (not in this version)\n"
         "  status      show the runs under way (not in this version)\n"
         "\n"
         "fgsyncctl COMMAND --help tells more. fgsyncctl --version shows the version.\n";
}

std::string verify_help_text() {
  return "Usage: fgsyncctl verify [OPTIONS] TREE\n"
         "       fgsyncctl verify [OPTIONS] SOURCE TARGET\n"
         "\n"
         "Checks TREE, without its source, against the receipt that fgsync has left in its\n"
         "state directory (TREE/.fgsync/receipt): every file's size, time and contents,\n"
         "read past the page cache where that is possible. TREE may be one file in such a\n"
         "directory.\n"
         "\n"
         "With SOURCE and TARGET, given as to fgsync (one may be [USER@]HOST:PATH),\n"
         "compares the contents of the two. Both sides read, and only digests go over.\n"
         "\n"
         "Nothing is written. Each difference is a line on standard output.\n"
         "\n"
         "  -q, --quiet                 say nothing but errors and differences\n"
         "  -v, --verbose               name the files that the receipt does not know\n"
         "      --progress[=WHEN]       auto (on a terminal), always, never, or json: an\n"
         "                              object a line each second\n"
         "      --json                  print the report as one JSON object\n"
         "      --io-engine=WORD        auto, uring or posix\n"
         "  -e, --rsh=CMD               remote shell (default ssh)\n"
         "      --remote-fgsync=PATH    the far side's fgsync (default fgsync)\n"
         "      --bind=ADDR             use this host's address or interface ADDR\n"
         "      --port=N|LO-HI          port, or range of ports, of the far side\n"
         "      --allow-public          allow addresses outside private networks\n"
         "  -4, --ipv4                  use IPv4 only\n"
         "  -6, --ipv6                  use IPv6 only\n"
         "      --timeout=S             end after so long without progress (default 5m)\n"
         "      --connect-timeout=S     end if not connected after so long (default 15s)\n"
         "      --help                  show this help\n"
         "\n"
         "Exit status:\n"
         "    0  every file that the receipt knows is there and as it says; or the\n"
         "       two trees are the same\n"
         "    1  usage\n"
         "    3  no tree, no receipt, or one that cannot be read whole\n"
         "    4  not offered by this build, or a receipt of a newer version\n"
         "   20  ended by SIGINT, SIGTERM or SIGHUP\n"
         "   23  some files could not be read\n"
         "   24  some files changed while they were read\n"
         "   40  a difference was found\n"
         "Others are those of fgsync: what kept the two sides from comparing.\n";
}

}  // namespace fgsync::tools
