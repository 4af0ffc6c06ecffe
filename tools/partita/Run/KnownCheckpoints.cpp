//===- KnownCheckpoints.cpp - which checkpoints a folder held at some time ---------------===//

#include "tools/partita/Run/KnownCheckpoints.h"
#include "runtime/include/partita_rt/checkpoint_folder.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <fcntl.h>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

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

void KnownCheckpoints::release() {
  for (int descriptor : descriptors)
    close(descriptor);
  descriptors.clear();
}

void KnownCheckpoints::hold(const std::string &folder) {
  release();
  KnownCheckpoints now(folder);
  std::set<Identity> known;
  std::set_intersection(identities.begin(), identities.end(), now.identities.begin(),
                        now.identities.end(), std::inserter(known, known.end()));
  identities = std::move(known);
  descriptors.swap(now.descriptors); // those of others as well
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
