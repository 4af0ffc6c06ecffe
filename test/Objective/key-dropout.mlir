// RUN: partita-opt %s --objective=accumulate=2 --key-dropout | FileCheck %s
// RUN: partita-opt %s --objective=kind=none --key-dropout | FileCheck %s --check-prefix=NONE

// Inference drops nothing.
// NONE-NOT: dropout
// CHECK-LABEL: func.func @forward
// CHECK-NOT:   tx.dropout
// CHECK:       tx.attention %{{.*}} scale 5.000000e-01 causal :
// CHECK-LABEL: func.func @eval_step
// CHECK-NOT:   tx.dropout
// CHECK:       tx.attention %{{.*}} scale 5.000000e-01 causal :
// CHECK-LABEL: func.func @train_step
// CHECK:       %[[KEY:.*]] = train.random_key : tensor<i64>
// CHECK:       %[[NUMBERS:.*]] = tx.iota {{0.*}}, {{1.*}} : tensor<2xi64>
// CHECK:       train.accumulate ({{.*}}, %[[MICRO:.*]] = %[[NUMBERS]]) : (tensor<2x8x16xi64>, tensor<2x8x16xi64>, tensor<2xi64>)
// CHECK:         tx.dropout %{{.*}} ratio 1.000000e-01 id 3 key %[[KEY]] micro %[[MICRO]]
// CHECK:         tx.attention %{{.*}} scale 5.000000e-01 causal dropout 3.000000e-01 id 5 key %[[KEY]] micro %[[MICRO]] :
// CHECK:         tx.dropout %{{.*}} ratio 2.000000e-01 id 4 key %[[KEY]] micro %[[MICRO]]
train.parameter @wte : tensor<256x4xf32>
func.func @forward(%ids: tensor<8x16xi64>) -> tensor<8x16x256xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w = train.read @wte : tensor<256x4xf32>
  %e = tx.embedding %w, %ids : (tensor<256x4xf32>, tensor<8x16xi64>) -> tensor<8x16x4xf32>
  %x = tx.dropout %e ratio 0.1 id 3 : (tensor<8x16x4xf32>) -> tensor<8x16x4xf32>
  %h = tx.reshape %x : tensor<8x16x4xf32> -> tensor<8x16x1x4xf32>
  %o, %lse = tx.attention %h, %h, %h scale 0.5 causal dropout 0.3 id 5 : (tensor<8x16x1x4xf32>, tensor<8x16x1x4xf32>, tensor<8x16x1x4xf32>) -> (tensor<8x16x1x4xf32>, tensor<8x1x16xf32>)
  %a = tx.reshape %o : tensor<8x16x1x4xf32> -> tensor<8x16x4xf32>
  %u = tx.dropout %w ratio 0.2 id 4 : (tensor<256x4xf32>) -> tensor<256x4xf32>
  %y = tx.matmul_nt %a, %u : (tensor<8x16x4xf32>, tensor<256x4xf32>) -> tensor<8x16x256xf32>
  return %y : tensor<8x16x256xf32>
}
