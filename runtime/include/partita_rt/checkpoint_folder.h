// The folder of a run's checkpoints, which `--checkpoint DIR` names:
//
//     DIR/step-100/   the checkpoint after 100 updates (checkpoint_files.h)
//     DIR/step-200/   the newest
//     DIR/step-300.START.tmp/   one that a start is writing, or that a killed one left unfinished; START: 16 hexadecimal digits
//
// A checkpoint gets its name when it is complete, so a folder step-N is one, or has been damaged
// since. Earlier versions wrote one checkpoint into DIR itself. The compiler reads these folders
// too, so this header includes no other header of the runtime.

#ifndef PARTITA_RT_CHECKPOINT_FOLDER_H
#define PARTITA_RT_CHECKPOINT_FOLDER_H

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace partita_rt {

constexpr char kStepPrefix[] = "step-";
constexpr char kUnfinishedSuffix[] = ".tmp";
constexpr char kUnshardedName[] = "checkpoint.safetensors";
constexpr char kIndexName[] = "checkpoint.safetensors.index.json";

/// "DIR/step-12".
inline std::string stepFolder(const std::string &folder, int64_t step) {
  return folder + "/" + kStepPrefix + std::to_string(step);
}

/// Returns N of the name step-N, -1 of any other name.
inline int64_t stepOfName(const std::string &name) {
  std::string digits = name.substr(std::min(name.size(), sizeof(kStepPrefix) - 1));
  bool isNumber = !digits.empty() && digits.size() <= 18 &&
                  digits.find_first_not_of("0123456789") == std::string::npos;
  return isNumber && name == kStepPrefix + std::to_string(std::stoll(digits)) ? std::stoll(digits)
                                                                              : -1;
}

/// Is this the name of a checkpoint that is not, or no longer, complete: step-7.0123456789abcdef.tmp, with the number of the
/// start that writes it, or step-7.old.tmp? Anything else is a user's.
inline bool isUnfinishedName(const std::string &name) {
  size_t end = sizeof(kUnfinishedSuffix) - 1, dot = std::min(name.find('.'), name.size());
  if (name.size() < dot + end || name.compare(name.size() - end, end, kUnfinishedSuffix) != 0 ||
      stepOfName(name.substr(0, dot)) < 0)
    return false;
  std::string between = name.substr(dot, name.size() - end - dot);
  return between.empty() || between == ".old" ||
         (between.size() == 17 &&
          between.find_first_not_of("0123456789abcdef", 1) == std::string::npos);
}

/// Returns the inode of a folder, by which it is recognized: while its file system is not mounted,
/// another folder, or none, has its path. Device numbers may change when it is mounted again.
inline std::optional<ino_t> inodeOf(const std::string &path) {
  struct stat status;
  if (stat(path.empty() ? "/" : path.c_str(), &status) != 0)
    return std::nullopt;
  return status.st_ino;
}

/// A checkpoint in a folder for checkpoints.
struct CheckpointEntry {
  std::string path;  ///< DIR/step-12, or DIR
  int64_t step = -1; ///< by its name; -1: unknown, it is in DIR itself
};

/// Returns the checkpoints in a folder, the newest first; one that is in the folder itself is the
/// oldest. Reads none of them.
inline std::vector<CheckpointEntry> checkpointsIn(const std::string &folder) {
  namespace fs = std::filesystem;
  std::vector<CheckpointEntry> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code none;
    if (int64_t step = stepOfName(entry->path().filename().string());
        step >= 0 && (entry->is_directory(none) || entry->is_symlink(none))) // which may dangle
      found.push_back({stepFolder(folder, step), step});
  }
  std::sort(found.begin(), found.end(),
            [](const CheckpointEntry &a, const CheckpointEntry &b) { return a.step > b.step; });
  for (const char *name : {kUnshardedName, kIndexName}) // a dangling link is one that was there
    if (std::error_code none;
        fs::symlink_status(folder + "/" + name, none).type() != fs::file_type::not_found && !none) {
      found.push_back({folder, -1});
      break;
    }
  return found;
}

/// Returns the folder of the newest of them; the folder itself if there are none.
inline std::string newestEntry(const std::string &folder) {
  std::vector<CheckpointEntry> entries = checkpointsIn(folder);
  return entries.empty() ? folder : entries.front().path;
}

/// Returns the file of the checkpoint in this folder: that with all tensors or the index of shards. If
/// both exist, because files were copied, returns the one written last; "" if neither exists.
inline std::string fileIn(const std::string &folder) {
  namespace fs = std::filesystem;
  std::string unsharded = folder + "/" + kUnshardedName, index = folder + "/" + kIndexName;
  std::error_code noUnsharded, noIndex;
  fs::file_time_type ofUnsharded = fs::last_write_time(unsharded, noUnsharded);
  fs::file_time_type ofIndex = fs::last_write_time(index, noIndex);
  if (noIndex)
    return noUnsharded ? "" : unsharded;
  return !noUnsharded && ofUnsharded > ofIndex ? unsharded : index;
}

} // namespace partita_rt

#endif // PARTITA_RT_CHECKPOINT_FOLDER_H
