//===- Train.td - parameters, states, accumulation, updates ------------------------------------------===//
//
// Ops that turn a model into a training program: symbols that outlive a step, the loop over micro-batches, the
// loss, the update. They know no ranks. README.md in this folder gives the reasons.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TRAIN
#define PARTITA_TRAIN

include "dialects/Train/Norms.td"
include "dialects/Train/TrainBase.td"
include "dialects/Train/TrainTables.td"

def Train_InitialAttr : Train_Attr<"Initial", "initial"> {
  let summary = "where a parameter's initial value is: file, byte offset, bytes, stored element type";
  let description = [{
    Weights never enter the IR. The file is relative to the model's folder. `varints`: the file has each
    element's bits as a protobuf varint, as ONNX does for 16-bit floats that are not raw bytes.
  }];
  let parameters = (ins "::mlir::StringAttr":$file, "uint64_t":$offset, "uint64_t":$bytes, "::mlir::Type":$element, "bool":$varints);
  let assemblyFormat = "`<` $file `,` `offset` `=` $offset `,` `bytes` `=` $bytes `,` custom<Stored>($element, $varints) `>`";
}

def Train_LayerAttr : Train_Attr<"Layer", "layer"> {
  let summary = "the layer of the model that an op belongs to";
  let description = [{
    The attribute `train.layer` of every op of the forward program (`mark-layers`), and of every op derived from it: its
    gradient, a kernel that it joins, its shard on a rank (dialects/Interfaces/Provenance.h). `number` is the layer's
    (partita/Analysis/Layers.h), -1 before the first one or without layers, -2 after the last one, -3 outside the loop
    over micro-batches; `count` is the number of layers of the function.
  }];
  let parameters = (ins "int64_t":$number, "int64_t":$count);
  let assemblyFormat = "`<` $number `of` $count `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t kBefore = -1, kAfter = -2, kOnce = -3;
    static constexpr int64_t kMostLayers = int64_t(1) << 22; ///< more than any model has
    /// Returns true for the number of a layer, or one of the above.
    static bool isPlace(int64_t number) { return number >= kOnce && number < kMostLayers; }
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
    The attribute `train.entry_point` of a function that a run calls. A function without it is none, whatever its name.

    | entry point  | arguments                            | results                    | created by  |
    |--------------|--------------------------------------|----------------------------|-------------|
    | `init`       | none                                 | none: it writes parameters and states | `make-init` |
    | `train_step` | inputs, all micro-batches of a step  | the loss                   | `objective` |
    | `eval_step`  | inputs of one batch                  | the loss, the number of tokens that count | `objective` |
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
  let summary = "how a node of the model's file splits a tensor over a configuration's devices";
  let description = [{
    ONNX's ShardingSpecProto, checked by its own rules. The i-th split is of dimension `dims[i]`: each of `blocks[i]`
    blocks of it is cut into `shards[i]`. `devices` has an array of devices for each shard, row-major over the splits.
    Created by import; consumed by `partition-seed-annotated`.

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
    `#train.plan<{accumulate = "2", ...}>`; the keys are the command line's plan options, the values their text. Read by the
    driver and by the pipelines `--partita-PHASE`, which turn it into pass options.
  }];
  let parameters = (ins "::mlir::DictionaryAttr":$options);
  let assemblyFormat = "`<` $options `>`";
}

// PassKinds.h has a row for each.
def Train_PassKind : I32EnumAttr<"PassKind", "what a pass of a micro-batch computes", [
  I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Backward", 1, "backward">,
  I32EnumAttrCase<"Weights", 2, "weights">]> {
  let cppNamespace = "::partita::train";
  let genSpecializedAttr = 0;
}

