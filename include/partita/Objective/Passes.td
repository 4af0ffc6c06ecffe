//===- Passes.td - from a model to a training step -------------------------------------------------===//

#ifndef PARTITA_OBJECTIVE_PASSES
#define PARTITA_OBJECTIVE_PASSES

include "mlir/Pass/PassBase.td"

def ObjectivePass : Pass<"objective", "::mlir::ModuleOp"> {
  let summary = "makes @train_step and @eval_step from @forward: roles of inputs, loss, trained parameters";
  let description = [{
    Phase: objective.

    `kind` is the loss, optionally with the output that it uses (`mse:last_hidden_state`). Cross-entropy is the mean over all labels of
    all micro-batches and ranks that are not `ignore-index`: the count is known before the first backward pass, and the sum of each
    micro-batch is divided by it.

    | kind | minimizes |
    |---|---|
    | `causal` | cross-entropy of the token after each one |
    | `masked` | cross-entropy of a label for each token |
    | `classification` | cross-entropy of a label for each sample |
    | `binary` | binary cross-entropy of each score with a label 0 or 1: PyTorch's `binary_cross_entropy_with_logits`, averaged over the labels that count |
    | `mse` | the mean squared difference from targets of the output's shape |
    | `output` | an output that already is a loss, averaged over the micro-batches |
    | `auto` | the model's own loss, if it computes one (`LossOutput.h` recognizes it); else `causal`, `masked`, `classification` or `binary`, by the shapes of inputs and output |
    | `none` | nothing: inference only |

    Every argument gets a `train.role` (lib/Objective/Inputs.cpp lists them), from `inputs`, from its type and uses, or from the
    conventions of exporters. The module's `train.objective` records the choice and its reason. Warnings:

    - `causal` for a model whose attention is not causal: it sees the tokens that it has to predict.
    - An output [batch, sequence] whose second dimension is that of the tokens (`TokenScores.h`) is taken for `binary`: the file does not
      distinguish a yes-or-no question per token from scores that select one token per sample.
    - Several such outputs (beginning and end of a span) are taken for `classification`.

    ```mlir
    func.func @forward(%ids: tensor<8x16xi64>) -> tensor<8x16x256xf32> attributes {train.entry_point = #train.entry_point<forward>} {
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
    Option<"kind", "kind", "std::string", "\"auto\"", "the loss, and the output it uses: KIND or KIND:OUTPUT">,
    Option<"accumulate", "accumulate", "int64_t", "1", "micro-batches per step">,
    Option<"ignoreIndex", "ignore-index", "int64_t", "-100", "the label that does not count">,
    ListOption<"inputs", "inputs", "std::string", "roles of inputs: NAME=ROLE">,
    ListOption<"freeze", "freeze", "std::string", "parameters that are not trained: glob patterns over their names">,
    ListOption<"trainable", "trainable", "std::string", "parameters that are trained even if import took them for buffers: glob patterns over their names">,
    ListOption<"tie", "tie", "std::string", "A=B: tensors of the model's file that are one parameter (applied by import)">,
  ];
  let statistics = [Statistic<"steps", "steps", "steps made from @forward">,
                    Statistic<"means", "means", "means over the batch that became sums">];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::tx::TxDialect"];
}

def PackDocuments : Pass<"pack-documents", "::mlir::ModuleOp"> {
  let summary = "keeps the documents of packed rows apart: attention within them, positions that begin again";
  let description = [{
    Phase: objective.

    A row of tokens packs several documents, each of which ends with the token `after`. The first position of each token's document is
    computed from the tokens; attention sees no key before it, and what depends on positions alone is looked up by positions within
    documents where it meets what depends on tokens. Biases of attention stay, if they depend on distances only. A mask of padding (role
    `ones`) becomes a constant of ones: such rows have no padding, whatever the data of a run says. The module's
    `train.document_end` tells the runtime how to pack (`runtime/common/data/packed_rows.h`) and that the token after the last one
    of a document is no label.

    Errors are located at what would mix documents: an op other than attention that computes along the tokens, attention that is not
    causal or whose mask comes from an input, a bias of absolute positions.

    ```mlir
    %p = tx.embedding %wpe, %numbers
    %q = tx.broadcast %p
    %x = tx.add %tokens, %q
    %o, %l = tx.attention %h, %h, %h scale 0.5 causal
    // becomes, with after=0
    %first = tx.document_starts %ids after 0
    %position = tx.sub %rows, %first
    %r = tx.embedding %wpe, %position
    %x = tx.add %tokens, %r
    %o, %l = tx.attention %h, %h, %h from %first scale 5.000000e-01 causal
    ...
    ```
  }];
  let options = [
    Option<"after", "after", "int64_t", "-1", "the token that ends a document; -1: rows are not packed">,
    ListOption<"inputs", "inputs", "std::string", "roles of inputs: NAME=ROLE">,
  ];
  let statistics = [Statistic<"numPacked", "packed", "attentions within documents">,
                    Statistic<"numRestarted", "restarted", "operands whose positions begin again">];
  let dependentDialects = ["::partita::train::TrainDialect", "::partita::tx::TxDialect"];
}

def KeyDropoutPass : Pass<"key-dropout", "::mlir::ModuleOp"> {
  let summary = "gives dropout its key in training steps, and removes it elsewhere";
  let description = [{
    Phase: objective.

    Runs after `objective`, which copies the model. Attention's dropout gets a key, too. The numbers of the micro-batches become another batch of the
    loop.

    ```mlir
    func.func @forward(%ids: tensor<8x16xi64>) -> tensor<8x16x256xf32> attributes {train.entry_point = #train.entry_point<forward>} {
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
