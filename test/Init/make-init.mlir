// RUN: partita-opt %s --make-init | FileCheck %s
// RUN: partita-opt %s --make-init --make-init | FileCheck %s
// RUN: partita-opt %s --make-init -o %t.mlir
// RUN: partita-interp %t.mlir --entry init --seed 1 | FileCheck %s --check-prefix=VALUES

// CHECK: train.parameter @w : tensor<4x8xf32> fill(<0.000000e+00, normal 2.000000e-02>)
// CHECK: func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
// CHECK-NEXT: %[[W:.*]] = train.initial_value @w{{.*}} : tensor<4x8xf32>
// CHECK-NEXT: train.write @w, %[[W]]{{.*}} : tensor<4x8xf32>
// CHECK-NEXT: %[[ONE:.*]] = train.initial_value @one{{.*}} : tensor<2xf32>
// CHECK-NEXT: train.write @one, %[[ONE]]{{.*}} : tensor<2xf32>
// CHECK-NEXT: return
// CHECK: func.func @forward
// CHECK-NOT: train.write
train.parameter @w : tensor<4x8xf32> fill(<0.0, normal 0.02>)

func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x8xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @w : tensor<4x8xf32>
  %y = tx.matmul %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// VALUES: value one: 2 = [1, 1]
train.parameter @one : tensor<2xf32> fill(<1.0>) frozen
