// RUN: partita-opt %s --differentiate --gather-again --cse -o %t.mlir && FileCheck %s < %t.mlir
// RUN: partita-interp %t.mlir --check-updates --entry train_step --init perturbed | FileCheck %s --check-prefix=GRADIENTS
// RUN: partita-interp %t.mlir --check-updates --entry norm --init perturbed | FileCheck %s --check-prefix=GRADIENTS
// GRADIENTS: gradient of p
// GRADIENTS: gradient of w

!shard = tensor<2x3x4xf64, #par.place<[2, 6 @tp, 4]>>
!shards = tensor<1x2x3x4xf64, #par.place<[1, 2, 6 @tp, 4]>>
!wide = tensor<2x6x3xf64, #par.place<[2, 6, 6 @tp]>>
module attributes {par.mesh = #par.mesh<tp = 2>} {
train.parameter @w : tensor<4x6xf64>
train.parameter @p : tensor<4xf64>

// The gradient of the matmul's weight needs the full input again, once for both.
// CHECK-LABEL: func.func @train_step
// CHECK: %[[Y:.*]] = tx.mul
// CHECK: %[[G:.*]] = par.all_gather %[[Y]] over "tp" along 1 : {{.*}} replicated [tp]
// CHECK-NEXT: tx.matmul %[[G]]
// CHECK: train.yield {{.*}} saves {{.*}}%[[Y]] :
// CHECK-NEXT: } backward ({{.*}}, %[[Y1:.*]]) {
// CHECK: %[[A:.*]] = par.all_gather %[[Y1]] over "tp" along 1 again {train.backward} : {{.*}} replicated [tp]
// CHECK-NOT: par.all_gather
// CHECK: tx.matmul_tn %[[A]]
// CHECK: par.reduce_scatter %{{.*}} over "tp" along 1 because "gradient"
// CHECK-NOT: par.all_gather
// CHECK: return
func.func @train_step(%xs: !shards) -> tensor<f64> attributes {train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<4x3xf64, #par.place<[4, 6 @tp]>>
  %p = train.read @p : tensor<4xf64>
  %f = par.f %p over "tp" : tensor<4xf64> -> tensor<4xf64, #par.place<[4], replicated [tp]>>
  %loss = train.accumulate (%x = %xs) : (!shards) -> tensor<f64> {
    %b = tx.broadcast %f : tensor<4xf64, #par.place<[4], replicated [tp]>> -> !shard
    %y = tx.mul %x, %b : (!shard, !shard) -> !shard
    %g = par.all_gather %y over "tp" along 1 : !shard -> tensor<2x6x4xf64, #par.place<[2, 6, 4], replicated [tp]>>
    %u = tx.matmul %g, %w : (tensor<2x6x4xf64, #par.place<[2, 6, 4], replicated [tp]>>, tensor<4x3xf64, #par.place<[4, 6 @tp]>>) -> !wide
    %v = tx.exp %u : (!wide) -> !wide
    %s = tx.reduce_sum %v [0, 1, 2] : !wide -> tensor<f64, #par.place<[], partial [tp]>>
    %l = par.g %s over "tp" : tensor<f64, #par.place<[], partial [tp]>> -> tensor<f64>
    train.yield %l : tensor<f64>
  }
  train.minimize %loss : tensor<f64>
  return %loss : tensor<f64>
}

// What the backward pass alone gathers, or the forward pass alone, is gathered once.
// CHECK-LABEL: func.func @once
// CHECK-COUNT-1: par.all_gather
// CHECK-NOT: par.all_gather
// CHECK: return
func.func @once(%xs: tensor<1x2x4xf64, #par.place<[1, 4 @tp, 4]>>) {
  %p = train.read @p : tensor<4xf64>
  %f = par.f %p over "tp" : tensor<4xf64> -> tensor<4xf64, #par.place<[4], replicated [tp]>>
  %loss = train.accumulate (%x = %xs) : (tensor<1x2x4xf64, #par.place<[1, 4 @tp, 4]>>) -> tensor<f64> {
    %b = tx.broadcast %f : tensor<4xf64, #par.place<[4], replicated [tp]>> -> tensor<2x4xf64, #par.place<[4 @tp, 4]>>
    %y = tx.mul %x, %b : (tensor<2x4xf64, #par.place<[4 @tp, 4]>>, tensor<2x4xf64, #par.place<[4 @tp, 4]>>) -> tensor<2x4xf64, #par.place<[4 @tp, 4]>>
    %g = par.all_gather %y over "tp" along 0 : tensor<2x4xf64, #par.place<[4 @tp, 4]>> -> tensor<4x4xf64>
    %s = tx.reduce_sum %g [0, 1] : tensor<4x4xf64> -> tensor<f64>
    train.yield %s : tensor<f64>
  }
  train.minimize %loss : tensor<f64>
  return
}

// A norm of what is gathered is computed again too: neither the gathered rows nor what it made of them are kept.
// CHECK-LABEL: func.func @norm
// CHECK: %[[Y:.*]] = tx.mul
// CHECK: %[[G:.*]] = par.all_gather %[[Y]] over "tp" along 1 : {{.*}} replicated [tp]
// CHECK-NEXT: %[[N:.*]], %{{.*}} = tx.rms_norm %[[G]]
// CHECK-NEXT: tx.matmul %[[N]]
// CHECK: train.yield {{.*}} saves {{.*}}%[[Y]] :
// CHECK-NEXT: } backward ({{.*}}, %[[Y1:.*]]) {
// CHECK: %[[A:.*]] = par.all_gather %[[Y1]] over "tp" along 1 again
// CHECK-NEXT: %[[M:.*]], %[[R:.*]] = tx.rms_norm %[[A]]
// CHECK-NOT: %[[N]]
// CHECK: tx.matmul_tn %[[M]]
// CHECK: tx.rms_norm_grad %[[A]], %{{.*}}, %[[R]]
// CHECK: return
func.func @norm(%xs: !shards) -> tensor<f64> {
  %w = train.read @w : tensor<4x3xf64, #par.place<[4, 6 @tp]>>
  %p = train.read @p : tensor<4xf64>
  %f = par.f %p over "tp" : tensor<4xf64> -> tensor<4xf64, #par.place<[4], replicated [tp]>>
  %loss = train.accumulate (%x = %xs) : (!shards) -> tensor<f64> {
    %b = tx.broadcast %f : tensor<4xf64, #par.place<[4], replicated [tp]>> -> !shard
    %y = tx.mul %x, %b : (!shard, !shard) -> !shard
    %g = par.all_gather %y over "tp" along 1 : !shard -> tensor<2x6x4xf64, #par.place<[2, 6, 4], replicated [tp]>>
    %n, %r = tx.rms_norm %g, %f eps 1.0e-5 : (tensor<2x6x4xf64, #par.place<[2, 6, 4], replicated [tp]>>, tensor<4xf64, #par.place<[4], replicated [tp]>>) -> (tensor<2x6x4xf64, #par.place<[2, 6, 4], replicated [tp]>>, tensor<2x6xf64, #par.place<[2, 6], replicated [tp]>>)
    %u = tx.matmul %n, %w : (tensor<2x6x4xf64, #par.place<[2, 6, 4], replicated [tp]>>, tensor<4x3xf64, #par.place<[4, 6 @tp]>>) -> !wide
    %v = tx.exp %u : (!wide) -> !wide
    %s = tx.reduce_sum %v [0, 1, 2] : !wide -> tensor<f64, #par.place<[], partial [tp]>>
    %l = par.g %s over "tp" : tensor<f64, #par.place<[], partial [tp]>> -> tensor<f64>
    train.yield %l : tensor<f64>
  }
  train.minimize %loss : tensor<f64>
  return %loss : tensor<f64>
}
}
