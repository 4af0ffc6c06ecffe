//===- Train.td - parameters, states, accumulation, updates ------------------------------------------===//
//
// What makes a program of a model: symbols that outlive a step, the loop over micro-batches, the loss
// to minimize, the update. Knows no ranks. README.md in this folder says why it is as it is.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TRAIN
#define PARTITA_TRAIN

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "dialects/Interfaces/Interfaces.td"

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::partita::train";
  let summary = "parameters and states as symbols, accumulation, loss and updates";
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// On a function's argument: what it means to who fills it ("ids", "labels", "positions", ...;
    /// lib/Objective/Inputs.cpp has the table).
    static constexpr ::llvm::StringLiteral kRole = "train.role";
    /// On a function's argument: the number that stands where the data have none: the label that
    /// does not count, the first of shifted tokens.
    static constexpr ::llvm::StringLiteral kFiller = "train.filler";
    /// On a function's argument or result, or a parameter: its name in the model.
    static constexpr ::llvm::StringLiteral kName = "train.name";
    /// On a function's argument: the dimension that runs over the samples of a batch.
    static constexpr ::llvm::StringLiteral kBatch = "train.batch";
    /// On the module: #train.plan.
    static constexpr ::llvm::StringLiteral kPlan = "train.plan";
    /// Of the module: what is minimized, in words, and why it is that.
    static constexpr ::llvm::StringLiteral kObjective = "train.objective";
    /// On the module: the files that `initial` values are in, as import found them: an array of
    /// dictionaries `file`, `bytes`, `fingerprint` (partita_rt/fingerprint.h).
    static constexpr ::llvm::StringLiteral kFiles = "train.files";
    /// On the module: the device configurations of the model's file, by name: a dictionary of
    /// `devices`, `stages` (the pipeline stages that nodes are in) and `tensors` (annotated ones).
    static constexpr ::llvm::StringLiteral kConfigurations = "train.configurations";
    /// On a parameter, or an op with one result: an array of #train.sharding, at most one for each
    /// configuration.
    static constexpr ::llvm::StringLiteral kShardings = "train.shardings";
    /// The function that writes every parameter's and state's initial value.
    static constexpr ::llvm::StringLiteral kInit = "init";
  }];
}

class Train_Attr<string name, string mnem> : AttrDef<Train_Dialect, name> { let mnemonic = mnem; }

def Train_InitialAttr : Train_Attr<"Initial", "initial"> {
  let summary = "where a parameter's initial value lies: file, byte offset, bytes, stored element type";
  let description = [{
    Weights never enter the IR. The file is relative to the model's folder. `varints`: the bytes are not the elements but
    the bits of each as one of protobuf's integers of variable length, as ONNX keeps 16-bit floats that are not raw bytes.
  }];
  let parameters = (ins "::mlir::StringAttr":$file, "uint64_t":$offset, "uint64_t":$bytes, "::mlir::Type":$element, "bool":$varints);
  let assemblyFormat = "`<` $file `,` `offset` `=` $offset `,` `bytes` `=` $bytes `,` custom<Stored>($element, $varints) `>`";
}

def Train_LayerAttr : Train_Attr<"Layer", "layer"> {
  let summary = "which layer of the model an op belongs to";
  let description = [{
    The metadata of the location of every op of the forward program (`mark-layers`), so whatever comes of the op (its
    gradient, a kernel that it joins, its piece on a rank) carries it: read it with `LayerAttr::of`. `number` is the
    layer's (partita/Analysis/Layers.h), -1 in front of the first one or where there is none, -2 behind the last one,
    -3 outside of the loop over micro-batches; `count` is how many the function has.
  }];
  let parameters = (ins "int64_t":$number, "int64_t":$count);
  let assemblyFormat = "`<` $number `of` $count `>`";
  let extraClassDeclaration = [{
    static constexpr int64_t kBefore = -1, kAfter = -2, kOnce = -3;
    /// The first in a location; null where there is none.
    static LayerAttr of(::mlir::Location loc);
  }];
}

