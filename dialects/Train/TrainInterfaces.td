//===- TrainInterfaces.td - what passes ask an optimizer ---------------------------------------------===//

#ifndef PARTITA_TRAIN_INTERFACES
#define PARTITA_TRAIN_INTERFACES

include "mlir/IR/OpBase.td"

def OptimizerInterface : OpInterface<"OptimizerInterface"> {
  let cppNamespace = "::partita::train";
  let description = [{
    An op that computes the new value of a parameter, or of its shard, from its gradient. Operands: the value, the
    gradient, one per state, the scalars in memory (getScalarNames), then optionally `scale`, which multiplies the
    gradient, and after it optionally `apply`: if it is 0, nothing changes. Results: the new value, the states' new
    values, and for a master `rounded`: the new value in 16 bits.

    Its arithmetic is stated once, as C++ over scalars (Optimizers.td): the interpreter evaluates it in double
    precision, and kernels are printed from the same text. `p` is the value's element, `g` the gradient's times
    `scale`; a state's element has the state's name; `t` is the number of this update, from 1.
  }];
  let methods = [
    StaticInterfaceMethod<"The states' suffixes: the state of parameter w is named \"w.\" and one of these.",
      "::llvm::SmallVector<::llvm::StringRef>", "getStateNames">,
    StaticInterfaceMethod<"The scalars after the states: `rate` and whichever of `t`, `ratio` it needs.",
      "::llvm::SmallVector<::llvm::StringRef>", "getScalarNames">,
    StaticInterfaceMethod<"Hyperparameters, which are attributes of these names, and their usual values.",
      "::llvm::SmallVector<::partita::train::Hyperparameter>", "getHyperparameters">,
    StaticInterfaceMethod<"The name of the optimizer that this one becomes with a momentum; empty if it stays itself.",
      "::llvm::StringRef", "getWithMomentum">,
    StaticInterfaceMethod<"The values computed once per step, in double precision, from scalars and hyperparameters.",
      "::llvm::SmallVector<::partita::train::Assignment>", "getPreparations">,
    StaticInterfaceMethod<"The assignments for each element, in order.",
      "::llvm::SmallVector<::partita::train::Assignment>", "getAssignments">,
    StaticInterfaceMethod<"The names, p or variables, whose sums of squares `ratio` is of, as they are before the last assignment.",
      "::llvm::SmallVector<::llvm::StringRef>", "getSquared">,
    StaticInterfaceMethod<"Assignments behind these, of numbers whose largest `ratio` is of.",
      "::llvm::SmallVector<::partita::train::Assignment>", "getLargest">,
    StaticInterfaceMethod<"Does `ratio` stay after the exact steps, but for a factor that is of getLargest?", "bool", "freezesRatio">,
    StaticInterfaceMethod<"The state that ranks may average in place of their gradients, in all steps but the exact ones; empty if none.",
      "::llvm::StringRef", "getSummedState">,
    StaticInterfaceMethod<"Where there is one, the hyperparameters that say what it and the variance keep of themselves in a step.",
      "::llvm::SmallVector<::llvm::StringRef>", "getDecayNames">,
    StaticInterfaceMethod<"Where there is one, the hyperparameters that say which steps are exact: `until` and, if it has one, `doubling`.",
      "::llvm::SmallVector<::llvm::StringRef>", "getExactNames">,
    StaticInterfaceMethod<[{
        Updates one element in double precision: `values` are the value and the states. `scalars` are in the order of
        getScalarNames, `hyper` in that of getHyperparameters. `measured`, unless empty, receives the numbers of getSquared and getLargest.
      }], "void", "evaluateElement",
      (ins "::llvm::ArrayRef<double>":$hyper, "::llvm::ArrayRef<double>":$scalars,
           "::llvm::MutableArrayRef<double>":$values, "double":$g, "::llvm::MutableArrayRef<double>":$measured)>,
  ];
  let extraSharedClassDeclaration = [{
    static constexpr unsigned kValue = 0, kGradient = 1;
    /// The operands of the value and the gradient, and the result of the new value.
    static constexpr unsigned kBeforeStates = 2, kResultsBeforeStates = 1;
    /// The hyperparameter that is 1 where ranks average getSummedState.
    static constexpr ::llvm::StringLiteral kCompressed = "compressed";
    /// The hyperparameters that --betas sets, and a run's schedule may.
    static constexpr ::llvm::StringLiteral kBeta1 = "beta1", kBeta2 = "beta2";
    ::mlir::Value getUpdatedValue() { return $_op->getOperand(kValue); }
    ::mlir::Value getUpdatingGradient() { return $_op->getOperand(kGradient); }
    ::mlir::OperandRange getStateValues() { return $_op->getOperands().slice(kBeforeStates, $_op.getStateNames().size()); }
    ::mlir::OperandRange getScalarValues() {
      return $_op->getOperands().slice(kBeforeStates + $_op.getStateNames().size(), $_op.getScalarNames().size());
    }
    /// A state, or a scalar after the states, by its name.
    ::mlir::Value getStateNamed(::llvm::StringRef name) { return getStateValues()[::partita::train::placeOf(name, $_op.getStateNames())]; }
    ::mlir::Value getScalarNamed(::llvm::StringRef name) { return getScalarValues()[::partita::train::placeOf(name, $_op.getScalarNames())]; }
    /// The new value of a state.
    ::mlir::Value getNewStateNamed(::llvm::StringRef name) {
      return $_op->getResult(kResultsBeforeStates + ::partita::train::placeOf(name, $_op.getStateNames()));
    }
    /// What the summed state and the variance keep of themselves in a step; of an optimizer with getSummedState.
    double getSummedDecay() { return getHyper($_op.getDecayNames()[0]); }
    double getVarianceDecay() { return getHyper($_op.getDecayNames()[1]); }
    /// The steps in which gradients are summed and the variance is updated; of an optimizer with getSummedState.
    ::partita_rt::ExactSteps getExactSteps() {
      ::llvm::SmallVector<::llvm::StringRef> names = $_op.getExactNames();
      auto number = [&](size_t i) { return i < names.size() ? static_cast<int64_t>(getHyper(names[i])) : 0; };
      return {number(0), number(1)};
    }
    /// The factor of the gradient; null if there is none.
    ::mlir::Value getGradientScale() { return getBehindScalars(0); }
    /// A scalar; if it is 0, nothing changes. Null if the update is unconditional.
    ::mlir::Value getPredicate() { return getBehindScalars(1); }
    ::mlir::Value getBehindScalars(unsigned number) {
      unsigned index = getIndexBehindScalars(number);
      return $_op->getNumOperands() > index ? $_op->getOperand(index) : ::mlir::Value();
    }
    unsigned getIndexBehindScalars(unsigned number) {
      return kBeforeStates + $_op.getStateNames().size() + $_op.getScalarNames().size() + number;
    }
    void setGradientScale(::mlir::Value scale) { $_op->setOperand(getIndexBehindScalars(0), scale); }
    /// The new value in 16 bits; null unless the value is a master.
    ::mlir::Value getRounded() {
      unsigned index = kResultsBeforeStates + $_op.getStateNames().size();
      return $_op->getNumResults() > index ? ::mlir::Value($_op->getResult(index)) : ::mlir::Value();
    }
    /// The results except `rounded`.
    ::mlir::ResultRange getUpdates() { return $_op->getResults().take_front(kResultsBeforeStates + $_op.getStateNames().size()); }
    /// The operand whose new value a result is; none for `rounded`.
    ::std::optional<unsigned> getUpdatedOperand(unsigned result) {
      if (result > $_op.getStateNames().size())
        return ::std::nullopt;
      return result == 0 ? 0 : result + 1;
    }
    /// Hyperparameter `name`; the factor of the learning rate is `rate_scale`.
    double getHyper(::llvm::StringRef name) {
      if (auto own = $_op->template getAttrOfType<::mlir::FloatAttr>(name))
        return own.getValueAsDouble();
      for (::partita::train::Hyperparameter each : $_op.getHyperparameters())
        if (each.name == name)
          return each.usual;
      return 1;
    }
  }];
  let verify = [{ return ::partita::train::verifyOptimizer($_op); }];
}

#endif // PARTITA_TRAIN_INTERFACES
