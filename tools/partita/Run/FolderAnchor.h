//===- FolderAnchor.h - whether a folder is still what it was -----------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_FOLDERANCHOR_H
#define PARTITA_TOOLS_RUN_FOLDERANCHOR_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <sys/types.h>

namespace partita::tool {

/// Detects that the folder of checkpoints was moved away, or its file system unmounted: a restart would
/// begin again. Remembers the inode of the folder or, while there is none, of its nearest existing
/// parent.
class FolderAnchor {
public:
  /// `folder`: of --checkpoint; "" if there is none.
  explicit FolderAnchor(llvm::StringRef folder);
  /// From now on it is the folder itself, which had this inode when a checkpoint was completed in it.
  void moveTo(llvm::StringRef folder, ino_t its);
  /// Leads the path to the same inode as before? True also if the path never existed.
  bool isThere() const;
  /// Waits until it is the same (Patience::Folder), or a signal asks this process to end. Returns whether it is.
  bool waitFor() const;
  const std::string &name() const { return path; }

private:
  std::string path;
  std::optional<ino_t> inode; ///< empty: the path could not be read, so nothing can be compared
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_FOLDERANCHOR_H
