//===- CheckpointCommand.cpp - partita checkpoint ---------------------------------------------===//
//
// Checkpoints are read by the reader that programs resume with: a program of the runtime's,
// partita-checkpoint beside this one (runtime/tools/checkpoint.cpp), becomes this process.
//
//===------------------------------------------------------------------------------------------------===//

#include "tools/partita/Options.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <cstring>
#include <unistd.h>

using namespace llvm;
using namespace partita::tool;

int partita::tool::checkpointMain(Arguments arguments) {
  std::string self = sys::fs::getMainExecutable(nullptr, nullptr);
  SmallString<128> program(sys::path::parent_path(self));
  sys::path::append(program, "partita-checkpoint");
  std::vector<std::string> words{program.str().str()};
  for (StringRef argument : arguments)
    words.push_back(argument.str());
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  fail("checkpoint", words[0] + ": cannot be started: " + std::strerror(errno));
  return 2;
}
