//===- TuneCommand.cpp - partita tune ---------------------------------------------------------===//
//
// Starts the program, which measures on the GPU that it will run on.
//
//===------------------------------------------------------------------------------------------------===//

#include "tools/partita/Program.h"
#include "tools/partita/Run/RunProgram.h"

using namespace llvm;
using namespace partita::tool;

int partita::tool::tuneMain(Arguments arguments) {
  std::string folder;
  OptionSet options("tune", "DIR",
                    "Tries the algorithms for every matmul of a program for GPUs on this machine's "
                    "GPU and writes the fastest to DIR/matmuls.json. All runs of the program, and "
                    "all their ranks, use this choice.");
  options.positional("DIR", folder, "the folder that 'partita compile --target cuda -o DIR' wrote");
  options.epilogue(
      "The file keeps the choices for each kind of GPU and version of cuBLASLt that it was tuned\n"
      "on. Elsewhere every matmul takes the library's first suggestion, and a line of the run says\n"
      "so. For a program on several hosts start its own --tune as its runs are started:\n"
      "torchrun --no-python ... DIR/NAME --tune.");
  if (std::optional<int> done = options.parse(arguments))
    return *done;
  std::string problem;
  std::optional<json::Object> manifest = readManifest(folder, problem, {"program", "target"});
  if (!manifest)
    return fail("tune", problem);
  if (!targetOf(*manifest).tunesMatmuls())
    return fail("tune", folder + ": is a program for " +
                            manifest->getString("target").value_or("?") +
                            "; only programs on cuBLASLt are tuned: compile it with --target cuda");
  return runProgram("tune", folder, {"--tune"});
}