def Train_FillAttr : Train_Attr<"Fill", "fill"> {
  let summary = "how a parameter is filled when it is not read from a file: constant, or normal with deviation std";
  let parameters = (ins APFloatParameter<"">:$meanValue, APFloatParameter<"">:$stdValue);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    static FillAttr get(::mlir::MLIRContext *context, double mean, double std = 0);
    double getMean() const { return getMeanValue().convertToDouble(); }
    /// Zero for a constant.
    double getStd() const { return getStdValue().convertToDouble(); }
  }];
}

def Train_ShardingAttr : Train_Attr<"Sharding", "sharding"> {
  let summary = "how a node of the model's file wants a tensor to be spread over a configuration's devices";
  let description = [{
    ONNX's ShardingSpecProto, checked by its own rules. The i-th split is of dimension `dims[i]`: each of `blocks[i]`
    blocks of it is cut into `shards[i]`. `devices` has an array of devices for each shard, row-major over the splits.
    Created by import, used up by `partition-seed-annotated`.

        #train.sharding<"pair" by "/mlp/MatMul", dims = [1], blocks = [1], shards = [2], devices = [array<i64: 0>, array<i64: 1>]>
  }];
  let parameters = (ins "::mlir::StringAttr":$configuration, "::mlir::StringAttr":$node,
                        "::mlir::ArrayAttr":$dims, "::mlir::ArrayAttr":$blocks,
                        "::mlir::ArrayAttr":$shards, "::mlir::ArrayAttr":$devices);
  let genVerifyDecl = 1;
  let assemblyFormat = [{
    `<` $configuration `by` $node `,` `dims` `=` $dims `,` `blocks` `=` $blocks `,` `shards` `=` $shards `,`
        `devices` `=` $devices `>`
  }];
}

def Train_PlanAttr : Train_Attr<"Plan", "plan"> {
  let summary = "the whole plan, as the command line and the configuration file gave it";
  let description = [{
    `#train.plan<{accumulate = 2 : i64, ...}>`; the keys are the command line's plan options. Read by the
    driver alone, which turns it into pass options.
  }];
  let parameters = (ins "::mlir::DictionaryAttr":$options);
  let assemblyFormat = "`<` $options `>`";
}

class Train_Op<string mnemonic, list<Trait> traits = []> : Op<Train_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------------------------------===//

