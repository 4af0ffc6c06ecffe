//===- Passes.td - from a model to what is trained -------------------------------------------------===//

#ifndef PARTITA_OBJECTIVE_PASSES
#define PARTITA_OBJECTIVE_PASSES

include "mlir/Pass/PassBase.td"

def SinglePrecisionPass : Pass<"single-precision", "::mlir::ModuleOp"> {
  let summary = "a model stored in 16 or 64 bits computes in 32";
  let description = [{
    Parameters, constants and values of f16, bf16 and f64 become f32, finite numbers the nearest finite ones;
    the file's type stays in a parameter's `initial`.

    ```mlir
    %0 = train.read @w : tensor<4x8xf16>
    %1 = tx.matmul %x, %0 : (tensor<2x4xf16>, tensor<4x8xf16>) -> tensor<2x8xf16>
    // becomes
    %0 = train.read @w : tensor<4x8xf32>
    %1 = tx.matmul %x, %0 : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    ```
  }];
  let statistics = [Statistic<"values", "values", "tensors whose type changed">];
}

def AssignFillPass : Pass<"assign-fill", "::mlir::ModuleOp"> {
  let summary = "says how each parameter is filled when no file gives its value";
  let description = [{
    By use, not by name, as most Transformers are initialized: the scale of a normalization, also one per
    head, is one; biases and other vectors are zero; matrices, convolutions' kernels, tables of tokens and
    positions and single rows that are no bias are normal with deviation `std`. With `residual-scale`, as GPT-2
    and Megatron start, that of matrices whose products are added to a residual stream is divided by the
    square root of the number of products that are (GPT-2: two a layer); where they are, the structure says,
    but whether a model wants it does not (LLaMA has the same structure and is started without). T5's
    deviations by width are that model's recipe: what needs them takes its values from a file.

    ```mlir
    train.parameter @w : tensor<4x8xf32>
    // becomes
    train.parameter @w : tensor<4x8xf32> fill(<0.0, normal 0.02>)
    ```
  }];
  let options = [
    Option<"deviation", "std", "double", "0.02", "deviation of tables and matrices">,
    Option<"residualScale", "residual-scale", "bool", "false",
           "smaller deviations of what is added to a residual stream">,
  ];
  let dependentDialects = ["::partita::train::TrainDialect"];
}

def MakeInitPass : Pass<"make-init", "::mlir::ModuleOp"> {
  let summary = "makes @init, which gives every parameter its initial value";
  let description = [{
    A function like the others: partitioning places what it writes, `optimize` adds its states, and a run
    calls it once, unless it resumes. Parameters that it writes already are left alone; a module without
    parameters gets none.

    ```mlir
    train.parameter @w : tensor<4x8xf32> fill(<0.0, normal 0.02>)
    // becomes
    train.parameter @w : tensor<4x8xf32> fill(<0.0, normal 0.02>)
    func.func @init() {
      %0 = train.initial_value @w : tensor<4x8xf32>
      train.write @w, %0 : tensor<4x8xf32>
      return
    }
    ```
  }];
  let dependentDialects = ["::partita::train::TrainDialect", "::mlir::func::FuncDialect"];
}

