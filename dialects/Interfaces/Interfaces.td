//===- Interfaces.td - what passes ask ops ----------------------------------------------------===//
//
// "Ask the op, never switch on it." The op table (dialects/Tx/*.td) answers these questions on the
// definition of each op; the passes know no op by name.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_INTERFACES
#define PARTITA_INTERFACES

include "mlir/IR/OpBase.td"

/// The op's work belongs to the update of a training step, not to the passes of its micro-batches.
def UpdateWork : NativeOpTrait<"UpdateWork"> { let cppNamespace = "::partita"; }

/// Each result is linear in the op's values: it maps parts of a sum to parts of the result. For ops without a rule, which says
/// it by `~`.
def Linear : NativeOpTrait<"Linear"> { let cppNamespace = "::partita"; }

/// The result depends only on whether the first operand is less than, equal to or greater than the second.
def ComparesOperands : NativeOpTrait<"ComparesOperands"> { let cppNamespace = "::partita"; }

def ShardInterface : OpInterface<"ShardInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    How an op may be split over a mesh axis, as a rule (see ShardRule.h):

        "~* k+, ~k+ n -> * n"      matmul

    Letters are dimensions. A dimension of an operand or result is a letter or a group `(a b)`, the outer and inner factor
    of a reshape; `*` is the leading dimensions, `1` a dimension of size 1 without a letter.

    | mark | meaning |
    |---|---|
    | `+`  | the letter is summed away: a result without it is partial when it is split |
    | `>`  | the same for a max over ranks |
    | `^`  | the op cannot be split along the letter |
    | `!`  | only the op's splitForm can be split along it |
    | `^!` | the same, as a last resort |
    | `\|` | the op can be split along it, but not within blocks |
    | `\|=` | the op can be split along it, but not within unequal blocks |
    | `#v` | a dimension with one element per shard of v |
    | `@v` | an operand that `localize` adds: the first index of a rank's shard of v |
    | `@v*` | the same, with a first index for each block of the shard |
    | `~`  | linear in this operand while the others are fixed (a product) |
    | `~~` | linear in all operands with this mark together (a sum) |

    The op's verifier checks the placements in its types against the rule.
  }];
  let methods = [
    InterfaceMethod<"The op's rule.", "::std::string", "getShardRule">,
    InterfaceMethod<[{
        Adjusts the op once its types are those of one rank: attributes with shapes, operands for first
        indices.
      }], "void", "localize", (ins), [{}], [{ return; }]>,
    InterfaceMethod<[{
        Builds the op's results, at the builder's insertion point, from ops that can be split into `parts` along the letter
        marked `!`, or along one whose size `parts` does not divide; empty if the op has no such letter. The values are full;
        the new ops get placements like all others.
      }], "::llvm::SmallVector<::mlir::Value>", "splitForm", (ins "::mlir::OpBuilder &":$builder, "int64_t":$parts), [{}],
      [{ return {}; }]>,
    InterfaceMethod<[{
        The units that a split of the op distributes over ranks, as users call them, and their number (`heads`, 4), if
        that says more than the sizes of its dimensions.
      }], "::std::optional<::std::pair<::llvm::StringRef, int64_t>>", "dealtOut", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<[{
        The matmuls that the op computes, each given by the letter of the rule that it does not involve (`e` for attention's queries
        times keys), "" if it involves all. An op without such a list is one matmul if its rule contracts, that is, sums over a
        letter of two operands; else none.
      }], "::llvm::ArrayRef<::llvm::StringLiteral>", "getMatmuls", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<[{
        The share of the points of these matmuls that is computed: less than 1 if blocks of them are left out.
      }], "double", "getComputedShare", (ins), [{}], [{ return 1; }]>,
    InterfaceMethod<"The number of them that belong to the backward pass, if the op fuses both passes.", "int64_t", "getGradientMatmuls",
      (ins), [{}], [{ return 0; }]>,
  ];
  let verify = [{ return ::partita::verifyShardRule($_op); }];
}

