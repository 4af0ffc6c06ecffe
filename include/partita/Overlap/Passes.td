//===- Passes.td - when collectives start, and what overlaps with them --------------------------------------===//

#ifndef PARTITA_OVERLAP_PASSES
#define PARTITA_OVERLAP_PASSES

include "mlir/Pass/PassBase.td"

def DecomposeMatmulsPass : Pass<"decompose-matmuls", "::mlir::ModuleOp"> {
  let summary = "computes matmuls in chunks of rows, and each chunk's collective beside the matmul of another";
  let description = [{
    Phase: overlap.

    Tensor parallelism sums a matmul's result over ranks, and the next op needs the sum: the collective has nothing to run beside. The
    pass splits the matmul, along its outermost dimension of rows, into `chunks` matmuls, each with an all-reduce or reduce-scatter of its
    own. `start-collectives` then starts the sum of a chunk before the next chunk's matmul, and only the last sum is exposed. An op that
    adds to the matmul's result before the sum (a residual sum that stays partial, as in Llama) is part of the chunk.

    Sequence parallelism gathers a matmul's operand: all chunks of it start at once, each matmul waits for its own, and only the first
    gather is exposed. The bytes stay the same, in `chunks` times as many messages. The chunks cost no copy: each lies in its rows of the
    full value.

    A collective is left alone if as much work as the matmul's stands beside it (in the backward pass, the gradient of the weight), if
    the rows have no such chunks, or if it moves shards along the dimension of the rows: then there must be as many samples as chunks. An
    op whose rows are numbered (the gradient of an embedding) has no chunks. Each element is the same sum of products, and the same sum over
    ranks where that is in rank order.

    As Wang et al. (Overlap Communication with Dependent Computation via Decomposition, ASPLOS 2023) and PyTorch's async tensor
    parallelism do.

    ```mlir
    %p = tx.matmul %x, %w
    %y = par.all_reduce %p over "tp"
    %z = tx.exp %y
    // becomes
    %x0 = par.chunk %x 0 of 2 along 0
    %p0 = tx.matmul %x0, %w
    %y0 = par.all_reduce %p0 over "tp"
    %x1 = par.chunk %x 1 of 2 along 0
    %p1 = tx.matmul %x1, %w
    %y1 = par.all_reduce %p1 over "tp"
    %y = par.join %y0, %y1 along 0
    %z = tx.exp %y
    ```
  }];
  let options = [Option<"chunks", "chunks", "int64_t", "1", "how many chunks; 1: the program stays as it is">];
  let statistics = [Statistic<"decomposed", "decomposed", "matmuls whose sums are computed in chunks">];
  let dependentDialects = ["::partita::par::ParDialect"];
}

def ReduceInLastSlotPass : Pass<"reduce-in-last-slot", "::mlir::ModuleOp"> {
  let summary = "moves the reductions of gradients into the slots of a pipeline stage's schedule that complete them";
  let description = [{
    Phase: overlap.

    A gradient's sum over micro-batches is complete when the pass that yields it runs for the last time. Other slots of this stage may
    follow: backward passes of other chunks, weights passes. Even if none does, the rest of that pass follows. A reduction of such sums
    moves into the pass, after the op that completes them, along with the casts in between. These ops run only in the pass's last slot
    (`train.last`), and their results are last values of the loop, after its sums. The addition to the running sum moves into the pass.

    Some reductions stay after the loop: those that need sums of several passes (of a parameter that several chunks share) or the result of
    another reduction, those of a sum that something else reads, too, and that of the loss. All ranks of a stage run one program, so the
    ranks of a group still issue their collectives in one order.

    ```mlir
    %sum, %dw = train.accumulate (%i = %x, %d = %c) : ... {
      %y = tx.exp %i
      train.yield %y ... saves %y
    } backward (%j, %e, %y_saved) {
      %g = tx.mul %e, %y_saved
      train.yield %g
    } {order = ...}
    %r = par.all_reduce %dw over "dp" because "gradient" {train.backward}
    // becomes
    %sums:2, %r = train.accumulate (%i = %x, %d = %c) : ... {
      %y = tx.exp %i
      train.yield %y ... saves %y
    } backward (%j, %e, %y_saved) onto (%so_far = 1) {
      %g = tx.mul %e, %y_saved
      %s = tx.add %so_far, %g
      %reduced = par.all_reduce %s over "dp" because "gradient" {train.backward, train.last}
      train.yield %s ... last %reduced
    } {order = ...}
    ```
  }];
  let statistics = [Statistic<"moved", "moved", "reductions that begin in a slot">];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect"];
}

