//===- RtBase.td - the exit dialect, its types, and ops that are calls ------------------------===//

#ifndef PARTITA_RT_BASE
#define PARTITA_RT_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Rt/RtInterfaces.td"

def Rt_Dialect : Dialect {
  let name = "rt";
  let cppNamespace = "::partita::rt";
  let summary = "one op = one call of the runtime, on buffers; nothing left to decide";
  let dependentDialects = ["::partita::tx::TxDialect"]; // #tx.blocks
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// On the module, by the driver before the first phase: the name of the target (Target.h), where it is not the CPU. Read by
    /// `transpose-fp8`, `fuse-epilogues` and `fuse-addends` (kernels of matmuls), `plan-memory` (sizes of workspaces), the passes after it and
    /// emission, and by nothing else.
    static constexpr ::llvm::StringLiteral kTarget = "rt.target";
    /// On the module, by the driver before the first phase: the bytes of device memory that a rank may need (--memory-limit). Read by
    /// `size-classifier`.
    static constexpr ::llvm::StringLiteral kMemoryLimit = "rt.memory_limit";
    /// On a tx.classifier_loss or tx.classifier_loss_grad, by `size-classifier`: the tokens whose logits exist at once. The target chooses
    /// where it is missing (Target.h).
    static constexpr ::llvm::StringLiteral kRows = "rt.rows";
    /// On a train.parameter, by `pad-classifier`: the rows that it has in memory. Those beyond its type are zeros, and only a classifier's
    /// loss reads them.
    static constexpr ::llvm::StringLiteral kPaddedRows = "rt.padded_rows";
    /// On the module, by `lower-to-rt`, if calls take scratch memory: the max over the calls (CallInterface).
    static constexpr ::llvm::StringLiteral kScratchBytes = "rt.scratch_bytes";
    /// On the module, by `lower-to-rt`, if some call needs more than any GPU has: the compute capability, times 10 (CallInterface).
    static constexpr ::llvm::StringLiteral kLeastCapability = "rt.least_capability";
    /// On an op, by `plan-memory`: the place of each result, an array of #rt.at.
    static constexpr ::llvm::StringLiteral kBuffers = "rt.buffers";
    /// On an op, by `plan-memory`: the place of its scratch memory, an array of #rt.at.
    static constexpr ::llvm::StringLiteral kWorkspace = "rt.workspace";
    /// On a parameter or state, by `plan-memory`: its place in persistent memory.
    static constexpr ::llvm::StringLiteral kAt = "rt.at";
    /// On a parameter or state, by `plan-memory`: the type of one rank's shard.
    static constexpr ::llvm::StringLiteral kLocal = "rt.local";
    /// On the module, by `plan-memory`: bytes of the arena and of persistent memory.
    static constexpr ::llvm::StringLiteral kArenaBytes = "rt.arena_bytes";
    static constexpr ::llvm::StringLiteral kPersistentBytes = "rt.persistent_bytes";
    /// On the module of a training program, by `plan-memory`: bytes of the arena that @forward needs, which runs
    /// only on request; absent if the arena is as large anyway.
    static constexpr ::llvm::StringLiteral kForwardArenaBytes = "rt.forward_arena_bytes";
    /// On the module, by `plan-memory`: bytes of host memory that lives as long as the program, and of
    /// pinned host memory; each is absent if none is needed.
    static constexpr ::llvm::StringLiteral kHostBytes = "rt.host_bytes";
    static constexpr ::llvm::StringLiteral kPinnedBytes = "rt.pinned_bytes";
    /// On a `train.accumulate` with an order, by `plan-memory`: #rt.in_flight, the memory of the values that its micro-batches
    /// keep between passes.
    static constexpr ::llvm::StringLiteral kInFlight = "rt.in_flight";
    /// On the module, by `plan-memory`: an array of #rt.ledger, see partita/Memory/Ledger.h.
    static constexpr ::llvm::StringLiteral kLedger = "rt.ledger";
    /// On an op of a layer's function, by `outline-layers`: which of its attributes are columns of the table, a dictionary of
    /// #rt.column by the attributes' names. The attribute's own value is the first row's.
    static constexpr ::llvm::StringLiteral kColumns = "rt.columns";
    /// On the EmitC ops of a layer's function and of tables, by `rt-to-emitc`, a unit: they contain only calls, no kernels.
    static constexpr ::llvm::StringLiteral kLayer = "rt.layer";
    /// On each function that is a pass of a micro-batch, by `lower-to-rt`, and on its EmitC function: the #train.entry_point that the
    /// pass belongs to; a unit if its function is no entry point. The function has the micro-batch's number as its argument.
    static constexpr ::llvm::StringLiteral kPassOf = "rt.pass_of";
    /// Beside kPassOf: #rt.pendings, the variables of the collectives that the pass begins for its last micro-batch and that its caller
    /// waits for.
    static constexpr ::llvm::StringLiteral kPendings = "rt.pendings";
    /// On an op of a pass without results, by `lower-to-rt`: the op runs for this micro-batch alone, the last that the pass is run on;
    /// i64.
    static constexpr ::llvm::StringLiteral kLast = "rt.last";
    /// On the module, by `lower-to-rt`: #rt.program, the program's tables.
    static constexpr ::llvm::StringLiteral kProgram = "rt.program";
  }];
}

def Rt_BufferType : TypeDef<Rt_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "a pointer to elements of one type";
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
}

