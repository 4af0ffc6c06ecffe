// Files that appear whole or not at all (temporary_file.h).

#include "common/temporary_file.h"

#include "partita_rt/types.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace partita_rt {

//===-- What signals remove -----------------------------------------------------------------===//

namespace {

/// Plain memory: a signal's handler may look at nothing else.
struct Doomed {
  std::atomic<bool> taken{false}, ready{false};
  char name[PATH_MAX];
};
Doomed doomed[64]; // a file per rank of a large process

/// The place of a file that signals remove; -1 when there is none left.
int doom(const std::string &name) {
  for (int slot = 0; slot < int(std::size(doomed)) && name.size() < PATH_MAX; ++slot)
    if (!doomed[slot].taken.exchange(true)) {
      std::memcpy(doomed[slot].name, name.c_str(), name.size() + 1);
      doomed[slot].ready = true;
      return slot;
    }
  return -1;
}

void spare(int slot) {
  if (slot < 0)
    return;
  doomed[slot].ready = false;
  doomed[slot].taken = false;
}

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

} // namespace

void removeTemporaryFiles() {
  for (Doomed &each : doomed)
    if (each.ready)
      unlink(each.name);
}

//===-- TemporaryFile -----------------------------------------------------------------------===//

TemporaryFile::TemporaryFile(const std::string &path) : path(path), name(path + ".XXXXXX.tmp") {
  struct stat status;
  bool exists = stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode))
    fail("%s is not a regular file, so it cannot be replaced", path.c_str());
  descriptor = mkostemps(name.data(), 4, O_CLOEXEC);
  if (descriptor < 0)
    fail("cannot write %s: %s", path.c_str(), std::strerror(errno));
  slot = doom(name);
  mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, exists ? status.st_mode & 0777 : 0666 & ~mask); // mkostemps makes it private
}

TemporaryFile::~TemporaryFile() {
  if (descriptor < 0)
    return;
  close(descriptor);
  unlink(name.c_str());
  spare(slot);
}

void TemporaryFile::write(const void *data, int64_t bytes) {
  auto *from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t written = ::write(descriptor, from, size_t(std::min<int64_t>(bytes, 1 << 30)));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail("cannot write %s: %s", path.c_str(), std::strerror(errno));
    from += written;
    bytes -= written;
  }
}

void TemporaryFile::rewrite(int64_t at, const void *data, int64_t bytes) {
  int64_t end = lseek(descriptor, 0, SEEK_CUR);
  if (end < at + bytes || lseek(descriptor, at, SEEK_SET) != at)
    fail("cannot write %s again", path.c_str());
  write(data, bytes);
  lseek(descriptor, end, SEEK_SET);
}

void TemporaryFile::commitAs(const std::string &other) {
  path = other;
  commit();
}

void TemporaryFile::commit() {
  if (fsync(descriptor) != 0)
    fail("cannot write %s: %s", path.c_str(), std::strerror(errno));
  if (rename(name.c_str(), path.c_str()) != 0)
    fail("cannot rename %s to %s: %s", name.c_str(), path.c_str(), std::strerror(errno));
  close(descriptor);
  descriptor = -1;
  spare(slot);
  int parent = open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent >= 0) { // without it the rename may be lost in a power failure, not the old file
    fsync(parent);
    close(parent);
  }
}

//===-- FolderClaim -------------------------------------------------------------------------===//

FolderClaim::~FolderClaim() {
  if (descriptor >= 0)
    close(descriptor);
}

void FolderClaim::take(const char *option, const std::string &folder) {
  if (descriptor >= 0)
    return;
  descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    fail("%s: cannot open the folder %s: %s", option, folder.c_str(), std::strerror(errno));
  // Some network file systems have no locks; then nobody can be kept out.
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail("%s: another run writes into %s; give each run a folder of its own", option,
         folder.c_str());
}

} // namespace partita_rt
