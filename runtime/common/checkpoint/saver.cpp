// Copies, writes and completes checkpoints beside the training (saver.h).

#include "common/checkpoint/saver.h"

#include "common/checkpoint/folder.h"
#include "common/mesh/gathered.h"
#include "common/start_marks.h"
#include "common/storage_error.h"
#include "common/target.h"
#include "common/watch/flight.h"
#include "common/watch/rank_position.h"
#include "partita_rt/machine.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <sys/resource.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace partita_rt {

/// The priority of a thread that copies and writes: a quarter of the training's share where both want a
/// processor. If it were lower, the next save would often have to wait.
constexpr int kSavingNice = 5;

/// Runs `work` in a thread; when it is waited for, if there can be none.
static std::future<void> beside(std::function<void()> work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error &) {
    return std::async(std::launch::deferred, work);
  }
}

/// Waits for the work; returns its error.
static SaveFailure errorOfWork(std::future<void> &work) {
  try {
    if (work.valid())
      work.get();
  } catch (const StorageError &error) {
    return {error.what(), /*mayPass=*/true};
  } catch (const std::exception &error) {
    return {error.what()};
  }
  return {};
}

CheckpointSaver::CheckpointSaver(Rank &rank, const std::string &folder, int64_t keep,
                                 std::set<int64_t> kept)
    : rank(rank), folder(folder), keep(keep), kept(std::move(kept)), inode(inodeOf(folder)) {
  if (rank.rank == 0)
    takeFolder();
}

/// An empty folder that rank 0 makes in the folder for checkpoints. By it the other ranks see that they have
/// the same one. Until the first checkpoint is there, it also keeps a late rank of an earlier start, whose
/// saves have failed, from removing the folder as an empty one that its start has made. A later start removes a
/// killed one's as it does an unfinished checkpoint.
std::string CheckpointSaver::markerFolder() const { return unfinishedFolder(folder, 0, start); }

void CheckpointSaver::lockFolder() {
  switch (lock.take(folder)) {
  case PathLock::Result::Taken:
    return;
  case PathLock::Result::NoPath:
    fail("--checkpoint: cannot open the folder %s: %s", folder.c_str(), std::strerror(errno));
  case PathLock::Result::ByAnother:
    noteTaken();
    fail("%s", ownedByAnotherText(kOwnedFolder, folder).c_str());
  }
}

/// Now: another run must not begin in it before the first save.
void CheckpointSaver::takeFolder() {
  start = drawStartNumber();
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::vector<std::string> all = makeFolders(folder);
    made.set(all);
    lockFolder();
    checkNames(folder);
    inode = inodeOf(folder);
    removeUnfinished(folder);
    if (mkdir(markerFolder().c_str(), 0777) == 0) {
      all.push_back(markerFolder());
      return made.set(all);
    }
    if (errno != ENOENT) // the first save says why nothing can be written
      return;
    lock.release(); // of a folder that a late rank has just removed
  }
}

CheckpointSaver::~CheckpointSaver() {
  rank.changes = nullptr;
  stopPreparing = true;
  errorOfWork(preparing);
  if (save)
    save->stop();
  errorOfWork(writing);
  finish();
  if (save)
    discard();
}

/// Removes this rank's file, and the folder if no other rank has one in it.
void CheckpointSaver::discard() {
  save->discard();
  rmdir(unfinishedFolder(folder, step, start).c_str());
  save.reset();
  failed.insert(step);
}

bool CheckpointSaver::isWritten() const {
  return save && (!writing.valid() ||
                  writing.wait_for(std::chrono::seconds(0)) != std::future_status::timeout);
}

/// All ranks learn the start's number, and which of the folder and its parents did not exist: if no save
/// succeeds, the last rank that removes its file removes them.
void CheckpointSaver::shareMade() {
  struct Made {
    uint64_t start, count;
  };
  Made first = gathered(rank, Made{start, made.count()}, "the folder for checkpoints")[0];
  start = first.start;
  std::vector<std::string> all = pathAndParents(folder); // the outermost first
  if (first.count > 0)
    all.push_back(markerFolder());
  made.set({all.end() - ptrdiff_t(first.count), all.end()});
}

