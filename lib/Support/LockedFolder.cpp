//===- LockedFolder.cpp - folders whose owner is known to live --------------------------------===//

#include "partita/Support/LockedFolder.h"
#include "runtime/include/partita_rt/abandoned.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using namespace partita;

/// Opens a folder of this user and locks it; -1 if that failed.
static int lockFolder(const char *path) {
  int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status;
  if (descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_uid == geteuid() &&
      partita_rt::lockOpened(descriptor, path))
    return descriptor;
  if (descriptor >= 0)
    close(descriptor);
  return -1;
}

void LockedFolder::unlock() {
  if (descriptor >= 0)
    close(descriptor);
  descriptor = -1;
}

void LockedFolder::release() {
  name.clear();
  unlock();
}

/// Removes the folders BEGIN-xxxxxx that nobody has locked.
static void removeAbandoned(StringRef begin) {
  std::string file = (sys::path::filename(begin) + "-").str();
  StringRef around = sys::path::parent_path(begin);
  std::error_code error;
  SmallVector<std::string> found;
  for (sys::fs::directory_iterator entry(around.empty() ? "." : around, error), end;
       !error && entry != end; entry.increment(error)) {
    StringRef its = sys::path::filename(entry->path());
    if (its.consume_front(file) && its.size() == 6 && all_of(its, isHexDigit))
      found.push_back(entry->path());
  }
  for (const std::string &path : found)
    if (int lock = lockFolder(path.c_str()); lock >= 0) {
      sys::fs::remove_directories(path);
      close(lock);
    }
}

/// Makes the folder with a lock from the beginning on: who looks for abandoned ones between the two
/// may remove it, and then it is made once more.
std::string LockedFolder::create(StringRef prefix) {
  std::string boot = partita_rt::bootName(), begin = (prefix + "-" + boot).str();
  if (!boot.empty())
    removeAbandoned(begin);
  SmallString<128> made;
  std::error_code error;
  for (int attempt = 0; attempt < 8 && !boot.empty() && !error; ++attempt) {
    error = sys::fs::createUniqueDirectory(begin, made);
    descriptor = error ? -1 : lockFolder(made.c_str());
    if (descriptor >= 0) {
      name = made.str();
      return {};
    }
    if (!error)
      sys::fs::remove(made);
  }
  if (!error)
    error = sys::fs::createUniqueDirectory(prefix, made);
  if (error)
    return (prefix + ": " + error.message()).str();
  name = made.str();
  return {};
}
