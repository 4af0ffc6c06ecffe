//===- RtOps.td - places in memory, loops, collectives, values for the host -------------------===//

#ifndef PARTITA_RT_OPS
#define PARTITA_RT_OPS

include "dialects/Par/ExactSteps.td"
include "dialects/Rt/RtBase.td"
include "dialects/Rt/RtProgram.td"

//===------------------------------------------------------------------------------------------===//
// Pointers. The location's name is the variable's.
//===------------------------------------------------------------------------------------------===//

class Rt_Pointer<string mnemonic, list<string> data = []> : Rt_Op<mnemonic, !if(!empty(data), [], [DataInterface])> {
  let results = (outs Rt_BufferType:$buffer);
  let extraClassDeclaration = !if(!empty(data), "", Rt_Data<data>.declaration);
}

def Rt_ArenaOp : Rt_Pointer<"arena", ["offset"]> {
  let summary = "memory of one call, at a byte offset: activations, gradients";
  let description = [{
    `shape` is for the reader. Created by `lower-to-rt`; removed by `rt-to-emitc`, like every op here. `optional`, in a layer's function: an
    offset below 0 is no memory (rt.null).
  }];
  let arguments = (ins I64Attr:$offset, DenseI64ArrayAttr:$shape, UnitAttr:$optional);
  let assemblyFormat = "$offset (`optional` $optional^)? $shape attr-dict `:` type($buffer)";
}
def Rt_NullOp : Rt_Pointer<"null"> {
  let summary = "no memory: of an operand that the call lacks here, and has in other layers";
  let assemblyFormat = "attr-dict `:` type($buffer)";
}
def Rt_InFlightOp : Rt_Pointer<"in_flight", ["offset"]> {
  let summary = "a value that later passes of the current micro-batch need, at a byte offset in the micro-batch's block of a ring";
  let arguments = (ins I64Attr:$offset, DefaultValuedAttr<I64Attr, "0">:$ring, DenseI64ArrayAttr:$shape);
  let assemblyFormat = "$offset (`ring` $ring^)? $shape attr-dict `:` type($buffer)";
}
def Rt_PersistentOp : Rt_Pointer<"persistent", ["offset"]> {
  let summary = "a parameter or state, at a byte offset";
  let arguments = (ins I64Attr:$offset, DenseI64ArrayAttr:$shape);
  let assemblyFormat = "$offset $shape attr-dict `:` type($buffer)";
}
def Rt_HostOp : Rt_Pointer<"host", ["offset"]> {
  let summary = "a parameter or state in host memory, at a byte offset";
  let arguments = (ins I64Attr:$offset, DenseI64ArrayAttr:$shape);
  let assemblyFormat = "$offset $shape attr-dict `:` type($buffer)";
}
def Rt_PinnedOp : Rt_Pointer<"pinned", ["offset"]> {
  let summary = "pinned host memory of one call, at a byte offset: values in transit";
  let arguments = (ins I64Attr:$offset, DenseI64ArrayAttr:$shape);
  let assemblyFormat = "$offset $shape attr-dict `:` type($buffer)";
}
def Rt_InputOp : Rt_Pointer<"input", ["index"]> {
  let summary = "argument number `index`, micro-batch `micro` of it; read only";
  let arguments = (ins I64Attr:$index, Optional<I64>:$micro, DenseI64ArrayAttr:$shape);
  let assemblyFormat = "$index (`micro` $micro^)? $shape attr-dict `:` type($buffer)";
}
def Rt_ControlOp : Rt_Pointer<"control"> {
  let summary = "a scalar of this rank that the host sets: learningRate";
  let arguments = (ins StrAttr:$field);
  let assemblyFormat = "$field attr-dict `:` type($buffer)";
}
def Rt_TableOp : Rt_Pointer<"table"> {
  let summary = "a small constant array in the program's text";
  let arguments = (ins ElementsAttr:$value);
  let assemblyFormat = "$value attr-dict `:` type($buffer)";
}
def Rt_OffsetOp : Rt_Pointer<"offset", ["elements"]> {
  let summary = "base + elements";
  let arguments = (ins Rt_BufferType:$base, I64Attr:$elements);
  let assemblyFormat = "$base `plus` $elements attr-dict `:` type($base) `->` type($buffer)";
}
def Rt_AdvanceOp : Rt_Pointer<"advance"> {
  let summary = "base + micro * elements: one micro-batch of a buffer";
  let arguments = (ins Rt_BufferType:$base, I64:$micro, I64Attr:$elements);
  let assemblyFormat = "$base `by` $micro `times` $elements attr-dict `:` type($base) `->` type($buffer)";
}

