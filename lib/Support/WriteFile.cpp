//===- WriteFile.cpp - files that appear whole or not at all ----------------------------------===//

#include "partita/Support/WriteFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;
using namespace partita;

/// Calls `write`; a stream's own error is reported here: unread, it would end the process.
static std::string writeTo(raw_fd_ostream &os, StringRef path,
                           function_ref<std::string(raw_ostream &)> write) {
  std::string problem = write(os);
  os.flush();
  if (problem.empty() && os.has_error())
    problem = (path + ": " + os.error().message()).str();
  os.clear_error();
  return problem;
}

static std::string writeDevice(StringRef path, function_ref<std::string(raw_ostream &)> write) {
  std::error_code error;
  raw_fd_ostream os(path, error, sys::fs::CD_OpenExisting);
  return error ? (path + ": " + error.message()).str() : writeTo(os, path, write);
}

/// Writes all of it, to the disk.
static std::string fill(int descriptor, StringRef path,
                        function_ref<std::string(raw_ostream &)> write) {
  std::string problem;
  {
    raw_fd_ostream os(descriptor, /*shouldClose=*/false);
    problem = writeTo(os, path, write);
  }
  if (problem.empty() && fsync(descriptor) != 0)
    problem = (path + ": cannot be written to the disk").str();
  return problem;
}

/// A file in the path's folder that has no name yet: it is gone with its process, whatever ends that.
/// -1 where the file system has no such files.
static int openUnnamed(StringRef path) {
  StringRef folder = sys::path::parent_path(path);
  if (access("/proc/self/fd", X_OK) != 0) // by which it gets a name
    return -1;
  return open(folder.empty() ? "." : folder.str().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
}

/// Gives an unnamed file the name `path`, also where another file has it.
static std::string nameIt(int descriptor, StringRef path) {
  std::string self = "/proc/self/fd/" + std::to_string(descriptor), to = path.str();
  auto link = [&](const char *name) {
    return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
  };
  if (link(to.c_str()))
    return {};
  for (int attempt = 0; attempt < 8 && errno == EEXIST; ++attempt) {
    SmallString<256> beside;
    sys::fs::createUniquePath(path + ".%%%%%%.tmp", beside, /*MakeAbsolute=*/false);
    if (!link(beside.c_str()))
      continue;
    if (rename(beside.c_str(), to.c_str()) == 0)
      return {};
    int error = errno;
    unlink(beside.c_str());
    errno = error;
  }
  return to + ": cannot be written: " + std::strerror(errno);
}

static std::string replaceFile(StringRef path, function_ref<std::string(raw_ostream &)> write) {
  if (int descriptor = openUnnamed(path); descriptor >= 0) {
    std::string problem = fill(descriptor, path, write);
    if (problem.empty())
      problem = nameIt(descriptor, path);
    close(descriptor);
    return problem;
  }
  auto file = sys::fs::TempFile::create(path + ".%%%%%%.tmp", 0666);
  if (!file)
    return (path + ": cannot be written: " + toString(file.takeError())).str();
  if (std::string problem = fill(file->FD, path, write); !problem.empty()) {
    consumeError(file->discard());
    return problem;
  }
  if (Error error = file->keep(path))
    return (path + ": " + toString(std::move(error))).str();
  return {};
}

std::string partita::writeFile(StringRef path, function_ref<std::string(raw_ostream &)> write,
                               Devices devices) {
  SmallString<256> target;
  if (!sys::fs::real_path(path, target))
    path = target;
  sys::fs::file_status status;
  if (sys::fs::status(path, status) || sys::fs::is_regular_file(status))
    return replaceFile(path, write);
  if (devices == Devices::Refuse)
    return (path + ": is not a regular file; a model cannot be written there").str();
  return writeDevice(path, write);
}

std::string partita::checkNotInput(StringRef output, StringRef input, StringRef option) {
  bool same = false;
  if (sys::fs::equivalent(output, input, same) || !same)
    return {};
  return (option + ": " + output + " is " + input + " itself; choose another name").str();
}
