//===- Plan.h - the plan options: one table -----------------------------------------*- C++ -*-===//
//
// One row per plan option is all there is to it: the command line's option and its help, the key in
// `#train.plan` and the name that a phase's pipeline text may ask for come from the same row.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_PHASES_PLAN_H
#define PARTITA_PHASES_PLAN_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace partita {

struct PlanOption {
  enum Kind {
    Mesh,     ///< axis=size,... ; empty is one rank
    Cuts,     ///< one of `values`, or cuts:LAYER,... in ascending order
    Integer,  ///< within [low, high]
    Bytes,    ///< the same, perhaps with a unit (partita/Support/ParseBytes.h)
    Real,     ///< within [low, high]; or nothing, where that is the initial value
    Rate,     ///< within [low, high), as runs read it (partita_rt/schedule_text.h)
    Choice,   ///< one of `values`, separated by '|'
    Named,    ///< one of `values`, perhaps with ':' and a name of the model behind
    Text,     ///< a name of the model
    List,     ///< words separated by commas; may be given several times
    Bindings, ///< NAME=WORD, as `value` has it, separated by commas; may be given several times
    Words,    ///< some of `values`, separated by commas
    Flag,     ///< true or false; on the command line there or not
    Groups,   ///< PATTERN:KEY=NUMBER... separated by commas; may be given several times
    Bounds,   ///< two reals, 0 <= MIN <= MAX, separated by a comma; or none
    Betas,    ///< two reals in [0, 1), separated by a comma; or none
    Schedule  ///< NAME[,key=value]..., as runs read it (partita_rt/schedule_text.h)
  };
  llvm::StringLiteral name;
  Kind kind;
  llvm::StringLiteral value; ///< what the help calls the value; for a Choice the values
  llvm::StringLiteral initial;
  double low, high;
  llvm::StringLiteral help;
};

llvm::ArrayRef<PlanOption> planOptions();
const PlanOption *findPlanOption(llvm::StringRef name);

/// Do several values of the option add up (instead of the last one counting)?
inline bool addsUp(const PlanOption &option) {
  return option.kind == PlanOption::List || option.kind == PlanOption::Bindings ||
         option.kind == PlanOption::Groups ||
         option.kind == PlanOption::Words;
}

/// Empty when `text` is a value of the option, else what is wrong with it.
std::string checkPlanValue(const PlanOption &option, llvm::StringRef text);

/// The one spelling of a value that checkPlanValue accepts: bytes without a unit, types by their
/// full names.
std::string plainPlanValue(const PlanOption &option, llvm::StringRef text);

/// An option without effect, and why: "has no effect without --zero-stage 3".
struct Ineffective {
  llvm::StringRef option;
  std::string reason;
  /// The sentence for the command line.
  std::string text() const { return "--" + option.str() + ": " + reason; }
};

/// The values of the plan options, each as checked text in its one spelling.
class Plan {
public:
  /// The value that was set, or the option's initial one.
  llvm::StringRef get(llvm::StringRef name) const;
  bool isSet(llvm::StringRef name) const { return values.contains(name); }
  /// What a phase's pipeline text asks for: an option's value, or of the mesh one of its parts, as
  /// pipeline stages are no axis of the mesh that a stage's ranks form:
  ///
  ///     mesh.stages   the size of pp, 1 where there is none
  ///     mesh.axis     how many axes stand in front of pp
  ///     mesh.ranks    the other axes
  std::string textFor(llvm::StringRef placeholder) const;
  /// Pipeline stages.
  int64_t stages() const;
  /// Sets a value that checkPlanValue accepts.
  void set(llvm::StringRef name, llvm::StringRef value);
  /// The plainest program of the same steps: one rank, nothing recomputed.
  void setOneRank();

  /// An option that is set, to another value than its initial one, although what another is set to
  /// leaves it without effect.
  std::optional<Ineffective> findIneffective() const;

  /// `#train.plan` with every option, set or not, so that the module says how it was made.
  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  /// Reads a module's `#train.plan`; returns what is wrong with it, or nothing.
  std::string fromAttribute(mlir::Attribute attribute);

private:
  llvm::StringMap<std::string> values;
};

} // namespace partita

#endif // PARTITA_PHASES_PLAN_H
