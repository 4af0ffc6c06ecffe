//===- ConfigOptions.h - a DeepSpeed configuration on the command line --------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_CONFIGOPTIONS_H
#define PARTITA_TOOLS_CONFIGOPTIONS_H

#include "partita/DeepSpeed/Resolve.h"
#include "partita/Phases/Plan.h"
#include "tools/partita/Session.h"

namespace partita::tool {

/// --config and its companion options, beside a command's model, --dim and plan.
struct ConfigOptions {
  std::string file;
  std::optional<int64_t> warmupSteps, totalSteps;

  bool isSet() const { return !file.empty() || warmupSteps || totalSteps; }
  /// Declares all of them; or, for `partita config`, which names the file itself, only the last
  /// two.
  void declare(OptionSet &options, bool namesFile = true);
};

/// Returns the facts that the configuration is resolved against: the command line and, if `model`
/// is a path, facts about its graph, without its weights; for a module, the module itself. Nothing
/// after a message.
std::optional<config::Facts> findFacts(Session &session, const ConfigOptions &o,
                                       llvm::StringRef model, mlir::ModuleOp module,
                                       llvm::ArrayRef<std::string> dims, const Plan &plan);

/// Applies the resolved settings to the plan. Returns false after a message: a value that the plan
/// option does not accept, or one that has no effect with the others.
bool applyToPlan(const config::Document &document, const config::Resolution &resolution,
                 Plan &plan);

/// Of a configuration that is resolved for one rank, without --mesh: if two ranks of dp would be refused it because of its optimizer, a note at the key says so.
void noteWhatRanksRefuse(const config::Document &document, const config::Facts &facts,
                         const Plan &plan);

/// Session::load with a configuration: first reads and checks it and applies it to the plan, as far
/// as the model's weights are concerned, and then attaches its defaults of run options to the
/// module. Null after a message.
mlir::OwningOpRef<mlir::ModuleOp> loadWithConfig(Session &session, const ConfigOptions &o,
                                                 llvm::StringRef model,
                                                 std::vector<std::string> &dims, Plan &plan);

/// Does a run of the program take this option, among those that a configuration can set?
bool knowsRunOption(llvm::StringRef name);

} // namespace partita::tool

#endif // PARTITA_TOOLS_CONFIGOPTIONS_H
