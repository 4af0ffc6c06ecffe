// Locks of files and folders, which the kernel drops with their process. By them, files and folders left
// by a killed process are recognized: their names contain the boot in which they were made, and the
// process holds a lock on each while it lives. Applies to the compiler's folders and the runtime's
// files.

#ifndef PARTITA_RT_ABANDONED_H
#define PARTITA_RT_ABANDONED_H

#include "machine.h"

#include <cctype>
#include <cerrno>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>

namespace partita_rt {

/// Returns sixteen hexadecimal digits that identify this boot of this machine; empty if unknown.
inline std::string bootName() {
  std::string digits;
  for (unsigned char c : bootId())
    if (std::isxdigit(c) && digits.size() < 16)
      digits += char(c);
  return digits.size() == 16 ? digits : "";
}

/// Locks an open file or folder until it is closed; returns false if another process has the lock.
/// Some network file systems have no locks; then it returns true for everyone.
inline bool tryLock(int descriptor) {
  return flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/// Locks the open file or folder. Returns false if another process holds the lock, or if `path` no
/// longer leads to it. The lock ends with the descriptor.
inline bool lockOpened(int descriptor, const std::string &path) {
  struct stat opened, now;
  return flock(descriptor, LOCK_EX | LOCK_NB) == 0 && fstat(descriptor, &opened) == 0 &&
         lstat(path.c_str(), &now) == 0 && opened.st_ino == now.st_ino &&
         opened.st_dev == now.st_dev;
}

} // namespace partita_rt

#endif // PARTITA_RT_ABANDONED_H
