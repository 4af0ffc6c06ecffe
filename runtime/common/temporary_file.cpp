// Files that appear complete or not at all (temporary_file.h).

#include "common/temporary_file.h"

#include "common/signal_table.h"
#include "common/start_marks.h"
#include "common/storage_error.h"

#include "partita_rt/abandoned.h"
#include "partita_rt/types.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace partita_rt {

//===-- Removal by signal handlers ----------------------------------------------------------===//

namespace {

struct Doomed {
  char name[PATH_MAX];
};
SignalTable<Doomed, 64> doomed; // one file per rank of a large process
SignalTable<Doomed, 64> made;   // folders

/// Registers a file or folder for removal by signals; returns its slot, or -1 if none is free.
int doom(SignalTable<Doomed, 64> &table, const std::string &name) {
  if (name.size() >= PATH_MAX)
    return -1;
  return table.add([&](Doomed &each) { std::memcpy(each.name, name.c_str(), name.size() + 1); });
}

void spare(int slot) { doomed.remove(slot); }

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

} // namespace

void removeTemporaryFiles() {
  doomed.forEach([](const Doomed &each) { unlink(each.name); });
  made.forEach([](const Doomed &each) { rmdir(each.name); }); // fails if it is not empty
}

void MadeFolders::set(const std::vector<std::string> &paths) {
  for (int slot : slots)
    made.remove(slot);
  slots.clear();
  folders.assign(paths.rbegin(), paths.rend());
  for (const std::string &each : folders)
    slots.push_back(doom(made, each));
}

MadeFolders::~MadeFolders() {
  for (const std::string &each : folders)
    rmdir(each.c_str());
  keep();
}

//===-- Files of killed processes -----------------------------------------------------------===//

namespace {

constexpr char kEnd[] = ".tmp";
constexpr size_t kDrawn = 6; ///< letters and digits that mkostemps puts before kEnd

/// Returns ".BOOT-", or "." if the boot is unknown.
std::string ownersPrefix() {
  std::string boot = bootName();
  return boot.empty() ? "." : "." + boot + "-";
}

} // namespace

void removeAbandonedFiles(const std::string &path) {
  std::string prefix = ownersPrefix(), begin = path + prefix;
  if (prefix == ".")
    return;
  std::error_code ignored; // the next one finds what remains
  std::string folder = folderOf(begin), first = begin.substr(begin.rfind('/') + 1);
  std::vector<std::string> found;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::string name = entry->path().filename().string();
    if (name.compare(0, first.size(), first) == 0 &&
        name.size() == first.size() + kDrawn + std::strlen(kEnd) &&
        name.compare(first.size() + kDrawn, std::string::npos, kEnd) == 0)
      found.push_back(folder + "/" + name);
  }
  for (const std::string &name : found) {
    int descriptor = open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
      continue;
    if (lockOpened(descriptor, name))
      unlink(name.c_str());
    close(descriptor);
  }
}

bool isTemporarySuffix(const std::string &text) {
  size_t drawn = text.size() == 28 && text[17] == '-' ? 18 : 1; // after the boot
  return text.size() == drawn + kDrawn + std::strlen(kEnd) && text[0] == '.' &&
         text.compare(drawn + kDrawn, std::string::npos, kEnd) == 0;
}

//===-- TemporaryFile -----------------------------------------------------------------------===//

/// Makes the file and locks it. A process that looks for abandoned files may remove it in between;
/// then it is made again. Without locks, it gets a name that contains no boot.
void TemporaryFile::create() {
  removeAbandonedFiles(path);
  std::string prefix = ownersPrefix();
  for (int attempt = 0; descriptor < 0; ++attempt) {
    if (attempt == 8)
      prefix = ".";
    name = path + prefix + std::string(kDrawn, 'X') + kEnd;
    descriptor = mkostemps(name.data(), int(std::strlen(kEnd)), O_CLOEXEC);
    if (descriptor < 0 && errno == ENAMETOOLONG && prefix != ".") {
      prefix = ".";
    } else if (descriptor < 0) {
      failWithErrno("cannot write " + path);
    } else if (prefix != "." && !lockOpened(descriptor, name)) {
      unlink(name.c_str());
      close(descriptor);
      descriptor = -1;
    }
  }
}

/// Returns the process's umask. umask() can only be asked by changing it, which other threads must not see.
static mode_t fileMask() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (unsigned mask = 0; word == "Umask:" && status >> std::oct >> mask)
      return mode_t(mask);
  return 022;
}

TemporaryFile::TemporaryFile(const std::string &path) : path(path) {
  struct stat status;
  bool exists = stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode))
    fail("%s is not a regular file, so it cannot be replaced", path.c_str());
  create();
  slot = doom(doomed, name);
  fchmod(descriptor,
         exists ? status.st_mode & 0777 : 0666 & ~fileMask()); // mkostemps makes it private
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
      failWithErrno("cannot write " + path);
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

void TemporaryFile::commit() {
  if (fsync(descriptor) != 0)
    failWithErrno("cannot write " + path);
  if (rename(name.c_str(), path.c_str()) != 0)
    failWithErrno("cannot rename " + name + " to " + path);
  close(descriptor);
  descriptor = -1;
  spare(slot);
  syncFolder(folderOf(path));
}

void syncFolder(const std::string &path) {
  int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return;
  int error = fsync(folder) == 0 ? 0 : errno;
  close(folder);
  if (error == EIO || error == ENOSPC || error == EDQUOT)
    failWithErrno("cannot write the folder " + path, error);
}

} // namespace partita_rt
