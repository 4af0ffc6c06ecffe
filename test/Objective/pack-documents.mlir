// RUN: partita-opt %s --pass-pipeline='builtin.module(pack-documents{after=0},canonicalize,cse)' --split-input-file | FileCheck %s
// RUN: partita-opt %s --pass-pipeline='builtin.module(pack-documents)' --split-input-file | FileCheck %s --check-prefix=NONE --implicit-check-not=document

train.parameter @wte : tensor<32x8xf32>
train.parameter @wpe : tensor<16x8xf32>

// A learned position embedding, which is looked up anew; the module says how data are packed.
// NONE-LABEL: @forward(
// CHECK: module attributes {train.document_end = 0 : i64}
// CHECK-LABEL: @forward(
// CHECK-SAME: %[[IDS:.*]]: tensor<2x4xi32>
// CHECK: %[[STARTS:.*]] = tx.document_starts %[[IDS]] after 0 : (tensor<2x4xi32>) -> tensor<2x4xi32>
// CHECK: %[[PLACE:.*]] = tx.sub %{{.*}}, %[[STARTS]]
// CHECK: %[[ROWS:.*]] = tx.embedding %{{.*}}, %[[PLACE]] : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
// CHECK: tx.add %{{.*}}, %[[ROWS]]
// CHECK: tx.attention %{{.*}} from %[[STARTS]] scale 5.000000e-01 causal
func.func @forward(%ids: tensor<2x4xi32> {train.name = "input_ids"}) -> tensor<2x4x2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %wte = train.read @wte : tensor<32x8xf32>
  %wpe = train.read @wpe : tensor<16x8xf32>
  %iota = tx.iota 0.0, 1.0 : tensor<4xi32>
  %tokens = tx.embedding %wte, %ids : (tensor<32x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  %numbers = tx.reshape %iota : tensor<4xi32> -> tensor<1x4xi32>
  %p = tx.embedding %wpe, %numbers : (tensor<16x8xf32>, tensor<1x4xi32>) -> tensor<1x4x8xf32>
  %q = tx.broadcast %p : tensor<1x4x8xf32> -> tensor<2x4x8xf32>
  %x = tx.add %tokens, %q : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %h = tx.reshape %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %o, %l = tx.attention %h, %h, %h scale 0.5 causal : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  return %o : tensor<2x4x2x4xf32>
}

// -----

// Angles, of heads before tokens, and a bias of a whole [samples * tokens, width], which does not vary along the tokens. The bias
// of attention is one of distances, and stays.
// CHECK-LABEL: @forward(
// CHECK-SAME: %[[IDS:.*]]: tensor<2x3xi32>
// CHECK: %[[STARTS:.*]] = tx.document_starts %[[IDS]] after 0
// CHECK: %[[PLACE:.*]] = tx.sub %{{.*}}, %[[STARTS]]
// CHECK: tx.add %{{.*}}, %{{.*}} : (tensor<6x8xf32>, tensor<6x8xf32>)
// CHECK: %[[ROWS:.*]] = tx.embedding %{{.*}}, %[[PLACE]] : (tensor<3x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
// CHECK: tx.broadcast %{{.*}} : tensor<2x1x3x4xf32> -> tensor<2x2x3x4xf32>
// CHECK: tx.attention %{{.*}} bias %{{.*}} from %[[STARTS]] scale 5.000000e-01 causal
func.func @forward(%ids: tensor<2x3xi32> {train.name = "input_ids"}) -> tensor<2x3x2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %wte = train.read @wte : tensor<32x8xf32>
  %b = train.read @b : tensor<8xf32>
  %angles = tx.constant dense<[[[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 1.0, 2.0, 3.0]]]]> : tensor<1x1x3x4xf32> : tensor<1x1x3x4xf32>
  %slopes = tx.constant dense<[[[[0.0, 0.5, 1.0]], [[0.0, 0.25, 0.5]]]]> : tensor<1x2x1x3xf32> : tensor<1x2x1x3xf32>
  %tokens = tx.embedding %wte, %ids : (tensor<32x8xf32>, tensor<2x3xi32>) -> tensor<2x3x8xf32>
  %flat = tx.reshape %tokens : tensor<2x3x8xf32> -> tensor<6x8xf32>
  %bias = tx.broadcast %b : tensor<8xf32> -> tensor<6x8xf32>
  %sum = tx.add %flat, %bias : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %heads = tx.reshape %sum : tensor<6x8xf32> -> tensor<2x3x2x4xf32>
  %turned = tx.transpose %heads [0, 2, 1, 3] : tensor<2x3x2x4xf32> -> tensor<2x2x3x4xf32>
  %all = tx.broadcast %angles : tensor<1x1x3x4xf32> -> tensor<2x2x3x4xf32>
  %product = tx.mul %turned, %all : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  %h = tx.transpose %product [0, 2, 1, 3] : tensor<2x2x3x4xf32> -> tensor<2x3x2x4xf32>
  %o, %l = tx.attention %h, %h, %h bias %slopes scale 0.5 causal : (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>, tensor<1x2x1x3xf32>) -> (tensor<2x3x2x4xf32>, tensor<2x2x3xf32>)
  return %o : tensor<2x3x2x4xf32>
}
train.parameter @wte : tensor<32x8xf32>
train.parameter @b : tensor<8xf32>
