//===- RanksBelow.cpp - the ranks that a launcher has started on this host ------------------===//

#include "tools/partita/Run/RanksBelow.h"
#include "tools/partita/Run/Patience.h"
#include <algorithm>
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

bool RanksBelow::isRank(pid_t process) const {
  auto its = fileAt("/proc/" + std::to_string(process) + "/exe"); // also if it was removed
  return its.second && its == program;
}

static void addBelow(pid_t process, int depth, std::vector<pid_t> &found) {
  if (depth == kMaxDepth)
    return;
  std::error_code error;
  for (fs::directory_iterator task("/proc/" + std::to_string(process) + "/task", error), end;
       !error && task != end; task.increment(error)) {
    std::ifstream children(task->path() / "children");
    for (pid_t child; children >> child;) {
      found.push_back(child);
      addBelow(child, depth + 1, found);
    }
  }
}

std::vector<pid_t> RanksBelow::findProcesses() const {
  std::vector<pid_t> found;
  addBelow(launcher, 0, found);
  return found;
}

std::vector<pid_t> RanksBelow::find() {
  std::vector<pid_t> ranks = findProcesses();
  ranks.insert(ranks.begin(), launcher);
  ranks.erase(
      std::remove_if(ranks.begin(), ranks.end(), [this](pid_t each) { return !isRank(each); }),
      ranks.end());
  if (!ranks.empty())
    seen = Clock::now();
  return ranks;
}

bool RanksBelow::haveLeft() const {
  return seen && Clock::now() - *seen >= std::chrono::seconds(secondsOf(Patience::Launcher));
}
