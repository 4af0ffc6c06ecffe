//===- TemporaryFolder.cpp - folders that appear whole or not at all --------------------------===//

#include "partita/Support/TemporaryFolder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>
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
  SmallString<256> absolute(folder.path());
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
  if (!folder.path().empty()) {
    sys::fs::remove_directories(folder.path());
    unwatchSignals();
  }
}

std::string TemporaryFolder::create() {
  StringRef around = sys::path::parent_path(target);
  if (!around.empty())
    if (std::error_code error = sys::fs::create_directories(around))
      return (around + ": " + error.message()).str();
  if (std::string problem = folder.create(target + ".partial"); !problem.empty())
    return problem;
  watchSignals();
  // It is private; what it becomes may be read by others.
  sys::fs::setPermissions(folder.path(), sys::fs::perms(0755));
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
  SmallString<128> full(folder.path());
  sys::path::append(full, file);
  return full.str().str();
}

std::string TemporaryFolder::becomeTarget() {
  if (sys::fs::exists(target))
    sys::fs::remove_directories(target);
  if (std::error_code error = sys::fs::rename(folder.path(), target))
    return target + ": " + error.message();
  unwatchSignals();
  folder.release();
  return {};
}
