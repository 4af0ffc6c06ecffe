// Finds, completes and removes checkpoints (folder.h).

#include "common/checkpoint/folder.h"

#include "common/checkpoint/checkpoint_files.h"
#include "partita_rt/types.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace partita_rt {

namespace fs = std::filesystem;

/// Names the weights in a Hugging Face folder, which have another file name: ";
/// DIR/model.safetensors is, ..."
static std::string otherWeights(const std::string &folder) {
  for (const char *name : {"model.safetensors.index.json", "model.safetensors"}) {
    struct stat status;
    std::string path = folder + "/" + name;
    if (stat(path.c_str(), &status) == 0)
      return "; " + path + " is, which --init takes as a file";
  }
  return "";
}

std::string newestCheckpoint(const std::string &folder) {
  std::vector<CheckpointPlace> places = checkpointsIn(folder);
  if (!places.empty())
    return checkpointFile(places.front().path);
  if (!shardsIn(folder).empty())
    return checkpointFile(folder); // says what is missing
  fail("no checkpoint in %s: it has no folder step-N, and neither %s nor %s is there%s",
       folder.c_str(), unshardedPath(folder).c_str(), indexPath(folder).c_str(),
       otherWeights(folder).c_str());
}

bool hasCheckpoint(const std::string &folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    fail("is there a checkpoint in %s? %s", folder.c_str(), error.message().c_str());
  return !checkpointsIn(folder).empty() || !shardsIn(folder).empty();
}

std::string unfinishedFolder(const std::string &folder, int64_t step) {
  return stepFolder(folder, step) + kUnfinishedSuffix;
}

std::vector<std::string> pathAndParents(const std::string &path) {
  std::vector<std::string> all;
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1))
    all.push_back(path.substr(0, slash));
  if (path.empty() || path.back() != '/')
    all.push_back(path);
  return all;
}

std::vector<std::string> makeFolders(const std::string &path) {
  std::vector<std::string> made;
  for (const std::string &each : pathAndParents(path))
    if (mkdir(each.c_str(), 0777) == 0)
      made.push_back(each);
    else if (errno != EEXIST)
      fail("--checkpoint: cannot make the folder %s: %s", each.c_str(), std::strerror(errno));
  return made;
}

/// Makes renames in a folder durable.
static void syncFolder(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  fsync(descriptor);
  close(descriptor);
}

void completeCheckpoint(const std::string &folder, int64_t step) {
  std::string from = unfinishedFolder(folder, step), to = stepFolder(folder, step);
  syncFolder(from);
  std::error_code none;
  if (fs::exists(to, none)) { // damaged, or of the run that this one replaces
    std::string old = to + ".old" + kUnfinishedSuffix;
    fs::remove_all(old, none);
    // Exchange the two, so that one of them exists at any moment, if the file system can do that.
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
      syncFolder(folder);
      fs::remove_all(from, none);
      return;
    }
    if (rename(to.c_str(), old.c_str()) != 0)
      fail("cannot rename %s to %s: %s", to.c_str(), old.c_str(), std::strerror(errno));
  }
  if (rename(from.c_str(), to.c_str()) != 0)
    fail("cannot rename %s to %s: %s", from.c_str(), to.c_str(), std::strerror(errno));
  syncFolder(folder);
  fs::remove_all(to + ".old" + kUnfinishedSuffix, none);
}

void removeUnfinished(const std::string &folder) {
  std::vector<std::string> found;
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end;
       entry.increment(none))
    if (isUnfinishedName(entry->path().filename().string()))
      found.push_back(entry->path().string());
  for (const std::string &path : found)
    fs::remove_all(path, none);
}

/// Removes the checkpoint that an earlier version wrote into the folder itself.
static void removeFromFolderItself(const std::string &folder) {
  unlink(indexPath(folder).c_str());
  unlink(unshardedPath(folder).c_str());
  for (const std::string &name : shardsIn(folder))
    unlink((folder + "/" + name).c_str());
}

void keepOnly(const std::string &folder, const std::set<int64_t> &steps) {
  for (const CheckpointPlace &place : checkpointsIn(folder)) {
    if (steps.count(place.step))
      continue;
    if (place.step < 0) {
      removeFromFolderItself(folder);
      continue;
    }
    std::error_code none;
    std::string old = place.path + ".old" + kUnfinishedSuffix;
    if (rename(place.path.c_str(), old.c_str()) == 0)
      fs::remove_all(old, none);
  }
}

} // namespace partita_rt
