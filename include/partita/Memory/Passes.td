//===- Passes.td - memory phase, in running order ---------------------------------------------===//

#ifndef PARTITA_MEMORY_PASSES
#define PARTITA_MEMORY_PASSES

include "mlir/Pass/PassBase.td"

def PadClassifierPass : Pass<"pad-classifier", "::mlir::ModuleOp"> {
  let summary = "gives a classifier's 16-bit weight as many rows in memory as make its matmuls fast";
  let description = [{
    Phase: memory.

    Tensor cores read rows of 16 bytes, so with a vocabulary that is not a multiple of 8, every matmul over it was split in two, of 50,256 and of one token. A
    parameter that a `tx.classifier_loss` or `tx.classifier_loss_grad` reads as it is gets rows of zeros behind it, up to a multiple of 64,
    if the target gains by that (Target.h). Its type stays what it is: only `plan-memory` and the kernels know these rows.

    Left alone: a weight that is gathered, fetched from the host or computed before it is read, since it has another place each time; one
    that several pipeline stages share, whose places are agreed on before (`pipe-agree`); one whose rows are split (which the classifier's
    kernels do not take).

    ```mlir
    train.parameter @w : tensor<50257x768xbf16>
    // becomes
    train.parameter @w : tensor<50257x768xbf16> {rt.padded_rows = 50304 : i64}
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::rt::RtDialect"];
  let statistics = [Statistic<"padded", "padded", "parameters that got rows of zeros">];
}

def SizeClassifierPass : Pass<"size-classifier", "::mlir::ModuleOp"> {
  let summary = "chooses how many tokens' logits a classifier's loss computes at once, by the plan of memory";
  let description = [{
    Phase: memory.

    `tx.classifier_loss_grad` computes the logits of some tokens at a time, and each such block reads and writes the sums of the weight's
    gradient. Where the target gains by larger blocks (Target.h), their size becomes its usual one times the largest power of two, or all
    tokens, with which a rank's device memory is within `rt.memory_limit` or, without a limit, at most `share` percent above what the usual
    size needs.
    Where not even the usual size is within that limit, on any target, it is halved until it is, down to eight tokens; if it never
    is, the size that needs least is chosen, so that a refusal says how much that is.

    Nothing is estimated: each size is tried on a copy of the program, whose memory `plan-memory` plans, after that `lower`, if there is a
    limit and the target's kernels take scratch memory. A size that is certainly too large, by its logits alone, is not tried. With `rows`
    the size is given. A classifier that keeps the target's size stays without the attribute; one that has it keeps it.

    ```mlir
    %loss, %dx, %dw = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 : ...
    // becomes, with share=25
    %loss, %dx, %dw = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore -100 {rt.rows = 8192 : i64} : ...
    ```
  }];
  let options = [Option<"rows", "rows", "int64_t", "0", "tokens at once, for every classifier; 0: the pass chooses">,
                 Option<"share", "share", "int64_t", "5", "percent of the memory that larger blocks may take on top, without a limit">,
                 Option<"lower", "lower", "std::string", "", "passes after which the kernels' scratch memory is known">];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect", "::partita::rt::RtDialect"];
  let statistics = [Statistic<"sized", "sized", "classifiers that got another size than the target's">,
                    Statistic<"planned", "planned", "plans of memory that were made to choose it">];
}

def PlanMemory : Pass<"plan-memory", "::mlir::ModuleOp"> {
  let summary = "gives every tensor its memory: persistent, or an offset in one arena by lifetime";
  let description = [{
    Phase: memory.

    - Parameters and states get fixed offsets in persistent memory. Reads use that memory directly, and an update that is written back
      is in-place if the old value has no later use.
    - Reshapes, slices, transposes and broadcasts are views if all their users support the strides; the operands of a concatenation
      are computed into it if their kernels can.
    - A result overwrites an operand at its last use if the kernel allows it. A result that is written to a parameter or state that the
      function does not read is computed there, so @init needs no arena.
    - Everything else gets an offset in the arena by its lifetime, largest first, into the tightest gap. An operand of an asynchronous
      collective lives until its wait.
    - On a target that queues work, the operands of updates between two waits live until the last of these
      updates, if that does not make the arena larger: `gather-updates` can then make them one launch.
    - The host reads the results of @forward: its return names a place in the arena for each result, and results that are an input,
      a parameter or a view of one are copied there.

    ```mlir
    %0 = tx.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = tx.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %0 = tx.relu %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = tx.exp %0 {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect", "::partita::rt::RtDialect"];
  let statistics = [
    Statistic<"views", "views", "reshapes, slices, transposes, broadcasts and concatenations without a copy">,
    Statistic<"copies", "copies", "reshapes, slices, transposes and broadcasts that copy">,
    Statistic<"inPlace", "in-place", "results that overwrite an operand">,
  ];
}

def CheckMemoryPass : Pass<"check-memory", "::mlir::ModuleOp"> {
  let summary = "rejects a planned program in which a value is not where it is read";
  let description = [{
    Phase: lower.

    Checks the program as it is, whichever pass or editor placed its values. The pass changes nothing, and has no code in common
    with `plan-memory`.

    - Each parameter and state has the type with which it is read and written, that of a rank's shard, and
      aligned bytes of persistent (or host) memory of its own.
    - Each place lies within its memory, fits its tensor, and is in a space in which its kernel works. The
      sizes that the module records are those that are used.
    - The check runs the ops in order without values, and tracks which value is where: each op finds its
      operands where they were put, and overwrites none that its kernel still reads. A loop over micro-batches
      runs twice. In a loop with an order, each pass runs with the values that earlier ones have saved, then
      all slots with the blocks of their micro-batches.
    - At the end of a function, each parameter and state has the value that the function has written to it, or
      else its old one.

    ```mlir
    %0 = tx.relu %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = tx.exp %0 {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = tx.add %0, %1 {rt.buffers = [#rt.at<arena 64>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // error: needs the value that 'tx.relu' puts at byte 0 of the arena, where 'tx.exp' has written since
    ```
  }];
  // The facts about kernels come from the interfaces of these dialects.
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect", "::partita::rt::RtDialect"];
}

#endif // PARTITA_MEMORY_PASSES
