//===- Commands.h - the table of commands -------------------------------------------*- C++ -*-===//
//
// Each command is one file, <Name>Command.cpp, and one row of kCommands in partita.cpp. A command
// gets the words after its name and returns the exit code: 0 only if everything requested was done.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_COMMANDS_COMMANDS_H
#define PARTITA_TOOLS_COMMANDS_COMMANDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace partita::tool {

using Arguments = llvm::ArrayRef<llvm::StringRef>;

struct Command {
  llvm::StringLiteral name;
  llvm::StringLiteral summary;
  int (*main)(Arguments arguments);
};

int importMain(Arguments arguments);
int compileMain(Arguments arguments);
int configMain(Arguments arguments);
int tuneMain(Arguments arguments);
int runMain(Arguments arguments);
int verifyMain(Arguments arguments);
int explainMain(Arguments arguments);
int checkpointMain(Arguments arguments);
int exportMain(Arguments arguments);
int reportMain(Arguments arguments);

} // namespace partita::tool

#endif // PARTITA_TOOLS_COMMANDS_COMMANDS_H
