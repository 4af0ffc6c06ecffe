//===- Plan.h - the table of plan options -------------------------------------------*- C++ -*-===//
//
// A plan option is one row: the command line's option and its help, the key in `#train.plan` and
// the name in a phase's pipeline text all come from it.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_PHASES_PLAN_H
#define PARTITA_PHASES_PLAN_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace partita {

struct PlanOption {
  enum Kind {
    Mesh,     ///< axis=size,... ; empty is one rank
    Cuts,     ///< one of `values`, or cuts:LAYER,... in ascending order
    Integer,  ///< within [low, high]
    Bytes,    ///< like Integer, optionally with a unit (partita/Support/ParseBytes.h)
    Elements, ///< the same
    Real,     ///< within [low, high]; or empty, if that is the initial value
    Rate,     ///< within [low, high), as runs read it (partita_rt/lr_schedule_text.h)
    Choice,   ///< one of `values`, separated by '|'
    Named,    ///< one of `values`, optionally with ':' and a name in the model
    Text,     ///< a name in the model
    List,     ///< words separated by commas; may be given several times
    Bindings, ///< NAME=WORD, as `value` has it, separated by commas; may be given several times
    Words,    ///< some of `values`, separated by commas
    Flag,     ///< true or false; on the command line present or absent
    Groups,   ///< PATTERN:KEY=NUMBER... separated by commas; may be given several times
    Bounds,   ///< two reals, 0 <= MIN <= MAX, separated by a comma; or none
    Betas,    ///< two reals in [0, 1), separated by a comma; or none
    Sparsity, ///< KEY=VALUE,... as partita/Support/Sparsity.h reads them; or empty
    Schedule  ///< NAME[,key=value]..., as runs read it (partita_rt/lr_schedule_text.h)
  };
  llvm::StringLiteral name;
  Kind kind;
  llvm::StringLiteral value; ///< the value's name in the help; for a Choice the values
  llvm::StringLiteral initial;
  double low, high;
  llvm::StringLiteral help;
  /// Its value in the unpartitioned program, with which `partita verify` compares; null: the
  /// plan's, since the option changes what is computed rather than how.
  const char *unpartitioned = nullptr;
  /// Has no effect on a program for inference: it concerns the objective, the gradients or the
  /// updates.
  bool ofTraining = false;
};

/// The plan option that makes two axes of data parallelism: groups of so many ranks, and the ranks of a group.
constexpr llvm::StringLiteral kHpz = "zero-hpz-partition-size";

llvm::ArrayRef<PlanOption> planOptions();
const PlanOption *findPlanOption(llvm::StringRef name);

/// Returns true if several values of the option add up, false if the last one counts.
inline bool addsUp(const PlanOption &option) {
  return option.kind == PlanOption::List || option.kind == PlanOption::Bindings ||
         option.kind == PlanOption::Groups || option.kind == PlanOption::Words;
}

/// Returns what is wrong with `text` as a value of the option, or "".
std::string checkPlanValue(const PlanOption &option, llvm::StringRef text);

/// Returns the canonical form of a value that checkPlanValue accepts: bytes without a unit, types
/// by their full names.
std::string plainPlanValue(const PlanOption &option, llvm::StringRef text);

/// An option without effect, and why: "has no effect without --zero-stage 3". Or one that another option refuses.
struct PlanProblem {
  llvm::StringRef option;
  std::string reason;
  bool isRefused = false;
  /// Returns the sentence for the command line.
  std::string text() const { return "--" + option.str() + ": " + reason; }
};

/// The values of the plan options, each as checked text in its canonical form.
class Plan {
public:
  /// Returns the value that was set, or the option's initial one.
  llvm::StringRef get(llvm::StringRef name) const;
  bool isSet(llvm::StringRef name) const { return values.contains(name); }
  /// Returns a value for a phase's pipeline text: an option's, or a part of the mesh, since the
  /// axis of pipeline stages is not in the mesh of a stage's ranks:
  ///
  ///     mesh.stages   the size of pp, 1 if there is none
  ///     mesh.axis     the number of axes before pp
  ///     mesh.ranks    the other axes
  ///     ring-ranks    the ranks that may share a sequence in a ring, as far as the mesh is known
  std::string textFor(llvm::StringRef placeholder) const;
  /// Returns the axes of --mesh and their sizes, outermost first; with hpZ the ranks' mesh has one more.
  std::vector<std::pair<std::string, int64_t>> mesh() const;
  /// Returns the number of ranks in a group of hpZ, 1 without it: the ranks' mesh then has the axes dp, between groups,
  /// and fsdp, within them, in place of dp.
  int64_t ofGroup() const;
  /// Returns why the data-parallel ranks are not such groups; nothing if they are. Not for a size of 1, which is off.
  std::optional<std::string> groupProblem() const;
  /// Returns the number of pipeline stages.
  int64_t stages() const;
  /// Sets a value that checkPlanValue accepts.
  void set(llvm::StringRef name, llvm::StringRef value);
  /// Makes it the plan of the unpartitioned program: one rank, float32, no recomputation.
  void setUnpartitioned();

  /// Returns an option that is set to a value other than its initial one, although another option
  /// leaves it without effect.
  std::optional<PlanProblem> findProblem() const;

  /// Returns `#train.plan` with every option, set or not, so that the module records how it was
  /// made.
  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  /// Reads a module's `#train.plan`. Returns what is wrong with it, or "".
  std::string fromAttribute(mlir::Attribute attribute);

private:
  llvm::StringMap<std::string> values;
};

} // namespace partita

#endif // PARTITA_PHASES_PLAN_H