def DifferentiableInterface : OpInterface<"DifferentiableInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    The op's vector-Jacobian product, built out of `tx` ops at the builder's insertion point.
    Takes one cotangent per result (null if there is none) and returns one value per operand (null if no gradient
    flows). Placements: the cotangent of a replicated value is partial, that of a partial value invariant, that of a shard the
    same shard.
  }];
  let methods = [
    InterfaceMethod<"Builds the cotangents of the operands.",
      "::llvm::SmallVector<::mlir::Value>", "buildGradient",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$cotangents)>,
    InterfaceMethod<"Is the result constant except at jumps (floor, sign)? Then its gradient is zero.",
      "bool", "isStep", (ins), [{}], [{ return false; }]>,
  ];
}

def LookupInterface : OpInterface<"LookupInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    An op with an operand of indices into a dimension of another operand: tokens index a table's rows, labels a row of logits. The
    program's inputs get their range of values from it (`vocabulary` of #rt.input).
  }];
  let methods = [
    InterfaceMethod<"The operand of integers, each an index.", "::mlir::Value", "getIndices">,
    InterfaceMethod<"The operand that they index.", "::mlir::Value", "getIndexed">,
    InterfaceMethod<"The dimension that they index, in full.", "int64_t", "getIndexedDim">,
    InterfaceMethod<"The number that is allowed although it may lie outside the dimension: the label that does not count.",
      "::std::optional<int64_t>", "getIgnoredIndex", (ins), [{}], [{ return {}; }]>,
  ];
}

def DropoutInterface : OpInterface<"DropoutInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    An op that may drop elements at random. `key-dropout` gives those of training steps their key, and switches the dropout of others
    off.
  }];
  let methods = [
    InterfaceMethod<"Does it drop elements?", "bool", "drops">,
    InterfaceMethod<"The attribute with the number of its dropout in the model, by which alone the dropouts of like layers differ.",
      "::mlir::StringAttr", "getDropoutIdName">,
    InterfaceMethod<"Makes the numbers those of a step's key and of a micro-batch.", "void", "giveKey",
      (ins "::mlir::Value":$key, "::mlir::Value":$micro)>,
    InterfaceMethod<"Switches its dropout off; the op may be gone afterwards.", "void", "dropNothing">,
  ];
}

def ScalarInterface : OpInterface<"ScalarInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    An elementwise op, defined by one C++ expression over scalar operands. The interpreter evaluates it in double
    precision; the CPU and CUDA kernels are printed from the same text.
  }];
  let methods = [
    InterfaceMethod<"The expression, over the names of getScalarOperands().",
      "::llvm::StringRef", "getScalarExpression">,
    InterfaceMethod<"The operands' names in the expression.",
      "::llvm::SmallVector<::llvm::StringRef>", "getScalarOperands">,
    InterfaceMethod<"The expression's value in double precision.",
      "double", "evaluateScalar", (ins "::llvm::ArrayRef<double>":$operands)>,
  ];
}

def PrecisionInterface : OpInterface<"PrecisionInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    The types of an op in a program of 16-bit floats (Micikevicius et al., arXiv 1710.03740). No op computes in 16 bits: a
    kernel widens its operands, computes in 32 bits and rounds each element of its results once, when it stores it. So the class
    only decides what is stored.

    - Low: operands and results in 16 bits, whatever the operands were (matmuls, attention, embedding).
    - Follow: results like the operands; both are in 16 bits in a 16-bit part of the program (elementwise, shapes, dropout;
      also norms and softmax, whose mean, rstd and sums are 32 bits, inside and as results).
    - High: results in 32 bits: ops that amplify errors (exp, log, powers, roots) or add up many numbers.
    - Exact: results in 32 bits, operands in any type: losses, logarithms of sums.
  }];
  let methods = [
    InterfaceMethod<"The op's class.", "::partita::Precision", "getPrecision">,
    InterfaceMethod<"May this operand stay in 32 bits where the others are in 16 (attention's bias: a mask's -3.4e38 has no bfloat16)?",
      "bool", "mayStayWide", (ins "unsigned":$operand), [{}], [{ return false; }]>,
  ];
}

