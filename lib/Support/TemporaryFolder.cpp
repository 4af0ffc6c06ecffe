//===- TemporaryFolder.cpp - folders that appear whole or not at all --------------------------===//

#include "partita/Support/TemporaryFolder.h"
#include "runtime/include/partita_rt/abandoned.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace partita;

/// The folder that exists, for the handler, which may look at plain memory alone.
static char doomed[4096];

/// Removing a tree takes memory, which a handler may not ask for: a process of its own does it.
static void removeAndEnd(int signal) {
  pid_t child = fork();
  if (child == 0) {
    execl("/bin/rm", "rm", "-rf", "--", doomed, static_cast<char *>(nullptr));
    _exit(1);
  }
  if (child > 0)
    waitpid(child, nullptr, 0);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void TemporaryFolder::watchSignals() {
  SmallString<256> absolute(name);
  if (doomed[0] != 0 || sys::fs::make_absolute(absolute) || absolute.size() >= sizeof(doomed))
    return;
  watches = true;
  std::memcpy(doomed, absolute.c_str(), absolute.size() + 1);
  struct sigaction action = {};
  action.sa_handler = removeAndEnd;
  for (size_t i = 0; i < std::size(kSignals); ++i)
    // A signal that is ignored (nohup) stays ignored.
    if (sigaction(kSignals[i], nullptr, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
      sigaction(kSignals[i], &action, nullptr);
}

void TemporaryFolder::unwatchSignals() {
  if (!watches)
    return;
  watches = false;
  for (size_t i = 0; i < std::size(kSignals); ++i)
    sigaction(kSignals[i], &before[i], nullptr);
  doomed[0] = 0;
}

TemporaryFolder::~TemporaryFolder() {
  if (!name.empty()) {
    sys::fs::remove_directories(name);
    unwatchSignals();
  }
  unlock();
}

/// Opens a folder and locks it; -1 if that failed.
static int lockFolder(const char *path) {
  int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor >= 0 && partita_rt::lockOpened(descriptor, path))
    return descriptor;
  if (descriptor >= 0)
    close(descriptor);
  return -1;
}

void TemporaryFolder::unlock() {
  if (descriptor >= 0)
    close(descriptor);
  descriptor = -1;
}

void TemporaryFolder::removeAbandoned(StringRef boot) const {
  std::string begin = (sys::path::filename(target) + ".partial-" + boot + "-").str();
  StringRef around = sys::path::parent_path(target);
  std::error_code error;
  SmallVector<std::string> found;
  for (sys::fs::directory_iterator entry(around.empty() ? "." : around, error), end;
       !error && entry != end; entry.increment(error)) {
    StringRef file = sys::path::filename(entry->path());
    if (file.consume_front(begin) && file.size() == 6 && all_of(file, isHexDigit))
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
std::string TemporaryFolder::createLocked(StringRef boot) {
  for (int attempt = 0; attempt < 8 && !boot.empty(); ++attempt) {
    if (std::error_code error =
            sys::fs::createUniqueDirectory((target + ".partial-" + boot).str(), name))
      return target + ": " + error.message();
    if (descriptor = lockFolder(name.c_str()); descriptor >= 0)
      return {};
    sys::fs::remove(name);
  }
  if (std::error_code error = sys::fs::createUniqueDirectory(target + ".partial", name))
    return target + ": " + error.message();
  return {};
}

std::string TemporaryFolder::create() {
  StringRef around = sys::path::parent_path(target);
  if (!around.empty())
    if (std::error_code error = sys::fs::create_directories(around))
      return (around + ": " + error.message()).str();
  std::string boot = partita_rt::bootName();
  if (!boot.empty())
    removeAbandoned(boot);
  if (std::string problem = createLocked(boot); !problem.empty()) {
    name.clear();
    return problem;
  }
  watchSignals();
  // createUniqueDirectory makes it private; what it becomes may be read by others.
  sys::fs::setPermissions(name, sys::fs::perms(0755));
  return {};
}

std::string TemporaryFolder::write(StringRef file, StringRef content) {
  std::error_code error;
  std::string full = in(file);
  raw_fd_ostream os(full, error);
  if (error)
    return full + ": " + error.message();
  os << content;
  os.close();
  error = os.error();
  os.clear_error();
  return error ? full + ": " + error.message() : std::string();
}

std::string TemporaryFolder::in(StringRef file) const {
  SmallString<128> full(name);
  sys::path::append(full, file);
  return full.str().str();
}

std::string TemporaryFolder::becomeTarget() {
  if (sys::fs::exists(target))
    sys::fs::remove_directories(target);
  if (std::error_code error = sys::fs::rename(name, target))
    return target + ": " + error.message();
  unwatchSignals();
  name.clear();
  unlock();
  return {};
}
