// RUN: partita-opt %s --bucket-all-reduces=bytes=32 | FileCheck %s
// RUN: not partita-opt %s --bucket-all-reduces=bytes=0 2>&1 | FileCheck %s --check-prefix=BYTES

// BYTES: error: bucket of 0 bytes, expected at least 1

// 16 bytes each: two fill a bucket, which starts when its last operand is there.
// CHECK-LABEL: func.func @two_and_one
// CHECK: %[[A:.*]] = tx.neg
// CHECK: tx.exp
// CHECK: %[[B:.*]] = tx.mul
// CHECK-NEXT: %[[AB:.*]]:2 = par.all_reduce %[[A]], %[[B]] over "dp" because "gradient"
// CHECK: tx.tanh
// CHECK: %[[C:.*]] = tx.mul
// CHECK-NEXT: %[[C1:.*]] = par.all_reduce %[[C]] over "dp" because "gradient"
// CHECK: return %[[AB]]#0, %[[AB]]#1, %[[C1]]
!p = tensor<4xf32, #par.place<[4], partial [dp]>>
func.func @two_and_one(%x: !p) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {par.no_cotangents} {
  %a = "tx.neg"(%x) : (!p) -> !p
  %g = par.g %x over "dp" : !p -> tensor<4xf32>
  %e = tx.exp %g : (tensor<4xf32>) -> tensor<4xf32>
  %b = tx.mul %x, %e : (!p, tensor<4xf32>) -> !p
  %t = tx.tanh %g : (tensor<4xf32>) -> tensor<4xf32>
  %c = tx.mul %x, %t : (!p, tensor<4xf32>) -> !p
  %a1 = par.all_reduce %a over "dp" because "gradient" : !p -> tensor<4xf32>
  %b1 = par.all_reduce %b over "dp" because "gradient" : !p -> tensor<4xf32>
  %c1 = par.all_reduce %c over "dp" because "gradient" : !p -> tensor<4xf32>
  return %a1, %b1, %c1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What is needed before the next operand is there cannot wait for it.
// CHECK-LABEL: func.func @needed
// CHECK: par.all_reduce %{{[^,]*}} over
// CHECK: tx.exp
// CHECK: par.all_reduce %{{[^,]*}} over
func.func @needed(%x: !p) -> tensor<4xf32> attributes {par.no_cotangents} {
  %a = par.all_reduce %x over "dp" because "partial sum" : !p -> tensor<4xf32>
  %e = tx.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %y = tx.mul %x, %e : (!p, tensor<4xf32>) -> !p
  %b = par.all_reduce %y over "dp" because "partial sum" : !p -> tensor<4xf32>
  return %b : tensor<4xf32>
}