def HandsOutInterface : OpInterface<"HandsOutInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    An op that returns values of its regions, as the last run of the region leaves them. So an op in the region may start a
    collective or copy that a wait after the op completes.
  }];
  let methods = [
    InterfaceMethod<"The region's value that a result hands out; null if it hands out none.",
      "::mlir::Value", "getHandedOut", (ins "::mlir::OpResult":$result)>,
    InterfaceMethod<"The result that hands out an operand of a region's terminator; null if none does.",
      "::mlir::OpResult", "getHandingOut", (ins "::mlir::OpOperand &":$yielded)>,
  ];
}

def AsyncStartInterface : OpInterface<"AsyncStartInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    Begins a collective or copy that runs beside the computation. One AsyncWaitInterface completes it: in its block, or after the op
    that hands out the token and the filled buffers (HandsOutInterface). The first result is the token. Until the wait, the operands
    must be neither written nor reused, and the buffers that the op fills must not be read.
  }];
  let methods = [
    InterfaceMethod<"Its stream: starts on the same stream run in order, others concurrently.",
      "::mlir::Attribute", "getStream">,
    InterfaceMethod<"Is it in-place? Else it fills the results after its token.",
      "bool", "worksInOperands", (ins), [{}], [{ return false; }]>,
  ];
  let extraSharedClassDeclaration = [{
    ::mlir::Value getToken() { return $_op->getResult(0); }
    /// The values that it fills. The wait takes them and has a result for each.
    ::mlir::ValueRange getFilled() {
      return $_op.worksInOperands() ? ::mlir::ValueRange($_op->getOperands())
                                    : ::mlir::ValueRange($_op->getResults().drop_front());
    }
  }];
  let verify = "return ::partita::verifyStart($_op);";
}

def AsyncWaitInterface : OpInterface<"AsyncWaitInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    Completes the collective or copy that an AsyncStartInterface began, in its block or in a region that hands it out. Its operands are
    the token and all buffers that the start fills; each result is one of these buffers, complete.
  }];
  let extraSharedClassDeclaration = [{
    ::mlir::Value getToken() { return $_op->getOperand(0); }
    /// Null where the token comes from no start.
    ::partita::AsyncStartInterface getStart() {
      return ::llvm::dyn_cast_or_null<::partita::AsyncStartInterface>(::partita::handedOut($_op->getOperand(0)).getDefiningOp());
    }
    ::mlir::OperandRange getFilled() { return $_op->getOperands().drop_front(); }
    /// The filled value that a result is.
    ::mlir::Value getFilledBy(unsigned result) { return $_op->getOperand(result + 1); }
  }];
  let verify = "return ::partita::verifyWait($_op);";
}

def StartableInterface : OpInterface<"StartableInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    A collective or copy that an AsyncStartInterface and an AsyncWaitInterface can replace, so that it runs beside the computation.
  }];
  let methods = [
    InterfaceMethod<"Builds the start.", "::mlir::Operation *", "buildStart", (ins "::mlir::OpBuilder &":$builder)>,
    InterfaceMethod<"Builds the wait for `start`; its results replace the op's.",
      "::mlir::Operation *", "buildWait", (ins "::mlir::OpBuilder &":$builder, "::partita::AsyncStartInterface":$start)>,
  ];
}

def PlacedInterface : OpInterface<"PlacedInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    An op that knows where its results are, in a program of all pipeline stages (Holders.h). Any other op is where all of its operands
    are; one of them may be in parts if the op is linear in it, by its rule or as a Linear op.
  }];
  let methods = [
    InterfaceMethod<[{
        Which positions have the results, if these have the operands. None if there are no such positions; `problem` then says why, if
        it is not that the operands have no position in common.
      }], "::std::optional<::partita::Holders>", "placeResults",
      (ins "::llvm::ArrayRef<::partita::Holders>":$operands, "::std::string &":$problem)>,
    InterfaceMethod<"Builds the results of one stage that has the op; empty if they are those of a copy of the op.",
      "::llvm::SmallVector<::mlir::Value>", "cutTo", (ins "::mlir::OpBuilder &":$builder, "const ::partita::StageShare &":$stage), [{}],
      [{ return {}; }]>,
  ];
}

//===------------------------------------------------------------------------------------------===//
// Ops that move values
//===------------------------------------------------------------------------------------------===//