def Train_PassAttr : Train_Attr<"Pass", "pass"> {
  let summary = "the pass of a micro-batch that a region is";
  let description = [{
    `weights` is the part of a backward pass that no other stage waits for (`split-backward`). `chunk` is the number of a pipeline
    stage's range of layers; it is printed unless it is 0.

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
  let summary = "the order in which the passes of micro-batches run";
  let description = [{
    A pipeline stage's schedule: each pass of each micro-batch once, one after another. Slots that repeat with the next
    micro-batches are written once, with their count and the first micro-batches. Runs that repeat with the next group of micro-batches
    are in brackets, with the group's size after `by`. A chunk other than 0 follows a dot.

        #train.order<2 x (forward 0), 2 x (forward 2, backward 0), 2 x (backward 2)>
        #train.order<1 x (forward 0, forward.1 0, backward.1 0, backward 0, weights.1 0, weights 0)>
        #train.order<3 x [2 x (forward 0), 2 x (forward.1 0, backward.1 0), 2 x (backward 0)] by 2>
  }];
  /// Per run: its repetitions, their step and its parts; per part: its repetitions and slots; per slot: the kind and chunk of its
  /// pass, and its first micro-batch.
  let parameters = (ins ArrayRefParameter<"int64_t">:$numbers);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Slots that repeat with the next micro-batch.
    struct Part {
      int64_t times = 1;
      ::llvm::SmallVector<Slot, 4> slots; ///< of the first repetition
    };
    /// Parts that repeat `step` micro-batches later.
    struct Run {
      int64_t times = 1, step = 1;
      ::llvm::SmallVector<Part, 1> parts; ///< of the first repetition
      /// Is it the repetition of a list of slots?
      bool isFlat() const { return parts.size() == 1 && parts.front().times == 1; }
      int64_t slotCount() const; ///< of all repetitions
    };
    /// Finds the runs in a list of slots.
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
    `type` is the full tensor's; `initial` says where its value is in the model's file (absent when the
    file declares it without a value), `fill` how it is filled otherwise (set by `objective`).
    `frozen` parameters get no gradient. A tensor with the name of one of the module's functions gets another symbol;
    `train.name` keeps its own name, which checkpoints and exported models use.
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
  let summary = "a value other than a parameter that outlives a step: moments, the step counter";
  let description = [{
    @init sets all elements to `value`. `of` is the state's parameter, `kind` its name there ("m", "v"). Its symbol is `w.m`,
    or `w.state.m` if the model has a parameter `w.m`. A 16-bit parameter has a `master`, which starts with the parameter's
    unrounded value and is updated in its place; the parameter is the rounded master.
    Created by `optimize`; lives to the end.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, F64Attr:$value,
                       OptionalAttr<FlatSymbolRefAttr>:$of, OptionalAttr<StrAttr>:$kind);
  let assemblyFormat = "$sym_name `:` $type `=` $value (`of` $of^ $kind)? attr-dict";
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kMaster = "master";
    /// Is it the master that a 16-bit parameter is rounded from?
    bool isMaster() { return getKind() == kMaster; }
  }];
}

class Train_Access<string mnemonic, list<Trait> traits> : Train_Op<mnemonic, traits # [DeclareOpInterfaceMethods<SymbolUserOpInterface>]>;

def Train_ReadOp : Train_Access<"read", [MemoryEffects<[MemRead]>]> {
  let summary = "the value of a parameter or state at the start of the step";
  let description = [{
    A symbol is read before it is written, in each function.

    With `int8_block`, the value is rounded: in blocks of so many consecutive elements of the last dimension, to 8 bits and a scale
    (zero.quantize_blocks). Its gradient is that of the stored value, as if nothing were rounded, and updates read the stored value.
    Set by `zero-quantize-weights`; `zero-shard-parameters` moves it to the gather, `zero-quantize-gathers` replaces it.

        %0 = train.read @w in int8 blocks of 64 : tensor<16x128xf32>
  }];
  let arguments = (ins FlatSymbolRefAttr:$symbol, OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$int8_block);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$symbol (`in` `int8` `blocks` `of` $int8_block^)? attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::llvm::StringRef":$symbol), [{
    build($_builder, $_state, type, symbol, ::mlir::IntegerAttr());
  }]>];
}

def Train_WriteOp : Train_Access<"write", [MemoryEffects<[MemWrite]>]> {
  let summary = "the value that the next step will read";
  let description = "Created by `make-init` in @init and by `optimize`; becomes nothing if its value was computed in place, else a copy.";
  let arguments = (ins FlatSymbolRefAttr:$symbol, AnyRankedTensor:$value);
  let assemblyFormat = "$symbol `,` $value attr-dict `:` type($value)";
}

