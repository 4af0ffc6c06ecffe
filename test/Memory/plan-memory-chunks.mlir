// Chunks are computed and summed in their rows of the result, without a copy, while the sum of the chunk before is pending.
// RUN: partita-opt %s --plan-memory --check-streams --check-memory | FileCheck %s

!x = tensor<32x8xf32, #par.place<[32, 16 @tp]>>
!half = tensor<16x8xf32, #par.place<[16, 16 @tp]>>
!p = tensor<16x4xf32, #par.place<[16, 4], partial [tp]>>

module attributes {par.mesh = #par.mesh<tp = 2>} {

// CHECK-LABEL: func.func @chunks
// CHECK: tx.exp {{.*}}rt.buffers = [#rt.at<arena [[E:[0-9]+]]>]
// CHECK: par.chunk {{.*}}rt.buffers = [#rt.at<arena [[E]]>]
// CHECK: tx.matmul {{.*}}rt.buffers = [#rt.at<arena [[BASE:[0-9]+]]>]
// CHECK: par.all_reduce_start {{.*}}rt.buffers = [#rt.at<arena [[BASE]]>]
// CHECK: tx.matmul {{.*}}rt.buffers = [#rt.at<arena [[NEXT:[0-9]+]]>]
// CHECK: par.all_reduce {{.*}}rt.buffers = [#rt.at<arena [[NEXT]]>]
// CHECK: par.wait {{.*}}rt.buffers = [#rt.at<arena [[BASE]]>]
// CHECK: par.join {{.*}}rt.buffers = [#rt.at<arena [[BASE]]>]
// CHECK: tx.exp {{.*}}rt.buffers = [#rt.at<arena [[BASE]]>]
func.func @chunks(%x: !x, %w: tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<32x4xf32> attributes {par.no_cotangents} {
  %e = tx.exp %x : (!x) -> !x
  %x0 = par.chunk %e 0 of 2 along 0 : !x -> !half
  %p0 = tx.matmul %x0, %w : (!half, tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> !p
  %t = par.all_reduce_start %p0 over "tp" : !p -> i64
  %x1 = par.chunk %e 1 of 2 along 0 : !x -> !half
  %p1 = tx.matmul %x1, %w : (!half, tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> !p
  %y1 = par.all_reduce %p1 over "tp" : !p -> tensor<16x4xf32>
  %y0 = par.wait %t, %p0 : i64, !p -> tensor<16x4xf32>
  %y = par.join %y0, %y1 along 0 : tensor<16x4xf32>, tensor<16x4xf32> -> tensor<32x4xf32>
  %z = tx.exp %y : (tensor<32x4xf32>) -> tensor<32x4xf32>
  return %z : tensor<32x4xf32>
}

// What something else reads is summed in memory of its own.
// CHECK-LABEL: func.func @read
// CHECK: tx.matmul {{.*}}rt.buffers = [#rt.at<arena [[P:[0-9]+]]>]
// CHECK: tx.matmul {{.*}}rt.buffers = [#rt.at<arena [[Q:[0-9]+]]>]
// CHECK-NOT: par.all_reduce {{.*}}rt.buffers = [#rt.at<arena [[P]]>]
// CHECK: return
func.func @read(%x: !half, %w: tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> (tensor<32x4xf32>, !p) attributes {par.no_cotangents} {
  %p0 = tx.matmul %x, %w : (!half, tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> !p
  %p1 = tx.matmul %x, %w : (!half, tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> !p
  %y0 = par.all_reduce %p0 over "tp" : !p -> tensor<16x4xf32>
  %y1 = par.all_reduce %p1 over "tp" : !p -> tensor<16x4xf32>
  %y = par.join %y0, %y1 along 0 : tensor<16x4xf32>, tensor<16x4xf32> -> tensor<32x4xf32>
  return %y, %p0 : tensor<32x4xf32>, !p
}

}