//===------------------------------------------------------------------------------------------===//
// Control
//===------------------------------------------------------------------------------------------===//

def Rt_ForOp : Rt_Op<"for", [SingleBlockImplicitTerminator<"EndOp">]> {
  let summary = "runs its region for micro = 0 .. count-1, or for the first of `count` groups of `step` micro-batches";
  let arguments = (ins I64Attr:$count, DefaultValuedAttr<I64Attr, "1">:$step);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count (`by` $step^)? $body attr-dict";
  let builders = [OpBuilder<(ins "int64_t":$count, CArg<"int64_t", "1">:$step)>];
}
def Rt_EndOp : Rt_Op<"end", [Terminator, Pure, ParentOneOf<["ForOp", "LayerOp"]>]> {
  let summary = "ends the region of a loop or of a layer";
  let assemblyFormat = "attr-dict";
}

//===------------------------------------------------------------------------------------------===//
// Passes of micro-batches: each is a function that the schedule's loops call
//===------------------------------------------------------------------------------------------===//

def Rt_BeginPassOp : Rt_Op<"begin_pass"> {
  let summary = "begins a pass of a micro-batch: from here on, `rt.in_flight` is in its blocks";
  let arguments = (ins I64:$micro, Rt_InFlightAttr:$memory, StrAttr:$what);
  let assemblyFormat = "$what $micro `in` $memory attr-dict";
}
def Rt_BeginLayerOp : Rt_Call<"begin_layer", "beginLayer", ["\"rank\"", "numbered(getOperation(), \"layer\")"], [], "0", ["layer"]> {
  let summary = "marks that the calls are a layer's from here on, for reports of ranks that died or stall";
  let arguments = (ins I64Attr:$layer);
  let assemblyFormat = "$layer attr-dict";
}
def Rt_BeginChangesOp : Rt_Call<"begin_changes", "beginChanges", ["\"rank\""]> {
  let summary = "stands before the first call of a block that changes a parameter or state: a checkpoint's copy of them is complete from here on";
  let description = "Only where the host computes (Target::queuesWork): work that is queued does not wait for it.";
  let arguments = (ins);
  let assemblyFormat = "attr-dict";
}
def Rt_RunPassOp : Rt_Op<"run_pass"> {
  let summary = "runs the function of a pass on micro-batch `first`, plus the variables of the loops that it is in";
  let description =
      "`pendings` are variables of collectives that the pass begins, for its last micro-batch (RtDialect::kPendings), and that its caller waits for.";
  let arguments = (ins FlatSymbolRefAttr:$callee, I64Attr:$first, Variadic<I64>:$plus,
      OptionalAttr<Rt_PendingsAttr>:$pendings);
  let assemblyFormat = "$callee $first (`plus` $plus^)? (`pending` $pendings^)? attr-dict";
}
def Rt_AwaitSentOp : Rt_Op<"await_sent", [ConnectedInterface]> {
  let summary = "waits until all messages begun over a channel are sent";
  let arguments = (ins StrAttr:$channel);
  let assemblyFormat = "`over` $channel attr-dict";
}

