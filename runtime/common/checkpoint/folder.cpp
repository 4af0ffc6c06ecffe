// Finds, completes and removes checkpoints (folder.h).

#include "common/checkpoint/folder.h"

#include "common/checkpoint/checkpoint_files.h"
#include "common/storage_error.h"
#include "common/temporary_file.h"
#include "partita_rt/types.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <random>
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
  if (!checkpointsIn(folder).empty() || !shardsIn(folder).empty())
    return checkpointFile(newestEntry(folder)); // or it says what is missing
  fail("no checkpoint in %s: it has no folder step-N, and neither %s nor %s is there%s",
       folder.c_str(), unshardedPath(folder).c_str(), indexPath(folder).c_str(),
       otherWeights(folder).c_str());
}

std::string otherStep(const std::string &folder, int64_t recorded) {
  fs::path path(folder);
  if (!path.has_filename()) // it ends with a slash
    path = path.parent_path();
  int64_t named = stepOfName(path.filename().string());
  return named < 0 || named == recorded
             ? ""
             : "its folder's name says step " + std::to_string(named) + ", but it is of step " +
                   std::to_string(recorded) + "; name the folder " + kStepPrefix +
                   std::to_string(recorded);
}

FolderContents contentsOf(const std::string &folder) {
  FolderContents contents;
  for (const CheckpointEntry &entry : checkpointsIn(folder))
    contents[entry.path] = inodeOf(entry.path).value_or(0); // 0: a dangling link
  return contents;
}

bool hasCheckpoint(const std::string &folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    fail("is there a checkpoint in %s? %s", folder.c_str(), error.message().c_str());
  return !checkpointsIn(folder).empty() || !shardsIn(folder).empty();
}

StartNumber drawStartNumber() {
  std::random_device random;
  return (uint64_t(random()) << 32 | random()) | 1;
}

std::string unfinishedFolder(const std::string &folder, int64_t step, StartNumber start) {
  char number[20];
  std::snprintf(number, sizeof(number), ".%016llx", (unsigned long long)start);
  return stepFolder(folder, step) + number + kUnfinishedSuffix;
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
      failWithErrno("--checkpoint: cannot make the folder " + each);
  return made;
}

/// Takes a checkpoint's name from it, in one step, so that it can be removed file by file.
static std::string withdraw(const std::string &folder) {
  std::string old = folder + ".old" + kUnfinishedSuffix;
  std::error_code none;
  fs::remove_all(old, none); // left by a run that was killed
  if (rename(folder.c_str(), old.c_str()) != 0)
    failWithErrno("cannot rename " + folder + " to " + old);
  return old;
}

void completeCheckpoint(const std::string &folder, int64_t step, StartNumber start) {
  std::string from = unfinishedFolder(folder, step, start), to = stepFolder(folder, step), old;
  syncFolder(from);
  std::error_code none;
  if (fs::exists(to, none) && !fs::is_directory(to, none))
    fail("%s is not a folder, and has the name of a checkpoint's; move it away", to.c_str());
  if (fs::exists(to, none)) { // damaged, or of the run that this one replaces
    // Exchange the two, so that one of them exists at any moment, if the file system can do that.
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
      syncFolder(folder);
      fs::remove_all(from, none);
      return;
    }
    old = withdraw(to);
  }
  if (rename(from.c_str(), to.c_str()) != 0) {
    int error = errno;
    if (!old.empty())
      (void)!rename(old.c_str(), to.c_str()); // it is better than none
    failWithErrno("cannot rename " + from + " to " + to, error);
  }
  syncFolder(folder);
  if (!old.empty())
    fs::remove_all(old, none);
}

std::vector<std::string> namesOfNoFolders(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end;
       entry.increment(none)) {
    std::string name = entry->path().filename().string();
    std::error_code error;
    if ((stepOfName(name) >= 0 || isUnfinishedName(name)) && !entry->is_symlink(error) &&
        !entry->is_directory(error) && !error)
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void checkNames(const std::string &folder) {
  for (const std::string &name : namesOfNoFolders(folder))
    fail(
        "--checkpoint: %s/%s is not a folder, and has the name of a checkpoint's; move it away, or "
        "choose another folder",
        folder.c_str(), name.c_str());
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

std::set<int64_t> removeUnfinished(const std::string &folder, const std::set<int64_t> &steps,
                                   StartNumber start) {
  std::set<int64_t> left;
  for (int64_t step : steps) {
    std::error_code error;
    fs::remove_all(unfinishedFolder(folder, step, start), error);
    if (error)
      left.insert(step);
  }
  return left;
}

/// Removes the checkpoint that an earlier version wrote into the folder itself.
static void removeFromFolderItself(const std::string &folder) {
  unlink(indexPath(folder).c_str());
  unlink(unshardedPath(folder).c_str());
  for (const std::string &name : shardsIn(folder))
    unlink((folder + "/" + name).c_str());
}

/// Is this a checkpoint of another step than its name says?
static bool isRenamed(const CheckpointEntry &entry) {
  try {
    CheckpointFiles file(checkpointFile(entry.path));
    auto step = file.metadata().find("step");
    return step != file.metadata().end() &&
           !otherStep(entry.path, std::strtoll(step->second.c_str(), nullptr, 10)).empty();
  } catch (const Error &) { // it is damaged
    return false;
  }
}

/// Removes those that are among the steps, or are not.
static void removeThese(const std::string &folder, const std::set<int64_t> &steps, bool among) {
  for (const CheckpointEntry &entry : checkpointsIn(folder)) {
    if ((steps.count(entry.step) > 0) != among || (!among && isRenamed(entry)))
      continue;
    if (entry.step < 0) {
      removeFromFolderItself(folder);
      continue;
    }
    try {
      std::error_code none;
      fs::remove_all(withdraw(entry.path), none);
    } catch (const Error &) { // the next save tries again
    }
  }
}

void keepOnly(const std::string &folder, const std::set<int64_t> &steps) {
  removeThese(folder, steps, false);
}

void removeSteps(const std::string &folder, const std::set<int64_t> &steps) {
  removeThese(folder, steps, true);
}

} // namespace partita_rt
