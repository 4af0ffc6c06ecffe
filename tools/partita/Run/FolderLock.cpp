//===- FolderLock.cpp - keeps a run's folder between two starts --------------------------===//

#include "tools/partita/Run/FolderLock.h"
#include "runtime/include/partita_rt/abandoned.h"
#include "tools/partita/Options.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/Patience.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <unistd.h>

using namespace partita::tool;

void FolderLock::release() {
  if (descriptor >= 0)
    close(descriptor);
  descriptor = -1;
}

bool FolderLock::take(llvm::StringRef command, const std::string &folder) {
  auto isFree = [&] {
    release();
    descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0 || partita_rt::tryLock(descriptor))
      return true;
    release();
    return false;
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