//===------------------------------------------------------------------------------------------===//
// Layers that differ only in data. Created by `outline-layers`
//===------------------------------------------------------------------------------------------===//

def Rt_LayerOp : Rt_Op<"layer", [Symbol, IsolatedFromAbove, SingleBlockImplicitTerminator<"EndOp">]> {
  let summary = "the calls of a layer, as a function of a row of a table";
  let description = [{
    The table has a row for each of `labels`. `values` has an array per column, with a number or string per row. An op of the region
    says with RtDialect::kColumns which of its attributes are columns. The region's arguments are buffers. `pendings`
    (collectives) and `copies` (from and to the host) are variables that its caller declares; the region starts or awaits them.

        rt.layer @h_forward of ["h.0", "h.1"] columns ["ln_1"] [array<i64: 64, 128>] pending [] copies [] {
          %y = rt.arena 64 [2, 4] {rt.columns = {offset = #rt.column<"ln_1">}} : <f32>
          rt.softmax_forward %y, %y {rows = 2 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
        }
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$labels, StrArrayAttr:$columns, ArrayAttr:$values,
                       StrArrayAttr:$pendings, StrArrayAttr:$copies);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `of` $labels `columns` $columns $values `pending` $pendings `copies` $copies attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}
def Rt_CallOp : Rt_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "calls a layer's function on `times` rows of its table, one after another, from `row` on";
  let arguments = (ins FlatSymbolRefAttr:$callee, I64Attr:$row, I64Attr:$times, Variadic<Rt_BufferType>:$buffers,
                       StrArrayAttr:$pendings, StrArrayAttr:$copies);
  let assemblyFormat = [{
    $callee $row `times` $times (`(` $buffers^ `:` type($buffers) `)`)? `pending` $pendings `copies` $copies attr-dict
  }];
}
def Rt_PendingsOp : Rt_Op<"pendings"> {
  let summary = "declares the variables of collectives that passes begin and their caller waits for";
  let arguments = (ins Rt_PendingsAttr:$variables);
  let assemblyFormat = "$variables attr-dict";
}
def Rt_PendingOp : Rt_Op<"pending"> {
  let summary = "declares a variable for a collective, or a `copy`, that a layer's function starts or waits for";
  let description = "Without such a declaration, the op that starts it declares the variable itself.";
  let arguments = (ins StrAttr:$name, UnitAttr:$copy);
  let assemblyFormat = "$name (`copy` $copy^)? attr-dict";
}

//===------------------------------------------------------------------------------------------===//
// Generated elementwise kernels
//===------------------------------------------------------------------------------------------===//

def Rt_KernelOp : Rt_Op<"kernel", [Symbol]> {
  let summary = "an elementwise kernel: one loop nest over one expression per output";
  let description = [{
    `inputs` and `outputs` are the names in `expressions`; `steps` has, per output and then per input, its
    stride in the innermost loop: 1 (the next element) or 0 (the same). With `loops` = 1 there is only that
    loop, over n elements; with more, every operand has one runtime stride per outer loop.

        rt.kernel @gelu loops 1 outputs ["y"] [f32] inputs ["x"] [f32] steps [1, 1] locals [] computes ["0.5f * $x * (1.0f + erff($x * 0.70710678f))"]
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$loops, StrArrayAttr:$outputs, TypeArrayAttr:$outputTypes,
                       StrArrayAttr:$inputs, TypeArrayAttr:$inputTypes, DenseI64ArrayAttr:$steps,
                       StrArrayAttr:$locals, StrArrayAttr:$expressions);
  let assemblyFormat = [{
    $sym_name `loops` $loops `outputs` $outputs $outputTypes `inputs` $inputs $inputTypes `steps` $steps
    `locals` $locals `computes` $expressions attr-dict
  }];
  let hasVerifier = 1;
}
def Rt_UpdateKernelOp : Rt_Op<"update_kernel", [Symbol]> {
  let summary = "an optimizer's arithmetic: one loop over the elements of a value, its states and its gradient";
  let description = [{
    `values` are the names of the value, the states, the value in 16 bits if the kernel `rounds`, and, last, the gradient. `scalars` are doubles;
    `prepared` are statements before the loop, in double precision; `factors` are those of both that the loop reads as floats,
    with the suffix `_f`. `statements` are the loop's, over the elements, which have their arrays' names with the suffix `_i`.
    With `conditional` there is a scalar `apply`: if it is 0, only the value in 16 bits changes. Stochastic rounding has its `key` from the
    scalars `rounding_key` and `rounding_first`. With `squares` nothing changes: an array before the others receives the sums of squares
    of the values that it names, and with `largest` a second one the largest of each of those, which are not negative.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$values, TypeArrayAttr:$types, StrArrayAttr:$scalars,
                       StrArrayAttr:$prepared, StrArrayAttr:$factors, StrArrayAttr:$statements,
                       OptionalAttr<Rt_RoundingAttr>:$rounding, UnitAttr:$conditional,
                       OptionalAttr<StrArrayAttr>:$squares, OptionalAttr<StrArrayAttr>:$largest);
  let assemblyFormat = [{
    $sym_name $values $types (`rounds` $rounding^)? (`conditional` $conditional^)? `scalars` $scalars `prepares` $prepared
    `factors` $factors `computes` $statements (`squares` $squares^)? (`largest` $largest^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kApply = "apply", kRoundingKey = "rounding_key", kRoundingFirst = "rounding_first";
    bool isStochastic() { return getRounding() == ::partita::rt::Rounding::Stochastic; }
    /// The name of the value in 16 bits; "" if the kernel does not round.
    ::llvm::StringRef getRounded();
    /// Does the kernel only read the array of `values`? It reads the gradient, and with `squares` all.
    bool isRead(unsigned value) { return getSquares() || value + 1 == getValues().size(); }
    /// Does the kernel only write the array of `values`?
    bool isWritten(unsigned value) { return getRounding() && value + 2 == getValues().size(); }
  }];
}
def Rt_TensorAttr : AttrDef<Rt_Dialect, "Tensor"> {
  let mnemonic = "tensor";
  let summary = "a row of a table of tensors: its byte offset in every column, and its number of elements";
  let description = [{
    `step` is the index of the row's scalars among the lists of an update, `parameter` the number of its parameter in the program, -1 if it
    has none. The name is for the reader.

        #rt.tensor<"ln_f_weight" at [1024, 2048, 0] elements 768>
        #rt.tensor<"ln_f_weight" at [1024, 2048, 0] elements 768 step 1 parameter 146>
  }];
  let parameters = (ins StringRefParameter<>:$name, ArrayRefParameter<"int64_t">:$places, "int64_t":$elements,
                        DefaultValuedParameter<"int64_t", "0">:$step, DefaultValuedParameter<"int64_t", "-1">:$parameter);
  let assemblyFormat = "`<` $name `at` `[` $places `]` `elements` $elements (`step` $step^)? (`parameter` $parameter^)? `>`";
}
def Rt_TensorsOp : Rt_Op<"tensors", [Symbol]> {
  let summary = "a table of tensors: calls work on all of its rows, or on some";
  let description = [{
    A column has elements of one type in one memory space; `homes` has these, `arena` or `persistent`. Created by `gather-updates`;
    `rt-to-emitc` prints it as an array.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$homes, TypeArrayAttr:$types,
                       TypedArrayAttrBase<Rt_TensorAttr, "rows of a table of tensors">:$rows);
  let assemblyFormat = "$sym_name `in` $homes $types $rows attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The base pointer of a column's offsets, as C++: `rank.at<BFloat16>(0)`.
    ::std::string getBase(int64_t column);
    /// Row `index`.
    ::partita::rt::TensorAttr getRow(int64_t index);
  }];
}
def Rt_LaunchOp : Rt_Op<"launch"> {
  let summary = "runs an elementwise kernel";
  let description = [{
    Operands: the outputs, then the inputs. `sizes` has the loops' trip counts, outermost first; `strides`
    per operand its stride in every loop but the innermost.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Rt_BufferType>:$buffers, DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$strides);
  let assemblyFormat = "$kernel `(` $buffers `)` $sizes $strides attr-dict `:` type($buffers)";
}

//===------------------------------------------------------------------------------------------===//
// Collectives. `communicator` names a row of the program's table. A `pending` that is not empty names the variable to wait for.
//===------------------------------------------------------------------------------------------===//

/// A collective that works in place.
class Rt_Collective<string mnemonic, string kind> : Rt_Op<mnemonic, [ExchangeInterface, DataInterface, PendingInterface]> {
  string declaration = Rt_Data<["reason"]>.declaration # ExchangeOf<kind>.declaration # [{
    ::mlir::ValueRange getSources() { return getBuffers(); }
    ::mlir::ValueRange getTargets() { return getBuffers(); }
    int64_t blocksOf(size_t) { return 1; }
    int64_t fullSizeOf(size_t) { return 0; }
  }];
  let extraClassDeclaration = declaration;
  let arguments = (ins Variadic<Rt_BufferType>:$buffers, DenseI64ArrayAttr:$counts, StrAttr:$communicator,
                       StrAttr:$reason, StrAttr:$pending);
  let assemblyFormat = "$pending $buffers $counts `over` $communicator `because` $reason attr-dict `:` type($buffers)";
}
def Rt_AllReduceOp : Rt_Collective<"all_reduce", "AllReduce"> {
  let summary = "sums buffers over the ranks of a communicator, in place";
}
def Rt_AllReduceMaxOp : Rt_Collective<"all_reduce_max", "AllReduce"> {
  let summary = "the max of buffers over the ranks of a communicator, in place";
  let extraClassDeclaration = declaration # [{
    ::llvm::StringRef getVariant() { return "Reduce::Max"; }
  }];
}
def Rt_OneBitAllReduceOp : Rt_Op<"one_bit_all_reduce", [CallInterface, ConnectedInterface]> {
  let summary = "sums buffers over the ranks of a communicator, in place, in steps that are not exact with a bit per element (par.one_bit_all_reduce)";
  let description = [{`buffers` are n values, the errors of their workers, and of their servers (par.one_bit_all_reduce); `t` is the number of the update, which the host knows on every target,
    as it knows a rank's coordinates: value i is a shard, over the mesh axis numbered `axes[i]`, of `fullSizes[i]` elements, which end before all shards do; what is behind them is padding.
    0 and -1 without padding.}];
  let arguments = (ins Variadic<Rt_BufferType>:$buffers, Rt_BufferType:$t, Rt_BufferType:$scratch, Par_ExactSteps:$exact,
                       DenseI64ArrayAttr:$counts, DenseI64ArrayAttr:$fullSizes, DenseI64ArrayAttr:$axes, StrAttr:$communicator, StrAttr:$reason);
  let assemblyFormat = "$buffers $counts `of` $fullSizes `along` $axes `at` $t `exact` custom<ExactSteps>($exact) `with` $scratch `over` $communicator `because` $reason attr-dict `:` type(operands)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::StringRef getCallee() { return "oneBitAllReduce"; }
    int64_t getScratchBytes();
    ::llvm::SmallVector<::partita::rt::CallArgument> getCallArguments(const ::partita::rt::Target &target);
    ::llvm::SmallVector<::mlir::StringAttr> getCommunicatorNames() { return {getCommunicatorAttr()}; }
  }];
}
def Rt_OneBitTermOp : Rt_Op<"one_bit_term", [CallInterface]> {
  let summary = "a rank's term of a running mean (par.one_bit_term); without `beta`, the run sets it";
  let arguments = (ins Rt_BufferType:$x, Rt_BufferType:$term, Rt_BufferType:$mean, Rt_BufferType:$t, Optional<Rt_BufferType>:$scale, I64Attr:$n,
                       I64Attr:$ranks, OptionalAttr<F64Attr>:$beta, Par_ExactSteps:$exact);
  let assemblyFormat = "$x `from` $term `,` $mean $n `at` $t (`times` $scale^)? `exact` custom<ExactSteps>($exact) `of` $ranks attr-dict `:` type(operands)";
  let extraClassDeclaration = [{
    ::llvm::StringRef getCallee() { return "oneBitTerm"; }
    ::llvm::SmallVector<::partita::rt::CallArgument> getCallArguments(const ::partita::rt::Target &target);
  }];
}
def Rt_OneBitMeanOp : Rt_Op<"one_bit_mean", [CallInterface]> {
  let summary = "a running mean, in place, after a sum (par.one_bit_mean); without `beta`, the run sets it";
  let arguments = (ins Rt_BufferType:$mean, Rt_BufferType:$sum, Rt_BufferType:$t, Optional<Rt_BufferType>:$scale, I64Attr:$n, OptionalAttr<F64Attr>:$beta,
                       Par_ExactSteps:$exact);
  let assemblyFormat = "$mean `by` $sum $n `at` $t (`times` $scale^)? `exact` custom<ExactSteps>($exact) attr-dict `:` type(operands)";
  let extraClassDeclaration = [{
    ::llvm::StringRef getCallee() { return "oneBitMean"; }
    ::llvm::SmallVector<::partita::rt::CallArgument> getCallArguments(const ::partita::rt::Target &target);
  }];
}
def Rt_OneBitClipOp : Rt_Op<"one_bit_clip", [CallInterface]> {
  let summary = "the factors of compressed sums and of gradients; `typical`, of which they are made in steps that are not exact, changes in place (par.one_bit_clip)";
  let arguments = (ins Rt_BufferType:$of_sums, Rt_BufferType:$of_gradients, Rt_BufferType:$typical, Rt_BufferType:$factor, Rt_BufferType:$t,
                       OptionalAttr<F64Attr>:$beta, Par_ExactSteps:$exact);
  let assemblyFormat = "$of_sums `,` $of_gradients `,` $typical `from` $factor `at` $t `exact` custom<ExactSteps>($exact) attr-dict `:` type(operands)";
  let extraClassDeclaration = [{
    ::llvm::StringRef getCallee() { return "oneBitClip"; }
    ::llvm::SmallVector<::partita::rt::CallArgument> getCallArguments(const ::partita::rt::Target &target);
  }];
}
/// The i-th pair of buffers has `blocks[i]` blocks, each with `counts[i]` elements per rank; `fullSizes[i]` is the number of
/// elements of a full tensor that is smaller than all its padded shards together, else 0.
class Rt_Exchange<string mnemonic, string kind>
    : Rt_Op<mnemonic, [ExchangeInterface, SameVariadicOperandSize, DataInterface, PendingInterface]> {
  let arguments = (ins Variadic<Rt_BufferType>:$from, Variadic<Rt_BufferType>:$to, DenseI64ArrayAttr:$blocks,
                       DenseI64ArrayAttr:$counts, DenseI64ArrayAttr:$fullSizes, StrAttr:$communicator,
                       StrAttr:$reason, StrAttr:$pending);
  let assemblyFormat = [{
    $pending $from `to` $to $blocks `blocks` `of` $counts `of` $fullSizes `over` $communicator `because` $reason attr-dict
    `:` type($from) `to` type($to)
  }];
  let extraClassDeclaration = Rt_Data<["reason"]>.declaration # ExchangeOf<kind>.declaration # [{
    ::mlir::ValueRange getSources() { return getFrom(); }
    ::mlir::ValueRange getTargets() { return getTo(); }
    int64_t blocksOf(size_t i) { return getBlocks()[i]; }
    int64_t fullSizeOf(size_t i) { return getFullSizes()[i]; }
  }];
}
def Rt_AllGatherOp : Rt_Exchange<"all_gather", "AllGather"> {
  let summary = "full tensors from all ranks' shards";
}
def Rt_ReduceScatterOp : Rt_Exchange<"reduce_scatter", "ReduceScatter"> {
  let summary = "this rank's shards of sums over the ranks";
}
def Rt_AllToAllOp : Rt_Exchange<"all_to_all", "AllToAll"> {
  let summary = "block r of every full tensor to rank r, whose block takes its place";
}
def Rt_ShiftOp : Rt_Exchange<"shift", "Shift"> {
  let summary = "the buffers of the rank before this one in the ring; of the rank behind with `back`";
  let arguments = (ins Variadic<Rt_BufferType>:$from, Variadic<Rt_BufferType>:$to, DenseI64ArrayAttr:$blocks,
                       DenseI64ArrayAttr:$counts, DenseI64ArrayAttr:$fullSizes, StrAttr:$communicator,
                       StrAttr:$reason, StrAttr:$pending, BoolAttr:$back);
  let extraClassDeclaration = Rt_Data<["reason"]>.declaration # ExchangeOf<"Shift">.declaration # [{
    ::mlir::ValueRange getSources() { return getFrom(); }
    ::mlir::ValueRange getTargets() { return getTo(); }
    int64_t blocksOf(size_t i) { return getBlocks()[i]; }
    int64_t fullSizeOf(size_t i) { return getFullSizes()[i]; }
    ::llvm::StringRef getVariant() { return getBack() ? "/*back=*/true" : ""; }
  }];
}
def Rt_TakePartOp : Rt_Op<"take_part"> {
  let summary = "this rank's shard of a full tensor: number `coordinate along axis` of as many as the axis has `ranks`; no communication";
  let description = "`blocks`, `count` and `fullSize` are those of a gather's pair of buffers; `mirrored` as in #par.place.";
  let arguments = (ins Rt_BufferType:$from, Rt_BufferType:$to, I64Attr:$blocks, I64Attr:$count, I64Attr:$fullSize, StrAttr:$axis,
                       I64Attr:$ranks, UnitAttr:$mirrored);
  let assemblyFormat = [{
    $from `to` $to $blocks `blocks` (`mirrored` $mirrored^)? `of` $count `of` $fullSize `over` $axis `of` $ranks attr-dict `:` type($from) `to` type($to)
  }];
}
def Rt_PutPartOp : Rt_Op<"put_part"> {
  let summary = "a full tensor of zeros, with this rank's shard in its place: take_part's transpose; no communication";
  let description = "The attributes are take_part's.";
  let arguments = (ins Rt_BufferType:$from, Rt_BufferType:$to, I64Attr:$blocks, I64Attr:$count, StrAttr:$axis, I64Attr:$ranks,
                       UnitAttr:$mirrored);
  let assemblyFormat = "$from `to` $to $blocks `blocks` (`mirrored` $mirrored^)? `of` $count `over` $axis `of` $ranks attr-dict `:` type($from) `to` type($to)";
}
def Rt_WaitOp : Rt_Op<"wait", [PendingInterface]> {
  let summary = "waits for a collective";
  let extraClassDeclaration = "bool waits() { return true; }";
  let arguments = (ins StrAttr:$pending);
  let assemblyFormat = "$pending attr-dict";
}
def Rt_PollOp : Rt_Op<"poll", [ConnectedInterface, DataInterface]> {
  let extraClassDeclaration = Rt_Data<["bytes"]>.declaration # [{
    ::llvm::SmallVector<::mlir::StringAttr> getCommunicatorNames() { return ::llvm::to_vector(getCommunicators().getAsRange<::mlir::StringAttr>()); }
  }];
  let summary = "works on the communicators' pending collectives, up to about `bytes` of memory, without waiting";
  let description = "It begins with those of the communicator that is waited for soonest.";
  let arguments = (ins StrArrayAttr:$communicators, I64Attr:$bytes);
  let assemblyFormat = "`over` $communicators `bytes` $bytes attr-dict";
}