def DeferUsesPass : Pass<"defer-uses", "::mlir::ModuleOp"> {
  let summary = "moves users of an all-reduce past the next all-reduce that does not depend on it";
  let description = [{
    Phase: overlap.

    Runs before `bucket-all-reduces`, which joins two reductions unless the first one's result is used before the second one's operand is
    defined. The backward pass follows one path at a time: multi-head latent attention reduces the cotangents of its queries, of its keys
    and of the keys that all heads share one after another, each followed by the gradient of its projection, although none depends on
    another. With the projections after all three, one collective suffices. The pass only considers reductions that may share a bucket,
    and keeps the order of the ops that it moves.

    ```mlir
    %a1 = par.all_reduce %a over "tp" because "gradient"
    %q = tx.matmul %a1, %w
    %b = tx.neg %a
    %b1 = par.all_reduce %b over "tp" because "gradient"
    // becomes
    %a1 = par.all_reduce %a over "tp" because "gradient"
    %b = tx.neg %a
    %b1 = par.all_reduce %b over "tp" because "gradient"
    %q = tx.matmul %a1, %w
    ```
  }];
  let statistics = [Statistic<"deferred", "deferred", "ops moved past an all-reduce">];
}

def BucketAllReducesPass : Pass<"bucket-all-reduces", "::mlir::ModuleOp"> {
  let summary = "joins all-reduces or reduce-scatters over one axis into buckets, in the order in which they become ready";
  let description = [{
    Phase: overlap.

    The backward pass computes gradients in reverse order of use; a bucket starts when its last gradient is complete. By default it has an
    eighth of the bytes that are reduced over its axis for the same purpose, so that most reductions overlap with computation even in a
    small model. It has at least 256 KiB, below which the latency of a collective (10 to 50 us) dominates, and at most 25 MB, above
    which buckets are no faster. A bucket's members have equal attributes, except for their reasons and causes.

    ```mlir
    %a1 = par.all_reduce %a over "dp" because "gradient"
    %b1 = par.all_reduce %b over "dp" because "gradient"
    // becomes
    %r:2 = par.all_reduce %a, %b over "dp" because "gradient"
    ```
  }];
  let options = [Option<"bytes", "bytes", "int64_t", "0",
                        "a bucket is closed when it has this many bytes; 0: an eighth of all, 256 KiB to 25 MB">];
  let statistics = [Statistic<"buckets", "buckets", "buckets made">];
}

def OrderUpdatesPass : Pass<"order-updates", "::mlir::ModuleOp"> {
  let summary = "updates parameters in the order in which their gradients are reduced";
  let description = [{
    Phase: overlap.

    Collectives complete in the order of their starts. With the updates in the same order, the first buckets are waited for first, and
    the last one, with no backward pass left to overlap with, overlaps with the updates of the others. The gather of an updated value
    follows its update. The writes of gathered values move after all updates, so that gathers, too, can join and overlap. What overwrites in full a state of which the
    update takes a shard comes after the update.

    ```mlir
    %r = par.all_reduce %a over "dp"
    %s = par.all_reduce %b over "dp"
    %x = train.sgd %v, %s, %rate {decay = 0.0}
    train.write @v, %x
    %y = train.sgd %w, %r, %rate {decay = 0.0}
    train.write @w, %y
    // becomes
    %r = par.all_reduce %a over "dp"
    %s = par.all_reduce %b over "dp"
    %y = train.sgd %w, %r, %rate {decay = 0.0}
    train.write @w, %y
    %x = train.sgd %v, %s, %rate {decay = 0.0}
    train.write @v, %x
    ```
  }];
  let statistics = [Statistic<"ordered", "ordered", "updates put in order">];
}

def BucketGathersPass : Pass<"bucket-gathers", "::mlir::ModuleOp"> {
  let summary = "joins gathers of flat shards over one axis into buckets, in the order in which their shards become ready";
  let description = [{
    Phase: overlap.

    Like `bucket-all-reduces`, for the `zero.gather` of updated parameters, and of gradients summed as shards. Runs after `order-updates`, which determines the order of
    updates.

    ```mlir
    %v1 = zero.gather %v over "dp" because "updated parameter"
    %w1 = zero.gather %w over "dp" because "updated parameter"
    // becomes
    %r:2 = zero.gather %v, %w over "dp" because "updated parameter"
    ```
  }];
  let options = [Option<"bytes", "bytes", "int64_t", "0",
                        "a bucket is closed when it has this many bytes; 0: an eighth of all, 256 KiB to 25 MB">];
  let statistics = [Statistic<"buckets", "buckets", "buckets made">];
}

