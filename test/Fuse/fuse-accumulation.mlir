// RUN: partita-opt %s --fuse-accumulation | FileCheck %s
// RUN: partita-opt %s --fuse-accumulation -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir batches half reused scaled kept
// What stands in planned memory is what is computed, and the kernel adds where the sum stands: no kernel adds beside it.
// RUN: partita-opt %s --fuse-accumulation --plan-memory -o %t.planned.mlir && partita-interp %t.planned.mlir > %t.txt
// RUN: partita-opt %s --fuse-accumulation --plan-memory --lower-to-rt | FileCheck %s --check-prefix=RT

// The kernel that sums up rows along is a GPU's.
module attributes {rt.target = "cuda"} {
  // CHECK-LABEL: func.func @batches
  // CHECK: %[[SUM:.*]] = train.accumulate (%{{.*}} = %arg0, %{{.*}} = %arg1) : {{.*}} -> tensor<4x6xf32> onto (%[[FAR:.*]] = 0) {
  // CHECK-NEXT: %[[P:.*]] = tx.fused_matmul (%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[C:.*]] = %[[FAR]]) : {{.*}} {
  // CHECK-NEXT:   %[[DW:.*]] = tx.matmul_tn %[[A]], %[[B]]
  // CHECK-NEXT:   %[[S:.*]] = tx.add %[[C]], %[[DW]]
  // CHECK-NEXT:   tx.fused %[[S]]
  // CHECK: train.yield %[[P]]
  // CHECK: %[[L:.*]] = tx.fused_matmul (%{{.*}} = %arg2, %{{.*}} = %arg3, %{{.*}} = %[[SUM]])
  // CHECK: return %[[L]]
  // RT-LABEL: func.func @batches
  // RT: %[[S:.*]] = rt.arena
  // RT: rt.fill %[[S]]
  // RT: rt.for
  // RT-NOT: rt.copy
  // RT: rt.gemm %[[S]], {{.*}}beta = 1.000000e+00
  // RT-NOT: rt.accumulate
  // RT-NOT: rt.copy
  // RT: rt.gemm %[[S]], {{.*}}beta = 1.000000e+00
  // RT-NEXT: return
  func.func @batches(%xs: tensor<3x8x4xf32>, %dys: tensor<3x8x6xf32>, %x3: tensor<8x4xf32>, %dy3: tensor<8x6xf32>) -> tensor<4x6xf32> {
    %sum = train.accumulate (%x = %xs, %dy = %dys) : (tensor<3x8x4xf32>, tensor<3x8x6xf32>) -> tensor<4x6xf32> {
      %0 = tx.matmul_tn %x, %dy : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
      train.yield %0 : tensor<4x6xf32>
    }
    %1 = tx.matmul_tn %x3, %dy3 : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %2 = tx.add %sum, %1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    return %2 : tensor<4x6xf32>
  }

  // Sums of 32 bits take products of 16-bit numbers; the gradient of a bias, which was put beside its weight's, comes along.
  // CHECK-LABEL: func.func @half
  // CHECK: onto (%[[W:.*]] = 1, %[[B:.*]] = 0) {
  // CHECK: %[[P:.*]]:2 = tx.fused_matmul
  // CHECK:   %[[DW:.*]] = tx.matmul_tn
  // CHECK:   %[[DB:.*]] = tx.reduce_sum
  // CHECK:   %[[WIDE:.*]] = tx.cast %[[DW]]
  // CHECK:   tx.add %{{.*}}, %[[WIDE]]
  // CHECK:   tx.cast %[[DB]]
  // CHECK: train.yield %[[P]]#1, %[[P]]#0
  // CHECK: tx.fused_matmul
  // CHECK-NOT: tx.fused_matmul
  func.func @half(%xs: tensor<3x8x4xbf16>, %dys: tensor<3x8x6xbf16>, %x3: tensor<8x4xbf16>, %dy3: tensor<8x6xbf16>) -> (tensor<6xf32>, tensor<4x6xf32>) {
    %sum:2 = train.accumulate (%x = %xs, %dy = %dys) : (tensor<3x8x4xbf16>, tensor<3x8x6xbf16>) -> (tensor<6xf32>, tensor<4x6xf32>) {
      %0:2 = tx.fused_matmul (%a = %x, %b = %dy) : (tensor<8x4xbf16>, tensor<8x6xbf16>) -> (tensor<4x6xbf16>, tensor<6xbf16>) {
        %dw = tx.matmul_tn %a, %b : (tensor<8x4xbf16>, tensor<8x6xbf16>) -> tensor<4x6xbf16>
        %db = tx.reduce_sum %b [0] : tensor<8x6xbf16> -> tensor<6xbf16>
        tx.fused %dw, %db : tensor<4x6xbf16>, tensor<6xbf16>
      }
      train.yield %0#1, %0#0 : tensor<6xbf16>, tensor<4x6xbf16>
    }
    %1 = tx.matmul_tn %x3, %dy3 : (tensor<8x4xbf16>, tensor<8x6xbf16>) -> tensor<4x6xbf16>
    %2 = tx.cast %1 : tensor<4x6xbf16> -> tensor<4x6xf32>
    %3 = tx.add %2, %sum#1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    return %sum#0, %3 : tensor<6xf32>, tensor<4x6xf32>
  }

