//===- RtInterfaces.td - how an op becomes calls, and how a call is printed -------------------===//

#ifndef PARTITA_RT_INTERFACES
#define PARTITA_RT_INTERFACES

include "mlir/IR/OpBase.td"

def CallInterface : OpInterface<"CallInterface"> {
  let cppNamespace = "::partita::rt";
  let description = "An op of `rt` that is one call of a function of the runtime.";
  let methods = [
    InterfaceMethod<"The function.", "::llvm::StringRef", "getCallee">,
    InterfaceMethod<"Its arguments, in order, as the target spells them.",
      "::llvm::SmallVector<::partita::rt::CallArgument>", "getCallArguments", (ins "const ::partita::rt::Target &":$target)>,
    InterfaceMethod<"Bytes of scratch memory that it takes on targets that have any (partita_rt/cuda/shapes.h).", "int64_t", "getScratchBytes", (ins), [{}],
      [{ return 0; }]>,
    InterfaceMethod<"The compute capability that a GPU must have, times 10; 0 if any will do.", "int64_t", "getLeastCapability", (ins), [{}],
      [{ return 0; }]>,
  ];
}

def ConnectedInterface : OpInterface<"ConnectedInterface"> {
  let cppNamespace = "::partita::rt";
  let description = [{
    A call that communicates. It names the communicators or the channel that it uses, rows of #rt.program; the dialect's verifier
    requires those rows.
  }];
  let methods = [
    InterfaceMethod<"The communicators' names.", "::llvm::SmallVector<::mlir::StringAttr>", "getCommunicatorNames",
      (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"The channel's name; null if the call is no message.", "::mlir::StringAttr", "getChannelAttr",
      (ins), [{}], [{ return {}; }]>,
  ];
}

def ExchangeInterface : OpInterface<"ExchangeInterface", [ConnectedInterface]> {
  let cppNamespace = "::partita::rt";
  let description = [{
    A collective as a call of the runtime; its row says how it is printed (partita_rt/collectives.h). If it is in-place, `from` and
    `to` are the same buffers. Else the i-th of `from` goes to the i-th of `to`: `blocks[i]` blocks, each with `counts[i]` elements
    per rank. `fullSizes[i]` is the number of elements of a full tensor that is smaller than all its padded shards together, else 0.
  }];
  let methods = [
    InterfaceMethod<"The kind of collective.", "::partita_rt::CollectiveKind", "getCollectiveKind">,
    InterfaceMethod<"The name of its communicator.", "::mlir::StringAttr", "getCommunicatorAttr">,
    InterfaceMethod<"Its name in the census.", "::mlir::StringAttr", "getReasonAttr">,
    InterfaceMethod<"The variable to wait for; empty where the call waits itself.", "::mlir::StringAttr", "getPendingAttr">,
    InterfaceMethod<"", "::mlir::ValueRange", "getSources">,
    InterfaceMethod<"", "::mlir::ValueRange", "getTargets">,
    InterfaceMethod<"", "::llvm::ArrayRef<int64_t>", "getCounts">,
    InterfaceMethod<"1 if in-place.", "int64_t", "blocksOf", (ins "size_t":$i)>,
    InterfaceMethod<"0 if in-place.", "int64_t", "fullSizeOf", (ins "size_t":$i)>,
    InterfaceMethod<"The call's last argument, where it is not the usual one: another reduction than a sum, a shift that goes back.", "::llvm::StringRef", "getVariant", (ins), [{}],
      [{ return ""; }]>,
  ];
  let extraSharedClassDeclaration = [{
    const ::partita_rt::CollectiveRow &getRow() { return ::partita_rt::rowOf($_op.getCollectiveKind()); }
    bool isStart() { return !$_op.getPendingAttr().empty(); }
  }];
}

/// The declarations of an op of one kind.
class ExchangeOf<string kind> {
  string declaration = [{
    ::llvm::SmallVector<::mlir::StringAttr> getCommunicatorNames() { return {getCommunicatorAttr()}; }
    ::partita_rt::CollectiveKind getCollectiveKind() { return ::partita_rt::CollectiveKind::}] # kind # [{; }
  }];
}

