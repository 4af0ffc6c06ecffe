//===- SupervisorClaim.cpp - whose a run's files are between two starts ----------------------===//

#include "tools/partita/Run/SupervisorClaim.h"
#include "runtime/include/partita_rt/abstract_name.h"
#include "runtime/include/partita_rt/option_words.h"
#include "runtime/include/partita_rt/owned_paths.h"
#include "runtime/include/partita_rt/start_marks.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/ProgramWords.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;
namespace fs = std::filesystem;

/// Seconds that a supervisor which was just killed has for its end.
static constexpr double kToEnd = 1;

/// Returns the names that a claim to the path may have: one for each folder on the way that exists, the nearest first, by its
/// inode and what follows it. A claim is made under the first, when further folders, or the last one, may not exist yet.
static std::vector<std::string> claimNames(const std::string &path) {
  std::error_code error;
  fs::path at = fs::weakly_canonical(fs::absolute(path, error), error);
  if (!at.has_filename())
    at = at.parent_path(); // "run/"
  std::vector<std::string> names;
  std::string below;
  for (;; at = at.parent_path()) {
    struct stat status;
    if (stat(at.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      std::string text =
          std::to_string(status.st_dev) + " " + std::to_string(status.st_ino) + below;
      names.push_back("partita-supervisor-" + utohexstr(xxh3_64bits(StringRef(text)), true, 16));
    }
    if (!at.has_relative_path())
      return names;
    below = "/" + at.filename().string() + below;
  }
}

/// Returns the process that has claimed the name, 0 if that is not known; nothing if none has.
static std::optional<pid_t> ownerOf(const std::string &name) {
  int handle = partita_rt::socketWithName(connect, name);
  if (handle < 0)
    return errno == EAGAIN ? std::optional<pid_t>(0) : std::nullopt; // many have asked it
  ucred peer{};
  socklen_t size = sizeof(peer);
  getsockopt(handle, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  close(handle);
  return peer.pid;
}

static std::optional<pid_t> ownerOf(const std::vector<std::string> &names) {
  for (const std::string &name : names)
    if (std::optional<pid_t> owner = ownerOf(name))
      return owner;
  return std::nullopt;
}

/// Is the path one that a run has for itself, unlike /dev/null?
static bool canBeClaimed(const std::string &path) {
  struct stat status;
  return !path.empty() &&
         (stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode) || S_ISREG(status.st_mode));
}

static std::string problemOf(pid_t owner, const partita_rt::OwnedPath &owned,
                             const std::string &path) {
  std::string process = owner ? " (process " + std::to_string(owner) + ")" : "";
  return ownedByAnotherText(owned, path,
                            "its supervisor" + process + " may be about to start it again");
}

SupervisorClaim::~SupervisorClaim() {
  for (int handle : sockets)
    close(handle);
}

std::string SupervisorClaim::take(ArrayRef<std::string> arguments, bool supervises) {
  // A run that does not train, such as to dump parameters, only reads the folder.
  if (std::getenv(partita_rt::kMarksVariable) || readWords(arguments).steps.value_or(0) == 0)
    return {};
  for (const partita_rt::OwnedPath &owned : {partita_rt::kOwnedFolder, partita_rt::kOwnedLog}) {
    std::string path = partita_rt::optionValue(arguments, owned.option).value_or("");
    if (!canBeClaimed(path))
      continue;
    std::vector<std::string> names = claimNames(path);
    std::optional<pid_t> owner;
    bool isFree = waitUntil(kToEnd, [&] {
      owner = ownerOf(names);
      if (owner || !supervises || names.empty())
        return !owner;
      int handle = partita_rt::socketWithName(bind, names.front());
      if (handle < 0 && errno == EADDRINUSE) { // another one has come first just now
        owner = 0;
        return false;
      }
      if (handle >= 0 && listen(handle, SOMAXCONN) == 0)
        sockets.push_back(handle);
      return true;
    });
    if (!isFree && owner)
      return problemOf(*owner, owned, path);
  }
  return {};
}
