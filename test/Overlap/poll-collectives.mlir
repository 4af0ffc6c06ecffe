// RUN: partita-opt %s --poll-collectives="every=1 flops=100 least-bytes=1" | FileCheck %s
// RUN: partita-opt %s --poll-collectives="every=1 flops=100 least-bytes=1000" | FileCheck %s --check-prefix=SMALL
// RUN: partita-opt %s --poll-collectives="every=1 flops=100000 least-bytes=1" | FileCheck %s --check-prefix=LONG
// RUN: not partita-opt %s --poll-collectives=every=0 2>&1 | FileCheck %s --check-prefix=EVERY

// EVERY: error: every=0 flops=5000000 least-bytes=65536, expected at least 1, 0 and 0
// SMALL-LABEL: func.func @example
// SMALL-NOT: par.poll over "dp"
// SMALL-LABEL: func.func @views_and_lookups
// LONG-NOT: par.poll over "dp"

!p = tensor<4xf32, #par.place<[4], partial [dp]>>

// 2 * 8 * 8 * 8 FLOPs of the matmul are more than an average op; what stands before the wait has
// no use for a poll.
// CHECK-LABEL: func.func @example
// CHECK: %[[T:.*]] = par.all_reduce_start
// CHECK-NEXT: tx.matmul
// CHECK-NEXT: par.poll over "dp" bytes 262144
// CHECK-NEXT: tx.exp
// CHECK-NEXT: par.wait %[[T]]
// CHECK-NOT: par.poll
func.func @example(%a: !p, %x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4xf32>, tensor<8x8xf32>) attributes {par.no_cotangents} {
  %t = par.all_reduce_start %a over "dp" : !p -> i64
  %b = tx.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = tx.exp %b : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = par.wait %t, %a : i64, !p -> tensor<4xf32>
  return %r, %c : tensor<4xf32>, tensor<8x8xf32>
}

// A reshape costs nothing; an embedding what it reads and writes, not the vocabulary times that.
// CHECK-LABEL: func.func @views_and_lookups
// CHECK: par.all_reduce_start
// CHECK-NEXT: tx.reshape
// CHECK-NEXT: tx.embedding
// CHECK-NEXT: tx.matmul
// CHECK-NEXT: par.poll
// CHECK-NEXT: tx.exp
// CHECK-NEXT: par.wait
func.func @views_and_lookups(%a: !p, %table: tensor<32x4xf32>, %ids: tensor<16xi64>, %w: tensor<4x64xf32>) -> (tensor<4xf32>, tensor<16x64xf32>) attributes {par.no_cotangents} {
  %t = par.all_reduce_start %a over "dp" : !p -> i64
  %i = tx.reshape %ids : tensor<16xi64> -> tensor<16xi64>
  %e = tx.embedding %table, %i : (tensor<32x4xf32>, tensor<16xi64>) -> tensor<16x4xf32>
  %b = tx.matmul %e, %w : (tensor<16x4xf32>, tensor<4x64xf32>) -> tensor<16x64xf32>
  %c = tx.exp %b : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %r = par.wait %t, %a : i64, !p -> tensor<4xf32>
  return %r, %c : tensor<4xf32>, tensor<16x64xf32>
}

// Collectives complete in the order of their starts: after the second one's wait there is nothing to
// poll for.
// CHECK-LABEL: func.func @out_of_order
// CHECK: par.wait
// CHECK-NOT: par.poll
// CHECK: return
func.func @out_of_order(%a: !p, %x: tensor<64x64xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<64x64xf32>) attributes {par.no_cotangents} {
  %t = par.all_reduce_start %a over "dp" : !p -> i64
  %b = "tx.neg"(%a) : (!p) -> !p
  %u = par.all_reduce_start %b over "dp" : !p -> i64
  %s = par.wait %u, %b : i64, !p -> tensor<4xf32>
  %c = tx.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = tx.exp %c : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = par.wait %t, %a : i64, !p -> tensor<4xf32>
  return %r, %s, %d : tensor<4xf32>, tensor<4xf32>, tensor<64x64xf32>
}

