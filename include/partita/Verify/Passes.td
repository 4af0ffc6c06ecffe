//===- Passes.td - contracts between phases -----------------------------------------------------===//

#ifndef PARTITA_VERIFY_PASSES
#define PARTITA_VERIFY_PASSES

include "mlir/Pass/PassBase.td"

def VerifyPhasePass : Pass<"verify-phase", "::mlir::ModuleOp"> {
  let summary = "checks the contract of a phase";
  let description = [{
    Phase: import.

    Every phase ends with it. It verifies all ops, because the driver does not after each pass (that takes two thirds of a compilation;
    `partita-opt` does). A phase may rely on the contracts of the phases before it: which ops may be present, which are gone, and that
    the facts by which passes decide are kept. Ops built from a layer's ops have a layer (`train.layer`), ops of the backward pass its mark
    (`train.backward`), collectives a cause (`par.causes`). The contracts are the table in lib/Verify/VerifyPhase.cpp. The pass also checks
    that shards are those of the mesh, that values of a program of all pipeline stages are where they are needed, that stages receive
    what others send, and that layers are on the stages that `pipe.cuts` says and slots in the order of the schedule that `train.schedule`
    names. partition-verify, offload-verify, check-streams and check-memory check more for their phases. `partita compile` and
    `--partita-PHASE` begin with the contract of the phase in `train.phase`, because the module may have been edited since.

    ```mlir
    %f = par.f %w over "tp" : tensor<4x4xf32> -> tensor<4x4xf32, #par.place<[4, 4], replicated [tp]>>
    // error: 'par.f' op is left after phase 'differentiate'
    ```
  }];
  let options = [Option<"after", "after", "std::string", "", "the phase that has just ended">];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect"];
}

#endif // PARTITA_VERIFY_PASSES
