// Saves checkpoints while a rank trains. A save has these steps:
//
//   begin()     training goes on
//   (a thread)  copies what the rank writes, writes the copy into DIR/step-N.START.tmp, and syncs it
//   letChange() before the next step first changes a parameter or state, the rank's own thread helps
//               with what is not copied yet
//   complete()  once isWritten() on every rank, all ranks gather the checksums; rank 0's thread writes
//               the index and renames the folder to DIR/step-N, then removes old checkpoints
//
// If the host does not compute the steps (a GPU does), or the program does not announce changes
// (Program::announcesChanges), begin() returns when everything is copied. Without memory for a copy, or as its caller asks, begin() writes from the rank's own memory and
// returns when the file is complete. There is one save at a time: if the next one is due before, training
// waits for complete().

#ifndef PARTITA_RT_COMMON_CHECKPOINT_SAVER_H
#define PARTITA_RT_COMMON_CHECKPOINT_SAVER_H

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/folder.h"
#include "common/checkpoint/shards.h"
#include "common/temporary_file.h"
#include "partita_rt/changes.h"
#include "partita_rt/owned_paths.h"

#include <future>
#include <map>
#include <optional>
#include <set>

namespace partita_rt {

/// Why a save has failed; false if it has not.
struct SaveFailure {
  std::string why;
  bool mayPass = false; ///< on every rank that has failed (StorageError)

  explicit operator bool() const { return !why.empty(); }
};

class CheckpointSaver : private ChangeGuard {
public:
  /// `kept`: the steps of earlier checkpoints that this run continues, which count among the `keep`
  /// newest; all others are removed by the first save. On rank 0, makes the folder, locks it for this run,
  /// and removes what a killed run left there. Throws Error if it cannot, or a user's file has the name of
  /// a checkpoint.
  CheckpointSaver(Rank &rank, const std::string &folder, int64_t keep, std::set<int64_t> kept);
  /// Stops a save that is under way, and removes its files.
  ~CheckpointSaver() override;
  CheckpointSaver(const CheckpointSaver &) = delete;
  CheckpointSaver &operator=(const CheckpointSaver &) = delete;

  /// Throws Error, on all ranks, unless all of them see one folder. All call it together, before the first
  /// save.
  void checkShared() const;

  /// In the names of what this start writes; 0 on other ranks than 0 before the first begin().
  StartNumber startNumber() const { return start; }
  /// Is there a save that begin() has begun and complete() has not ended?
  bool isUnderWay() const { return save != nullptr; }
  /// Has this rank's file been written, or failed to be?
  bool isWritten() const;

  /// Prepares memory for copies beside the first steps, so that the first save takes no longer than
  /// others.
  void prepareCopy();
  enum class From { Copy, Memory };
  /// Begins a save. All ranks call it, with none under way, and after finish(). `hashes`: of tensors that other ranks
  /// have too (ShardSave::expect). What it cannot write is an error of complete().
  void begin(const CheckpointInfo &info, From from, std::map<std::string, uint64_t> hashes = {});
  /// Ends the save, after waiting for this rank's file if it must. All ranks call it. Returns, on rank 0, why
  /// the save has failed, and on how many ranks; on the others nothing. Rank 0 may still be completing the
  /// folder when this returns.
  SaveFailure complete();
  /// Has rank 0 begun to complete a checkpoint that finish() has not collected yet?
  bool isCompleting() const { return completing.valid(); }
  /// Waits until the last checkpoint is complete, on rank 0. Returns why it is not.
  SaveFailure finish();

  /// Seconds for which steps have waited for copies: those that begin() left to a thread.
  double waitedInSteps() const { return waited; }
  /// Bytes of the checkpoint of the last save, without headers.
  int64_t checkpointBytes() const { return needed; }
  /// Bytes of the copy that this rank keeps.
  int64_t copyBytes() const { return buffer.size(); }
  /// Why a save wrote from the rank's memory although a copy was asked for; "" if none did.
  const std::string &noCopy() const { return whyNoCopy; }

private:
  void takeFolder();
  void lockFolder();
  void shareMade();
  std::string markerFolder() const;
  void makeUnfinished();
  void removeSurplus();
  void discard();
  void keepMade();
  void letChange() override;

  Rank &rank;
  std::string folder;
  int64_t keep;
  std::set<int64_t> kept, keptBefore; ///< steps of checkpoints; before the last save
  /// Steps of saves that have failed, of which rank 0 may have to remove something: where a file
  /// cannot be written, it may be that none can be removed. Not all that is unfinished: other ranks
  /// may have begun the next save.
  std::set<int64_t> failed;
  PathLock lock;              ///< on rank 0
  std::optional<ino_t> inode; ///< of the folder; unknown until there is one
  bool isFirst = true;
  StartNumber start = 0; ///< known to all ranks from their first save on; before, to rank 0
  MadeFolders made;  ///< to remove again if no save succeeds: markerFolder(), and those above it
  SaveBuffer buffer; ///< the thread's of `preparing`, until it ends
  std::future<void> preparing;
  std::atomic<bool> stopPreparing{false};
  std::unique_ptr<ShardSave> save, completed; ///< under way; the last one
  int64_t step = -1;                          ///< of either
  std::future<void> writing;                  ///< this rank's file of `save`
  std::future<void> completing;               ///< of `completed`, on rank 0
  int64_t needed = 0;
  double waited = 0;
  std::string whyNoCopy;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_CHECKPOINT_SAVER_H
