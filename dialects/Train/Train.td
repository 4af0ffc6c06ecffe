//===- Train.td - parameters, states, accumulation, updates ------------------------------------------===//
//
// What makes a program of a model: symbols that outlive a step, the loop over micro-batches, the loss
// to minimize, the update. Knows no ranks. README.md in this folder says why it is as it is.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TRAIN
#define PARTITA_TRAIN

include "dialects/Train/Norms.td"
include "dialects/Train/TrainBase.td"

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
    The attribute `train.layer` of every op of the forward program (`mark-layers`), and of whatever comes of the op: its
    gradient, a kernel that it joins, its shard on a rank (dialects/Interfaces/Provenance.h). `number` is the
    layer's (partita/Analysis/Layers.h), -1 in front of the first one or where there is none, -2 behind the last one,
    -3 outside of the loop over micro-batches; `count` is how many the function has.
  }];
  let parameters = (ins "int64_t":$number, "int64_t":$count);
  let assemblyFormat = "`<` $number `of` $count `>`";
  let extraClassDeclaration = [{
    static constexpr int64_t kBefore = -1, kAfter = -2, kOnce = -3;
    /// The layer of an op; null where it has none.
    static LayerAttr of(::mlir::Operation *op);
  }];
}

def Train_EntryPoint : I32EnumAttr<"EntryPoint", "what a function is to the program", [
  I32EnumAttrCase<"Init", 0, "init">, I32EnumAttrCase<"TrainStep", 1, "train_step">,
  I32EnumAttrCase<"EvalStep", 2, "eval_step">, I32EnumAttrCase<"Forward", 3, "forward">]> {
  let cppNamespace = "::partita::train";
  let genSpecializedAttr = 0;
}
def Train_EntryPointAttr : EnumAttr<Train_Dialect, Train_EntryPoint, "entry_point"> {
  let description = [{
    The attribute `train.entry_point` of a function that the program's run calls, whatever the function is called.

    | entry point  | arguments                            | results                    | created by  |
    |--------------|--------------------------------------|----------------------------|-------------|
    | `init`       | none                                 | none: it writes parameters and states | `make-init` |
    | `train_step` | inputs, all micro-batches of a step  | the loss                   | `objective` |
    | `eval_step`  | inputs of one batch                  | the loss, how many tokens count | `objective` |
    | `forward`    | inputs of one batch                  | the model's outputs        | import      |
  }];
  let assemblyFormat = "`<` $value `>`";
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
  let summary = "the plan, as the command line and the configuration file gave it";
  let description = [{
    `#train.plan<{accumulate = 2 : i64, ...}>`; the keys are the command line's plan options. Read by the
    driver alone, which turns it into pass options.
  }];
  let parameters = (ins "::mlir::DictionaryAttr":$options);
  let assemblyFormat = "`<` $options `>`";
}

def Train_PassKind : I32EnumAttr<"PassKind", "what a pass of a micro-batch computes", [
  I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Backward", 1, "backward">,
  I32EnumAttrCase<"Weights", 2, "weights">]> {
  let cppNamespace = "::partita::train";
  let genSpecializedAttr = 0;
}

def Train_PassAttr : Train_Attr<"Pass", "pass"> {
  let summary = "which pass of a micro-batch a region is";
  let description = [{
    `weights` is the part of a backward pass that no other stage waits for (`split-backward`). `chunk` counts the ranges of layers that
    a pipeline stage has; it is written where it is not 0.

        #train.pass<backward>
        #train.pass<forward 1>
  }];
  let parameters = (ins "::partita::train::PassKind":$kind, "int64_t":$chunk);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "::partita::train::PassName":$name), [{ return $_get($_ctxt, name.kind, name.chunk); }]>];
  let extraClassDeclaration = [{
    PassName getName() const { return {getKind(), getChunk()}; }
  }];
}

