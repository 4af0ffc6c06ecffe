//===- KnownCheckpoints.cpp - which checkpoints a folder held at some time ---------------===//

#include "tools/partita/Run/KnownCheckpoints.h"
#include "runtime/include/partita_rt/checkpoint_folder.h"
#include "llvm/ADT/STLExtras.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;

/// At most so many folders are kept open: a run may keep more checkpoints than a process may have files.
static constexpr size_t kMostOpen = 32;

static std::optional<KnownCheckpoints::Identity> identityOf(const std::string &path) {
  struct statx status;
  if (statx(AT_FDCWD, path.c_str(), 0, STATX_INO | STATX_BTIME, &status) != 0)
    return std::nullopt;
  bool hasBirth = status.stx_mask & STATX_BTIME;
  int64_t birth = int64_t(status.stx_btime.tv_sec) * 1'000'000'000 + status.stx_btime.tv_nsec;
  return KnownCheckpoints::Identity(status.stx_ino, hasBirth ? birth : 0);
}

KnownCheckpoints::KnownCheckpoints(const std::string &folder) {
  for (const partita_rt::CheckpointEntry &entry : partita_rt::checkpointsIn(folder)) {
    std::optional<Identity> identity = identityOf(entry.path);
    if (!identity)
      continue;
    identities.insert(*identity);
    if (identity->second != 0 || descriptors.size() >= kMostOpen)
      continue;
    int opened = open(entry.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (opened >= 0)
      descriptors.push_back(opened);
  }
}

KnownCheckpoints::~KnownCheckpoints() {
  for (int descriptor : descriptors)
    close(descriptor);
}

bool KnownCheckpoints::have(const std::string &path) const {
  std::optional<Identity> identity = identityOf(path);
  return identity && identities.count(*identity) > 0;
}

/// Is any checkpoint in the folder one of them, or not?
bool KnownCheckpoints::anyIs(bool known, const std::string &folder) const {
  return any_of(partita_rt::checkpointsIn(folder), [&](const partita_rt::CheckpointEntry &entry) {
    std::optional<Identity> identity = identityOf(entry.path);
    return identity && (identities.count(*identity) > 0) == known;
  });
}
