//===- KnownCheckpoints.h - which checkpoints a folder held at some time ------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_KNOWNCHECKPOINTS_H
#define PARTITA_TOOLS_RUN_KNOWNCHECKPOINTS_H

#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace partita::tool {

/// The checkpoints that a folder held at some time, recognized whatever their names are later: by their inodes. The number of
/// a removed inode may be given to the next folder, but not while it is open, so their folders stay open.
class KnownCheckpoints {
public:
  explicit KnownCheckpoints(const std::string &folder);
  ~KnownCheckpoints();
  KnownCheckpoints(const KnownCheckpoints &) = delete;
  KnownCheckpoints &operator=(const KnownCheckpoints &) = delete;

  /// Is the checkpoint in this folder one of them?
  bool have(const std::string &path) const;
  bool areIn(const std::string &folder) const { return anyIs(true, folder); }
  /// Does the folder hold any other?
  bool hasNew(const std::string &folder) const { return anyIs(false, folder); }

  using Identity = ino_t; ///< device numbers may change when a file system is mounted again
  static std::optional<Identity> identityOf(int descriptor);

private:
  bool anyIs(bool known, const std::string &folder) const;

  std::set<Identity> identities;
  std::vector<int> descriptors; ///< of their folders
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_KNOWNCHECKPOINTS_H
