//===- Passes.td - what phases promise each other -----------------------------------------------------===//

#ifndef PARTITA_VERIFY_PASSES
#define PARTITA_VERIFY_PASSES

include "mlir/Pass/PassBase.td"

def VerifyPhasePass : Pass<"verify-phase", "::mlir::ModuleOp"> {
  let summary = "checks what the program promises after a phase";
  let description = [{
    Phase: import.

    It ends every other phase as well. A phase may rely on what the phases before it promise: which dialects are there, which ops are gone, that what is
    built from a layer's ops belongs to a layer. The contracts are the table in lib/Verify/VerifyPhase.cpp. partition-verify, offload-verify and
    check-streams check more of what their phases promise.

    ```mlir
    %f = par.f %w over "tp" : tensor<4x4xf32> -> tensor<4x4xf32, #par.place<[4, 4], replicated [tp]>>
    // error: 'par.f' op is left after phase 'differentiate'
    ```
  }];
  let options = [Option<"after", "after", "std::string", "", "the phase that has just ended">];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect"];
}

#endif // PARTITA_VERIFY_PASSES