def Rt_AtAttr : AttrDef<Rt_Dialect, "At"> {
  let mnemonic = "at";
  let summary = "where a tensor is in memory: a memory space, a byte offset, strides in elements";
  let description = [{
    `#rt.at<arena 4096>` is dense; `#rt.at<arena 4096, [1152, 1]>` is a view with those strides (0: broadcast).
    `#rt.at<input 1>` is the function's second argument, `#rt.at<control>` a value that the host sets. `#rt.at<none>` has no memory: a
    constant that its users write as a literal. `#rt.at<in_flight 64>` is in the blocks of the micro-batch that is computed, one of
    several in flight (#rt.in_flight).
  }];
  let parameters = (ins "::partita::rt::Space":$space, "int64_t":$offset,
                        OptionalArrayRefParameter<"int64_t">:$strides);
  let hasCustomAssemblyFormat = 1;
}

def Rt_PendingsAttr : AttrDef<Rt_Dialect, "Pendings"> {
  let mnemonic = "pendings";
  let summary = "an array of variables of collectives: its name and its size";
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$count);
  let assemblyFormat = "`<` $name `x` $count `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// One of them, as a start and its wait name it: "begun[3]".
    ::mlir::StringAttr at(int64_t number) const;
    ::llvm::SmallVector<::mlir::StringAttr> all() const;
    /// Those of a pass (RtDialect::kPendings); none for any other function.
    static ::llvm::SmallVector<::mlir::StringAttr> of(::mlir::Operation *function);
  }];
}

def Rt_InFlightAttr : AttrDef<Rt_Dialect, "InFlight"> {
  let mnemonic = "in_flight";
  let summary = "the memory of micro-batches in flight: rings of equal blocks";
  let description = [{
    A ring holds the values that one pass saves and another one reads last. It consists of equal blocks at a byte offset in the arena
    or, for offloaded activations, in pinned host memory. Micro-batch i has block i modulo the number of blocks of each ring.
    `#rt.at<in_flight 64>` counts through the micro-batch's blocks, ring by ring.

        #rt.in_flight<4 x 65536 at 1024>
        #rt.in_flight<4 x 65536 at 1024, 1 x 4096 at 263168, 4 x 16384 at 0 pinned>
  }];
  /// Per ring: blocks, bytes of one block, offset, 1 if it is in pinned memory.
  let parameters = (ins OptionalArrayRefParameter<"int64_t">:$numbers);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    struct Ring {
      int64_t blocks = 1, bytes = 0, offset = 0;
      bool isPinned = false;
    };
    static InFlightAttr get(::mlir::MLIRContext *context, ::llvm::ArrayRef<Ring> rings);
    ::llvm::SmallVector<Ring> getRings() const;
    /// The ring that an offset through all rings lies in, and the offset in its block.
    ::std::pair<unsigned, int64_t> locate(int64_t offset) const;
  }];
}

def Rt_ColumnAttr : AttrDef<Rt_Dialect, "Column"> {
  let mnemonic = "column";
  let summary = "a column of a layer's table, and a constant added to its numbers";
  let parameters = (ins StringRefParameter<>:$name, DefaultValuedParameter<"int64_t", "0">:$plus);
  let assemblyFormat = "`<` $name (`plus` $plus^)? `>`";
}

def Rt_Rounding : I32EnumAttr<"Rounding", "how an update makes 16 bits of a value", [
  I32EnumAttrCase<"Nearest", 0, "nearest">, I32EnumAttrCase<"Stochastic", 1, "stochastic">]> {
  let cppNamespace = "::partita::rt";
  let genSpecializedAttr = 0;
}
def Rt_RoundingAttr : EnumAttr<Rt_Dialect, Rt_Rounding, "rounding">;

/// The declaration that DataInterface requires.
class Rt_Data<list<string> names> {
  string declaration = [{
    ::llvm::SmallVector<::llvm::StringRef> getDataAttributes() { return {"}] # !interleave(names, "\", \"") # [{"}; }
  }];
}

class Rt_Op<string mnemonic, list<Trait> traits = []> : Op<Rt_Dialect, mnemonic, traits>;

/// A call of the runtime's `callee`. `call` are C++ expressions for the arguments, over the op's accessors, the functions of
/// CallArgument (Rt.h) and `target` (Target.h), in the order of the callee's parameters. `scratch` is an expression over the
/// functions of partita_rt/cuda/shapes.h for the bytes of scratch memory that the call takes on targets that have any
/// (Target::takesScratch). `data`: see DataInterface; the call has these as `numbered`.
class Rt_Call<string mnemonic, string callee, list<string> call, list<Trait> traits = [], string scratch = "0", list<string> data = []>
    : Rt_Op<mnemonic, traits # !if(!empty(data), [CallInterface], [CallInterface, DataInterface])> {
  let assemblyFormat = "operands attr-dict `:` type(operands)";
  string leastCapability = ""; // an expression like `scratch`, for CallInterface
  let extraClassDeclaration = !if(!empty(data), "", Rt_Data<data>.declaration) #
                              !if(!empty(leastCapability), "", "int64_t getLeastCapability();\n") # [{
    ::llvm::StringRef getCallee() { return "}] # callee # [{"; }
    ::llvm::SmallVector<::partita::rt::CallArgument> getCallArguments(const ::partita::rt::Target &target);
    int64_t getScratchBytes();
  }];
  let extraClassDefinition = !if(!empty(leastCapability), "",
      "int64_t $cppClass::getLeastCapability() { return ::partita_rt::cuda::" # leastCapability # "; }\n") # [{
    ::llvm::SmallVector<::partita::rt::CallArgument> $cppClass::getCallArguments([[maybe_unused]] const ::partita::rt::Target &target) {
      using namespace ::partita::rt::argument;
      return {}] # !interleave(call, ", ") # [{};
    }
    int64_t $cppClass::getScratchBytes() {
      using namespace ::partita_rt::cuda;
      return }] # scratch # [{;
    }
  }];
}

#endif // PARTITA_RT_BASE