void CheckpointSaver::checkShared() const {
  constexpr double kPatience =
      60; // seconds: other hosts may know old contents of the folder for so long
  struct View {
    uint64_t start = 0; ///< 0: it cannot be seen
    int64_t sees = 0;
    char host[64] = {}, path[256] = {}; ///< cut off where they are longer
  };
  View mine;
  std::strncpy(mine.host, hostName().c_str(), sizeof(mine.host) - 1);
  std::strncpy(mine.path, folder.c_str(), sizeof(mine.path) - 1);
  if (rank.rank == 0 && access(markerFolder().c_str(), F_OK) == 0)
    mine.start = start; // else the first save says why
  View first = gathered(rank, mine, "the folder for checkpoints")[0];
  if (first.start == 0)
    return;
  bool isSameHost = std::strcmp(mine.host, first.host) == 0;
  for (auto begin = std::chrono::steady_clock::now();; usleep(100'000)) {
    mine.sees = access(unfinishedFolder(folder, 0, first.start).c_str(), F_OK) == 0;
    std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (mine.sees || isSameHost || passed.count() > kPatience)
      break;
  }
  std::vector<View> all = gathered(rank, mine, "who sees the folder for checkpoints");
  for (size_t r = 0; r < all.size(); ++r)
    if (!all[r].sees)
      fail(
          "--checkpoint: ranks have different folders: what rank 0 on host %s has made in %s is not "
          "in %s of rank %zu on host %s; give all of them one folder, which their hosts share",
          first.host, first.path, all[r].path, r, all[r].host);
}

/// Makes the folder that this save writes into, and nothing above it once there was a folder: while a
/// file system is not mounted, checkpoints must not fill the one below it.
void CheckpointSaver::makeUnfinished() {
  if (inode && inodeOf(folder) != inode)
    throw StorageError("--checkpoint: " + folder +
                       " is not the folder that it was; is a file system not mounted?");
  makeFolders(unfinishedFolder(folder, step, start));
  inode = inodeOf(folder);
}

/// Before the first save: what an earlier run with a larger --keep has left, and this one would remove
/// after it, may take the room that a full disk lacks for it. Those that are kept stay, and so do
/// damaged ones until a save is complete.
void CheckpointSaver::removeSurplus() {
  std::set<int64_t> surplus;
  for (; int64_t(kept.size()) > keep; kept.erase(kept.begin()))
    surplus.insert(*kept.begin());
  if (rank.rank == 0 && !surplus.empty())
    removeSteps(folder, surplus);
}

void CheckpointSaver::prepareCopy() {
  int64_t bytes = ShardSave(rank, folder, {}, nullptr).bytes();
  preparing = beside([this, bytes] {
    buffer.reserve(bytes);
    buffer.touch(stopPreparing);
  });
}

void CheckpointSaver::begin(const CheckpointInfo &info, From from,
                            std::map<std::string, uint64_t> hashes) {
  if (isFirst) {
    shareMade();
    removeSurplus();
  }
  isFirst = false;
  stopPreparing = true;   // the copy can do the rest
  errorOfWork(preparing); // without memory there is none below either
  step = info.step;
  std::map<std::string, std::string> metadata = metadataOf(*rank.program, info);
  std::string into = unfinishedFolder(folder, step, start);
  if (from == From::Copy)
    try {
      save = std::make_unique<ShardSave>(rank, into, metadata, &buffer);
    } catch (const std::bad_alloc &) {
      whyNoCopy = "there is no memory for a copy of what is saved";
      from = From::Memory;
    }
  if (from == From::Memory)
    save = std::make_unique<ShardSave>(rank, into, metadata, nullptr);
  save->expect(std::move(hashes));
  needed = save->checkpointBytes();
  if (from == From::Copy) {
    if (deviceIsHost() && rank.program->announcesChanges)
      rank.changes = this;
    else
      save->copy(ShardSave::By::Rank);
  }
  auto work = [this, from, save = save.get(), caller = std::this_thread::get_id()] {
    if (std::this_thread::get_id() != caller)
      setpriority(PRIO_PROCESS, id_t(gettid()), kSavingNice); // of this thread alone
    if (from == From::Copy)
      save->copy(ShardSave::By::Thread);
    makeUnfinished();
    save->write();
  };
  writing = from == From::Copy ? beside(work) : std::async(std::launch::deferred, work);
  if (from == From::Memory)
    writing.wait(); // writes it now
}

void CheckpointSaver::letChange() {
  PhaseScope phase(rank, Phase::Saving);
  WorkScope work(rank.clock, Work::Transfers);
  auto begin = std::chrono::steady_clock::now();
  save->copy(ShardSave::By::Rank);
  rank.changes = nullptr;
  waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// All ranks call it with their own errors, of which there is one at least. Returns on rank 0 the first
/// one, whose it is, and how many have one.
static SaveFailure reasonOfAll(Rank &rank, const SaveFailure &own) {
  struct Failure {
    int64_t hasFailed = 0, mayPass = 0;
    char why[952] = {}, host[64] = {}; ///< cut off where they are longer
  };
  Failure mine;
  mine.hasFailed = bool(own);
  mine.mayPass = own.mayPass;
  std::strncpy(mine.why, own.why.c_str(), sizeof(mine.why) - 1);
  std::strncpy(mine.host, hostName().c_str(), sizeof(mine.host) - 1);
  std::vector<Failure> all = gathered(rank, mine, "why a checkpoint is not written");
  if (rank.rank != 0 || rank.ranks == 1)
    return rank.rank == 0 ? own : SaveFailure();
  auto hasFailed = [](const Failure &f) { return f.hasFailed != 0; };
  auto first = std::find_if(all.begin(), all.end(), hasFailed);
  auto failures = std::count_if(all.begin(), all.end(), hasFailed);
  return {std::string(first->why) + " (rank " + std::to_string(first - all.begin()) + " on host " +
              first->host + "; " + std::to_string(failures) + " of " + std::to_string(rank.ranks) +
              (failures == 1 ? " ranks has failed)" : " ranks have failed)"),
          std::all_of(all.begin(), all.end(),
                      [](const Failure &f) { return !f.hasFailed || f.mayPass; })};
}

/// From here on the folder has a checkpoint: if it is gone later, somebody has removed it.
void CheckpointSaver::keepMade() {
  made.keep();
  if (rank.rank == 0)
    rmdir(markerFolder().c_str());
  noteFlightFolderHasParents();
}

SaveFailure CheckpointSaver::complete() {
  SaveFailure failure = errorOfWork(writing);
  rank.changes = nullptr;
  int64_t mine = failure ? -1 : int64_t(save->checksum());
  std::vector<int64_t> all = gathered(rank, mine, "the shards of a checkpoint");
  if (*std::min_element(all.begin(), all.end()) < 0) {
    discard();
    return reasonOfAll(rank, failure);
  }
  if (rank.rank != 0)
    keepMade();
  completed = std::move(save);
  keptBefore = kept;
  kept.insert(step);
  while (int64_t(kept.size()) > keep)
    kept.erase(kept.begin());
  if (rank.rank == 0)
    completing = beside([this, all] {
      completed->writeIndex(all);
      completeCheckpoint(folder, step, start);
      keepOnly(folder, kept);
      if (inode) // a restart may go on from what is there now: nothing of a run that this one replaces is left
        noteSaved(*inode);
      failed = removeUnfinished(folder, failed, start);
    });
  return {};
}

SaveFailure CheckpointSaver::finish() {
  if (!completing.valid())
    return {};
  SaveFailure failure = errorOfWork(completing);
  if (!failure) {
    keepMade();
    return {};
  }
  kept = keptBefore;
  failed.insert(step);
  failed = removeUnfinished(folder, failed, start);
  return failure;
}

} // namespace partita_rt
