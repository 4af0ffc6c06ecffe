//===- LaunchedRanks.cpp - the ranks that a launcher has started on this host -----------------===//

#include "tools/partita/LaunchedRanks.h"
#include "llvm/ADT/SmallString.h"
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace partita::tool;
namespace fs = std::filesystem;

static constexpr int kMaxDepth = 16; ///< of a launcher's processes: daemons, shells

LaunchedRanks::LaunchedRanks(pid_t launcher, llvm::StringRef path)
    : launcher(launcher), program(path.str()) {
  std::error_code error;
  if (fs::path real = fs::canonical(program, error); !error)
    program = real.string();
}

bool LaunchedRanks::anyBelow(pid_t process, int depth) const {
  std::string folder = "/proc/" + std::to_string(process);
  std::error_code error;
  if (fs::read_symlink(folder + "/exe", error) == program && !error)
    return true;
  if (depth == kMaxDepth)
    return false;
  for (fs::directory_iterator task(folder + "/task", error), end; !error && task != end;
       task.increment(error)) {
    std::ifstream children(task->path() / "children");
    for (pid_t child; children >> child;)
      if (anyBelow(child, depth + 1))
        return true;
  }
  return false;
}

bool LaunchedRanks::haveLeft() {
  Clock::time_point now = Clock::now();
  if (looked && now - *looked < std::chrono::seconds(1))
    return false;
  looked = now;
  if (anyBelow(launcher, 0)) {
    seen = now;
    return false;
  }
  return seen && now - *seen >= std::chrono::seconds(kSecondsAlone);
}
