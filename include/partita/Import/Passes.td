//===- Passes.td - after the import of a file -------------------------------------------------------===//

#ifndef PARTITA_IMPORT_PASSES
#define PARTITA_IMPORT_PASSES

include "mlir/Pass/PassBase.td"

def SinglePrecisionPass : Pass<"single-precision", "::mlir::ModuleOp"> {
  let summary = "makes a model stored in 16 or 64 bits compute in 32";
  let description = [{
    Phase: import.

    Parameters, constants and values of f16, bf16 and f64 become f32, and finite numbers the nearest finite ones; the file's type
    stays in a parameter's `initial`. If no parameter has 16 bits, casts of floats or integers to 16 bits and back to more, with
    nothing computed in between (`x.half().float()`), still round.

    ```mlir
    %0 = train.read @w : tensor<4x8xf16>
    %1 = tx.matmul %x, %0 : (tensor<2x4xf16>, tensor<4x8xf16>) -> tensor<2x8xf16>
    // becomes
    %0 = train.read @w : tensor<4x8xf32>
    %1 = tx.matmul %x, %0 : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    ```
  }];
  let statistics = [Statistic<"values", "values", "tensors whose type changed">,
                    Statistic<"roundings", "roundings", "casts to 16 bits and back that are kept">];
}

#endif // PARTITA_IMPORT_PASSES