def TransparentInterface : OpInterface<"TransparentInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    In the unpartitioned program the op's result is its operand: the op only changes what each rank or pipeline stage holds of it. An
    analysis of the model looks through it.
  }];
}

def GatherInterface : OpInterface<"GatherInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    A gather that the backward pass can issue again, so that only this rank's shard is kept from the forward pass (`gather-again`).
  }];
  let methods = [
    InterfaceMethod<"Is it the repeated gather, which nothing may merge with the gather of the forward pass?", "bool", "getAgain">,
    InterfaceMethod<"", "void", "setAgain", (ins "bool":$again)>,
    InterfaceMethod<"Does it gather parameters rather than activations?", "bool", "gathersParameters">,
  ];
}

def LossyInterface : OpInterface<"LossyInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    An op that may round what it passes on, so that from some step of training on the program computes something else than the model's own. `verify` then compares it
    with the algorithm's arithmetic.
  }];
  let methods = [
    InterfaceMethod<"What is lost, and from which step on; none if nothing is.", "::std::optional<::partita::Loss>", "getLoss">,
  ];
}

def CollectiveInterface : OpInterface<"CollectiveInterface", [TransparentInterface]> {
  let cppNamespace = "::partita";
  let description = [{
    An op that all ranks of a mesh axis issue together, or the start of one (AsyncStartInterface). Its kind is a row of the table that
    compiler and runtime share (partita_rt/collectives.h).
  }];
  let methods = [
    InterfaceMethod<"The kind of collective.", "::partita::CollectiveKind", "getCollectiveKind">,
    InterfaceMethod<"The mesh axis.", "::mlir::StringAttr", "getAxisAttr">,
    InterfaceMethod<"The pipeline stages whose ranks take part, where the axis is that of the stages; else none.",
      "::llvm::ArrayRef<int64_t>", "getStages", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"How many ranks take part.", "int64_t", "getRankCount">,
    InterfaceMethod<"Bytes per rank as the runtime counts them, in the first step.", "int64_t", "getWireBytes", (ins), [{}],
      [{ return ::partita::wireBytesOf($_op.getOperation(), $_op.getCollectiveKind(), $_op.getRankCount()); }]>,
    InterfaceMethod<"The type of what is sent, as reports call it: float32, int8.", "std::string", "getSentType", (ins), [{}],
      [{ return ::partita::typeName(::mlir::getElementTypeOrSelf($_op->getOperand(0).getType())); }]>,
    InterfaceMethod<"How many tensors it works on.", "int64_t", "getTensorCount", (ins), [{}], [{ return $_op->getNumOperands(); }]>,
    InterfaceMethod<"What takes its place from some step of training on; else none. Until then it is what the other methods say.",
      "::partita::LaterCollectives", "getLater", (ins), [{}], [{ return {}; }]>,
  ];
  let extraSharedClassDeclaration = [{
    /// The table's row for this kind.
    const ::partita::CollectiveRow &getRow() { return ::partita_rt::rowOf($_op.getCollectiveKind()); }
    /// Is it only the start of a collective, which a wait completes?
    bool isStart() { return ::llvm::isa<::partita::AsyncStartInterface>($_op.getOperation()); }
    /// The operand that a result comes from: a bucket has one per result, and the first result of a start is its token.
    ::mlir::Value getSourceOf(unsigned result) {
      unsigned first = isStart() ? 1 : 0;
      return result < first ? ::mlir::Value() : $_op->getOperand(result - first);
    }
  }];
}

/// The declarations of an op of one kind.
class CollectiveOf<string kind> {
  string declaration = [{
    static constexpr ::partita::CollectiveKind kKind = ::partita::CollectiveKind::}] # kind # [{;
    ::partita::CollectiveKind getCollectiveKind() { return kKind; }
  }];
}

/// The same, for all ranks of the mesh axis `axis`, its attribute.
class CollectiveOverAxis<string kind> {
  string declaration = CollectiveOf<kind>.declaration # [{
    int64_t getRankCount() { return ::partita::par::ranksOver(*this, getAxisAttr()); }
  }];
}

#endif // PARTITA_INTERFACES
