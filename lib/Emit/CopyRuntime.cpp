//===- CopyRuntime.cpp - copies the runtime's sources next to a program -----------------------===//

#include "lib/Emit/CopyRuntime.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// Returns true for sources and makefiles, false for files left by an editor or a build.
static bool isSource(StringRef name) {
  return name == "Makefile" || StringSwitch<bool>(path::extension(name))
                                   .Cases({".h", ".cuh", ".cu", ".cpp", ".mk"}, true)
                                   .Default(false);
}

static std::string copyFolder(const Twine &source, const Twine &to) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(source, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!isSource(path::filename(entry->path())) || !fs::is_regular_file(entry->path()))
      continue;
    StringRef relative = StringRef(entry->path()).drop_front(source.str().size() + 1);
    SmallString<128> file(to.str());
    path::append(file, relative);
    std::error_code problem =
        fs::create_directories(path::parent_path(file), true, fs::perms::all_all);
    if (!problem)
      problem = fs::copy_file(entry->path(), file);
    if (problem)
      return file.str().str() + ": " + problem.message();
  }
  return error ? source.str() + ": " + error.message() : "";
}

std::string partita::emit::copyRuntime(StringRef source, StringRef to) {
  for (StringRef folder : {"cuda", "processes", "common", "include"})
    if (std::string problem = copyFolder(source + "/" + folder, to + "/" + folder);
        !problem.empty())
      return problem;
  return {};
}
