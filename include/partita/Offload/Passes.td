//===- Passes.td - offloading to host memory, in running order -------------------------------------------------===//
//
// ZeRO-Offload (Ren et al., arXiv 2101.06840) and, for host memory, ZeRO-Infinity (Rajbhandari et al., arXiv 2104.07857).
// A pass with the option `what` (the plan's --offload) does nothing unless it is named there; the other passes schedule the
// copies.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_OFFLOAD_PASSES
#define PARTITA_OFFLOAD_PASSES

include "mlir/Pass/PassBase.td"

def OffloadStatesPass : Pass<"offload-states", "::mlir::ModuleOp"> {
  let summary = "offloads the optimizer's states, and runs the updates on the host";
  let description = [{
    Phase: offload.

    Only the update uses a state, so the update moves to the states: gradients (and parameters that are on the device) are copied to
    the host and new parameters back, in tiles through pinned memory that overlap with the computation on the previous tile. `what`
    must name `optimizer`.

    ```mlir
    train.state @w.m : tensor<4x6xf32> = 0.0 of @w "m"
    %new, %newM, %newV = train.adamw %w, %g, %m, %v, %rate, %step {...}
    // becomes
    train.state @w.m : tensor<4x6xf32> = 0.0 of @w "m" {offload.host}
    %new, %newM, %newV = train.adamw %w, %g, %m, %v, %rate, %step {..., offload.on_host}
    ```
  }];
  let options = [ListOption<"what", "what", "std::string", "what the host keeps: optimizer, parameters, activations">];
  let statistics = [Statistic<"states", "states", "states offloaded">];
  let dependentDialects = ["::partita::offload::OffloadDialect"];
}

def OffloadParametersPass : Pass<"offload-parameters", "::mlir::ModuleOp"> {
  let summary = "offloads parameters, and fetches them where they are used";
  let description = [{
    Phase: offload.

    Each parameter with more than `keep` elements per rank is copied to the device once per block and purpose (forward pass, backward
    pass, an update on the device), so it needs device memory only while it is used. An update runs on the host if its states are there or
    it has none; a parameter updated on the device is copied back. With ZeRO stage 3, the shards are offloaded, and fetched before they
    are gathered. `what` must name `parameters`.

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
  let statistics = [Statistic<"parameters", "parameters", "parameters offloaded">];
  let dependentDialects = ["::partita::offload::OffloadDialect"];
}

def OffloadActivationsPass : Pass<"offload-activations", "::mlir::ModuleOp"> {
  let summary = "offloads saved activations to host memory until the backward pass needs them";
  let description = [{
    Phase: offload.

    A value of a layer that `train.accumulate` saves is copied to the host as soon as it is computed. The copy is saved instead, and is
    copied back before its first use in the backward pass. Values of less than `least-bytes` stay on the device, as do those of the last
    layer and after it, whose backward pass follows at once. `what` must name `activations`.

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
                 Option<"leastBytes", "least-bytes", "int64_t", "65536", "smaller values stay on the device">];
  let statistics = [Statistic<"moved", "moved", "values offloaded">];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect", "::partita::offload::OffloadDialect"];
}

def OffloadVerifyPass : Pass<"offload-verify", "::mlir::ModuleOp"> {
  let summary = "verifies that only copies, host updates and host writes use host values";
  let description = [{
    Phase: offload.

    The memory space of a value follows from the op that defines it: a read of an offloaded parameter or state, a copy, an update on the
    host. This pass ends phase `offload`: from there on, every value has a known space, in which the planner gives it memory.

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

    Copies are grouped in the order of their first uses: one layer and one direction form a group, up to `group-bytes`; the copy for an
    update is a group of its own. A group is fetched before the first use of the previous group, so that it overlaps with the work on
    that one. It is fetched even earlier as long as all groups that wait for their first use have at most `ahead-bytes`.

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
    Option<"groupBytes", "group-bytes", "int64_t", "25000000", "bytes of a group, at most; a larger value has its own">,
    Option<"aheadBytes", "ahead-bytes", "int64_t", "0",
           "bytes fetched and not yet used, at most; 0: one group while the previous one is used">];
  let statistics = [Statistic<"ahead", "ahead", "copies that begin before the use of the previous group">];
  let dependentDialects = ["::partita::offload::OffloadDialect"];
}

def StartTransfersPass : Pass<"start-transfers", "::mlir::ModuleOp"> {
  let summary = "splits copies between host and device into start and wait";
  let description = [{
    Phase: overlap.

    The wait of a copy to the device comes before its first use. The wait of a copy to the host comes before the start of the second one
    after it, at the latest: one value is copied while the next one is computed, and the copied value's memory is free (double
    buffering). With nothing between start and wait, the copy stays one op.

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
