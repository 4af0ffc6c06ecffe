//===- WriteFile.cpp - files that appear whole or not at all ----------------------------------===//

#include "partita/Support/WriteFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include <unistd.h>

using namespace llvm;
using namespace partita;

/// Calls `write`; a stream's own error is told here: unread, it would end the process.
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

static std::string replaceFile(StringRef path, function_ref<std::string(raw_ostream &)> write) {
  auto file = sys::fs::TempFile::create(path + ".%%%%%%.tmp", 0666);
  if (!file)
    return (path + ": cannot be written: " + toString(file.takeError())).str();
  std::string problem;
  {
    raw_fd_ostream os(file->FD, /*shouldClose=*/false);
    problem = writeTo(os, path, write);
  }
  if (problem.empty() && fsync(file->FD) != 0)
    problem = (path + ": cannot be written to the disk").str();
  if (!problem.empty()) {
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
