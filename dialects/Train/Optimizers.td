//===- Optimizers.td - op table: optimizers ------------------------------------------------------------===//
//
// An optimizer is one definition: states, hyperparameters and the arithmetic of one element. The interpreter
// and the kernels are made from it. `optimize{kind=NAME}` finds it by its name.
//
//===----------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TRAIN_OPTIMIZERS
#define PARTITA_TRAIN_OPTIMIZERS

include "dialects/Train/TrainBase.td"
include "dialects/Train/TrainInterfaces.td"

/// Pairs {"name", "text"} as C++.
class Train_Pairs<list<list<string>> pairs> {
  code text = "{" # !interleave(!foreach(pair, pairs, "{\"" # pair[0] # "\", \"" # pair[1] # "\"}"), ", ") # "}";
}
class Train_Names<list<string> names> {
  code text = "{" # !interleave(!foreach(name, names, "\"" # name # "\""), ", ") # "}";
}

/// states    names of the states
/// hyper     {name, usual value} of each hyperparameter, an attribute of the op; a third word lets it be absent
/// prepared  {name, expression}: constants of a step
/// formula   {target, expression}: assignments per element; a target that is neither p nor a state is a new variable
/// scalars   scalar operands after the states, always including `rate`
/// withMomentum  the optimizer that it becomes with a momentum, if that is another one
/// squared   for one with the scalar `ratio`: the names, p or variables, whose sums of squares its ratio is of, before the formula's last assignment
/// largest   {name, expression} behind these: numbers whose largest the ratio is of, for one whose ratio is frozen after the exact steps
/// summed    the state that ranks may average in place of their gradients, in all steps but the exact ones; `compressed` is 1 where they do. Then
///           the hyperparameters that say what it and the variance keep of themselves in a step
/// exact     then the hyperparameters that say which steps are exact: partita_rt::ExactSteps' `until` and, if it has one, `doubling`
class Train_Optimizer<string mnemonic, list<string> states, list<list<string>> hyper, list<list<string>> prepared,
                      list<list<string>> formula, list<string> scalars = ["rate"], list<string> squared = [],
                      list<list<string>> largest = [], list<string> summed = [], list<string> exact = []>
    : Train_Op<mnemonic, [Pure, UpdateWork, ShardInterface, OptimizerInterface]> {
  let arguments = !con((ins AnyRankedTensor:$value, AnyRankedTensor:$gradient, Variadic<AnyRankedTensor>:$others),
                       !dag(ins, !foreach(h, hyper, !if(!eq(!size(h), 2), F64Attr, DefaultValuedAttr<F64Attr, h[1]>)),
                            !foreach(h, hyper, h[0])),
                       (ins DefaultValuedAttr<F64Attr, "1.0">:$rate_scale));
  string withMomentum = "";
  let results = (outs AnyRankedTensor:$new_value, Variadic<AnyRankedTensor>:$new_others);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  defvar own = !listconcat(["p"], states);
  defvar before = !foreach(i, !range(!sub(!size(formula), 1)), formula[i]);
  defvar last = formula[!sub(!size(formula), 1)];
  defvar measured = !listconcat(squared, !foreach(each, largest, each[0]));
  // Definitions go to Optimizers.cpp, so that a change of a formula recompiles that file alone.
  let extraClassDeclaration = [{
    ::std::string getShardRule() { return ::partita::train::optimizerRule(getStateNames().size(), getNumOperands(), (*this)->getNumResults()); }
    static ::llvm::SmallVector<::llvm::StringRef> getStateNames();
    static ::llvm::SmallVector<::llvm::StringRef> getScalarNames();
    static ::llvm::StringRef getWithMomentum();
    static ::llvm::SmallVector<::partita::train::Hyperparameter> getHyperparameters();
    static ::llvm::SmallVector<::partita::train::Assignment> getPreparations();
    static ::llvm::SmallVector<::partita::train::Assignment> getAssignments();
    static ::llvm::SmallVector<::llvm::StringRef> getSquared();
    static ::llvm::SmallVector<::partita::train::Assignment> getLargest();
    static bool freezesRatio();
    static ::llvm::StringRef getSummedState();
    static ::llvm::SmallVector<::llvm::StringRef> getDecayNames();
    static ::llvm::SmallVector<::llvm::StringRef> getExactNames();
    static void evaluateElement(::llvm::ArrayRef<double> hyper, ::llvm::ArrayRef<double> scalars,
                                ::llvm::MutableArrayRef<double> values, double g, ::llvm::MutableArrayRef<double> measured);
  }];
  let extraClassDefinition = [{
    ::llvm::SmallVector<::llvm::StringRef> $cppClass::getStateNames() { return }] # Train_Names<states>.text # [{; }
    ::llvm::SmallVector<::llvm::StringRef> $cppClass::getScalarNames() { return }] # Train_Names<scalars>.text # [{; }
    ::llvm::StringRef $cppClass::getWithMomentum() { return "}] # withMomentum # [{"; }
    ::llvm::SmallVector<::partita::train::Hyperparameter> $cppClass::getHyperparameters() {
      return {}] # !interleave(!foreach(h, hyper, "{\"" # h[0] # "\", " # h[1] # "}"), ", ") # [{};
    }
    ::llvm::SmallVector<::partita::train::Assignment> $cppClass::getPreparations() { return }] # Train_Pairs<prepared>.text # [{; }
    ::llvm::SmallVector<::partita::train::Assignment> $cppClass::getAssignments() { return }] # Train_Pairs<formula>.text # [{; }
    ::llvm::SmallVector<::llvm::StringRef> $cppClass::getSquared() { return }] # Train_Names<squared>.text # [{; }
    ::llvm::SmallVector<::partita::train::Assignment> $cppClass::getLargest() { return }] # Train_Pairs<largest>.text # [{; }
    bool $cppClass::freezesRatio() { return }] # !if(!empty(largest), "false", "true") # [{; }
    ::llvm::StringRef $cppClass::getSummedState() { return "}] # !if(!empty(summed), "", !head(summed)) # [{"; }
    ::llvm::SmallVector<::llvm::StringRef> $cppClass::getDecayNames() { return }] # Train_Names<!if(!empty(summed), [], !tail(summed))>.text # [{; }
    ::llvm::SmallVector<::llvm::StringRef> $cppClass::getExactNames() { return }] # Train_Names<exact>.text # [{; }
    void $cppClass::evaluateElement([[maybe_unused]] ::llvm::ArrayRef<double> hyper_, ::llvm::ArrayRef<double> scalars_,
                                    ::llvm::MutableArrayRef<double> values_, double g,
                                    [[maybe_unused]] ::llvm::MutableArrayRef<double> measured_) {
      using namespace ::partita::scalar;
  }] # !interleave(!foreach(i, !range(!size(hyper)), "[[maybe_unused]] const double " # hyper[i][0] # " = hyper_[" # i # "];"), "\n")
     # !interleave(!foreach(i, !range(!size(scalars)), "[[maybe_unused]] const double " # scalars[i] # " = scalars_[" # i # "];"), "\n")
     # !interleave(!foreach(i, !range(!size(own)), "double " # own[i] # " = values_[" # i # "];"), "\n")
     # !interleave(!foreach(each, prepared, "const double " # each[0] # " = " # each[1] # ";"), "\n")
     # !interleave(!foreach(each, before,
                   !if(!empty(!filter(name, own, !eq(name, each[0]))), "const double ", "") # each[0] # " = " # each[1] # ";"), "\n")
     # !if(!empty(measured), "",
           "\nif (!measured_.empty()) {\n" # !interleave(!foreach(each, largest, "const double " # each[0] # " = " # each[1] # ";"), "\n")
           # !interleave(!foreach(i, !range(!size(measured)), "measured_[" # i # "] = " # measured[i] # ";"), "\n") # "}\n")
     # last[0] # " = " # last[1] # ";\n"
     # !interleave(!foreach(i, !range(!size(own)), "values_[" # i # "] = " # own[i] # ";"), "\n") # [{
    }
  }];
}