// What begins in the last slot of a pass is polled there in that slot alone, in a pass that ends later, and after the loop; in one that has
// ended before it is not.
!ps = tensor<2x4xf32, #par.place<[2, 4], partial [dp]>>
// CHECK-LABEL: func.func @last_slot
// CHECK: train.accumulate
// CHECK-NEXT: tx.matmul
// CHECK-NEXT: tx.exp
// CHECK-NEXT: train.yield
// CHECK: } backward (
// CHECK: par.all_reduce_start {{.*}} {train.last}
// CHECK-NEXT: tx.matmul
// CHECK-NEXT: par.poll over "dp" bytes 262144 {train.last}
// CHECK: } weights (
// CHECK-NEXT: tx.matmul
// CHECK-NEXT: par.poll over "dp" bytes 262144{{$}}
// CHECK: } {order
// CHECK-NEXT: tx.matmul
// CHECK-NEXT: par.poll over "dp" bytes 262144{{$}}
// CHECK-NEXT: tx.exp
// CHECK-NEXT: par.wait
func.func @last_slot(%xs: !ps, %a: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4xf32>, tensor<8x8xf32>) attributes {par.no_cotangents} {
  %f, %g, %dw, %h, %token, %begun = train.accumulate (%x = %xs) : (!ps) -> (tensor<8x8xf32>, tensor<8x8xf32>, !p, tensor<8x8xf32>, i64, !p) {
    %b = tx.matmul %a, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %c = tx.exp %b : (tensor<8x8xf32>) -> tensor<8x8xf32>
    train.yield %c : tensor<8x8xf32>
  } backward (%d) onto (%s = 2) {
    %sum = tx.add %s, %d : (!p, !p) -> !p
    %t = par.all_reduce_start %sum over "dp" {train.last} : !p -> i64
    %b = tx.matmul %a, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %c = tx.exp %b : (tensor<8x8xf32>) -> tensor<8x8xf32>
    train.yield %c, %sum : tensor<8x8xf32>, !p last %t, %sum : i64, !p
  } weights (%e) {
    %b = tx.matmul %a, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %c = tx.exp %b : (tensor<8x8xf32>) -> tensor<8x8xf32>
    train.yield %c : tensor<8x8xf32>
  } {order = #train.order<2 x (forward 0, backward 0, weights 0)>}
  %b = tx.matmul %a, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = tx.exp %b : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = par.wait %token, %begun : i64, !p -> tensor<4xf32>
  return %r, %c : tensor<4xf32>, tensor<8x8xf32>
}

// Beside a shift, a poll follows each op of enough FLOPs, whatever the average op costs; each may do as much as if they were further apart.
// What stands behind the shift's end is polled as usual.
// CHECK-LABEL: func.func @beside_a_shift
// CHECK: par.shift_start
// CHECK-NEXT: tx.matmul
// CHECK-NEXT: par.poll over "cp" bytes 524288
// CHECK-NEXT: tx.matmul
// CHECK-NEXT: par.poll over "cp" bytes 524288
// CHECK-NEXT: tx.matmul
// CHECK-NEXT: par.wait
// CHECK-NOT: par.poll
!k = tensor<512x64xf32, #par.place<[1024 @cp, 64]>>
func.func @beside_a_shift(%k: !k, %x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %wide: tensor<8x512xf32>) -> (!k, tensor<8x512xf32>) attributes {par.no_cotangents} {
  %t, %next = par.shift_start %k over "cp" : !k -> i64, !k
  %a = tx.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = tx.matmul %a, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = tx.matmul %b, %wide : (tensor<8x8xf32>, tensor<8x512xf32>) -> tensor<8x512xf32>
  %r = par.wait %t, %next : i64, !k -> !k
  return %r, %c : !k, tensor<8x512xf32>
}
