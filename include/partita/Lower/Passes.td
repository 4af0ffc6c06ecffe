//===- Passes.td - lower phase, in running order ----------------------------------------------===//

#ifndef PARTITA_LOWER_PASSES
#define PARTITA_LOWER_PASSES

include "mlir/Pass/PassBase.td"

def LowerToRt : Pass<"lower-to-rt", "::mlir::ModuleOp"> {
  let summary = "tensors to buffers, ops to calls of the runtime";
  let description = [{
    Every tensor op becomes the call that its model (KernelInterface) says, on pointers to the places
    that `plan-memory` gave. Collects what the program's tables need (inputs, outputs, census,
    hyperparameters) as the module's `rt.program`.

    ```mlir
    %0 = tx.matmul %x, %w {rt.buffers = [#rt.at<arena 64>]} : ...
    %1 = tx.broadcast %b {rt.buffers = ...} : tensor<6xf32> -> tensor<2x4x6xf32>
    %2 = tx.add %0, %1 {rt.buffers = [#rt.at<arena 64>]} : ...
    // becomes
    %y = rt.arena 64 [2, 4, 6] : !rt.buffer<f32>
    rt.gemm %y, %x, %w {m = 8, n = 6, k = 8, ...} : ...
    rt.launch @map_add(%sum, %y, %b) [8, 6] [6, 6, 0] : ...
    // where @map_add is made once
    rt.kernel @map_add loops 2 outputs ["out"] [f32] inputs ["a", "b"] [f32, f32] steps [1, 1, 1] locals [] computes ["$a + $b"]
    ```
  }];
  let options = [
    Option<"learningRate", "learning-rate", "double", "0.001", "the program's rate unless a run sets another">,
    Option<"schedule", "schedule", "std::string", "\"constant\"", "the program's schedule of rates unless a run sets another">,
  ];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect", "::partita::rt::RtDialect"];
}

#endif // PARTITA_LOWER_PASSES