def PendingInterface : OpInterface<"PendingInterface"> {
  let cppNamespace = "::partita::rt";
  let description = [{
    A call that may start a collective or a copy, or that waits for one: both name the same variable of the emitted
    function.
  }];
  let methods = [
    InterfaceMethod<"The variable; empty where the call neither starts nor waits.", "::mlir::StringAttr", "getPendingAttr">,
    InterfaceMethod<"", "void", "setPendingAttr", (ins "::mlir::StringAttr":$name)>,
    InterfaceMethod<"Does it wait?", "bool", "waits", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"Is it a copy between host and device, whose variable has a type of its own?", "bool", "isCopy", (ins), [{}],
      [{ return false; }]>,
  ];
}

def DataInterface : OpInterface<"DataInterface"> {
  let cppNamespace = "::partita::rt";
  let description = [{
    An op with attributes that only place, number or name things: the ops of two layers that do the same work differ only in
    these. In a layer's function they may be columns of its table (RtDialect::kColumns).
  }];
  let methods = [
    InterfaceMethod<"The names of these attributes.", "::llvm::SmallVector<::llvm::StringRef>", "getDataAttributes">,
  ];
}

def KernelInterface : OpInterface<"KernelInterface"> {
  let cppNamespace = "::partita::rt";
  let description = [{
    All that the memory planner and the lowering need to know about a tensor op: which layouts its kernel takes,
    which operand a result may overwrite, which function it calls. lib/Lower attaches it to the ops of `tx`,
    `train` and `par` as external models, one file per theme.
  }];
  let methods = [
    InterfaceMethod<"May operand number `operand` have this layout? Dense layouts are always allowed.",
      "bool", "acceptsOperand", (ins "unsigned":$operand, "const ::partita::rt::View &":$view), [{}],
      [{ return false; }]>,
    InterfaceMethod<"May result number `result` have this layout? Dense layouts are always allowed.",
      "bool", "acceptsResult", (ins "unsigned":$result, "const ::partita::rt::View &":$view), [{}],
      [{ return false; }]>,
    InterfaceMethod<"Can operand number `operand` be a splat constant without memory?",
      "bool", "acceptsLiteral", (ins "unsigned":$operand), [{}], [{ return false; }]>,
    InterfaceMethod<"Operands that result number `result` may overwrite if this is their last use, best first.",
      "::llvm::SmallVector<unsigned>", "inPlaceOperands", (ins "unsigned":$result), [{}], [{ return {}; }]>,
    InterfaceMethod<"The memory space of result number `result`.",
      "::partita::rt::Space", "resultSpace", (ins "unsigned":$result), [{}], [{ return ::partita::rt::Space::Arena; }]>,
    InterfaceMethod<"The result as a view of operand 0, if it is one; else none.",
      "::std::optional<::partita::rt::View>", "viewOfOperand", (ins "const ::partita::rt::View &":$operand), [{}],
      [{ return ::std::nullopt; }]>,
    InterfaceMethod<"The slice of the result that operand number `operand` may be computed into directly; else none.",
      "::std::optional<::partita::rt::View>", "sliceOfResult",
      (ins "unsigned":$operand, "const ::partita::rt::View &":$result), [{}], [{ return ::std::nullopt; }]>,
    InterfaceMethod<"Does the kernel need result number `result` even if it is unused?",
      "bool", "needsResult", (ins "unsigned":$result), [{}], [{ return true; }]>,
    InterfaceMethod<"Is operand number `operand` written by the op, so that it must not be shared with a later reader?",
      "bool", "overwritesOperand", (ins "unsigned":$operand), [{}], [{ return false; }]>,
    InterfaceMethod<"Float elements of scratch memory.", "int64_t", "workspaceElements", (ins), [{}], [{ return 0; }]>,
    InterfaceMethod<"The memory space of the scratch memory.", "::partita::rt::Space", "workspaceSpace", (ins), [{}],
      [{ return ::partita::rt::Space::Arena; }]>,
    InterfaceMethod<"How a result's name ends, for instance \"mean\" or \"max\"; \"\" for the op's own name.", "::llvm::StringRef", "resultName",
      (ins "unsigned":$result), [{}], [{ return ""; }]>,
    InterfaceMethod<"Builds the `rt` ops.", "::llvm::LogicalResult", "lower", (ins "::partita::rt::Lowering &":$lowering)>,
  ];
}

#endif // PARTITA_RT_INTERFACES
