// RUN: partita-opt %s --defer-uses | FileCheck %s
// RUN: partita-opt %s --defer-uses --bucket-all-reduces | FileCheck %s --check-prefix=JOINED

!p = tensor<4x4xf32, #par.place<[4, 4], partial [tp]>>
!t = tensor<4x4xf32>

// The matmul needs the first sum alone.
// CHECK-LABEL: func.func @independent
// CHECK: %[[A:.*]] = par.all_reduce %arg0
// CHECK: %[[B:.*]] = tx.neg %arg0
// CHECK: %[[B1:.*]] = par.all_reduce %[[B]]
// CHECK: %[[Q:.*]] = tx.matmul %[[A]]
// CHECK: return %[[Q]], %[[B1]]
// JOINED-LABEL: func.func @independent
// JOINED: par.all_reduce %{{[^,]*}}, %{{[^,]*}} over "tp"
func.func @independent(%a: !p, %w: !t) -> (!t, !t) attributes {par.no_cotangents} {
  %a1 = par.all_reduce %a over "tp" because "gradient" : !p -> !t
  %q = tx.matmul %a1, %w : (!t, !t) -> !t
  %b = tx.neg %a : (!p) -> !p
  %b1 = par.all_reduce %b over "tp" because "gradient" : !p -> !t
  return %q, %b1 : !t, !t
}

// Three in one group; what the first is needed for goes after the third, in its order.
// CHECK-LABEL: func.func @three
// CHECK: par.all_reduce
// CHECK-NEXT: tx.neg
// CHECK-NEXT: par.all_reduce
// CHECK-NEXT: tx.neg
// CHECK-NEXT: par.all_reduce
// CHECK-NEXT: %[[E:.*]] = tx.exp
// CHECK-NEXT: tx.mul %[[E]]
// CHECK-NEXT: tx.tanh
// JOINED-LABEL: func.func @three
// JOINED: par.all_reduce %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} over "tp"
func.func @three(%a: !p) -> (!t, !t, !t) attributes {par.no_cotangents} {
  %a1 = par.all_reduce %a over "tp" because "gradient" : !p -> !t
  %e = tx.exp %a1 : (!t) -> !t
  %m = tx.mul %e, %a1 : (!t, !t) -> !t
  %b = tx.neg %a : (!p) -> !p
  %b1 = par.all_reduce %b over "tp" because "gradient" : !p -> !t
  %h = tx.tanh %b1 : (!t) -> !t
  %c = tx.neg %b : (!p) -> !p
  %c1 = par.all_reduce %c over "tp" because "gradient" : !p -> !t
  return %m, %h, %c1 : !t, !t, !t
}

// The second needs the first; the third does not need the second, and begins no group with the first.
// CHECK-LABEL: func.func @chain
// CHECK: par.all_reduce
// CHECK-NEXT: tx.exp
// CHECK-NEXT: tx.mul
// CHECK-NEXT: par.all_reduce
// CHECK-NEXT: tx.neg
// CHECK-NEXT: par.all_reduce
// CHECK-NEXT: tx.tanh
func.func @chain(%a: !p) -> (!t, !t) attributes {par.no_cotangents} {
  %a1 = par.all_reduce %a over "tp" because "gradient" : !p -> !t
  %e = tx.exp %a1 : (!t) -> !t
  %b = tx.mul %a, %e : (!p, !t) -> !p
  %b1 = par.all_reduce %b over "tp" because "gradient" : !p -> !t
  %h = tx.tanh %b1 : (!t) -> !t
  %c = tx.neg %a : (!p) -> !p
  %c1 = par.all_reduce %c over "tp" because "gradient" : !p -> !t
  return %h, %c1 : !t, !t
}

// Sums that could not be in one bucket, and writes, stay where they are.
// CHECK-LABEL: func.func @other
// CHECK: par.all_reduce
// CHECK-NEXT: tx.exp
// CHECK: par.all_reduce
// CHECK-LABEL: func.func @writes
// CHECK: par.all_reduce
// CHECK-NEXT: train.write
// CHECK: par.all_reduce
func.func @other(%a: !p, %d: tensor<4x4xf32, #par.place<[4, 4], partial [dp]>>) -> (!t, !t) attributes {par.no_cotangents} {
  %a1 = par.all_reduce %a over "tp" because "gradient" : !p -> !t
  %e = tx.exp %a1 : (!t) -> !t
  %b1 = par.all_reduce %d over "dp" because "gradient" : tensor<4x4xf32, #par.place<[4, 4], partial [dp]>> -> !t
  return %e, %b1 : !t, !t
}
func.func @writes(%a: !p) -> !t attributes {par.no_cotangents} {
  %a1 = par.all_reduce %a over "tp" because "gradient" : !p -> !t
  train.write @w, %a1 : !t
  %b = tx.neg %a : (!p) -> !p
  %b1 = par.all_reduce %b over "tp" because "gradient" : !p -> !t
  return %b1 : !t
}
// A use that moves may itself be a sum over another axis: its place in that axis's order has changed.
// CHECK-LABEL: func.func @nested
// CHECK-COUNT-4: par.all_reduce
// CHECK: return
func.func @nested(%a: tensor<4x4xf32, #par.place<[4, 4], partial [tp, dp]>>, %c: tensor<4x4xf32, #par.place<[4, 4], partial [dp]>>, %d: !p) -> (!t, !t, !t) attributes {par.no_cotangents} {
  %a1 = par.all_reduce %a over "tp" because "gradient" : tensor<4x4xf32, #par.place<[4, 4], partial [tp, dp]>> -> tensor<4x4xf32, #par.place<[4, 4], partial [dp]>>
  %b1 = par.all_reduce %a1 over "dp" because "gradient" : tensor<4x4xf32, #par.place<[4, 4], partial [dp]>> -> !t
  %b2 = par.all_reduce %c over "dp" because "gradient" : tensor<4x4xf32, #par.place<[4, 4], partial [dp]>> -> !t
  %a2 = par.all_reduce %d over "tp" because "gradient" : !p -> !t
  return %b1, %b2, %a2 : !t, !t, !t
}
train.parameter @w : tensor<4x4xf32>
