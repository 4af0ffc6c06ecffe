//===- FolderLock.cpp - whether a run still writes into its folder -----------------------===//

#include "tools/partita/Run/FolderLock.h"
#include "runtime/include/partita_rt/abandoned.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/Patience.h"
#include <fcntl.h>
#include <unistd.h>

using namespace partita::tool;

void partita::tool::waitForLock(const std::string &folder) {
  waitUntil(secondsOf(Patience::Lock), [&] {
    int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool isFree = descriptor < 0 || partita_rt::tryLock(descriptor);
    if (descriptor >= 0)
      close(descriptor);
    return isFree;
  });
}
