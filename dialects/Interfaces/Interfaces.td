//===- Interfaces.td - what every pass may ask an op ------------------------------------------===//
//
// "Ask the op, never switch on it." The op table (dialects/Tx/*.td) answers these questions on the
// definition of each op; the passes know no op by name.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_INTERFACES
#define PARTITA_INTERFACES

include "mlir/IR/OpBase.td"

def ShardInterface : OpInterface<"ShardInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    How an op may be split over a mesh axis. The answer is a rule (see ShardRule.h):

        "~* k+, ~k+ n -> * n"      matmul

    Letters are dimensions; a dimension of operand or result is a letter or a group `(a b)`, a
    reshape's outer and inner factor. `*` stands for the leading dimensions, `1` for one of size 1
    that is nobody's letter. `+`: the letter is summed away, a result that lacks it is partial when
    it is split (`>`: the max over ranks). `^`: the op cannot be split along this letter; `!`: its
    splitForm can; `^!`: it can, as a last resort; `|`: not within blocks. `#v`: one number per piece of v. `@v`: an operand that `localize`
    adds, the first index of a rank's piece of v. `~`: linear in this operand while
    the others stand still (a product); `~~`: linear in all so marked together (a sum).
    The op's verifier checks the placements in its types against the rule.
  }];
  let methods = [
    InterfaceMethod<"The op's rule.", "::std::string", "getShardRule">,
    InterfaceMethod<[{
        Adjusts the op after its types became those of one rank: attributes that speak of shapes, operands
        for first indices.
      }], "void", "localize", (ins), [{}], [{ return; }]>,
    InterfaceMethod<[{
        The op's results, built at the builder's insertion point out of ops that can have the letter marked
        `!`, or one whose size `parts` does not divide, split into `parts` parts; nothing where the op has no
        such letter. Whole values: the ops are placed like all others.
      }], "::llvm::SmallVector<::mlir::Value>", "splitForm", (ins "::mlir::OpBuilder &":$builder, "int64_t":$parts), [{}],
      [{ return {}; }]>,
    InterfaceMethod<[{
        What a split of the op deals out over the ranks, in its users' word, and how many of them there are
        (`heads`, 4), where that says more than the sizes of its dimensions.
      }], "::std::optional<::std::pair<::llvm::StringRef, int64_t>>", "dealtOut", (ins), [{}], [{ return {}; }]>,
  ];
  let verify = [{ return ::partita::verifyShardRule($_op); }];
}

def DifferentiableInterface : OpInterface<"DifferentiableInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    The op's vector-Jacobian product, built out of `tx` ops at the builder's insertion point.
    Takes one cotangent per result (null where none flows) and returns one value per operand (null
    where no gradient flows). Placements: the cotangent of a replicated value is partial, of a
    partial one invariant, of a piece the same piece.
  }];
  let methods = [
    InterfaceMethod<"Builds the cotangents of the operands.",
      "::llvm::SmallVector<::mlir::Value>", "buildGradient",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$cotangents)>,
  ];
}

def ScalarInterface : OpInterface<"ScalarInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    An elementwise op: one C++ expression over the scalar operands, stated once. The interpreter
    evaluates it in double precision; the CPU and CUDA kernels are printed from the same text.
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
    What becomes of an op in a program of 16-bit floats (Micikevicius et al., arXiv 1710.03740). No op computes in 16
    bits: a kernel widens what it reads, computes in 32 and rounds each element of its results once, when it stores it.
    So the question is what is stored.

    Low: operands and results in 16 bits (matrix products, attention, embedding), whatever else comes in.
    Follow: results as the operands; both are in 16 bits in a 16-bit part of the program (elementwise, shapes,
    dropout; norms and softmax too, of which mean, rstd and sums are 32 bits inside and as results).
    High: results in 32 bits: what multiplies errors (exp, log, powers, roots) or adds up many numbers.
    Exact: results in 32 bits, operands as they come: losses, logarithms of sums.
  }];
  let methods = [
    InterfaceMethod<"The op's class.", "::partita::Precision", "getPrecision">,
    InterfaceMethod<"May this operand stay in 32 bits where the others are in 16 (attention's bias: a mask's -3.4e38 has no bfloat16)?",
      "bool", "mayStayWide", (ins "unsigned":$operand), [{}], [{ return false; }]>,
  ];
}

def AsyncStartInterface : OpInterface<"AsyncStartInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    An op that begins what runs beside the computation (a collective, a copy) and that one AsyncWaitInterface of its block completes.
    Its first result is the token that the wait takes. Until the wait, the operands may be neither written nor reused, and what the
    op fills may not be looked at.
  }];
  let methods = [
    InterfaceMethod<"What it runs on: starts of equal streams run in order, others side by side.",
      "::mlir::Attribute", "getStream">,
    InterfaceMethod<"Does it work in its operands' buffers? Else it fills the results behind its token.",
      "bool", "worksInOperands", (ins), [{}], [{ return false; }]>,
  ];
  let extraSharedClassDeclaration = [{
    ::mlir::Value getToken() { return $_op->getResult(0); }
    /// What it fills; the wait takes these, and has a result for each.
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
    An op that completes what an AsyncStartInterface of its block has begun. Its operands are the token and all that the start fills; each
    of its results is what one of these holds from now on.
  }];
  let extraSharedClassDeclaration = [{
    ::mlir::Value getToken() { return $_op->getOperand(0); }
    /// Null where the token comes from no start.
    ::partita::AsyncStartInterface getStart() {
      return ::llvm::dyn_cast_or_null<::partita::AsyncStartInterface>($_op->getOperand(0).getDefiningOp());
    }
    ::mlir::OperandRange getFilled() { return $_op->getOperands().drop_front(); }
    /// What a result was before it was complete.
    ::mlir::Value getFilledBy(unsigned result) { return $_op->getOperand(result + 1); }
  }];
  let verify = "return ::partita::verifyWait($_op);";
}

def CollectiveInterface : OpInterface<"CollectiveInterface"> {
  let cppNamespace = "::partita";
  let description = [{
    An op that all ranks of a mesh axis do together, or the start of one (AsyncStartInterface). What is done is a row of the table that compiler and runtime share (partita_rt/collectives.h).
  }];
  let methods = [
    InterfaceMethod<"What is done.", "::partita::CollectiveKind", "getCollectiveKind">,
    InterfaceMethod<"Bytes of one rank as the runtime counts them (wireBytes of partita_rt/collectives.h).",
      "int64_t", "getWireBytes">,
    InterfaceMethod<"The mesh axis.", "::mlir::StringAttr", "getAxisAttr">,
  ];
  let extraSharedClassDeclaration = [{
    /// The row of what is done.
    const ::partita::CollectiveRow &getRow() { return ::partita_rt::rowOf($_op.getCollectiveKind()); }
    /// Does the op begin what a wait completes?
    bool isStart() { return ::llvm::isa<::partita::AsyncStartInterface>($_op.getOperation()); }
  }];
}

/// What an op of one kind declares for it.
class CollectiveOf<string kind> {
  string declaration = [{
    static constexpr ::partita::CollectiveKind kKind = ::partita::CollectiveKind::}] # kind # [{;
    ::partita::CollectiveKind getCollectiveKind() { return kKind; }
  }];
}

#endif // PARTITA_INTERFACES