def Train_ParameterOp : Train_Op<"parameter", [Symbol]> {
  let summary = "a parameter of the model";
  let description = [{
    `type` is the whole tensor's; `initial` names its value's place in the model's file (absent when the
    file declares it without a value), `fill` how it is filled otherwise (set by `objective`).
    `frozen` parameters get no gradient. A tensor of the model that is called like one of the module's functions has
    another symbol; its own name, by which checkpoints and exported models know it, is its attribute `train.name`.
    Created by import; lives to the end.

        train.parameter @"h.0.attn.c_attn.weight" : tensor<768x2304xf32> initial(<"model.onnx", offset = 64, bytes = 7077888, f32>)
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, OptionalAttr<Train_InitialAttr>:$initial,
                       OptionalAttr<Train_FillAttr>:$fill, UnitAttr:$frozen);
  let assemblyFormat = [{
    $sym_name `:` $type (`initial` `(` $initial^ `)`)? (`fill` `(` $fill^ `)`)? (`frozen` $frozen^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// The tensor's name in the model.
    ::llvm::StringRef getModelName() {
      auto name = (*this)->getAttrOfType<::mlir::StringAttr>(TrainDialect::kName);
      return name ? name.getValue() : getSymName();
    }
  }];
}

def Train_StateOp : Train_Op<"state", [Symbol]> {
  let summary = "what else outlives a step: moments, the step counter";
  let description = [{
    Starts as `value` everywhere, in @init. `of` is the parameter it belongs to, `kind` its name there ("m", "v").
    Created by `optimize`; lives to the end.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, F64Attr:$value,
                       OptionalAttr<FlatSymbolRefAttr>:$of, OptionalAttr<StrAttr>:$kind);
  let assemblyFormat = "$sym_name `:` $type `=` $value (`of` $of^ $kind)? attr-dict";
}

class Train_Access<string mnemonic, list<Trait> traits> : Train_Op<mnemonic, traits # [DeclareOpInterfaceMethods<SymbolUserOpInterface>]>;

def Train_ReadOp : Train_Access<"read", [MemoryEffects<[MemRead]>]> {
  let summary = "the value of a parameter or state at the start of the step";
  let description = "A symbol is read before it is written, in each function.";
  let arguments = (ins FlatSymbolRefAttr:$symbol);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$symbol attr-dict `:` type($result)";
}

def Train_WriteOp : Train_Access<"write", [MemoryEffects<[MemWrite]>]> {
  let summary = "the value that the next step will read";
  let description = "Created by `make-init` in @init and by `optimize`; nothing where its value was computed in place, else a copy.";
  let arguments = (ins FlatSymbolRefAttr:$symbol, AnyRankedTensor:$value);
  let assemblyFormat = "$symbol `,` $value attr-dict `:` type($value)";
}

def Train_InitialValueOp : Train_Access<"initial_value", [Pure]> {
  let summary = "what a parameter or state starts as";
  let description = [{
    Its symbol says it: a state's `value`; a parameter's `initial` or `fill`, whichever the run chooses
    (`--init`). A placement takes its piece of the whole: random numbers are counted by the element's index
    in the whole tensor, so that no placement changes them.
    Created in @init by `make-init`, for states by `optimize`; becomes a call in `lower-to-rt`.

        %0 = train.initial_value @w : tensor<4x6xf32>
        train.write @w, %0 : tensor<4x6xf32>
  }];
  let arguments = (ins FlatSymbolRefAttr:$symbol);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$symbol attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------------------------------===//

def Train_TokenCountOp : Train_Op<"token_count", [Pure, ShardInterface]> {
  let summary = "how many labels are not ignore_index, over all micro-batches and ranks";
  let description = [{
    The divisor of the mean loss, known before the first backward pass. Created by `objective`; becomes
    a kernel call.
  }];
  let arguments = (ins AnyRankedTensor:$labels, I64Attr:$ignore_index);
  let results = (outs RankedTensorOf<[AnyFloat]>:$count);
  let assemblyFormat = "$labels `ignore` $ignore_index attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{ ::std::string getShardRule() { return "*+ -> "; } }];
}

def Train_AccumulateOp : Train_Op<"accumulate", [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "runs its region once per micro-batch and adds up what it yields";
  let description = [{
    Each of `batches` has the micro-batches along its first dimension; the region sees one at a time.
    Values from outside (parameters) may be used inside; their gradients are sums over micro-batches, so an
    `f` outside reduces once per step and one inside on every micro-batch.
    Created by `objective`; a single micro-batch is inlined by `inline-accumulate`, more become an `rt` loop.

        %loss = train.accumulate (%ids = %0) : (tensor<2x8x128xi64>) -> tensor<f32> {
          ...
          train.yield %part : tensor<f32>
        }
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$batches);
  let results = (outs Variadic<AnyRankedTensor>:$sums);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Number of micro-batches.
    int64_t getCount();
    /// The type of one micro-batch of a batch of this type: the first dimension dropped.
    static ::mlir::RankedTensorType microBatchType(::mlir::Type batch);
  }];
}

def Train_YieldOp : Train_Op<"yield", [Pure, Terminator, ParentOneOf<["AccumulateOp"]>]> {
  let summary = "what one micro-batch adds";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{}]>];
}

def Train_MinimizeOp : Train_Op<"minimize"> {
  let summary = "the loss whose gradient updates the parameters";
  let description = "Created by `objective`; replaced with one `train.update` per parameter by `differentiate`.";
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$loss);
  let assemblyFormat = "$loss attr-dict `:` type($loss)";
}

