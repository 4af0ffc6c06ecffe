//===- CheckpointPlace.cpp - the folder of a supervised run's checkpoints -------------------===//

#include "tools/partita/Run/CheckpointPlace.h"
#include "runtime/include/partita_rt/abandoned.h"
#include "runtime/include/partita_rt/checkpoint_folder.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/Verdict.h"
#include "llvm/ADT/STLExtras.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;

static int openFolder(const std::string &path) {
  return open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

std::optional<Checkpoints::Identity> Checkpoints::identityOf(int descriptor) {
  struct stat status;
  if (descriptor < 0 || fstat(descriptor, &status) != 0)
    return std::nullopt;
  return Identity(status.st_dev, status.st_ino);
}

Checkpoints::Checkpoints(const std::string &folder) {
  for (const partita_rt::CheckpointEntry &entry : partita_rt::checkpointsIn(folder)) {
    int descriptor = openFolder(entry.path);
    if (std::optional<Identity> identity = identityOf(descriptor))
      identities.insert(*identity);
    if (descriptor >= 0)
      descriptors.push_back(descriptor);
  }
}

Checkpoints::~Checkpoints() {
  for (int descriptor : descriptors)
    close(descriptor);
}

/// Is any checkpoint in the folder one of them, or not?
bool Checkpoints::anyIs(bool known, const std::string &folder) const {
  return any_of(partita_rt::checkpointsIn(folder), [&](const partita_rt::CheckpointEntry &entry) {
    int descriptor = openFolder(entry.path);
    std::optional<Identity> identity = identityOf(descriptor);
    if (descriptor >= 0)
      close(descriptor);
    return identity && (identities.count(*identity) > 0) == known;
  });
}

Anchor::Anchor(StringRef folder) : path(folder.str()) {
  while (!partita_rt::inodeOf(path) && path.size() > 1 && path.find('/') != std::string::npos)
    path.resize(std::max<size_t>(path.rfind('/'), 1)); // "/" remains
  if (!partita_rt::inodeOf(path))
    path = ".";
  inode = partita_rt::inodeOf(path);
}

void Anchor::moveTo(StringRef folder, ino_t its) {
  path = folder.str();
  inode = its;
}

bool Anchor::isThere() const { return partita_rt::inodeOf(path) == inode; }

bool Anchor::waitFor() const {
  for (int looks = 1; looks < kMostRefusals; ++looks)
    if (!isThere() && !interruptingSignal())
      sleep(secondsAfter(looks));
  return isThere();
}

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
