// A file that appears complete or not at all: it is written under a temporary name in the same
// folder, synced and renamed. A file that is not committed is removed, also by the handler of
// signals that end a program (interruption.h).
//
// Files left after SIGKILL or a crash are removed by the next TemporaryFile for the same path:
// those named PATH.BOOT-xxxxxx.tmp, with this boot of this machine, that no process has locked. The
// kernel drops a lock with its process. Files of other machines that share the file system remain,
// as do those from before a reboot. If the file system has no locks, the name has no BOOT.

#ifndef PARTITA_RT_COMMON_TEMPORARY_FILE_H
#define PARTITA_RT_COMMON_TEMPORARY_FILE_H

#include <cstdint>
#include <string>
#include <vector>

namespace partita_rt {

class TemporaryFile {
public:
  /// Opens a temporary file for `path`, which must be a regular file or not exist. Throws Error,
  /// like all of these.
  explicit TemporaryFile(const std::string &path);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;
  void write(const void *data, int64_t bytes);
  /// Overwrites bytes that have already been written, from `at` on.
  void rewrite(int64_t at, const void *data, int64_t bytes);
  /// Syncs the file, renames it to `path` and syncs the folder.
  void commit();

private:
  void create();
  std::string path, name;
  int descriptor = -1, slot = -1;
};

/// Makes renames in a folder durable: without it they may be lost in a power failure. Throws Error if the device fails or
/// is full; a file system that cannot sync folders is none.
void syncFolder(const std::string &path);

/// Is this the suffix of a temporary name: ".xxxxxx.tmp" or ".BOOT-xxxxxx.tmp"?
bool isTemporarySuffix(const std::string &text);

/// Removes temporary files for this path that processes left when they ended.
void removeAbandonedFiles(const std::string &path);

/// Removes the files that are not committed, and the folders below that are empty. For signal handlers: it
/// reads plain memory only.
void removeTemporaryFiles();

/// Folders that this process has made, and that should not stay if it ends before there is something in
/// them.
class MadeFolders {
public:
  MadeFolders() = default;
  /// Removes those that are empty.
  ~MadeFolders();
  MadeFolders(const MadeFolders &) = delete;
  MadeFolders &operator=(const MadeFolders &) = delete;
  /// In place of those before; the outermost first.
  void set(const std::vector<std::string> &paths);
  /// They stay, from here on.
  void keep() { set({}); }
  size_t count() const { return folders.size(); }

private:
  std::vector<std::string> folders; ///< the innermost first
  std::vector<int> slots;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_TEMPORARY_FILE_H
