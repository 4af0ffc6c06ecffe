//===- RanksBelow.cpp - the ranks that a launcher has started on this host ------------------===//

#include "tools/partita/Run/RanksBelow.h"
#include "tools/partita/Run/Patience.h"
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace partita::tool;
namespace fs = std::filesystem;

static constexpr int kMaxDepth = 16; ///< of a launcher's processes: daemons, shells

/// Which file a path leads to: device and inode; 0 if to none.
static std::pair<dev_t, ino_t> fileAt(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 ? std::pair(status.st_dev, status.st_ino)
                                          : std::pair<dev_t, ino_t>();
}

RanksBelow::RanksBelow(pid_t launcher, llvm::StringRef program)
    : launcher(launcher), program(fileAt(program.str())) {}

void RanksBelow::addBelow(pid_t process, int depth, std::vector<pid_t> &ranks) const {
  std::string folder = "/proc/" + std::to_string(process);
  std::error_code error;
  if (auto its = fileAt(folder + "/exe"); its.second && its == program) // also if it was removed
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
  return seen && Clock::now() - *seen >= std::chrono::seconds(secondsOf(Patience::Launcher));
}
