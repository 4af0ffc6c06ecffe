//===- Passes.td - when collectives start, and what runs meanwhile --------------------------------------===//

#ifndef PARTITA_OVERLAP_PASSES
#define PARTITA_OVERLAP_PASSES

include "mlir/Pass/PassBase.td"

def DeferUsesPass : Pass<"defer-uses", "::mlir::ModuleOp"> {
  let summary = "moves what needs an all-reduce's sum behind the next all-reduce that does not need it";
  let description = [{
    Phase: overlap.

    Runs before `bucket-all-reduces`, which joins two reductions unless the first one's result is used before the second one's operand
    is defined. The backward pass follows one path at a time: multi-head latent attention reduces the cotangents of its queries, of its
    keys and of the keys that all heads share one after another, each followed by the gradient of its projection, although none depends on
    another. Once the projections stand behind all three, one collective does. Only reductions that may share a bucket are
    considered, and moved ops keep their order.

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
  let statistics = [Statistic<"deferred", "deferred", "ops moved behind a sum that does not need them">];
}

def BucketAllReducesPass : Pass<"bucket-all-reduces", "::mlir::ModuleOp"> {
  let summary = "joins all-reduces over one axis into buckets, in the order in which they become ready";
  let description = [{
    Phase: overlap.

    The backward pass makes gradients in reverse order of use; each bucket is started when its last
    gradient is there. A bucket's size is an eighth of all that is reduced over the axis for that
    reason, so that most of a model's reductions have something to hide behind, however small it is;
    but at least 256 KiB, below which a collective's latency (10 to 50 us) dominates its transfer,
    and at most 25 MB, above which larger ones are no faster.

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

def BucketGathersPass : Pass<"bucket-gathers", "::mlir::ModuleOp"> {
  let summary = "joins gathers of flat pieces over one axis into buckets, in the order in which their pieces become ready";
  let description = [{
    Phase: overlap.

    As `bucket-all-reduces`, for updated parameters that `zero.gather` makes whole again. Runs behind `order-updates`, which
    says in which order parameters are updated.

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

def OrderUpdatesPass : Pass<"order-updates", "::mlir::ModuleOp"> {
  let summary = "updates parameters in the order in which their gradients are reduced";
  let description = [{
    Phase: overlap.

    Collectives complete in the order of their starts. With the updates in that order too, the first
    buckets are waited for first, and the last one, behind which no backward pass is left, has the
    updates of the others to hide behind. The gather of an updated value follows its update; what is gathered
    is written behind all updates, so that gathers can join and be waited for at the end.

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

def StartCollectivesPass : Pass<"start-collectives", "::mlir::ModuleOp"> {
  let summary = "splits all-reduces, gathers and reduce-scatters into a start, where the operands are ready, and a wait, before the first use";
  let description = [{
    Phase: overlap.

    A sum stands in its operands' memory, so its wait names those; a gather and a reduce-scatter fill memory of their
    own from the start on. A reduce-scatter is waited for before the next one begins, so that the wholes that they read
    do not pile up.

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
  let summary = "places polls between computations while collectives are under way";
  let description = [{
    Phase: overlap.

    On CPUs nobody works on a collective between its start and its wait but the rank itself, between
    two kernels. A poll stands after each stretch of ops whose work (FLOPs by the shard rules, or
    what the memory traffic is worth) is that of `every` average ops, and at least `flops`: the
    program's text grows by a line per `every` calls at the most, and a poll's time stays small
    beside what it interrupts. A poll may do its share of all that is under way.

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
    Option<"every", "every", "int64_t", "4", "a poll per this many ops of average work">,
    Option<"flops", "flops", "int64_t", "5000000", "but not before this much work is done: about 0.1 ms of a core">,
    Option<"leastBytes", "least-bytes", "int64_t", "65536", "smaller collectives are left to their waits">];
  let statistics = [Statistic<"polls", "polls", "polls placed">];
  let dependentDialects = ["::partita::par::ParDialect"];
}

def CheckStreamsPass : Pass<"check-streams", "::mlir::ModuleOp"> {
  let summary = "refuses a planned program in which two streams touch the same memory and nothing orders them";
  let description = [{
    Phase: sync.

    A collective that is started, and a copy between device and host, run on streams of their own. Each begins when all
    before its start is complete, and all behind its wait begins when it is: two events, which the runtime records. In between
    the computation and other streams must keep away from the bytes that it writes, and not write those it reads. The pass
    changes nothing.

    ```mlir
    %t = par.all_reduce_start %a over "dp" {rt.buffers = [#rt.at<arena 0>]}     // sums bytes 0 to 255 in place
    %b = tx.neg %x {rt.buffers = [#rt.at<arena 128>]}
    %r = par.wait %t, %a {rt.buffers = [#rt.at<arena 0>]}
    // error: writes byte 128 of the arena, which 'par.all_reduce_start' on the stream #par.stream<"dp"> writes as well; nothing orders the two
    ```
  }];
  // What kernels say of their workspaces hangs on these.
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect"];
}

#endif // PARTITA_OVERLAP_PASSES
