//===- Phases.h - the phases, joined by name -------------------------------------*- C++ -*-===//
//
// A phase is a name, a list of passes and the reason for its position. A pass may read ${option},
// the value of that plan option (Plan.h), and ${phases.NAME}, the passes of another phase. Any phase's output can be the next one's input: the
// attribute `train.phase` of a module is the last phase that it went through.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_PHASES_PHASES_H
#define PARTITA_PHASES_PHASES_H

#include "mlir/IR/BuiltinOps.h"
#include "partita/Phases/Plan.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace partita {

struct Phase {
  llvm::StringLiteral name;
  llvm::ArrayRef<llvm::StringLiteral>
      passes;                 ///< on the module, in running order; the last one is verify-phase
  llvm::StringLiteral reason; ///< for its position
};

/// Returns all phases in running order.
llvm::ArrayRef<Phase> phases();

/// Returns the phase's index in phases(), or -1.
int phaseIndex(llvm::StringRef name);

/// Returns true for a module of pipeline stages, each a module. Then phases run on each of them.
bool isOfStages(mlir::ModuleOp module);
/// Returns the phase's pipeline with the plan's values; its last pass records the phase on the
/// module.
std::string pipelineText(const Phase &phase, const Plan &plan, bool ofStages = false);

/// Returns the pipeline of its passes alone, without the contract.
std::string passesText(const Phase &phase, const Plan &plan);

/// The pass that checks what holds after the phase, on the program as a whole.
llvm::StringRef contractOf(const Phase &phase);

/// Does the phase's pipeline read the plan option?
bool reads(const Phase &phase, llvm::StringRef option);
/// Returns the index of the first phase that reads it, or -1.
int firstReader(llvm::StringRef option);

/// Reads the module's `#train.plan` into `plan`, which does not change if there is none. Fails if
/// it is wrong, or missing although there is a train.phase.
mlir::LogicalResult readModulePlan(mlir::ModuleOp module, Plan &plan);
/// Sets unset options of `plan` from `earlier`, the plan of a module that continues with
/// `nextPhase`. Returns what is wrong, "OPTION: ...": an option that a phase has already read
/// cannot change any more.
std::string joinPlans(Plan &plan, const Plan &earlier, int nextPhase);

/// Registers each phase as the pass pipeline `--partita-PHASE`, whose options are plan options that
/// it reads: `--partita-partition="mesh=dp=2"`. All others are those of the module's `#train.plan`.
void registerPhases();

/// Runs the phases from `first` to `last` (places in phases()) one by one and records each on the
/// module, which must hold what the phase before `first` promises; `begins` is called for each before it runs. Errors are diagnostics.
mlir::LogicalResult runPhases(mlir::ModuleOp module, int first, int last, const Plan &plan,
                              llvm::function_ref<void(const Phase &)> begins = nullptr);

/// Returns the index of the first phase that the module has not been through; -1 after an error if
/// its train.phase is not a phase, or is missing although there is a plan.
int nextPhase(mlir::ModuleOp module);
/// Fails unless the module has been through the phase before phases()[index], or has no
/// train.phase.
mlir::LogicalResult expectPhaseBefore(mlir::ModuleOp module, int index);

/// On the module: the name of the last phase that it went through.
constexpr llvm::StringLiteral kPhaseAttr = "train.phase";

} // namespace partita

#endif // PARTITA_PHASES_PHASES_H
