// A file that appears whole or not at all: written under another name beside its own, brought to
// the disk, renamed. What is not committed is removed, also by the handler of signals that end a
// program (interruption.h).
//
// What SIGKILL or a crash leaves, the next one for the same path removes: PATH.BOOT-xxxxxx.tmp of
// this boot of this machine that no process holds a lock on. The kernel drops a lock with its
// process. Files of other machines that share the file system stay, as do those from before a
// restart. Where the file system has no locks the name has no BOOT.

#ifndef PARTITA_RT_COMMON_TEMPORARY_FILE_H
#define PARTITA_RT_COMMON_TEMPORARY_FILE_H

#include <cstdint>
#include <string>

namespace partita_rt {

class TemporaryFile {
public:
  /// For `path`, which must be a regular file or nothing yet. Throws Error, as all of these.
  explicit TemporaryFile(const std::string &path);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;
  void write(const void *data, int64_t bytes);
  /// Bytes that have been written, from `at` on, once more.
  void rewrite(int64_t at, const void *data, int64_t bytes);
  /// Syncs the file, renames it to `path` and syncs the folder.
  void commit();
  /// To another name in the folder, which is a regular file's or nobody's.
  void commitAs(const std::string &other);

private:
  void create();
  std::string path, name;
  int descriptor = -1, slot = -1;
};

/// ".xxxxxx.tmp" or ".BOOT-xxxxxx.tmp": what the name has beside that of the file that it becomes.
bool isTemporarySuffix(const std::string &text);

/// Removes what processes that are no more have left of files that would have become this one.
void removeAbandonedFiles(const std::string &path);

/// Removes the files that are not committed. For handlers of signals: it looks at plain memory.
void removeTemporaryFiles();

/// A folder that one process at a time writes into, until its object goes.
class FolderClaim {
public:
  ~FolderClaim();
  /// Once it is there. Throws Error "<option>: ..." when another process has it.
  void take(const char *option, const std::string &folder);

private:
  int descriptor = -1;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_TEMPORARY_FILE_H
