//===- partita.cpp - the command line
//---------------------------------------------------------------===//

#include "tools/partita/Commands.h"
#include "tools/partita/Options.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

using namespace llvm;
using namespace partita::tool;

/// In the order of use.
static constexpr Command kCommands[] = {
    {"import", "turns an ONNX file into a module of tx", importMain},
    {"compile", "turns a model and a plan into a training program", compileMain},
    {"run", "trains with a compiled program", runMain},
    {"verify", "proves the partitioned program equal to the whole one", verifyMain},
    {"explain", "every collective and why; what the memory holds", explainMain},
    {"export", "writes trained weights back into the ONNX file", exportMain},
    {"report", "a summary of a program and of its run", reportMain},
};

static void printHelp(raw_ostream &os) {
  os << "usage: partita COMMAND [OPTIONS]\n\n"
        "Turns a Transformer in an ONNX file into a distributed training program.\n\nCommands:\n";
  for (const Command &command : kCommands)
    os << formatv("  {0,-10}{1}\n", command.name, command.summary);
  os << "\n'partita COMMAND --help' explains each. Passes one by one: partita-opt --help.\n";
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  SmallVector<StringRef> words(argv + 1, argv + argc);
  if (words.empty()) {
    printHelp(errs());
    return 1;
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    printHelp(outs());
    return 0;
  }
  SmallVector<StringRef> names;
  for (const Command &command : kCommands) {
    if (command.name == words[0])
      return command.main(ArrayRef(words).drop_front());
    names.push_back(command.name);
  }
  StringRef best = nearest(words[0], names);
  std::string hint =
      best.empty() ? "'partita --help' lists all" : "did you mean '" + best.str() + "'?";
  return fail("", "unknown command '" + words[0] + "'; " + hint);
}
