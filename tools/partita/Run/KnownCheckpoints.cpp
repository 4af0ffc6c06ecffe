//===- KnownCheckpoints.cpp - which checkpoints a folder held at some time ---------------===//

#include "tools/partita/Run/KnownCheckpoints.h"
#include "runtime/include/partita_rt/checkpoint_folder.h"
#include "llvm/ADT/STLExtras.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;

static int openFolder(const std::string &path) {
  return open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

std::optional<KnownCheckpoints::Identity> KnownCheckpoints::identityOf(int descriptor) {
  struct stat status;
  if (descriptor < 0 || fstat(descriptor, &status) != 0)
    return std::nullopt;
  return status.st_ino;
}

KnownCheckpoints::KnownCheckpoints(const std::string &folder) {
  for (const partita_rt::CheckpointEntry &entry : partita_rt::checkpointsIn(folder)) {
    int descriptor = openFolder(entry.path);
    if (std::optional<Identity> identity = identityOf(descriptor))
      identities.insert(*identity);
    if (descriptor >= 0)
      descriptors.push_back(descriptor);
  }
}

KnownCheckpoints::~KnownCheckpoints() {
  for (int descriptor : descriptors)
    close(descriptor);
}

static std::optional<KnownCheckpoints::Identity> identityOfFolder(const std::string &path) {
  int descriptor = openFolder(path);
  std::optional<KnownCheckpoints::Identity> identity = KnownCheckpoints::identityOf(descriptor);
  if (descriptor >= 0)
    close(descriptor);
  return identity;
}

bool KnownCheckpoints::have(const std::string &path) const {
  std::optional<Identity> identity = identityOfFolder(path);
  return identity && identities.count(*identity) > 0;
}

/// Is any checkpoint in the folder one of them, or not?
bool KnownCheckpoints::anyIs(bool known, const std::string &folder) const {
  return any_of(partita_rt::checkpointsIn(folder), [&](const partita_rt::CheckpointEntry &entry) {
    std::optional<Identity> identity = identityOfFolder(entry.path);
    return identity && (identities.count(*identity) > 0) == known;
  });
}