def StartCollectivesPass : Pass<"start-collectives", "::mlir::ModuleOp"> {
  let summary = "splits all-reduces, gathers and reduce-scatters into a start, where the operands are ready, and a wait, before the first use";
  let description = [{
    Phase: overlap.

    An all-reduce is in-place, so its wait takes its operands; a gather and a reduce-scatter fill buffers of their own from the start
    on. The wait of a reduce-scatter comes before the start of the next one, so that their full operands do not accumulate. A
    collective of a pass's last slot (`train.last`) begins there, and its wait follows the loop.

    ```mlir
    %r = par.all_reduce %x over "dp" because "gradient"
    %e = tx.exp %y
    %s = tx.add %r, %e
    // becomes
    %t = par.all_reduce_start %x over "dp" because "gradient"
    %e = tx.exp %y
    %r = par.wait %t, %x
    %s = tx.add %r, %e
    ```
  }];
  let statistics = [Statistic<"started", "started", "collectives that run beside computation">];
  let dependentDialects = ["::partita::zero::ZeroDialect"];
}

def PollCollectivesPass : Pass<"poll-collectives", "::mlir::ModuleOp"> {
  let summary = "places polls between computations while collectives are pending";
  let description = [{
    Phase: overlap.

    On CPUs, only the rank itself can work on a collective between its start and its wait, between two kernels. The pass inserts a poll
    after each run of ops whose work (FLOPs by the shard rules, or the equivalent of the memory traffic) is that of `every` average ops,
    and at least `flops`. Where no shift is in flight, the program thus grows by at most one line per `every` calls, and a poll takes
    little time compared to the kernels around it. Beside a shift of ring attention, a poll follows each run of ops of at least `flops`; during a step of attention the
    kernel itself polls. Each poll does its share of the pending work.

    ```mlir
    %t = par.all_reduce_start %a over "dp"
    %b = tx.matmul %x, %w
    %c = tx.exp %b
    %r = par.wait %t, %a
    // becomes
    %t = par.all_reduce_start %a over "dp"
    %b = tx.matmul %x, %w
    par.poll over "dp" bytes 262144
    %c = tx.exp %b
    %r = par.wait %t, %a
    ```
  }];
  let options = [
    Option<"every", "every", "int64_t", "4", "one poll per this many ops of average work">,
    Option<"flops", "flops", "int64_t", "5000000", "but after at least this much work: about 0.1 ms of a core">,
    Option<"leastBytes", "least-bytes", "int64_t", "65536", "smaller collectives get no polls">];
  let statistics = [Statistic<"polls", "polls", "polls placed">];
  let dependentDialects = ["::partita::par::ParDialect"];
}

def CheckStreamsPass : Pass<"check-streams", "::mlir::ModuleOp"> {
  let summary = "rejects a planned program in which two streams access the same memory and nothing orders them";
  let description = [{
    Phase: sync.

    A started collective and a copy between device and host run on streams of their own. Each begins when everything before its start is
    complete, and everything after its wait begins when it is complete: two events, which the runtime records. In between, the
    computation and other streams must not access the bytes that it writes, and must not write those that it reads. The pass changes
    nothing.

    The bytes that a pass of a pipeline stage sends (`pipe.send`) are read until that pass runs again, for whichever micro-batch: the rest
    of the pass and all slots of the schedule in between must not write them. A receive completes where it stands. Values in flight are
    compared in the blocks of the micro-batches that run at that time.

    ```mlir
    %t = par.all_reduce_start %a over "dp" {rt.buffers = [#rt.at<arena 0>]}     // sums bytes 0 to 255 in place
    %b = tx.neg %x {rt.buffers = [#rt.at<arena 128>]}
    %r = par.wait %t, %a {rt.buffers = [#rt.at<arena 0>]}
    // error: writes byte 128 of the arena, which 'par.all_reduce_start' on the stream #par.stream<"dp"> writes as well; nothing orders the two
    ```
  }];
  // The workspaces of kernels come from the interfaces of these dialects.
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect"];
}

#endif // PARTITA_OVERLAP_PASSES
