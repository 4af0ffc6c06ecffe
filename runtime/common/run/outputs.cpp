// Checks the files and folders that a run will write (outputs.h).

#include "common/run/outputs.h"
#include "common/checkpoint/folder.h"
#include "common/data/data.h"
#include "common/report/metrics.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace partita_rt {

namespace {

/// Fails now rather than at the end of the run, when the file would be written.
void checkWritable(const char *option, const std::string &path) {
  if (path.empty())
    return;
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    fail("%s: cannot write into %s: %s", option, folder.c_str(), std::strerror(errno));
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    fail("%s: %s is a folder", option, path.c_str());
}

/// Checks a folder that is made later, so that a run that fails before leaves none. Returns it, or that
/// of its parents which exists.
std::string checkCanMake(const char *option, const std::string &path) {
  struct stat status;
  std::string around = path; // becomes the nearest existing parent
  while (stat(around.c_str(), &status) != 0 && errno == ENOENT) {
    size_t end = around.find_last_not_of('/');
    size_t slash = end == std::string::npos ? end : around.rfind('/', end);
    around = slash == std::string::npos ? "." : around.substr(0, std::max<size_t>(slash, 1));
  }
  bool there = stat(around.c_str(), &status) == 0;
  if (there && !S_ISDIR(status.st_mode))
    fail("%s: cannot make the folder %s: %s is not a folder", option, path.c_str(), around.c_str());
  if (!there || access(around.c_str(), W_OK | X_OK) != 0)
    fail("%s: cannot make the folder %s: %s", option, path.c_str(), std::strerror(errno));
  return around;
}

/// Checks that this process can write files into a folder, or make it, by doing that once: some file
/// systems say no only then.
void checkCanWriteInto(const char *option, const std::string &path) {
  std::string around = checkCanMake(option, path), probe = around + "/.partita-XXXXXX";
  if (!mkdtemp(probe.data()))
    fail("%s: cannot write into %s: %s", option, around.c_str(), std::strerror(errno));
  rmdir(probe.c_str());
}

/// Checks the folder for checkpoints, which is made with the first one.
void checkCheckpoints(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    return checkWritable("--checkpoint", path + "/step");
  checkCanMake("--checkpoint", path);
}

/// Do two paths name one file, whether or not it exists yet? False for anything but a regular file,
/// such as a terminal or /dev/null: nothing in it can be lost.
bool isSameFile(const std::string &a, const std::string &b) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(a, error) && !fs::is_regular_file(a, error))
    return false;
  if (fs::equivalent(a, b, error))
    return true;
  std::error_code unresolved; // an error is reported when the file is opened
  auto resolved = [&](const std::string &path) {
    return fs::weakly_canonical(fs::absolute(path, unresolved), unresolved);
  };
  return resolved(a) == resolved(b) && !unresolved;
}

/// Fails if an output would overwrite an input of the run, the program or another output.
void checkDistinct(const Program &program, const RunOptions &o) {
  std::vector<std::pair<const char *, std::string>> written;
  auto add = [&](const char *option, const std::string &path) {
    if (path.empty())
      return;
    auto check = [&](const std::string &other, const std::string &what) {
      if (!other.empty() && isSameFile(path, other))
        fail("%s: %s is %s; choose another name", option, path.c_str(), what.c_str());
    };
    check(dataPath(o.data), "what --data reads");
    check(dataPath(o.evalData), "what --eval-data reads");
    if (option != std::string("--dump-parameters")) // written at once, after it has been read
      check(o.initFile, "what --init reads");
    for (const char *file : {"model.cpp", "model.cu", "manifest.json", "Makefile", program.name})
      check(o.programFolder + "/" + file, "a file of the program");
    if (*program.model)
      check(modelPath(program, o, program.model), "a file of the model");
    for (const ModelFile &file : program.modelFiles)
      check(modelPath(program, o, file.path), "a file of the model");
    for (const auto &[other, file] : written)
      check(file, std::string("what ") + other + " writes");
    std::error_code none;
    for (const CheckpointEntry &entry : checkpointsIn(o.checkpoint))
      if (std::filesystem::equivalent(std::filesystem::path(path).parent_path(), entry.path,
                                      none) &&
          entry.step >= 0)
        fail("%s: %s would lie in a checkpoint, and be removed with it; choose another name",
             option, path.c_str());
    written.push_back({option, path});
  };
  add("--log", o.log);
  add("--grads", o.grads);
  add("--dump-parameters", o.dumpParameters);
  add("--forward", o.forward);
}

} // namespace

void checkOutputs(const Program &program, const RunOptions &options, bool isFirst) {
  checkDistinct(program, options);
  checkWritable("--log", options.log);
  checkWritable("--grads", options.grads);
  checkWritable("--dump-parameters", options.dumpParameters);
  checkWritable("--forward", options.forward);
  if (options.tune)
    checkWritable("--tune", matmulsPath(options));
  if (isFirst && !options.checkpoint.empty() && (!options.resume || options.steps))
    checkCheckpoints(options.checkpoint);
  if (!options.flightRecorder.empty()) // each process writes its own
    checkCanWriteInto("--flight-recorder", options.flightRecorder);
  if (isFirst && !options.tensorboard.empty())
    checkCanMake("--tensorboard", tensorboardFolder(program, options));
}

} // namespace partita_rt
