// RUN: partita-opt %s --canonicalize --cse | FileCheck %s
// RUN: partita-opt %s --canonicalize --cse -o %t.mlir
// RUN: bash %S/../Fuse/equal.sh %s %t.mlir once behind kinds

module attributes {par.mesh = #par.mesh<tp = 2>} {

// A cotangent that arrives in shards, and its rows for a matmul: gathered once.
// CHECK-LABEL: func.func @once
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-NEXT: %[[G:.*]] = par.all_gather %[[X]] over "tp" along 1
// CHECK-NEXT: %[[R:.*]] = tx.reshape %[[G]] : tensor<2x4x2xf64> -> tensor<8x2xf64>
// CHECK-NEXT: return %[[G]], %[[R]]
func.func @once(%x: tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>>) -> (tensor<2x4x2xf64>, tensor<8x2xf64>) {
  %a = par.all_gather %x over "tp" along 1 : tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>> -> tensor<2x4x2xf64>
  %r = tx.reshape %x : tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>> -> tensor<4x2xf64, #par.place<[2 x 4 @tp, 2]>>
  %b = par.all_gather %r over "tp" along 0 in 2 blocks : tensor<4x2xf64, #par.place<[2 x 4 @tp, 2]>> -> tensor<8x2xf64>
  return %a, %b : tensor<2x4x2xf64>, tensor<8x2xf64>
}

// The same with the gather of the rows first; what else uses their shards still does.
// CHECK-LABEL: func.func @behind
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-DAG: %[[S:.*]] = tx.reshape %[[X]] : {{.*}} -> tensor<4x2xf64, #par.place<[2 x 4 @tp, 2]>>
// CHECK-DAG: %[[G:.*]] = par.all_gather %[[X]] over "tp" along 1
// CHECK-DAG: %[[R:.*]] = tx.reshape %[[G]]
// CHECK-NOT: par.all_gather
// CHECK: %[[E:.*]] = tx.exp %[[R]]
// CHECK: return %[[S]], %[[E]], %[[G]]
func.func @behind(%x: tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>>) -> (tensor<4x2xf64, #par.place<[2 x 4 @tp, 2]>>, tensor<8x2xf64>, tensor<2x4x2xf64>) {
  %r = tx.reshape %x : tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>> -> tensor<4x2xf64, #par.place<[2 x 4 @tp, 2]>>
  %b = par.all_gather %r over "tp" along 0 in 2 blocks : tensor<4x2xf64, #par.place<[2 x 4 @tp, 2]>> -> tensor<8x2xf64>
  %e = tx.exp %b : (tensor<8x2xf64>) -> tensor<8x2xf64>
  %a = par.all_gather %x over "tp" along 1 : tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>> -> tensor<2x4x2xf64>
  return %r, %e, %a : tensor<4x2xf64, #par.place<[2 x 4 @tp, 2]>>, tensor<8x2xf64>, tensor<2x4x2xf64>
}

// Gathers of two kinds have different gradients, and one for the backward pass is there so that the other is not kept.
// CHECK-LABEL: func.func @kinds
// CHECK-COUNT-3: par.all_gather
func.func @kinds(%x: tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>>) -> (tensor<2x4x2xf64>, tensor<8x2xf64, #par.place<[8, 2], replicated [tp]>>, tensor<8x2xf64>) {
  %a = par.all_gather %x over "tp" along 1 : tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>> -> tensor<2x4x2xf64>
  %r = tx.reshape %x : tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>> -> tensor<4x2xf64, #par.place<[2 x 4 @tp, 2]>>
  %b = par.all_gather %r over "tp" along 0 in 2 blocks : tensor<4x2xf64, #par.place<[2 x 4 @tp, 2]>> -> tensor<8x2xf64, #par.place<[8, 2], replicated [tp]>>
  %c = par.all_gather %r over "tp" along 0 in 2 blocks again : tensor<4x2xf64, #par.place<[2 x 4 @tp, 2]>> -> tensor<8x2xf64>
  return %a, %b, %c : tensor<2x4x2xf64>, tensor<8x2xf64, #par.place<[8, 2], replicated [tp]>>, tensor<8x2xf64>
}

}
