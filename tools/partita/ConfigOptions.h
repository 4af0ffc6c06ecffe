//===- ConfigOptions.h - a DeepSpeed configuration on the command line --------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_CONFIGOPTIONS_H
#define PARTITA_TOOLS_CONFIGOPTIONS_H

#include "partita/DeepSpeed/Resolve.h"
#include "partita/Phases/Plan.h"
#include "tools/partita/Session.h"

namespace partita::tool {

/// --config and what goes with it, beside a command's model, --dim and plan.
struct ConfigOptions {
  std::string file;
  std::optional<int64_t> warmupSteps, totalSteps;

  bool isSet() const { return !file.empty() || warmupSteps || totalSteps; }
  /// Declares all of them, or, for `partita config`, which names the file itself, the latter two.
  void declare(OptionSet &options, bool namesFile = true);
};

/// What the configuration is resolved against: the command line and, where `model` is a path, what
/// its graph says, without its weights; of a module the module itself. Nothing after a message.
std::optional<config::Facts> findFacts(Session &session, const ConfigOptions &o,
                                       llvm::StringRef model, mlir::ModuleOp module,
                                       llvm::ArrayRef<std::string> dims, const Plan &plan);

/// Puts what was resolved into the plan. False after a message: a value that the plan option does
/// not take, or one that has no effect with the others.
bool applyToPlan(const config::Document &document, const config::Resolution &resolution,
                 Plan &plan);

/// Session::load, with the configuration read, checked and put into the plan first, as far as the
/// model's weights are concerned, and its defaults of run options put on the module. Null after a
/// message.
mlir::OwningOpRef<mlir::ModuleOp> loadWithConfig(Session &session, const ConfigOptions &o,
                                                 llvm::StringRef model,
                                                 std::vector<std::string> &dims, Plan &plan);

/// Does a run of the program take this option, as far as a configuration sets it?
bool knowsRunOption(llvm::StringRef name);

} // namespace partita::tool

#endif // PARTITA_TOOLS_CONFIGOPTIONS_H