def Train_InitialValueOp : Train_Access<"initial_value", [Pure]> {
  let summary = "the initial value of a parameter or state";
  let description = [{
    The symbol determines it: a state's `value`; a parameter's `initial` or `fill`, whichever the run chooses (`--init`);
    for a master, its parameter's. A rank computes only its shard: a random number depends on the element's index in the
    full tensor, so no placement changes it.
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
  let summary = "the number of labels that are not ignore_index, over all micro-batches and ranks";
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
  let summary = "runs the passes of each micro-batch and sums the values that they yield";
  let description = [{
    Each of `batches` has the micro-batches along its first dimension; a region sees one at a time. Values from outside
    (parameters) may be used inside; their gradients are sums over micro-batches, so an `f` outside reduces once per step
    and one inside on every micro-batch. Sums of 16-bit gradients over several micro-batches are in 32 bits
    (`differentiate`).

    The forward pass is a region. `differentiate` adds a second one, the backward pass: its arguments are the micro-batches and, in
    order, the values that the forward pass `saves` for it. It sees no other values of the forward pass, so a micro-batch keeps
    exactly these between the two: `recompute` and `gather-again` shorten the list, `offload-activations` moves entries to the
    host, `save` extends it. `schedule-backward` runs the backward pass right after the forward pass and joins the two regions.

    A pipeline stage may have more passes, each a region: `split-backward` moves the ops that no other stage waits for
    out of the backward pass (`weights`), and a stage with several ranges of layers has passes for each of these chunks
    (`forward 1`). Each region reads only earlier ones. A later region's arguments are the micro-batches, then all
    values that earlier regions save, used or not. A region need not save a value again to pass it on. Each sum is
    yielded by one region; the sums are those of the first region, then those of each later one.

    `order` (`schedule-stages`) keeps the regions apart and gives the order in which they run: a pipeline stage has several
    micro-batches in flight. A saved value then has an instance for each micro-batch between the pass that saves it and the last one
    that reads it.

    For a sum listed in `grown`, the region that yields it does the addition: its last arguments are these sums so far, zero at first,
    and it yields the new sum, of the sum's own type (`fuse-accumulation`: a matmul's kernel adds).

    A sum is complete in the last slot of the pass that yields it. Ops that use it then, and overlap with later passes, are in that
    pass: ops with `train.last` run only in its last slot, and the values that the pass yields as `last` are results of the loop,
    after the sums (`reduce-in-last-slot`: the reduction of gradients over ranks; `start-collectives`: its token, for a wait after
    the loop). Created by `objective`; a single micro-batch is inlined by `peel-last-micro-batch`, more become an `rt` loop.

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
    /// The sum whose running value an argument of a region is; null if it is something else.
    ::mlir::Value getSumOf(::mlir::BlockArgument argument);
    /// The argument that is the running value of the sum with this number; null if there is none.
    ::mlir::BlockArgument getSoFar(unsigned sum);
    /// Makes the sum's region do the addition: adds an argument for the running sum and returns it.
    ::mlir::BlockArgument growSum(unsigned sum);

    /// The passes, the first forward pass included: number i is region i.
    ::llvm::SmallVector<PassName> getPasses();
    PassName getPass(unsigned number);
    /// The number of a pass; none where there is no such pass.
    ::std::optional<unsigned> findPass(PassName name);
    /// Which pass a region is.
    unsigned numberOf(::mlir::Region &region) { return region.getRegionNumber(); }

    /// Are there regions after that of the forward pass?
    bool hasBackward() { return !getLater().empty(); }
    /// The backward pass, where it is one region: from `differentiate` to the cut.
    ::mlir::Region &getBackward() { return getLater().front(); }
    /// Is the order of the passes still open?
    bool isUnscheduled() { return hasBackward() && !getOrder(); }
    /// The operand that yields the sum with this number, in whichever region.
    ::mlir::OpOperand &getPart(unsigned sum);
    /// The number of the sum to which a region's yield adds this operand; none if the yield saves it or hands
    /// it out.
    ::std::optional<unsigned> getSumOf(::mlir::OpOperand &yielded);

    /// The pass's last slot, as an index of the order.
    unsigned getLastSlot(unsigned pass);
    /// The micro-batch of that slot.
    int64_t getLastMicroBatch(unsigned pass);
    /// The passes, in the order of their last slots.
    ::llvm::SmallVector<unsigned> getPassesByEnd();
    /// Replaces the loop with one that has its regions and sums, and these last values of each pass. The caller replaces the uses of the
    /// old last values.
    AccumulateOp withLast(::mlir::OpBuilder &builder, ::llvm::ArrayRef<::llvm::SmallVector<::mlir::Value>> last);

    /// The values that a pass saves for later ones.
    ::mlir::OperandRange getSaved(unsigned pass = 0);
    ::mlir::MutableOperandRange getSavedMutable(unsigned pass = 0);
    /// The number of values that the passes before this one save.
    unsigned countSavedBefore(unsigned pass);
    /// All saved values: those of the first pass, then those of each later one.
    ::llvm::SmallVector<::mlir::Value> getAllSaved();
    /// The argument of a later pass for the saved value with this number, counted over all passes.
    ::mlir::BlockArgument getSavedArgument(unsigned number, unsigned reader = 1);
    /// Returns a later pass's argument for a value of a pass's region: a micro-batch, or a value that is saved
    /// from now on.
    ::mlir::BlockArgument save(::mlir::Value value, unsigned reader = 1);
    /// Removes saved values that no later pass uses, or that it has anyway: micro-batches, values from outside,
    /// values saved twice. Returns whether there were any.
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
  let summary = "a parameter and its gradient, for the optimizer";
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
  let summary = "the number of this update, from 1, as a float scalar that the host sets; skipped steps do not count";
  let description = "Created by `optimize`; becomes a pointer into the step's controls.";
  let results = (outs AnyRankedTensor:$number);
  let assemblyFormat = "attr-dict `:` type($number)";
}

def Train_RandomKeyOp : Train_Op<"random_key", [Pure]> {
  let summary = "the key of the step's random numbers: a mix of the run's seed and the number of the update";
  let description = "Created by `key-dropout`; becomes a kernel call.";
  let results = (outs 0DTensorOf<[I64]>:$key);
  let assemblyFormat = "attr-dict `:` type($key)";
}

def Train_BarrierOp : Train_Op<"barrier", [Pure, ShardInterface, AllTypesMatch<["value", "result"]>]> {
  let summary = "the same value, for ops that recompute others";
  let description = [{
    It keeps recomputed ops different from the originals, so that nothing merges them. Created by `recompute`; costs
    nothing: a view in memory.
  }];
  let arguments = (ins AnyRankedTensor:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let extraClassDeclaration = [{ ::std::string getShardRule() { return "~* -> *"; } }];
}

#endif // PARTITA_TRAIN