//===------------------------------------------------------------------------------------------===//
// Messages. `channel` names a row of the program's table.
//===------------------------------------------------------------------------------------------===//

class Rt_Message<string mnemonic> : Rt_Op<mnemonic, [ConnectedInterface, DataInterface]> {
  let extraClassDeclaration = Rt_Data<["reason"]>.declaration;
  let arguments = (ins Rt_BufferType:$buffer, Optional<I64>:$micro, I64Attr:$count, StrAttr:$channel, StrAttr:$reason);
  let assemblyFormat = [{
    $buffer $count `over` $channel (`micro` $micro^)? `because` $reason attr-dict `:` type($buffer)
  }];
}
def Rt_SendOp : Rt_Message<"send"> {
  let summary = "sends a buffer over a channel; in a pass of a micro-batch it only begins, and rt.await_sent completes it";
}
def Rt_ReceiveOp : Rt_Message<"receive"> {
  let summary = "receives a buffer from a channel";
}

//===------------------------------------------------------------------------------------------===//
// Between device and host
//===------------------------------------------------------------------------------------------===//

def Rt_TransferOp : Rt_Op<"transfer", [PendingInterface]> {
  let extraClassDeclaration = "bool isCopy() { return true; }";
  let summary = "copies bytes to or from host memory; a `pending` that is not empty names the variable to wait for";
  let arguments = (ins Rt_BufferType:$to, Rt_BufferType:$from, I64Attr:$bytes, BoolAttr:$toHost, StrAttr:$pending);
  let assemblyFormat = "$pending $to `from` $from $bytes `host` $toHost attr-dict `:` type($to) `,` type($from)";
}
def Rt_TransferWaitOp : Rt_Op<"transfer_wait", [PendingInterface]> {
  let summary = "waits for a copy";
  let extraClassDeclaration = [{
    bool waits() { return true; }
    bool isCopy() { return true; }
  }];
  let arguments = (ins StrAttr:$pending);
  let assemblyFormat = "$pending attr-dict";
}

