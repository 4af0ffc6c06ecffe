//===- FolderLock.cpp - whether a run still writes into its folder -----------------------===//

#include "tools/partita/Run/FolderLock.h"
#include "runtime/include/partita_rt/abandoned.h"
#include <fcntl.h>
#include <unistd.h>

void partita::tool::waitForLock(const std::string &folder) {
  for (int attempt = 0; attempt < 3000; ++attempt) {
    int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
      return;
    bool isFree = partita_rt::tryLock(descriptor);
    close(descriptor);
    if (isFree)
      return;
    usleep(10'000);
  }
}
