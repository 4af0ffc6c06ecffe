//===- FolderLock.cpp - whether a run still writes into its folder -----------------------===//

#include "tools/partita/Run/FolderLock.h"
#include "runtime/include/partita_rt/abandoned.h"
#include "tools/partita/Options.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/Patience.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <unistd.h>

using namespace partita::tool;

bool partita::tool::waitForLock(llvm::StringRef command, const std::string &folder) {
  auto isFree = [&] {
    int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool isFree = descriptor < 0 || partita_rt::tryLock(descriptor);
    if (descriptor >= 0)
      close(descriptor);
    return isFree;
  };
  if (waitUntil(1, isFree))
    return true;
  if (interruptingSignal())
    return false;
  llvm::errs() << "partita " << command << ": waits up to " << textOf(Patience::Lock)
               << " for what still holds the folder '" << printableLines(folder)
               << "': processes of the last start, or another run\n";
  llvm::errs().flush();
  return waitUntil(secondsOf(Patience::Lock) - 1, isFree);
}
