//===- KnownCheckpoints.h - which checkpoints a folder held at some time ------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_KNOWNCHECKPOINTS_H
#define PARTITA_TOOLS_RUN_KNOWNCHECKPOINTS_H

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace partita::tool {

/// The checkpoints that a folder held at some time, recognized whatever their names are later: by the inode of each one's folder,
/// and when that was made, since the number of a removed inode may be given to the next folder.
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

  /// Inode and birth, in nanoseconds; 0 if the file system notes none. Device numbers may change when it is mounted again.
  using Identity = std::pair<uint64_t, int64_t>;

private:
  bool anyIs(bool known, const std::string &folder) const;

  std::set<Identity> identities;
  /// Of the newest folders without a birth: an inode's number is not given away while it is open.
  std::vector<int> descriptors;
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_KNOWNCHECKPOINTS_H
