//===- StartMarks.cpp - what the ranks of a start say by files ------------------------------===//

#include "tools/partita/Run/StartMarks.h"
#include "runtime/include/partita_rt/start_marks.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>

using namespace llvm;
using namespace partita::tool;

StartMarks::StartMarks() {
  if (sys::fs::createUniqueDirectory("partita-start", folder))
    folder.clear();
  else
    setenv(partita_rt::kMarksVariable, folder.c_str(), 1);
}

StartMarks::~StartMarks() {
  unsetenv(partita_rt::kMarksVariable);
  if (!folder.empty())
    sys::fs::remove_directories(folder);
}

bool StartMarks::has(const char *mark) const {
  return !folder.empty() && sys::fs::exists(folder + "/" + mark);
}

std::string StartMarks::textOf(const char *mark) const {
  if (!has(mark))
    return "";
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(folder + "/" + mark);
  return file ? (*file)->getBuffer().str() : "";
}