  // A weight that is used twice: the second matmul adds to the first.
  // CHECK-LABEL: func.func @reused
  // CHECK: %[[FIRST:.*]] = tx.matmul_tn %arg0, %arg1
  // CHECK: tx.fused_matmul (%{{.*}} = %arg2, %{{.*}} = %arg3, %{{.*}} = %[[FIRST]])
  // RT-LABEL: func.func @reused
  // RT: rt.gemm %[[S:[0-9]+]], {{.*}}beta = 0.0
  // RT: rt.gemm %[[S]], {{.*}}beta = 1.0
  func.func @reused(%x: tensor<8x4xf32>, %dy: tensor<8x6xf32>, %y: tensor<8x4xf32>, %dz: tensor<8x6xf32>) -> tensor<4x6xf32> {
    %0 = tx.matmul_tn %x, %dy : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %1 = tx.matmul_tn %y, %dz : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %2 = tx.add %0, %1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    return %2 : tensor<4x6xf32>
  }

  // Operands in 8 bits: sums of 32 bits take the result before it is rounded.
  // CHECK-LABEL: func.func @scaled
  // CHECK: tx.fused_matmul (%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[S:.*]] = %arg4, %[[FAR:.*]] = %{{.*}}) : {{.*}} -> tensor<4x6xf32> {
  // CHECK-NEXT:   %[[DW:.*]] = tx.scaled_matmul_columns %[[A]], %[[B]] scaled by %[[S]][0, 1]
  // CHECK-NEXT:   %[[WIDE:.*]] = tx.cast %[[DW]]
  // CHECK-NEXT:   tx.add %[[FAR]], %[[WIDE]]
  // CHECK: tx.fused_matmul (%{{.*}} = %arg2, %{{.*}} = %arg3, %{{.*}} = %arg4, %{{.*}} = %{{.*}})
  // RT-LABEL: func.func @scaled
  // RT: rt.fill %[[S:[0-9]+]]
  // RT-NOT: rt.copy
  // RT: rt.scaled_gemm %[[S]], %{{.*}}, %[[S]] {
  // RT-NOT: rt.accumulate
  // RT: rt.scaled_gemm %[[S]], %{{.*}}, %[[S]] {
  // RT-NEXT: return
  func.func @scaled(%xs: tensor<3x4x8xf8E4M3FN>, %dys: tensor<3x6x8xf8E5M2>, %x3: tensor<4x8xf8E4M3FN>, %dy3: tensor<6x8xf8E5M2>, %scales: tensor<2x1xf32>) -> tensor<4x6xf32> {
    %sum = train.accumulate (%x = %xs, %dy = %dys) : (tensor<3x4x8xf8E4M3FN>, tensor<3x6x8xf8E5M2>) -> tensor<4x6xf32> {
      %0 = tx.scaled_matmul_columns %x, %dy scaled by %scales[0, 1] : (tensor<4x8xf8E4M3FN>, tensor<6x8xf8E5M2>, tensor<2x1xf32>) -> tensor<4x6xbf16>
      train.yield %0 : tensor<4x6xbf16>
    }
    %1 = tx.scaled_matmul_columns %x3, %dy3 scaled by %scales[0, 1] : (tensor<4x8xf8E4M3FN>, tensor<6x8xf8E5M2>, tensor<2x1xf32>) -> tensor<4x6xbf16>
    %2 = tx.cast %1 : tensor<4x6xbf16> -> tensor<4x6xf32>
    %3 = tx.add %2, %sum : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    return %3 : tensor<4x6xf32>
  }

  // Somebody else looks at the matmul, or at what it is added to; what it is added to is nobody's sum; another matmul; more
  // arithmetic follows, which is one loop with the addition; what is yielded is made of the matmul in between.
  // CHECK-LABEL: func.func @kept
  // CHECK-NOT: onto
  // CHECK-NOT: tx.fused_matmul
  func.func @kept(%xs: tensor<3x8x4xf32>, %dys: tensor<3x8x6xf32>, %x: tensor<8x4xf32>, %dy: tensor<8x6xf32>, %w: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<8x4xf32>, tensor<4x6xbf16>) {
    %sum:3 = train.accumulate (%a = %xs, %b = %dys) : (tensor<3x8x4xf32>, tensor<3x8x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
      %0 = tx.matmul_tn %a, %b : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
      %1 = tx.neg %0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
      %2 = tx.matmul_tn %a, %b : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
      %3 = tx.reshape %2 : tensor<4x6xf32> -> tensor<24xf32>
      %4 = tx.reshape %3 : tensor<24xf32> -> tensor<4x6xf32>
      train.yield %0, %1, %4 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
    }
    %1 = tx.matmul_tn %x, %dy : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %2 = tx.add %sum#0, %1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %3 = tx.matmul_tn %x, %dy : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %4 = tx.add %w, %3 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %5 = tx.matmul_nt %dy, %w : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
    %6 = tx.matmul_nt %dy, %w : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
    %7 = tx.add %5, %6 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %8 = tx.matmul_tn %x, %dy : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %9 = tx.add %sum#2, %8 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %10 = tx.cast %9 : tensor<4x6xf32> -> tensor<4x6xbf16>
    return %sum#0, %sum#1, %2, %4, %7, %10 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<8x4xf32>, tensor<4x6xbf16>
  }
}
