// RUN: partita-opt %s --split-input-file --partition-split-forms --mlir-print-debuginfo | FileCheck %s

module attributes {par.mesh = #par.mesh<tp = 2>} {
// The max and the sum over parts are ordinary reductions of full values, which partitioning completes.
// CHECK-LABEL: @loss
// CHECK: %[[L:.*]] = tx.log_sum_exp %arg0 : (tensor<8x16xf32>) -> tensor<8x2xf32>
// CHECK: tx.reduce_max %[[L]] [1]
// CHECK: tx.exp
// CHECK: tx.reduce_sum {{.*}} [1]
// CHECK: tx.log
// CHECK: %[[LSE:.*]] = tx.add
// CHECK: tx.token_loss %arg0, %arg1, %[[LSE]] ignore -100
func.func @loss(%logits: tensor<8x16xf32> {par.split = #par.place<[8, 16 @tp]>}, %labels: tensor<8xi64>) -> tensor<8xf32> {
  %loss, %lse = tx.cross_entropy %logits, %labels ignore -100 : (tensor<8x16xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
  return %loss : tensor<8xf32>
}

// A row's sum is one of parts; the rest is done element by element.
// CHECK-LABEL: @norms
// CHECK: %[[SUM:.*]] = tx.reduce_sum %{{.*}} [1]{{.*}} : {{.*}} loc(#[[SQUARES:.*]])
// CHECK: tx.rsqrt
// CHECK: tx.reduce_sum {{.*}} [1]{{.*}} : {{.*}} loc(#[[MEAN:.*]])
// CHECK: tx.reduce_sum {{.*}} [1]
// CHECK-NOT: _norm
func.func @norms(%x: tensor<8x16xf32> {par.split = #par.place<[8, 16 @tp]>}, %w: tensor<16xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
  %y, %rstd = tx.rms_norm %x, %w eps 1.0e-6 : (tensor<8x16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>) loc("queries")
  %z, %mean, %rstd2 = tx.layer_norm %y, %w, %b eps 1.0e-6 : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>) loc("layer")
  return %z : tensor<8x16xf32>
}

// A full vocabulary needs none.
// CHECK-LABEL: @full
// CHECK: tx.cross_entropy
func.func @full(%logits: tensor<8x16xf32>, %labels: tensor<8xi64>) -> tensor<8xf32> {
  %loss, %lse = tx.cross_entropy %logits, %labels ignore -100 : (tensor<8x16xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
  return %loss : tensor<8xf32>
}
}
// CHECK-DAG: #[[SQUARES]] = loc("queries, sum of squares"
// CHECK-DAG: #[[MEAN]] = loc("layer, sum"

// -----

// All operands of a norm have its letter, split over the same axis: 24 columns over 3 ranks are 3 parts, neither 9 nor 27.
module attributes {par.mesh = #par.mesh<tp = 3>} {
// CHECK-LABEL: @three_ranks
// CHECK-NOT: _norm
// CHECK: return
func.func @three_ranks(%x: tensor<8x24xf32> {par.split = #par.place<[8, 24 @tp]>}, %w: tensor<24xf32>) -> tensor<8x24xf32> {
  %y, %rstd = tx.rms_norm %x, %w eps 1.0e-6 : (tensor<8x24xf32>, tensor<24xf32>) -> (tensor<8x24xf32>, tensor<8xf32>)
  return %y : tensor<8x24xf32>
}
}

// -----

module attributes {par.mesh = #par.mesh<tp = 4>} {
// CHECK-LABEL: @four_ranks
// CHECK-NOT: _norm
// CHECK: return
func.func @four_ranks(%x: tensor<8x24xf32> {par.split = #par.place<[8, 24 @tp]>}, %w: tensor<24xf32>, %b: tensor<24xf32>) -> tensor<8x24xf32> {
  %y, %mean, %rstd = tx.layer_norm %x, %w, %b eps 1.0e-6 : (tensor<8x24xf32>, tensor<24xf32>, tensor<24xf32>) -> (tensor<8x24xf32>, tensor<8xf32>, tensor<8xf32>)
  return %y : tensor<8x24xf32>
}
}

// -----

// Two axes that split one letter multiply.
module attributes {par.mesh = #par.mesh<dp = 2, tp = 3>} {
// CHECK-LABEL: @two_axes
// CHECK: tx.log_sum_exp %arg0 : (tensor<8x24xf32>) -> tensor<8x6xf32>
func.func @two_axes(%logits: tensor<8x24xf32> {par.split = #par.place<[8, 24 @dp @tp]>}, %labels: tensor<8xi64>) -> tensor<8xf32> {
  %loss, %lse = tx.cross_entropy %logits, %labels ignore -100 : (tensor<8x24xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
  return %loss : tensor<8xf32>
}
}
