// Paths of files that options refer to (run_options.h).

#include "common/run_options.h"

namespace partita_rt {

std::string matmulsPath(const RunOptions &options) {
  return options.programFolder + "/matmuls.json";
}

std::string modelPath(const Program &program, const RunOptions &options, const char *path) {
  auto within = [](const std::string &folder, const std::string &name) {
    return folder.empty() || name[0] == '/' ? name : folder + "/" + name;
  };
  return within(options.programFolder, within(program.modelFolder, path));
}

} // namespace partita_rt