def Train_UpdateOp : Train_Op<"update"> {
  let summary = "a parameter and its gradient; the optimizer says what to do with them";
  let description = "Created by `differentiate`; replaced with arithmetic and `train.write` by `optimize`.";
  let arguments = (ins FlatSymbolRefAttr:$parameter, AnyRankedTensor:$value, AnyRankedTensor:$gradient);
  let assemblyFormat = "$parameter `,` $value `by` $gradient attr-dict `:` type($value) `,` type($gradient)";
  let hasVerifier = 1;
}

def Train_LearningRateOp : Train_Op<"learning_rate", [Pure]> {
  let summary = "the step's learning rate, a scalar in device memory that the host sets";
  let description = "Created by `optimize`; becomes a pointer into the step's controls.";
  let results = (outs AnyRankedTensor:$rate);
  let assemblyFormat = "attr-dict `:` type($rate)";
}

def Train_StepNumberOp : Train_Op<"step_number", [Pure]> {
  let summary = "the number of this update, from 1, as a float scalar that the host sets";
  let description = "Created by `optimize`; becomes a pointer into the step's controls.";
  let results = (outs AnyRankedTensor:$number);
  let assemblyFormat = "attr-dict `:` type($number)";
}

def Train_RandomKeyOp : Train_Op<"random_key", [Pure]> {
  let summary = "what the step's random numbers depend on: a mix of the run's seed and the number of the update";
  let description = "Created by `key-dropout`; becomes a kernel call.";
  let results = (outs 0DTensorOf<[I64]>:$key);
  let assemblyFormat = "attr-dict `:` type($key)";
}

def Train_BarrierOp : Train_Op<"barrier", [Pure, ShardInterface, AllTypesMatch<["value", "result"]>]> {
  let summary = "the same value, for ops that are to compute again what others have computed";
  let description = [{
    Ops whose operands come through a barrier are not those whose operands do not, so nothing merges them. Created by
    `recompute`; costs nothing: a view in memory.
  }];
  let arguments = (ins AnyRankedTensor:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let extraClassDeclaration = [{ ::std::string getShardRule() { return "~* -> *"; } }];
}

def Train_AdamWOp : Train_Op<"adamw", [Pure, ShardInterface]> {
  let summary = "decoupled weight decay Adam";
  let description = [{
    Loshchilov and Hutter, arXiv 1711.05101, in the order of Adam's common fused implementations; t, the number of
    this update, starts at 1:

        m' = b1 m + (1 - b1) g;  v' = b2 v + (1 - b2) g g
        p' = p - lr ((m' / (1 - b1^t)) / (sqrt(v' / (1 - b2^t)) + eps) + decay p)

    `step` is t (train.step_number), a float tensor without dimensions. Created by `optimize`; becomes a kernel call.
  }];
  let arguments = (ins AnyRankedTensor:$value, AnyRankedTensor:$gradient, AnyRankedTensor:$m, AnyRankedTensor:$v,
                       AnyRankedTensor:$rate, AnyRankedTensor:$step,
                       F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon, F64Attr:$decay);
  let results = (outs AnyRankedTensor:$newValue, AnyRankedTensor:$newM, AnyRankedTensor:$newV);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{ ::std::string getShardRule() { return "*, *, *, *, , -> *, *, *"; } }];
}

def Train_SgdOp : Train_Op<"sgd", [Pure, ShardInterface]> {
  let summary = "p' = p - lr (g + decay p)";
  let description = "Created by `optimize`; becomes a kernel call.";
  let arguments = (ins AnyRankedTensor:$value, AnyRankedTensor:$gradient, AnyRankedTensor:$rate, F64Attr:$decay);
  let results = (outs AnyRankedTensor:$newValue);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{ ::std::string getShardRule() { return "*, *, -> *"; } }];
}

#endif // PARTITA_TRAIN
