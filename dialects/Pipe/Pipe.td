//===- Pipe.td - between pipeline stages ----------------------------------------------------------===//
//
// Stages are modules in a module; values go from one to another over channels. README.md in this folder gives
// the reasons.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_PIPE
#define PARTITA_PIPE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Interfaces/Interfaces.td"
include "dialects/Interfaces/Tables.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::partita::pipe";
  let summary = "pipeline stages, and the values that they send to each other";
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = ["::partita::par::ParDialect"]; // a sum over stages has a #par.cause
  let extraClassDeclaration = [{
    /// On a module within the program's: the number of the stage that it is, an i64.
    static constexpr ::llvm::StringLiteral kStage = "pipe.stage";
    static constexpr int64_t kMaxStages = ::partita_rt::kMaxStages;
    /// On a program's module, by `choose-schedule`: how many stages it is to be cut into, an i64 from 2 to kMaxStages.
    static constexpr ::llvm::StringLiteral kStages = ::partita::kStagesAttribute;
    /// On a program's module and on its stages: how many chunks each stage has, an i64; absent for 1.
    static constexpr ::llvm::StringLiteral kChunks = "pipe.chunks";
    /// Beside kChunks, a unit: every other row of positions runs backward.
    static constexpr ::llvm::StringLiteral kWave = "pipe.wave";
    /// On a parameter of a program of all stages: the positions that read it, in ascending order.
    static constexpr ::llvm::StringLiteral kHolders = "pipe.on";
    /// The mesh axis whose coordinates are the stages. No par.mesh has it: the mesh of a module is that of one stage's ranks.
    static constexpr ::llvm::StringLiteral kAxisName = ::partita::par::axisThatSplits(::partita::par::Splits::Program);
    /// On a program's module and on its stages: how many axes of the program's mesh precede pp, an i64.
    static constexpr ::llvm::StringLiteral kAxis = "pipe.axis";
    /// On a result of a stage's function: the number of this result in the program's function, an i64.
    static constexpr ::llvm::StringLiteral kResult = "pipe.result";
    /// On a program's module and on its stages: the first layer of each position, in ascending order.
    static constexpr ::llvm::StringLiteral kCuts = "pipe.cuts";
    /// On a program's module whose cuts the memory limit decided, by the driver: #pipe.limited.
    static constexpr ::llvm::StringLiteral kLimited = "pipe.limited";
    /// On a loop of the last stage whose passes alternate, by `schedule-stages`, a unit: `schedule-backward` may join each backward pass
    /// with the forward pass before it without a deadlock with the previous stage.
    static constexpr ::llvm::StringLiteral kMayJoin = "pipe.may_join";
    /// On a stage: how many stages the program has, an i64.
    static constexpr ::llvm::StringLiteral kCount = "pipe.count";
    /// Recorded by `pipe-agree`, the same on all stages: the program's parameters and the states that belong to one, in order, as
    /// symbols; and the hyperparameters that updates share, by name.
    static constexpr ::llvm::StringLiteral kParameters = "pipe.parameters";
    static constexpr ::llvm::StringLiteral kParameterStates = "pipe.states";
    static constexpr ::llvm::StringLiteral kHyper = "pipe.hyper";
    /// On a stage: which options of the plan a pass found without effect there, and why, by name. Another stage may have what they
    /// apply to, so they are an error once no stage has it.
    static constexpr ::llvm::StringLiteral kIdle = "pipe.idle";
    /// On a symbol that several stages have: its byte offset in the persistent memory of each, an i64.
    static constexpr ::llvm::StringLiteral kOffset = "pipe.offset";
  }];
}

def Pipe_ChannelAttr : AttrDef<Pipe_Dialect, "Channel"> {
  let mnemonic = "channel";
  let summary = "one direction between two stages";
  let description = [{
    Each rank of stage `from` sends to the rank of stage `to` that has its other coordinates. Values arrive in the order
    in which they were sent: the n-th receive gets what the n-th send sent. `number` distinguishes channels
    between the same stages, whose orders do not depend on each other. In `pipe.move`, before the cut, both ends are positions.

        #pipe.channel<0 to 1>
        #pipe.channel<1 to 0, number 1>
  }];
  let parameters = (ins "int64_t":$from, "int64_t":$to, DefaultValuedParameter<"int64_t", "0">:$number);
  let assemblyFormat = "`<` $from `to` $to (`,` `number` $number^)? `>`";
  let genVerifyDecl = 1;
}

def Pipe_LimitedAttr : Table<Pipe_Dialect, "Limited", "limited"> {
  let summary = "the memory limit for which a program has other cuts than those that balance the work";
  let description = [{
    `cuts` balance the work, but with them stage `stage`, the fullest one, needs `bytes`, more than `limit` (both in bytes). `tried` other
    cuts were compiled.
  }];
  let parameters = (ins "int64_t":$limit, "::mlir::DenseI64ArrayAttr":$cuts, "int64_t":$stage, "int64_t":$bytes, "int64_t":$tried);
}

/// A tensor with a size in bytes.
def Pipe_Value : StaticShapeTensorOf<[AnyInteger, AnyFloat]>;

class Pipe_Op<string mnemonic, list<Trait> traits = []> : Op<Pipe_Dialect, mnemonic, traits> {
  let hasVerifier = 1;
}

def Pipe_SendOp : Pipe_Op<"send", [MemoryEffects<[MemWrite]>]> {
  let summary = "sends a value to another stage";
  let description = [{
    Every rank of the stage sends what it holds of the value. The transport decides whether the op returns before the value
    is received: a program must not depend on it. Created by `pipe-cut` from `pipe.move`; becomes a runtime call in the lower
    phase, and in a schedule its pass awaits it before it runs again.

        pipe.send %x over <0 to 1> : tensor<2x8xf32>
  }];
  let arguments = (ins Pipe_Value:$value, Pipe_ChannelAttr:$channel);
  let assemblyFormat = "$value `over` $channel attr-dict `:` type($value)";
}