def Train_OrderAttr : Train_Attr<"Order", "order"> {
  let summary = "in which order the passes of micro-batches run";
  let description = [{
    Each pass of each micro-batch once, one after the other: a pipeline stage's schedule. Runs of slots whose
    micro-batches advance by one are written once, with the micro-batches of the first time. A chunk that is not 0 stands behind a dot.

        #train.order<2 x (forward 0), 2 x (forward 2, backward 0), 2 x (backward 2)>
        #train.order<1 x (forward 0, forward.1 0, backward.1 0, backward 0, weights.1 0, weights 0)>
  }];
  /// Of each run: how many times, how many slots; then of each slot the kind and the chunk of its pass, and its first micro-batch.
  let parameters = (ins ArrayRefParameter<"int64_t">:$numbers);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// A pass of a micro-batch.
    struct Slot {
      PassName pass;
      int64_t microBatch;
      bool operator==(const Slot &other) const {
        return pass == other.pass && microBatch == other.microBatch;
      }
    };
    struct Run {
      int64_t times;
      ::llvm::SmallVector<Slot, 4> slots; ///< of the first time
    };
    /// Finds the runs.
    static OrderAttr get(::mlir::MLIRContext *context, ::llvm::ArrayRef<Slot> slots);
    ::llvm::SmallVector<Run> getRuns() const;
    /// One after the other, without runs.
    ::std::vector<Slot> getSlots() const;
  }];
}

//===----------------------------------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------------------------------===//

def Train_ParameterOp : Train_Op<"parameter", [Symbol]> {
  let summary = "a parameter of the model";
  let description = [{
    `type` is the full tensor's; `initial` names its value's place in the model's file (absent when the
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
    A parameter of 16 bits has a `master`, which is updated in its place and starts as it does, unrounded; the parameter
    is what the master rounds to. It is called `w.m`, or `w.state.m` where the model has a parameter `w.m`.
    Created by `optimize`; lives to the end.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, F64Attr:$value,
                       OptionalAttr<FlatSymbolRefAttr>:$of, OptionalAttr<StrAttr>:$kind);
  let assemblyFormat = "$sym_name `:` $type `=` $value (`of` $of^ $kind)? attr-dict";
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kMaster = "master";
    /// Is it what a parameter of 16 bits is rounded from?
    bool isMaster() { return getKind() == kMaster; }
  }];
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
    (`--init`); a master's is its parameter's. A rank computes its shard alone: a random number depends on the element's index in the full
    tensor, so no placement changes it.
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