/// The two moments of Adam and their bias correction; `bias_correction` 0 turns it off.
defvar AdamHyper = [["beta1", "0.9"], ["beta2", "0.999"], ["epsilon", "1e-8"], ["decay", "0.0"], ["bias_correction", "1.0", "optional"]];
class Train_Correction<string name, string beta, string updates> {
  list<string> pair = [name, "select(bias_correction != 0.0, 1.0 / (1.0 - pow(" # beta # ", " # updates # ")), 1.0)"];
}
defvar AdamPrepared = [["keep1", "1.0 - beta1"], ["keep2", "1.0 - beta2"], Train_Correction<"correction1", "beta1", "t">.pair,
                       Train_Correction<"correction2", "beta2", "t">.pair];
// m + (1 - b1) (g - m) rather than b1 m + (1 - b1) g: rounded, b1 and 1 - b1 do not add up to 1, and a moment of equal
// gradients would not become the gradient.
defvar AdamMoments = [["m", "m + keep1 * (g - m)"], ["v", "v + keep2 * (g * g - v)"]];
defvar AdamDirection = "(m * correction1) / (sqrt(v * correction2) + epsilon)";

def Train_AdamWOp : Train_Optimizer<"adamw", ["m", "v"], AdamHyper, AdamPrepared,
    !listconcat(AdamMoments, [["p", !strconcat("p - rate * (", AdamDirection, " + decay * p)")]]), ["rate", "t"]> {
  let summary = "Adam with decoupled weight decay";
  let description = [{
    Loshchilov and Hutter, arXiv 1711.05101, in the order of Adam's common fused implementations:

        m' = b1 m + (1 - b1) g;  v' = b2 v + (1 - b2) g g
        p' = p - lr ((m' / (1 - b1^t)) / (sqrt(v' / (1 - b2^t)) + eps) + decay p)
  }];
}

def Train_AdamOp : Train_Optimizer<"adam", ["m", "v"], AdamHyper, AdamPrepared,
    !listconcat([["h", "g + decay * p"], ["m", "m + keep1 * (h - m)"], ["v", "v + keep2 * (h * h - v)"]],
                [["p", !strconcat("p - rate * (", AdamDirection, ")")]]), ["rate", "t"]> {
  let summary = "Adam; decay is part of the gradient";
  let description = "Kingma and Ba, arXiv 1412.6980, with L2 regularization: g + decay p in place of g.";
}

def Train_SgdOp : Train_Optimizer<"sgd", [], [["decay", "0.0"]], [], [["p", "p - rate * (g + decay * p)"]]> {
  let summary = "p' = p - lr (g + decay p)";
  let withMomentum = "momentum";
}

def Train_MomentumOp : Train_Optimizer<"momentum", ["m"], [["momentum", "0.9"], ["decay", "0.0"], ["nesterov", "0.0", "optional"]], [],
    [["h", "g + decay * p"], ["m", "momentum * m + h"],
     ["p", "p - rate * select(nesterov != 0.0, h + momentum * m, m)"]]> {
  let summary = "SGD with momentum, or Nesterov's";
  let description = "Sutskever et al., ICML 2013, in PyTorch's form: m' = momentum m + g + decay p; p' = p - lr m'.";
}

def Train_LionOp : Train_Optimizer<"lion", ["m"], [["beta1", "0.9"], ["beta2", "0.99"], ["decay", "0.0"]],
    [["keep1", "1.0 - beta1"], ["keep2", "1.0 - beta2"]],
    [["c", "m + keep1 * (g - m)"], ["m", "m + keep2 * (g - m)"],
     ["p", "p - rate * (select(c > 0.0, 1.0, select(c < 0.0, -1.0, 0.0 * c)) + decay * p)"]]> {
  let summary = "Lion: the sign of an interpolated momentum, decoupled decay";
  let description = "Chen et al., arXiv 2302.06675, algorithm 2. A zero direction does not move the parameter.";
}

def Train_AdagradOp : Train_Optimizer<"adagrad", ["sum"], [["epsilon", "1e-10"], ["decay", "0.0"]], [],
    [["h", "g + decay * p"], ["sum", "sum + h * h"], ["p", "p - rate * (h / (sqrt(sum) + epsilon))"]]> {
  let summary = "Adagrad; decay is part of the gradient";
  let description = "Duchi, Hazan and Singer, JMLR 12 (2011), the diagonal form: the sum of squares starts at zero.";
}

def Train_LambOp : Train_Optimizer<"lamb", ["m", "v"], AdamHyper, AdamPrepared,
    !listconcat(AdamMoments, [["u", !strconcat(AdamDirection, " + decay * p")], ["p", "p - rate * ratio * u"]]),
    ["rate", "t", "ratio"], ["p", "u"]> {
  let summary = "LAMB: AdamW's direction, scaled to the parameter's norm";
  let description = [{
    You et al., arXiv 1904.00962: `ratio` is train.trust_ratio, the norm of the parameter over that of the direction.
  }];
}

// The variance has had `updates` updates; DeepSpeed corrects neither moment.
defvar OneBitSummed = ["m", "beta1", "beta2"];
defvar OneBitCorrection = ["bias_correction", "0.0", "optional"];
defvar OneBitCorrections = [Train_Correction<"correction1", "beta1", "t">.pair, Train_Correction<"correction2", "beta2", "updates">.pair];
defvar OneBitDirection = "(u * correction1) / (sqrt(v * correction2) + epsilon)";

// A compressed momentum is never 0: all elements of a chunk have its root mean square. An element without a gradient so far (an embedding that no sample has
// used) has a variance of 0, and one whose gradient is zero but for rounding (a key's bias) has almost none: divided by its root, the momentum would move it by
// thousands of steps. So a momentum whose square is more than 2^40 variances counts as 0, on one rank too; Adam's own is at most 53 of them (0.1^2 / 0.001 / (1 - 0.81 / 0.999)
// with the default betas). Times 0, so that NaN stays NaN. DeepSpeed has users mask such elements.
defvar OneBitNegligible = "v <= 9.094947017729282e-13 * (m * m)";
def Train_OneBitAdamOp : Train_Optimizer<"onebit_adam", ["m", "v"],
    [["beta1", "0.9"], ["beta2", "0.999"], ["epsilon", "1e-8"], ["decay", "0.0"], ["freeze", "100000.0"], ["compressed", "0.0", "optional"],
     OneBitCorrection],
    !listconcat([["keep1", "1.0 - beta1"], ["keep2", "1.0 - beta2"], ["frozen", "select(t <= freeze, 0.0, 1.0)"],
                 ["averaged", "select(compressed != 0.0, frozen, 0.0)"], ["updates", "select(t <= freeze, t, freeze)"]], OneBitCorrections),
    [["m", "select(averaged != 0.0, g, m + keep1 * (g - m))"], ["v", "select(frozen != 0.0, v, v + keep2 * (g * g - v))"],
     ["u", !strconcat("select(frozen != 0.0, select(", OneBitNegligible, ", 0.0 * m, m), m)")], ["p", !strconcat("p - rate * (", OneBitDirection, " + decay * p)")]], ["rate", "t"],
    summed = OneBitSummed, exact = ["freeze"]> {
  let summary = "1-bit Adam: Adam whose variance stays after `freeze` steps, and whose momenta are then averaged with a bit per element";
  let description = [{
    Tang et al., arXiv 2102.02888, in DeepSpeed's form: decoupled decay, without `bias_correction` no correction. `compressed` is 1 where, once t > `freeze`, the
    operand `gradient` is the momentum that the ranks have averaged (pass `compress-momenta`); without it, as on one rank, the momentum is updated here.
  }];
}

// As above, an element moves by its decay alone until gradients have updated its variance.
def Train_ZeroOneAdamOp : Train_Optimizer<"zero_one_adam", ["m", "v"],
    [["beta1", "0.9"], ["beta2", "0.999"], ["epsilon", "1e-8"], ["decay", "0.0"], ["var_freeze", "100000.0"], ["var_update_scaler", "16.0"],
     ["compressed", "0.0", "optional"], OneBitCorrection],
    !listconcat([["keep1", "1.0 - beta1"], ["keep2", "1.0 - beta2"], ["fresh", "select(exact_step(t, var_freeze, var_update_scaler), 1.0, 0.0)"],
     ["averaged", "select(compressed != 0.0, 1.0 - fresh, 0.0)"], ["updates", "exact_steps(select(t <= var_freeze, t, var_freeze), var_update_scaler)"]],
                OneBitCorrections),
    [["v", "select(fresh != 0.0, v + keep2 * (g * g - v), v)"],
     ["m", "select(averaged != 0.0, g, m + keep1 * (g - m))"], ["u", !strconcat("select(", OneBitNegligible, ", 0.0 * m, m)")],
     ["p", !strconcat("p - rate * (", OneBitDirection, " + decay * p)")]], ["rate", "t"],
    summed = OneBitSummed, exact = ["var_freeze", "var_update_scaler"]> {
  let summary = "0/1 Adam: Adam whose variance is updated ever more rarely; in all other steps momenta are averaged with a bit per element";
  let description = [{
    Lu et al., arXiv 2202.06009, with DeepSpeed's choices (decoupled decay; no correction without `bias_correction`), without local steps. The variance is updated in
    the exact steps by `var_update_scaler` up to step `var_freeze` (partita_rt/exact_steps.h). `compressed` is 1 where, in all others, the operand
    `gradient` is the momentum that the ranks have averaged (pass `compress-momenta`).
  }];
}

// In the warm-up, fresh is the variance. As above, an element without a variance moves by its decay alone; the largest ratio is of the others, so that the
// padding of a shard does not count.
def Train_OneBitLambOp : Train_Optimizer<"onebit_lamb", ["m", "v", "fresh"],
    [["beta1", "0.9"], ["beta2", "0.999"], ["epsilon", "1e-8"], ["decay", "0.0"], ["freeze", "100000.0"], ["compressed", "0.0", "optional"]],
    [["keep1", "1.0 - beta1"], ["keep2", "1.0 - beta2"], ["frozen", "select(t <= freeze, 0.0, 1.0)"],
     ["averaged", "select(compressed != 0.0, frozen, 0.0)"]],
    [["h", "select(averaged != 0.0, m + (g - m) / keep1, g)"], ["m", "select(averaged != 0.0, g, m + keep1 * (g - m))"],
     ["fresh", "fresh + keep2 * (h * h - fresh)"], ["v", "select(frozen != 0.0, v, fresh)"],
     ["d", !strconcat("select(", OneBitNegligible, ", 0.0 * m, m / (sqrt(v) + epsilon))")], ["u", "d + decay * p"], ["p", "p - rate * ratio * u"]],
    ["rate", "t", "ratio"], ["p", "u", "d"], [["growth", !strconcat("select(", OneBitNegligible, ", 0.0, (sqrt(v) + epsilon) / (sqrt(fresh) + epsilon))")]],
    summed = OneBitSummed, exact = ["freeze"]> {
  let summary = "1-bit LAMB: LAMB whose variance and ratio stay after `freeze` steps, but for a factor, and whose momenta are then averaged with a bit per element";
  let description = [{
    Li et al., arXiv 2104.06069, in DeepSpeed's form: no bias correction, decoupled decay. `ratio` is train.frozen_trust_ratio. `compressed` as in 1-bit Adam;
    where it is 1, the gradient h that goes into the fresh variance is computed from how the momentum has changed. A compressed sum has a scale per tensor, so the
    numbers by which DeepSpeed multiplies momenta to make their magnitudes alike, for a scale that all share, would change nothing.
  }];
}

#endif // PARTITA_TRAIN_OPTIMIZERS
