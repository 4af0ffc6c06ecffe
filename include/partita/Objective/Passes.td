//===- Passes.td - from a model to what is trained -------------------------------------------------===//

#ifndef PARTITA_OBJECTIVE_PASSES
#define PARTITA_OBJECTIVE_PASSES

include "mlir/Pass/PassBase.td"

def ObjectivePass : Pass<"objective", "::mlir::ModuleOp"> {
  let summary = "makes @train_step and @eval_step of @forward: what its inputs mean, its loss, what is trained";
  let description = [{
    Phase: objective.

    `kind` says what is minimized; behind a colon it may name the output that it looks at
    (`mse:last_hidden_state`). Cross-entropy is the mean over all labels that are not `ignore-index`, of all
    micro-batches and ranks: the count is known before the first backward pass, and each micro-batch's sum is
    divided by it.

    | kind | minimizes |
    |---|---|
    | `causal` | cross-entropy of the token after each one |
    | `masked` | cross-entropy of a label for each token |
    | `classification` | cross-entropy of a label for each sample |
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
    func.func @forward(%ids: tensor<8x16xi64>) -> tensor<8x16x256xf32> {
    // becomes, with accumulate=2
    func.func @train_step(%ids: tensor<2x8x16xi64> ..., %labels: tensor<2x8x16xi64> ...) -> (tensor<f32> ..., tensor<f32> ...) attributes {train.entry_point = #train.entry_point<train_step>} {
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
  let statistics = [Statistic<"steps", "steps", "steps made of @forward">,
                    Statistic<"means", "means", "means over the batch that became sums">];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::tx::TxDialect"];
}

def KeyDropoutPass : Pass<"key-dropout", "::mlir::ModuleOp"> {
  let summary = "dropout gets its key where something is minimized, and goes away elsewhere";
  let description = [{
    Phase: objective.

    After `objective`, which copies the model. The number of the micro-batch becomes one more batch of the loop.

    ```mlir
    func.func @forward(%ids: tensor<8x16xi64>) -> tensor<8x16x256xf32> {
      %x = tx.dropout %e ratio 0.1 id 3
    // becomes, after `objective` with accumulate=2, in @train_step
    %key = train.random_key : tensor<i64>
    %numbers = tx.iota 0.0, 1.0 : tensor<2xi64>
    %loss = train.accumulate (%i = %ids, %l = %labels, %micro = %numbers) : ... {
      %x = tx.dropout %e ratio 0.1 id 3 key %key micro %micro
      ...
    ```
  }];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::tx::TxDialect"];
  let statistics = [Statistic<"keyed", "keyed", "dropouts of training steps">,
                    Statistic<"removed", "removed", "dropouts elsewhere">];
}

#endif // PARTITA_OBJECTIVE_PASSES
