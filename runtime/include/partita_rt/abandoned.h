// By what the files and folders of a killed process are known as nobody's. Their names carry the
// boot in which they were made, and whoever makes one holds a lock on it as long as the process
// lives. The compiler's folders and the runtime's files are made so.

#ifndef PARTITA_RT_ABANDONED_H
#define PARTITA_RT_ABANDONED_H

#include <cctype>
#include <fstream>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>

namespace partita_rt {

/// Sixteen hexadecimal digits by which this boot of this machine is known; empty where it cannot be
/// told.
inline std::string bootName() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text, digits;
  std::getline(file, text);
  for (unsigned char c : text)
    if (std::isxdigit(c) && digits.size() < 16)
      digits += char(c);
  return digits.size() == 16 ? digits : "";
}

/// Locks the open file or folder if nobody else has, and if `path` still leads to it. The lock goes
/// with the descriptor.
inline bool lockOpened(int descriptor, const std::string &path) {
  struct stat opened, now;
  return flock(descriptor, LOCK_EX | LOCK_NB) == 0 && fstat(descriptor, &opened) == 0 &&
         lstat(path.c_str(), &now) == 0 && opened.st_ino == now.st_ino &&
         opened.st_dev == now.st_dev;
}

} // namespace partita_rt

#endif // PARTITA_RT_ABANDONED_H
