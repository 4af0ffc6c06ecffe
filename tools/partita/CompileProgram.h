//===- CompileProgram.h - from a module to a program's folder -----------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_COMPILEPROGRAM_H
#define PARTITA_TOOLS_COMPILEPROGRAM_H

#include "partita/Phases/Plan.h"
#include "tools/partita/ConfigOptions.h"
#include "tools/partita/Elastic.h"
#include "tools/partita/Expectations.h"
#include "tools/partita/Session.h"

namespace partita::tool {

/// What the command line of `partita compile` asks for.
struct CompileOptions {
  std::string model, output, lastPhase, target, architecture;
  std::vector<std::string> dims;
  std::optional<uint64_t> memoryLimit;
  bool printPipeline = false, noBuild = false, withRuntime = false, warningsAsErrors = false;
  ElasticSizes elastic;
  Plan plan;
  ConfigOptions config;
  Expectations expectations;
};

/// Runs the phases on a loaded module and writes what the options ask for: a program's folder, or
/// the module. Prints import's guesses about the weights, and a line about a program that was
/// written; for one of several programs, `summary` becomes the end of that line, after the folder,
/// and both are left to the caller. The plan becomes the one that was used. Returns the exit code, 1
/// after a message.
int compileProgram(Session &session, mlir::OwningOpRef<mlir::ModuleOp> module, CompileOptions &o,
                   std::string *summary = nullptr);

} // namespace partita::tool

#endif // PARTITA_TOOLS_COMPILEPROGRAM_H