def Train_AccumulateOp : Train_Op<"accumulate", [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"YieldOp">, AttrSizedResultSegments,
                                                 DeclareOpInterfaceMethods<HandsOutInterface>]> {
  let summary = "runs the passes of each micro-batch and adds up what they yield";
  let description = [{
    Each of `batches` has the micro-batches along its first dimension; a region sees one at a time.
    Values from outside (parameters) may be used inside; their gradients are sums over micro-batches, so an
    `f` outside reduces once per step and one inside on every micro-batch. Sums of 16-bit gradients are of 32 bits, where
    there are several (`differentiate`).

    The forward pass is a region. `differentiate` adds another one, the backward pass: its arguments are the micro-batches
    and, in order, what the forward pass `saves` for it. It sees nothing else of the forward pass, so the list is what a micro-batch
    keeps from the one to the other: `recompute` and `gather-again` shorten it, `offload-activations` moves entries to the host,
    `save` extends it. `schedule-backward` decides that the one follows the other at once, and makes them one region.

    A stage of a pipeline may have more passes, each a region: `split-backward` takes out of the backward pass what no other
    stage waits for (`weights`), and a stage that has several ranges of layers has passes for each of these chunks
    (`forward 1`). Regions stand in an order in which each reads only earlier ones. A later region's arguments are the
    micro-batches, then all that earlier regions save, used or not. What a region only hands on need not be saved again. Each
    sum is yielded by one region; sums are those of the first region, then those of each later one.

    `order` (`schedule-stages`) keeps the regions apart and says in which order they run: a stage of a pipeline has several micro-batches in
    flight. A saved value then has an instance for each micro-batch between the pass that saves it and the last one that reads it.

    A sum that is listed in `grown` the region that yields it makes itself: it sees it as it is so far, zero at first, as an argument behind
    all others, and yields what it becomes, of the sum's own type (`fuse-accumulation`: by the kernel of a matmul).

    A sum is complete in the last slot of the pass that yields it. What is to happen then, and beside what follows, stands in that
    pass: ops with `train.last` run in its last slot only, and what the pass yields as `last` is a result of the loop, behind the sums
    (`reduce-in-last-slot`: the reduction of gradients over ranks; `start-collectives`: its token, for a wait behind the loop).
    Created by `objective`; a single micro-batch is inlined by `peel-last-micro-batch`, more become an `rt` loop.

        %loss = train.accumulate (%ids = %0) : (tensor<2x8x128xi64>) -> tensor<f32> {
          ...
          train.yield %part : tensor<f32>
        }
        %loss, %dw = train.accumulate (%ids = %0) : (tensor<2x8x128xi64>) -> (tensor<f32>, tensor<4x6xf32>) {
          ...
          train.yield %part : tensor<f32> saves %h : tensor<8x128x4xf32>
        } backward (%ids_again, %h_saved) {
          ...
          train.yield %more : tensor<4x6xf32>
        }
        %loss, %dw = train.accumulate (%ids = %0) : (tensor<2x8x128xi64>) -> (tensor<f32>, tensor<4x6xf32>) onto (%so_far = 1) {
          ...
          train.yield %part, %more : tensor<f32>, tensor<4x6xf32>
        }
        %loss, %dw = train.accumulate (%ids = %0) : (tensor<2x8x128xi64>) -> (tensor<f32>, tensor<4x6xf32>) {
          ...
          train.yield %part : tensor<f32> saves %h : tensor<8x128x4xf32>
        } backward (%ids_again, %h_saved) {
          ...
          train.yield saves %dh : tensor<8x128x6xf32>
        } weights (%ids_2, %h_saved_2, %dh_saved) onto (%so_far = 1) {
          ...
          train.yield %more : tensor<4x6xf32>
        } {order = #train.order<1 x (forward 0), 1 x (forward 1, backward 0, weights 0), 1 x (backward 1, weights 1)>}
        %loss, %dw, %reduced = train.accumulate (%ids = %0) : (tensor<2x8x128xi64>) -> (tensor<f32>, tensor<4x6xf32>, tensor<4x6xf32>) {
          ...
          train.yield %part : tensor<f32> saves %h : tensor<8x128x4xf32>
        } backward (%ids_again, %h_saved) onto (%so_far = 1) {
          ...
          %all = par.all_reduce %more over "dp" {train.last} : tensor<4x6xf32>
          train.yield %more : tensor<4x6xf32> last %all : tensor<4x6xf32>
        } {order = #train.order<1 x (forward 0, forward 1, backward 0, backward 1)>}
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$batches, OptionalAttr<TypedArrayAttrBase<Train_PassAttr, "passes">>:$laterPasses,
                       OptionalAttr<DenseI64ArrayAttr>:$grown, OptionalAttr<Train_OrderAttr>:$order);
  let results = (outs Variadic<AnyRankedTensor>:$sums, Variadic<AnyType>:$last);
  let regions = (region SizedRegion<1>:$body, VariadicRegion<SizedRegion<1>>:$later);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$sums, "::mlir::ValueRange":$batches,
                                 CArg<"::llvm::ArrayRef<::partita::train::PassName>", "{}">:$later,
                                 CArg<"::mlir::TypeRange", "{}">:$last)>];
  let hasCustomAssemblyFormat = 1;
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Number of micro-batches.
    int64_t getCount();
    /// The type of one micro-batch of a batch of this type: the first dimension dropped.
    static ::mlir::RankedTensorType microBatchType(::mlir::Type batch);
    /// The batch that an argument of a region is one micro-batch of; null if it is something else.
    ::mlir::Value getBatchOf(::mlir::BlockArgument argument);
    /// The sum that an argument of a region is so far; null if it is something else.
    ::mlir::Value getSumOf(::mlir::BlockArgument argument);
    /// Where its region sees the sum with this number; null if it does not.
    ::mlir::BlockArgument getSoFar(unsigned sum);
    /// From here on its region makes the sum: adds an argument for what it is so far and returns it.
    ::mlir::BlockArgument growSum(unsigned sum);

    /// The passes, the first forward pass included: number i is region i.
    ::llvm::SmallVector<PassName> getPasses();
    PassName getPass(unsigned number);
    /// The number of a pass; none where there is no such pass.
    ::std::optional<unsigned> findPass(PassName name);
    /// Which pass a region is.
    unsigned numberOf(::mlir::Region &region) { return region.getRegionNumber(); }

    /// Is what follows the forward pass a region of its own, or several?
    bool hasBackward() { return !getLater().empty(); }
    /// The backward pass, where it is one region: from `differentiate` to the cut.
    ::mlir::Region &getBackward() { return getLater().front(); }
    /// Has nobody decided yet when the passes run?
    bool isUnscheduled() { return hasBackward() && !getOrder(); }
    /// Where the sum with this number is yielded, by whichever region.
    ::mlir::OpOperand &getPart(unsigned sum);
    /// The number of the sum that a region's yield adds this operand to; none where it saves it or hands it out.
    ::std::optional<unsigned> getSumOf(::mlir::OpOperand &yielded);

    /// The pass's slot behind which it never runs again, as an index of the order.
    unsigned getLastSlot(unsigned pass);
    /// The micro-batch of that slot.
    int64_t getLastMicroBatch(unsigned pass);
    /// The passes, in the order of their last slots.
    ::llvm::SmallVector<unsigned> getPassesByEnd();
    /// A loop in this one's place that has these last values, of each pass, instead; its regions and sums are this one's. What uses the
    /// last values of this one is the caller's.
    AccumulateOp withLast(::mlir::OpBuilder &builder, ::llvm::ArrayRef<::llvm::SmallVector<::mlir::Value>> last);

    /// What a pass saves for later ones.
    ::mlir::OperandRange getSaved(unsigned pass = 0);
    ::mlir::MutableOperandRange getSavedMutable(unsigned pass = 0);
    /// How many values the passes in front of this one save.
    unsigned countSavedBefore(unsigned pass);
    /// All saved values: those of the first pass, then those of each later one.
    ::llvm::SmallVector<::mlir::Value> getAllSaved();
    /// What the saved value with this number, of all of them, is in a later pass.
    ::mlir::BlockArgument getSavedArgument(unsigned number, unsigned reader = 1);
    /// A value of a pass's region, as a later pass sees it: a micro-batch, or what is saved from now on.
    ::mlir::BlockArgument save(::mlir::Value value, unsigned reader = 1);
    /// Takes off the lists what no later pass uses or has anyhow: micro-batches, values from outside, what
    /// is saved twice. Returns whether there was any.
    bool simplifySaved();
  }];
}

def Train_YieldOp : Train_Op<"yield", [Pure, Terminator, AttrSizedOperandSegments, ParentOneOf<["AccumulateOp"]>]> {
  let summary = "a pass's contributions to the sums, the values that it saves for later passes of the micro-batch, and the loop's last values";
  let arguments = (ins Variadic<AnyRankedTensor>:$values, Variadic<AnyRankedTensor>:$saved, Variadic<AnyType>:$last);
  let assemblyFormat = [{
    attr-dict ($values^ `:` type($values))? (`saves` $saved^ `:` type($saved))? (`last` $last^ `:` type($last))?
  }];
  let builders = [OpBuilder<(ins), [{}]>,
                  OpBuilder<(ins "::mlir::ValueRange":$values), [{ build($_builder, $_state, values, ::mlir::ValueRange(), ::mlir::ValueRange()); }]>];
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
  let summary = "the number of this update, from 1, as a float scalar that the host sets; steps that are skipped make none";
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

#endif // PARTITA_TRAIN