def Pipe_RecvOp : Pipe_Op<"recv", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a value that another stage sends";
  let description = [{
    The result has the type of the sent value, placement included. Created by `pipe-cut` from `pipe.move`; becomes a runtime
    call in the lower phase.

        %x = pipe.recv over <0 to 1> : tensor<2x8xf32>
  }];
  let arguments = (ins Pipe_ChannelAttr:$channel);
  let results = (outs Pipe_Value:$value);
  let assemblyFormat = "`over` $channel attr-dict `:` type($value)";
}

//===----------------------------------------------------------------------------------------------===//
// One program of all stages
//===----------------------------------------------------------------------------------------------===//

/// The same value in another place: the one program of all stages computes the same as the cut one.
class Pipe_Conjugate<string mnemonic, list<Trait> traits = []>
    : Pipe_Op<mnemonic, [Pure, ShardInterface, DeclareOpInterfaceMethods<DifferentiableInterface>,
                         AllTypesMatch<["value", "result"]>] # traits> {
  let results = (outs Pipe_Value:$result);
  string rule = [{ ::std::string getShardRule() { return "~* -> *"; } }];
  let extraClassDeclaration = rule;
}

def Pipe_MoveOp : Pipe_Conjugate<"move", [TransparentInterface, DeclareOpInterfaceMethods<PlacedInterface>]> {
  let summary = "a value at the next position that needs it; its gradient moves back";
  let description = [{
    The only op that takes an activation from one position to another; with one chunk per stage, a position is a stage. No
    other move of the function has its channel number between the same two stages, in either direction, except the one that takes the
    gradient back. Created by `pipe-place`; becomes `pipe.send` and `pipe.recv` in `pipe-cut`, or nothing if both
    positions are on one stage.

        %1 = pipe.move %0 over <0 to 1> : tensor<2x8xf32>
  }];
  let arguments = (ins Pipe_Value:$value, Pipe_ChannelAttr:$channel);
  let assemblyFormat = "$value `over` $channel attr-dict `:` type($value)";
}

def Pipe_ShareOp : Pipe_Conjugate<"share", [TransparentInterface, DeclareOpInterfaceMethods<PlacedInterface, ["cutTo"]>]> {
  let summary = "a parameter that several positions read: identity forward, sum over the positions backward";
  let description = [{
    The `f` of positions: each contributes a term of the gradient. It is outside the loop over micro-batches, once per step.
    `stages` lists positions. Created by `pipe-place`; removed by `pipe-cut`.

        %1 = pipe.share %0 on [0, 3] : tensor<64x32xf32>
  }];
  let arguments = (ins Pipe_Value:$value, DenseI64ArrayAttr:$stages);
  let assemblyFormat = "$value `on` $stages attr-dict `:` type($value)";
}

def Pipe_SumOp : Pipe_Conjugate<"sum", [CollectiveInterface, DeclareOpInterfaceMethods<PlacedInterface>]> {
  let summary = "the sum of the terms that several stages have; each of them gets it";
  let description = [{
    Before the cut it lists positions, and the terms are added already; after the cut it is an all-reduce over the ranks of these
    stages with equal other coordinates. Created by `differentiate` as the gradient of `pipe.share`, by `expand-norms`, and by
    `pipe-report` for values that all ranks report; `pipe-cut` removes it where all its positions are on one stage, and the rest
    become runtime calls in the lower phase.

        %1 = pipe.sum %0 on [0, 3] : tensor<64x32xf32>
  }];
  let extraClassDeclaration = rule # CollectiveOf<"AllReduce">.declaration # [{
    int64_t getRankCount(); // of the stages of its positions
    ::mlir::StringAttr getAxisAttr();
  }];
  let arguments = (ins Pipe_Value:$value, DenseI64ArrayAttr:$stages, OptionalAttr<StrAttr>:$reason);
  let assemblyFormat = "$value `on` $stages (`because` $reason^)? attr-dict `:` type($value)";
}

def Pipe_PinOp : Pipe_Conjugate<"pin", [TransparentInterface, DeclareOpInterfaceMethods<PlacedInterface, ["cutTo"]>]> {
  let summary = "one position's use of a value that several positions have";
  let description = [{
    Everything computed from the result belongs to that position alone. So does its gradient, one term of the sum over the
    positions. Created by `pipe-place`; removed by `pipe-cut`.

        %2 = pipe.pin %1 to 3 : tensor<64x32xf32>
  }];
  let arguments = (ins Pipe_Value:$value, I64Attr:$position);
  let assemblyFormat = "$value `to` $position attr-dict `:` type($value)";
}

def Pipe_CopiesOp : Pipe_Op<"copies", [Pure, TransparentInterface, DeclareOpInterfaceMethods<PlacedInterface, ["cutTo"]>]> {
  let summary = "a value of which each of several positions has a copy of its own";
  let description = [{
    The copies are equal; each position's users read its own. `stages` lists a position for each copy. Created by `pipe-pass-back`; removed
    by `pipe-cut`.

        %3 = pipe.copies %0, %1 on [1, 0] : tensor<f32>
  }];
  let arguments = (ins Variadic<Pipe_Value>:$values, DenseI64ArrayAttr:$stages);
  let results = (outs Pipe_Value:$result);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$values, "::llvm::ArrayRef<int64_t>":$stages), [{
    build($_builder, $_state, values.front().getType(), values, stages);
  }]>];
  let hasCustomAssemblyFormat = 1;
}

#endif // PARTITA_PIPE