def ObjectivePass : Pass<"objective", "::mlir::ModuleOp"> {
  let summary = "makes @train_step and @eval_step of @forward: what its inputs mean, its loss, what is trained";
  let description = [{
    `kind` says what is minimized; behind a colon it may name the output that it looks at
    (`mse:last_hidden_state`). Cross-entropy is the mean over all labels that are not `ignore-index`, of all
    micro-batches and ranks: the count is known before the first backward pass, and each micro-batch's sum is
    divided by it.

    | kind | minimizes |
    |---|---|
    | `causal` | cross-entropy of the token after each one |
    | `masked` | cross-entropy of a label for each token |
    | `classification` | cross-entropy of a label for each sample, or for each of what the output scores |
    | `binary` | binary cross-entropy of each score with a label 0 or 1: PyTorch's `binary_cross_entropy_with_logits`, averaged over the labels that count |
    | `mse` | the mean squared difference from targets of the output's shape |
    | `output` | an output that is a loss already, averaged over the micro-batches |
    | `auto` | the loss, where the model computes one (`LossOutput.h` says how one sees that); else `causal`, `masked`, `classification` or `binary`, by the shapes of inputs and output |
    | `none` | nothing: inference alone |

    Every argument gets a `train.role` (lib/Objective/Inputs.cpp lists them), by `inputs`, by what it has, or by
    the conventions of exporters. What was chosen, and why, stands in the module's `train.objective`. `causal` is warned
    of where the model has attention and none of it is causal: what it is to predict is then an input that it sees. An
    output [batch, sequence] whose second dimension is that of the tokens (`TokenScores.h`) is taken for `binary`, with a warning: nothing in
    the file tells a yes-or-no question about each token from scores that select one token per sample. Several such outputs (the beginning and the
    end of a span) are taken for `classification`, with a warning too.

    ```mlir
    func.func @forward(%ids: tensor<8x16xi64>) -> tensor<8x16x256xf32>
    // becomes, with accumulate=2
    func.func @train_step(%ids: tensor<2x8x16xi64>, %labels: tensor<2x8x16xi64>) -> (tensor<f32>, tensor<f32>) {
      %count = train.token_count %labels ignore -100 : (tensor<2x8x16xi64>) -> tensor<f32>
      %share = tx.reciprocal %count
      %loss = train.accumulate (%i = %ids, %l = %labels) : ... {
        ...                                  // the model
        %tokens, %lse = tx.cross_entropy %logits, %l ignore -100
        %sum = tx.reduce_sum %tokens [0, 1]
        %part = tx.mul %sum, %share
        train.yield %part
      }
      train.minimize %loss
      return %loss, %count
    }
    ```
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"auto\"", "what is minimized, and of which output: KIND or KIND:OUTPUT">,
    Option<"accumulate", "accumulate", "int64_t", "1", "micro-batches per step">,
    Option<"ignoreIndex", "ignore-index", "int64_t", "-100", "the label that does not count">,
    ListOption<"inputs", "inputs", "std::string", "what inputs mean: NAME=ROLE">,
    ListOption<"freeze", "freeze", "std::string", "parameters that are not trained: glob patterns over their names">,
    ListOption<"trainable", "trainable", "std::string", "parameters that are trained, whatever import took them for: glob patterns">,
    ListOption<"tie", "tie", "std::string", "A=B: tensors of the model's file that are one parameter, which import has seen to">,
  ];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::tx::TxDialect"];
}

def KeyDropoutPass : Pass<"key-dropout", "::mlir::ModuleOp"> {
  let summary = "dropout gets its key where something is minimized, and goes away elsewhere";
  let description = [{
    After `objective`, which copies the model. The number of the micro-batch becomes one more batch of the loop.

    ```mlir
    %loss = train.accumulate (%i = %ids) : (tensor<2x8x16xi64>) -> tensor<f32> {
      %y = tx.dropout %x ratio 0.1 id 3
    // becomes
    %key = train.random_key : tensor<i64>
    %numbers = tx.iota 0.0, 1.0 : tensor<2xi64>
    %loss = train.accumulate (%i = %ids, %micro = %numbers) : (tensor<2x8x16xi64>, tensor<2xi64>) -> tensor<f32> {
      %y = tx.dropout %x ratio 0.1 id 3 key %key micro %micro
    ```
  }];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::tx::TxDialect"];
  let statistics = [Statistic<"keyed", "keyed", "dropouts of training steps">,
                    Statistic<"removed", "removed", "dropouts elsewhere">];
}

def MarkLayersPass : Pass<"mark-layers", "::mlir::ModuleOp"> {
  let summary = "says in every op's location which layer of the model it belongs to";
  let description = [{
    A layer is what repeats in the graph (partita/Analysis/Layers.h). The mark is the metadata of the location, so
    all phases carry it on to what they make of the op, and the ledger of memory can tell activations by layer.

    ```mlir
    %0 = tx.matmul %s, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.0/MatMul")
    // becomes
    %0 = tx.matmul %s, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc(fused<#train.layer<0 of 2>>["/h.0/MatMul"])
    ```
  }];
  let dependentDialects = ["::partita::train::TrainDialect"];
  let statistics = [Statistic<"marked", "marked", "ops that belong to a layer">];
}

def NoteFlopsPass : Pass<"note-flops", "::mlir::ModuleOp"> {
  let summary = "says on the module how much its forward program computes, layer by layer";
  let description = [{
    While the program is the forward one alone, and its layers are marked: of @train_step, all micro-batches of a step, or,
    where nothing is trained, of @forward (partita/Analysis/Flops.h). The speed of a run in model FLOP/s and the table of
    `explain --flops` come from it, so nothing that later phases recompute or fuse changes them. `parameters` are the elements
    of those that are read there first.

    ```mlir
    module {
      train.parameter @w : tensor<4x6xf32>
      func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x6xf32> {
        %0 = train.read @w : tensor<4x6xf32>
        %1 = tx.matmul %x, %0 : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
    // becomes
    module attributes {train.work = [{backward = 0.0, elementwise = 0.0, parameters = 24, place = -1, products = 96.0} ]} {
    ```
  }];
}

#endif // PARTITA_OBJECTIVE_PASSES
