//===- Passes.td - what the host keeps, in running order -------------------------------------------------===//
//
// ZeRO-Offload (Ren et al., arXiv 2101.06840) and ZeRO-Infinity (Rajbhandari et al., arXiv 2104.07857), as far as the
// host's memory goes. A pass with the option `what` does nothing unless its word is in it, the plan's --offload; the
// others look after what those have made.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_OFFLOAD_PASSES
#define PARTITA_OFFLOAD_PASSES

include "mlir/Pass/PassBase.td"

def OffloadStatesPass : Pass<"offload-states", "::mlir::ModuleOp"> {
  let summary = "keeps the optimizer's states in the host's memory, and lets the host make the updates";
  let description = [{
    Phase: offload.

    Nothing but the update ever looks at a state, so the update goes where the states are: gradients (and parameters
    that live on the device) go there and new parameters come back, in tiles that pass through pinned memory while
    the tile before them is computed on. `what` must name `optimizer`.

    ```mlir
    train.state @w.m : tensor<4x6xf32> = 0.0 of @w "m"
    %new, %newM, %newV = train.adamw %w, %g, %m, %v, %rate, %step {...}
    // becomes
    train.state @w.m : tensor<4x6xf32> = 0.0 of @w "m" {offload.host}
    %new, %newM, %newV = train.adamw %w, %g, %m, %v, %rate, %step {..., offload.on_host}
    ```
  }];
  let options = [ListOption<"what", "what", "std::string", "what the host keeps: optimizer, parameters, activations">];
  let statistics = [Statistic<"states", "states", "states that live on the host">];
  let dependentDialects = ["::partita::offload::OffloadDialect"];
}

def OffloadParametersPass : Pass<"offload-parameters", "::mlir::ModuleOp"> {
  let summary = "keeps parameters in the host's memory, and fetches them where they are used";
  let description = [{
    Phase: offload.

    Each parameter of which a rank has more than `keep` elements is copied to the device once per block and purpose (forward pass,
    backward pass, an update that is made there), so that it needs device memory only while it is used. An update
    whose states are on the host, or that has none, is made there; what is updated on the device goes back to the host.
    With ZeRO stage 3 it is the pieces that live on the host, and what is fetched is what is gathered.
    `what` must name `parameters`.

    ```mlir
    %w = train.read @w : tensor<4x6xf32>
    %y = tx.matmul %x, %w
    // becomes, with @w {offload.host}
    %h = train.read @w : tensor<4x6xf32>
    %w = offload.to_device %h : tensor<4x6xf32>
    %y = tx.matmul %x, %w
    ```
  }];
  let options = [ListOption<"what", "what", "std::string", "what the host keeps: optimizer, parameters, activations">,
                 Option<"keep", "keep", "int64_t", "0", "parameters of at most this many elements of a rank stay on the device">];
  let statistics = [Statistic<"parameters", "parameters", "parameters that live on the host">];
  let dependentDialects = ["::partita::offload::OffloadDialect"];
}

def OffloadActivationsPass : Pass<"offload-activations", "::mlir::ModuleOp"> {
  let summary = "offloads saved activations to host memory until the backward pass needs them";
  let description = [{
    Phase: offload.

    A value that `train.accumulate` saves of a layer goes to the host when it is there: the copy is saved in its place, and comes
    back before its first use in the backward pass. Values of less than `least-bytes` stay, and so do those of the last
    layer and behind it, whose backward pass comes at once. `what` must name `activations`.

    ```mlir
    %a = tx.exp %x
    %b = tx.exp %a
    train.yield %b ... saves %b, %a
    } backward (%x1, %b1, %a1) {
    %d = tx.mul %b1, %a1
    // becomes
    %a = tx.exp %x
    %h = offload.to_host %a : tensor<4x6xf32>
    %b = tx.exp %a
    train.yield %b ... saves %b, %h
    } backward (%x1, %b1, %h1) {
    %c = offload.to_device %h1 for "backward"
    %d = tx.mul %b1, %c
    ```
  }];
  let options = [ListOption<"what", "what", "std::string", "what the host keeps: optimizer, parameters, activations">,
                 Option<"leastBytes", "least-bytes", "int64_t", "65536", "what is smaller stays on the device">];
  let statistics = [Statistic<"moved", "moved", "values that go to the host and back">];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect", "::partita::offload::OffloadDialect"];
}

def OffloadVerifyPass : Pass<"offload-verify", "::mlir::ModuleOp"> {
  let summary = "verifies that only copies, host updates and host writes use host values";
  let description = [{
    Phase: offload.

    Where a value stands follows from where it comes from: a read of a parameter or state that lives on the host, a copy,
    an update that the host makes. This pass ends phase `offload`: behind it the planner gives every value memory in
    its space.

    ```mlir
    %h = train.read @w : tensor<4xf32>              // @w {offload.host}
    %y = tx.mul %x, %h
    // error: 'tx.mul' op takes as operand 1 a value that is on the host; it needs an offload.to_device
    ```
  }];
  let dependentDialects = ["::partita::offload::OffloadDialect"];
}

def OffloadFetchAheadPass : Pass<"offload-fetch-ahead", "::mlir::ModuleOp"> {
  let summary = "places copies to the device ahead of their use, within a bound";
  let description = [{
    Phase: overlap.

    In the order of their first uses; those of one layer, in one direction, belong together, as far as `group-bytes`
    go; those of an update stand alone. A group is fetched before the first use of the group before it, so that it has that one's work to hide behind;
    and earlier as long as all that has been fetched and waits for its first use is at most `ahead-bytes`.

    ```mlir
    %a = offload.to_device %ha
    %0 = tx.mul %x, %a
    %b = offload.to_device %hb
    %1 = tx.mul %0, %b
    // becomes
    %a = offload.to_device %ha
    %b = offload.to_device %hb
    %0 = tx.mul %x, %a
    %1 = tx.mul %0, %b
    ```
  }];
  let options = [
    Option<"groupBytes", "group-bytes", "int64_t", "25000000", "a group has at most this many bytes, or one value">,
    Option<"aheadBytes", "ahead-bytes", "int64_t", "0",
           "fetched and not yet used, at most; 0: one group while the one before it is used">];
  let statistics = [Statistic<"ahead", "ahead", "copies that begin before the use of the group in front of theirs">];
  let dependentDialects = ["::partita::offload::OffloadDialect"];
}

def StartTransfersPass : Pass<"start-transfers", "::mlir::ModuleOp"> {
  let summary = "splits copies between host and device into start and wait";
  let description = [{
    Phase: overlap.

    A copy to the device is waited for before its first use. A copy to the host is waited for where the second one
    behind it begins, at the latest: while one moves the next is computed, and what has been moved is free (double
    buffering). Where nothing lies between start and wait the copy stays one op.

    ```mlir
    %w = offload.to_device %h : tensor<4xf32>
    %x = tx.relu %0
    %y = tx.mul %x, %w
    // becomes
    %token, %buffer = offload.to_device_start %h : tensor<4xf32>
    %x = tx.relu %0
    %w = offload.wait %token, %buffer : tensor<4xf32>
    %y = tx.mul %x, %w
    ```
  }];
  let statistics = [Statistic<"started", "started", "copies that run beside computation">];
  let dependentDialects = ["::partita::offload::OffloadDialect"];
}

#endif // PARTITA_OFFLOAD_PASSES
