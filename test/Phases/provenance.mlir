// Layer, direction and cause of an op are attributes between passes: text keeps them with debug locations or without,
// what a pass builds has those of what it is built from, and simplifications that compare ops do not see them.
// RUN: partita-opt %s --cse --canonicalize | FileCheck %s
// RUN: partita-opt %s --strip-debuginfo --fuse-bias | FileCheck %s --check-prefix=FUSED
// RUN: partita-opt %s --strip-debuginfo --recompute=policy=block | FileCheck %s --check-prefix=STRIPPED
// RUN: partita-opt %s --strip-debuginfo | partita-opt --recompute=policy=block | FileCheck %s --check-prefix=STRIPPED

// Two layers that compute the same compute it once, as part of the first.
// CHECK-LABEL: func.func @same
// CHECK-NEXT: %[[E:.*]] = tx.exp %arg0 {train.layer = #train.layer<0 of 2>} :
// CHECK-NEXT: tx.mul %[[E]], %[[E]] {train.layer = #train.layer<1 of 2>} :
func.func @same(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = tx.exp %x {train.layer = #train.layer<0 of 2>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = tx.exp %x {train.layer = #train.layer<1 of 2>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = tx.mul %0, %1 {train.layer = #train.layer<1 of 2>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// FUSED-LABEL: func.func @fused
// FUSED-NEXT: tx.matmul_bias {{.*}} {train.backward, train.layer = #train.layer<1 of 2>} :
func.func @fused(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<4x4xf32> {
  %0 = tx.matmul %x, %w {train.backward} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = tx.broadcast %b {train.layer = #train.layer<1 of 2>} : tensor<4xf32> -> tensor<4x4xf32>
  %2 = tx.add %0, %1 {train.layer = #train.layer<1 of 2>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// STRIPPED-LABEL: func.func @recomputed
// STRIPPED: tx.exp {{.*}} {train.layer = #train.layer<0 of 1>} :
// STRIPPED: saves %[[X:.*]] :
// STRIPPED-NEXT: } backward (%{{.*}}, %[[X1:.*]]) {
// STRIPPED-NEXT: %[[B:.*]] = train.barrier %[[X1]]
// STRIPPED-NEXT: tx.exp %[[B]] {train.backward, train.layer = #train.layer<0 of 1>} :
func.func @recomputed(%xs: tensor<1x4x4xf32>, %w: tensor<4x4xf32>, %dy: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {par.no_cotangents} {
  %s:2 = train.accumulate (%0 = %xs) : (tensor<1x4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %x = tx.neg %0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %n = tx.exp %x {train.layer = #train.layer<0 of 1>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %y = tx.matmul %n, %w {train.layer = #train.layer<0 of 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    train.yield %y : tensor<4x4xf32> saves %n : tensor<4x4xf32>
  } backward (%1, %n1) {
    %dw = tx.matmul_tn %n1, %dy {train.backward, train.layer = #train.layer<0 of 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    train.yield %dw : tensor<4x4xf32>
  }
  return %s#0, %s#1 : tensor<4x4xf32>, tensor<4x4xf32>
}
