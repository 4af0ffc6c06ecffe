// A phase's output says which phase it was and under which plan, and is the next one's input.
// RUN: partita compile %s --compile-to import --mesh dp=2 --print-pipeline -o %t.mlir 2>&1 | FileCheck %s --check-prefix=PIPELINE
// PIPELINE: --pass-pipeline='builtin.module(single-precision,canonicalize,cse,verify-phase{after=import},note-phase{phase=import})'
// RUN: FileCheck %s < %t.mlir
// RUN: partita-opt %s --pass-pipeline='builtin.module(canonicalize,cse)' | FileCheck %s --check-prefix=SAME

// CHECK: train.phase = "import", train.plan = #train.plan<{{{.*}}mesh = "dp=2"
// CHECK: func @forward
// SAME: func @forward
func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  // CHECK-NEXT: tx.neg
  // CHECK-NEXT: return
  // SAME-NEXT: tx.neg
  // SAME-NEXT: return
  %unused = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %y = tx.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
