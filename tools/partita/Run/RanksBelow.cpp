//===- RanksBelow.cpp - the ranks that a launcher has started on this host ------------------===//

#include "tools/partita/Run/RanksBelow.h"
#include "llvm/ADT/SmallString.h"
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace partita::tool;
namespace fs = std::filesystem;

static constexpr int kMaxDepth = 16; ///< of a launcher's processes: daemons, shells

RanksBelow::RanksBelow(pid_t launcher, llvm::StringRef path)
    : launcher(launcher), program(path.str()) {
  std::error_code error;
  if (fs::path real = fs::canonical(program, error); !error)
    program = real.string();
}

void RanksBelow::addBelow(pid_t process, int depth, std::vector<pid_t> &ranks) const {
  std::string folder = "/proc/" + std::to_string(process);
  std::error_code error;
  if (fs::read_symlink(folder + "/exe", error) == program && !error)
    ranks.push_back(process);
  if (depth == kMaxDepth)
    return;
  for (fs::directory_iterator task(folder + "/task", error), end; !error && task != end;
       task.increment(error)) {
    std::ifstream children(task->path() / "children");
    for (pid_t child; children >> child;)
      addBelow(child, depth + 1, ranks);
  }
}

std::vector<pid_t> RanksBelow::find() {
  std::vector<pid_t> ranks;
  addBelow(launcher, 0, ranks);
  if (!ranks.empty())
    seen = Clock::now();
  return ranks;
}

bool RanksBelow::haveLeft() const {
  return seen && Clock::now() - *seen >= std::chrono::seconds(kSecondsAlone);
}
