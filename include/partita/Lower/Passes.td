//===- Passes.td - lower phase, in running order ----------------------------------------------===//

#ifndef PARTITA_LOWER_PASSES
#define PARTITA_LOWER_PASSES

include "mlir/Pass/PassBase.td"

def LowerToRt : Pass<"lower-to-rt", "::mlir::ModuleOp"> {
  let summary = "turns tensors into buffers, and ops into calls of the runtime";
  let description = [{
    Phase: lower.

    Every tensor op becomes the call that its model (KernelInterface) names, on pointers to the places that
    `plan-memory` chose. The pass collects the contents of the program's tables (inputs, outputs, census,
    hyperparameters) as the module's `rt.program`.

    Where the host makes the calls, `rt.begin_changes` stands before the first call of a block that writes to persistent memory, except in
    @init: until then a checkpoint may be copied beside the step.

    ```mlir
    %0 = tx.matmul %x, %w
    %1 = tx.broadcast %b : tensor<6xf32> -> tensor<2x4x6xf32>
    %2 = tx.add %0, %1
    // becomes, after `plan-memory`
    rt.kernel @map_add loops 2 outputs ["out"] [f32] inputs ["a", "b"] [f32, f32] steps [1, 1, 1] locals [] computes ["$a + $b"]
    ...
    %y = rt.arena 0 [2, 4, 6] : <f32>
    %x = rt.input 0 [2, 4, 8] : <f32>
    %w = rt.input 1 [8, 6] : <f32>
    rt.gemm %y, %x, %w {..., k = 8, ... m = 8, n = 6, ...}
    %sum = rt.arena 0 [2, 4, 6] : <f32>
    %b = rt.input 2 [6] : <f32>
    rt.launch @map_add(%sum, %y, %b) [8, 6] [6, 6, 0]
    ```
  }];
  let options = [
    Option<"learningRate", "learning-rate", "double", "0.001", "the program's rate unless a run sets another">,
    Option<"lrSchedule", "lr-schedule", "std::string", "\"constant\"", "the program's learning-rate schedule; a run may override it">,
  ];
  let statistics = [Statistic<"functions", "functions", "functions that became calls of the runtime">,
                    Statistic<"kernels", "kernels", "kernels made">];
  let dependentDialects = ["::partita::tx::TxDialect", "::partita::train::TrainDialect", "::partita::par::ParDialect", "::partita::rt::RtDialect"];
}

#endif // PARTITA_LOWER_PASSES
