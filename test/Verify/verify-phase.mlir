// RUN: not partita-opt %s --verify-phase=after=memory 2>&1 | FileCheck %s
// RUN: partita-opt %s --pass-pipeline='builtin.module(plan-memory,verify-phase{after=sync})' -o %t.mlir
// CHECK: error: 'tx.exp' op has no memory (rt.buffers) after phase 'memory'; run plan-memory again after a pass that makes ops
func.func @memory(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
