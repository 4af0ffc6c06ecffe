//===- LockWait.cpp - takes the lock on a run's folder between two starts -------------------===//

#include "tools/partita/Run/LockWait.h"
#include "tools/partita/Options.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/Patience.h"
#include "llvm/Support/raw_ostream.h"

using namespace partita::tool;
using partita_rt::PathLock;

bool partita::tool::takeLockWhenFree(PathLock &lock, llvm::StringRef command,
                                     const std::string &folder) {
  auto isFree = [&] { return lock.take(folder) != PathLock::Result::ByAnother; };
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
