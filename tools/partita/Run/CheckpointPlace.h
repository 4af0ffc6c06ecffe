//===- CheckpointPlace.h - the folder of a supervised run's checkpoints ------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_CHECKPOINTPLACE_H
#define PARTITA_TOOLS_RUN_CHECKPOINTPLACE_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace partita::tool {

/// The checkpoints that a folder held at some time, recognized whatever their names are later.
class Checkpoints {
public:
  explicit Checkpoints(const std::string &folder);
  ~Checkpoints();
  Checkpoints(const Checkpoints &) = delete;
  Checkpoints &operator=(const Checkpoints &) = delete;

  bool areIn(const std::string &folder) const { return anyIs(true, folder); }
  /// Does the folder hold any other?
  bool hasNew(const std::string &folder) const { return anyIs(false, folder); }

private:
  using Identity = std::pair<dev_t, ino_t>;
  static std::optional<Identity> identityOf(int descriptor);
  bool anyIs(bool known, const std::string &folder) const;

  std::set<Identity> identities;
  /// Of their folders, which stay open: the number of a removed inode may be given to the next
  /// folder, but not while the inode is open.
  std::vector<int> descriptors;
};

/// Detects that the folder of checkpoints was moved away, or its file system unmounted: a restart would
/// begin again. Remembers the inode of the folder or, until it has a checkpoint, of its nearest existing
/// parent.
class Anchor {
public:
  /// `folder`: of --checkpoint; "" if there is none.
  explicit Anchor(llvm::StringRef folder);
  /// From now on it is the folder itself, which had this inode when a checkpoint was completed in it.
  void moveTo(llvm::StringRef folder, ino_t its);
  /// Leads the path to the same inode as before? Also true if it has led to none from the beginning.
  bool isThere() const;
  /// Waits for up to 31 seconds until it is the same; returns whether it is.
  bool waitFor() const;
  const std::string &name() const { return path; }

private:
  std::string path;
  std::optional<ino_t> inode; ///< empty: the path could not be read, so nothing can be compared
};

/// Waits until no process of the run that has ended holds the folder's lock any more, for at most
/// 30 seconds: then the next one reports that another run writes into the folder.
void waitForLock(const std::string &folder);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_CHECKPOINTPLACE_H
