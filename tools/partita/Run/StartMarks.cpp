//===- StartMarks.cpp - what the ranks of a start say by files ------------------------------===//

#include "tools/partita/Run/StartMarks.h"
#include "runtime/include/partita_rt/start_marks.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cstdlib>

using namespace llvm;
using namespace partita::tool;

StartMarks::StartMarks() {
  SmallString<128> prefix;
  sys::path::system_temp_directory(/*erasedOnReboot=*/true, prefix);
  sys::path::append(prefix, "partita-start");
  why = folder.create(prefix);
  if (why.empty())
    setenv(partita_rt::kMarksVariable, folder.path().c_str(), 1);
}

StartMarks::~StartMarks() {
  unsetenv(partita_rt::kMarksVariable);
  if (!folder.path().empty())
    sys::fs::remove_directories(folder.path());
}

bool StartMarks::has(const char *mark) const {
  return !folder.path().empty() && sys::fs::exists(folder.path() + "/" + mark);
}

bool StartMarks::hasAny(StringRef prefix) const {
  std::error_code error;
  for (sys::fs::directory_iterator entry(folder.path(), error), end; !error && entry != end;
       entry.increment(error))
    if (sys::path::filename(entry->path()).starts_with(prefix))
      return true;
  return false;
}

std::string StartMarks::textOf(const char *mark) const {
  if (!has(mark))
    return "";
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(folder.path() + "/" + mark);
  return file ? (*file)->getBuffer().str() : "";
}