//===------------------------------------------------------------------------------------------===//
// Values for the host
//===------------------------------------------------------------------------------------------===//

def Rt_ReportOp : Rt_Op<"report"> {
  let summary = "sets `field` of the rank's report (loss, tokenCount) to a scalar, divided by another if there are two";
  let arguments = (ins StrAttr:$field, Rt_BufferType:$value, Optional<Rt_BufferType>:$divisor);
  let assemblyFormat = "$field $value (`over` $divisor^)? attr-dict `:` type($value) (`,` type($divisor)^)?";
}
def Rt_CommentOp : Rt_Op<"comment"> {
  let summary = "a line for the reader: the part of the model that the calls below belong to";
  let arguments = (ins StrAttr:$text);
  let assemblyFormat = "$text attr-dict";
}

def Rt_Work : I32EnumAttr<"Work", "a kind of computation that the clock of partita_rt/work.h tells from others", [
  I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Backward", 1, "backward">, I32EnumAttrCase<"Update", 2, "update">]> {
  let cppNamespace = "::partita::rt";
  let genSpecializedAttr = 0;
}
def Rt_WorkAttr : EnumAttr<Rt_Dialect, Rt_Work, "work">;

def Rt_WorkOp : Rt_Op<"work"> {
  let summary = "marks a change of the kind of work, for the times of a run with --breakdown";
  let arguments = (ins Rt_WorkAttr:$kind);
  let assemblyFormat = "$kind attr-dict";
}

#endif // PARTITA_RT_OPS
