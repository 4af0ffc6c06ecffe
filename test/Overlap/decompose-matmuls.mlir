// RUN: partita-opt %s --decompose-matmuls=chunks=2 | FileCheck %s
// RUN: partita-opt %s --decompose-matmuls=chunks=2 --defer-uses --bucket-all-reduces --start-collectives | FileCheck %s --check-prefix=BESIDE
// RUN: partita-opt %s --decompose-matmuls | FileCheck %s --check-prefix=OFF
// RUN: not partita-opt %s --decompose-matmuls=chunks=0 2>&1 | FileCheck %s --check-prefix=LEAST
// RUN: not partita-opt %s --decompose-matmuls=chunks=5 2>&1 | FileCheck %s --check-prefix=NONE
// LEAST: error: chunks=0, expected at least 1
// NONE: error: --overlap-chunks: has no effect, because no matmul whose collective nothing else overlaps has as many equal chunks of rows, or of samples where the sequence is split
// OFF-NOT: par.chunk

module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {

// CHECK-LABEL: func.func @row_parallel
// CHECK-NEXT: %[[X0:.*]] = par.chunk %arg0 0 of 2 along 0 : {{.*}} -> tensor<8x8xf32, #par.place<[16 @dp, 16 @tp]>>
// CHECK-NEXT: %[[P0:.*]] = tx.matmul %[[X0]], %arg1
// CHECK-NEXT: %[[Y0:.*]] = par.all_reduce %[[P0]] over "tp"
// CHECK-NEXT: %[[X1:.*]] = par.chunk %arg0 1 of 2 along 0
// CHECK-NEXT: %[[P1:.*]] = tx.matmul %[[X1]], %arg1
// CHECK-NEXT: %[[Y1:.*]] = par.all_reduce %[[P1]] over "tp"
// CHECK-NEXT: %[[Y:.*]] = par.join %[[Y0]], %[[Y1]] along 0
// CHECK-NEXT: tx.exp %[[Y]]
// Each sum keeps its message, and that of the first chunk is pending while the second is computed.
// BESIDE-LABEL: func.func @row_parallel
// BESIDE: %[[P0:.*]] = tx.matmul
// BESIDE-NEXT: %[[T:.*]] = par.all_reduce_start %[[P0]] over "tp"
// BESIDE-NEXT: par.chunk
// BESIDE-NEXT: %[[P1:.*]] = tx.matmul
// BESIDE-NEXT: %[[U:.*]] = par.all_reduce_start %[[P1]] over "tp"
// BESIDE-NEXT: %[[Y0:.*]] = par.wait %[[T]], %[[P0]]
// BESIDE-NEXT: %[[Y1:.*]] = par.wait %[[U]], %[[P1]]
// BESIDE-NEXT: par.join %[[Y0]], %[[Y1]]
func.func @row_parallel(%x: tensor<16x8xf32, #par.place<[32 @dp, 16 @tp]>>, %w: tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<16x4xf32, #par.place<[32 @dp, 4]>> attributes {par.no_cotangents} {
  %p = tx.matmul %x, %w : (tensor<16x8xf32, #par.place<[32 @dp, 16 @tp]>>, tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<16x4xf32, #par.place<[32 @dp, 4], partial [tp]>>
  %y = par.all_reduce %p over "tp" : tensor<16x4xf32, #par.place<[32 @dp, 4], partial [tp]>> -> tensor<16x4xf32, #par.place<[32 @dp, 4]>>
  %z = tx.exp %y : (tensor<16x4xf32, #par.place<[32 @dp, 4]>>) -> tensor<16x4xf32, #par.place<[32 @dp, 4]>>
  return %z : tensor<16x4xf32, #par.place<[32 @dp, 4]>>
}

// The cotangents of two projections, added by the second matmul's kernel, are one chunk. A sample of one leaves the positions.
// CHECK-LABEL: func.func @added
// CHECK-NEXT: par.chunk %arg2 0 of 2 along 1
// CHECK-NEXT: par.chunk %arg0 0 of 2 along 1
// CHECK-NEXT: tx.matmul
// CHECK-NEXT: tx.fused_matmul
// CHECK-NEXT: tx.matmul_nt {{.*}} -> tensor<1x2x4xf32, #par.place<[1, 2, 4], partial [tp]>>
// CHECK-NEXT: tx.add
// CHECK-NEXT: tx.fused
// CHECK: par.all_reduce
// CHECK-NEXT: par.chunk %arg2 1 of 2 along 1
// CHECK-NOT: tx.neg
// CHECK: par.join {{.*}} along 1
// CHECK-NEXT: tx.neg
func.func @added(%a: tensor<1x4x8xf32, #par.place<[1, 4, 16 @tp]>>, %u: tensor<8x4xf32, #par.place<[16 @tp, 4]>>, %b: tensor<1x4x8xf32, #par.place<[1, 4, 16 @tp]>>, %v: tensor<4x8xf32, #par.place<[4, 16 @tp]>>) -> tensor<1x4x4xf32> attributes {par.no_cotangents} {
  %p = tx.matmul %a, %u : (tensor<1x4x8xf32, #par.place<[1, 4, 16 @tp]>>, tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<1x4x4xf32, #par.place<[1, 4, 4], partial [tp]>>
  %q = tx.fused_matmul (%c = %b, %d = %v, %e = %p) : (tensor<1x4x8xf32, #par.place<[1, 4, 16 @tp]>>, tensor<4x8xf32, #par.place<[4, 16 @tp]>>, tensor<1x4x4xf32, #par.place<[1, 4, 4], partial [tp]>>) -> tensor<1x4x4xf32, #par.place<[1, 4, 4], partial [tp]>> {
    %m = tx.matmul_nt %c, %d : (tensor<1x4x8xf32, #par.place<[1, 4, 16 @tp]>>, tensor<4x8xf32, #par.place<[4, 16 @tp]>>) -> tensor<1x4x4xf32, #par.place<[1, 4, 4], partial [tp]>>
    %s = tx.add %e, %m : (tensor<1x4x4xf32, #par.place<[1, 4, 4], partial [tp]>>, tensor<1x4x4xf32, #par.place<[1, 4, 4], partial [tp]>>) -> tensor<1x4x4xf32, #par.place<[1, 4, 4], partial [tp]>>
    tx.fused %s : tensor<1x4x4xf32, #par.place<[1, 4, 4], partial [tp]>>
  }
  %y = par.all_reduce %q over "tp" : tensor<1x4x4xf32, #par.place<[1, 4, 4], partial [tp]>> -> tensor<1x4x4xf32>
  %z = tx.neg %y : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  return %z : tensor<1x4x4xf32>
}

// The gradient of the weight hides the sum of the cotangents.
// CHECK-LABEL: func.func @hidden
// CHECK-NOT: par.chunk
// CHECK: return
func.func @hidden(%dy: tensor<4x8xf32, #par.place<[4, 16 @tp]>>, %w: tensor<4x8xf32, #par.place<[4, 16 @tp]>>, %x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x8xf32, #par.place<[4, 16 @tp]>>) attributes {par.no_cotangents} {
  %p = tx.matmul_nt %dy, %w : (tensor<4x8xf32, #par.place<[4, 16 @tp]>>, tensor<4x8xf32, #par.place<[4, 16 @tp]>>) -> tensor<4x4xf32, #par.place<[4, 4], partial [tp]>>
  %dx = par.all_reduce %p over "tp" because "gradient" : tensor<4x4xf32, #par.place<[4, 4], partial [tp]>> -> tensor<4x4xf32>
  %dw = tx.matmul_tn %x, %dy : (tensor<4x4xf32>, tensor<4x8xf32, #par.place<[4, 16 @tp]>>) -> tensor<4x8xf32, #par.place<[4, 16 @tp]>>
  return %dx, %dw : tensor<4x4xf32>, tensor<4x8xf32, #par.place<[4, 16 @tp]>>
}

// The sum of a weight's gradient over dp has rows that both operands share, and no rows of tokens.
// CHECK-LABEL: func.func @weight
// CHECK-NOT: par.chunk
// CHECK: return
func.func @weight(%x: tensor<4x4xf32, #par.place<[8 @dp, 4]>>, %dy: tensor<4x8xf32, #par.place<[8 @dp, 8]>>) -> tensor<4x8xf32> attributes {par.no_cotangents} {
  %p = tx.matmul_tn %x, %dy : (tensor<4x4xf32, #par.place<[8 @dp, 4]>>, tensor<4x8xf32, #par.place<[8 @dp, 8]>>) -> tensor<4x8xf32, #par.place<[4, 8], partial [dp]>>
  %dw = par.all_reduce %p over "dp" because "gradient" : tensor<4x8xf32, #par.place<[4, 8], partial [dp]>> -> tensor<4x8xf32>
  return %dw : tensor<4x8xf32>
}

// A sum of samples that is scattered along their positions, and a gather that the next matmul reads: its chunks begin together.
// CHECK-LABEL: func.func @sequence
// CHECK-NEXT: par.chunk %arg0 0 of 2 along 0
// CHECK-NEXT: tx.matmul
// CHECK-NEXT: %[[S0:.*]] = par.reduce_scatter {{.*}} along 1 {{.*}} -> tensor<1x2x4xf32, #par.place<[1, 4 @tp, 4]>>
// CHECK-NEXT: par.chunk %arg0 1 of 2 along 0
// CHECK-NEXT: tx.matmul
// CHECK-NEXT: %[[S1:.*]] = par.reduce_scatter
// CHECK-NEXT: %[[S:.*]] = par.join %[[S0]], %[[S1]] along 0
// CHECK-NEXT: %[[N:.*]] = tx.neg %[[S]]
// CHECK-NEXT: par.chunk %[[N]] 0 of 2 along 0
// CHECK-NEXT: %[[G0:.*]] = par.all_gather {{.*}} along 1
// CHECK-NEXT: par.chunk %[[N]] 1 of 2 along 0
// CHECK-NEXT: %[[G1:.*]] = par.all_gather {{.*}} along 1
// CHECK-NEXT: %[[Y0:.*]] = tx.matmul %[[G0]]
// CHECK-NEXT: %[[Y1:.*]] = tx.matmul %[[G1]]
// CHECK-NEXT: %[[Y:.*]] = par.join %[[Y0]], %[[Y1]] along 0
// CHECK-NEXT: return %[[Y]]
func.func @sequence(%x: tensor<2x4x8xf32, #par.place<[2, 4, 16 @tp]>>, %w: tensor<8x4xf32, #par.place<[16 @tp, 4]>>, %u: tensor<4x8xf32, #par.place<[4, 16 @tp]>>) -> tensor<2x4x8xf32, #par.place<[2, 4, 16 @tp]>> attributes {par.no_cotangents} {
  %p = tx.matmul %x, %w : (tensor<2x4x8xf32, #par.place<[2, 4, 16 @tp]>>, tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<2x4x4xf32, #par.place<[2, 4, 4], partial [tp]>>
  %s = par.reduce_scatter %p over "tp" along 1 : tensor<2x4x4xf32, #par.place<[2, 4, 4], partial [tp]>> -> tensor<2x2x4xf32, #par.place<[2, 4 @tp, 4]>>
  %n = tx.neg %s : (tensor<2x2x4xf32, #par.place<[2, 4 @tp, 4]>>) -> tensor<2x2x4xf32, #par.place<[2, 4 @tp, 4]>>
  %g = par.all_gather %n over "tp" along 1 : tensor<2x2x4xf32, #par.place<[2, 4 @tp, 4]>> -> tensor<2x4x4xf32>
  %y = tx.matmul %g, %u : (tensor<2x4x4xf32>, tensor<4x8xf32, #par.place<[4, 16 @tp]>>) -> tensor<2x4x8xf32, #par.place<[2, 4, 16 @tp]>>
  return %y : tensor<2x4x8xf32, #par.place<[2, 4, 16 @tp]>>
}

// The same with samples and positions in one dimension: a chunk has one of the two blocks.
// CHECK-LABEL: func.func @flat_sequence
// CHECK: par.reduce_scatter {{.*}} along 0 : {{.*}} -> tensor<2x4xf32, #par.place<[4 @tp, 4]>>
// CHECK: par.join
func.func @flat_sequence(%x: tensor<8x8xf32, #par.place<[8, 16 @tp]>>, %w: tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<4x4xf32, #par.place<[2 x 4 @tp, 4]>> attributes {par.no_cotangents} {
  %p = tx.matmul %x, %w : (tensor<8x8xf32, #par.place<[8, 16 @tp]>>, tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<8x4xf32, #par.place<[8, 4], partial [tp]>>
  %s = par.reduce_scatter %p over "tp" along 0 in 2 blocks : tensor<8x4xf32, #par.place<[8, 4], partial [tp]>> -> tensor<4x4xf32, #par.place<[2 x 4 @tp, 4]>>
  %n = tx.neg %s : (tensor<4x4xf32, #par.place<[2 x 4 @tp, 4]>>) -> tensor<4x4xf32, #par.place<[2 x 4 @tp, 4]>>
  return %n : tensor<4x4xf32, #par.place<[2 x 4 @tp, 4]>>
}

// One sample has no chunks of its own: a rank's shard of each would be other positions.
// CHECK-LABEL: func.func @one_sample
// CHECK-NOT: par.chunk
// CHECK: return
func.func @one_sample(%x: tensor<1x4x8xf32, #par.place<[1, 4, 16 @tp]>>, %w: tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<1x2x4xf32, #par.place<[1, 4 @tp, 4]>> attributes {par.no_cotangents} {
  %p = tx.matmul %x, %w : (tensor<1x4x8xf32, #par.place<[1, 4, 16 @tp]>>, tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<1x4x4xf32, #par.place<[1, 4, 4], partial [tp]>>
  %s = par.reduce_scatter %p over "tp" along 1 : tensor<1x4x4xf32, #par.place<[1, 4, 4], partial [tp]>> -> tensor<1x2x4xf32, #par.place<[1, 4 @tp, 4]>>
  %n = tx.neg %s : (tensor<1x2x4xf32, #par.place<[1, 4 @tp, 4]>>) -> tensor<1x2x4xf32, #par.place<[1, 4 @tp, 4]>>
  return %n : tensor<1x2x4xf32, #par.place<[1, 4 @tp, 4]>>
}

// A residual sum that stays partial has other uses: they read the chunks together.
// CHECK-LABEL: func.func @residual
// CHECK: %[[R0:.*]] = tx.add
// CHECK-NEXT: %[[Y0:.*]] = par.all_reduce %[[R0]]
// CHECK: %[[R1:.*]] = tx.add
// CHECK-NEXT: %[[Y1:.*]] = par.all_reduce %[[R1]]
// CHECK-NEXT: %[[Y:.*]] = par.join %[[Y0]], %[[Y1]] along 0
// CHECK-NEXT: tx.exp %[[Y]]
// CHECK-NEXT: %[[R:.*]] = par.join %[[R0]], %[[R1]] along 0
// CHECK-NEXT: tx.neg %[[R]]
func.func @residual(%x: tensor<4x8xf32, #par.place<[4, 16 @tp]>>, %w: tensor<8x4xf32, #par.place<[16 @tp, 4]>>, %r: tensor<4x4xf32, #par.place<[4, 4], partial [tp]>>) -> (tensor<4x4xf32>, tensor<4x4xf32, #par.place<[4, 4], partial [tp]>>) attributes {par.no_cotangents} {
  %p = tx.matmul %x, %w : (tensor<4x8xf32, #par.place<[4, 16 @tp]>>, tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<4x4xf32, #par.place<[4, 4], partial [tp]>>
  %s = tx.add %r, %p : (tensor<4x4xf32, #par.place<[4, 4], partial [tp]>>, tensor<4x4xf32, #par.place<[4, 4], partial [tp]>>) -> tensor<4x4xf32, #par.place<[4, 4], partial [tp]>>
  %y = par.all_reduce %s over "tp" : tensor<4x4xf32, #par.place<[4, 4], partial [tp]>> -> tensor<4x4xf32>
  %e = tx.exp %y : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = tx.neg %s : (tensor<4x4xf32, #par.place<[4, 4], partial [tp]>>) -> tensor<4x4xf32, #par.place<[4, 4], partial [tp]>>
  return %e, %n : tensor<4x4xf32>, tensor<4x4xf32, #par.place<[4, 4], partial [tp]>>
}

// The rows of an embedding's gradient are numbered from %first: chunks of them would need other numbers.
// CHECK-LABEL: func.func @numbered
// CHECK-NOT: par.chunk
// CHECK: return
func.func @numbered(%i: tensor<4xi64, #par.place<[8 @dp]>>, %dy: tensor<4x4xf32, #par.place<[8 @dp, 4]>>, %first: tensor<1xi64, #par.place<[2 @tp]>>, %a: tensor<8x4xf32, #par.place<[16 @tp, 4], partial [dp]>>) -> tensor<8x4xf32, #par.place<[16 @tp, 4]>> attributes {par.no_cotangents} {
  %g = tx.embedding_grad %i, %dy from %first : (tensor<4xi64, #par.place<[8 @dp]>>, tensor<4x4xf32, #par.place<[8 @dp, 4]>>, tensor<1xi64, #par.place<[2 @tp]>>) -> tensor<8x4xf32, #par.place<[16 @tp, 4], partial [dp]>>
  %s = tx.add %a, %g : (tensor<8x4xf32, #par.place<[16 @tp, 4], partial [dp]>>, tensor<8x4xf32, #par.place<[16 @tp, 4], partial [dp]>>) -> tensor<8x4xf32, #par.place<[16 @tp, 4], partial [dp]>>
  %y = par.all_reduce %s over "dp" : tensor<8x4xf32, #par.place<[16 @tp, 4], partial [dp]>> -> tensor<8x4xf32, #par.place<[16 @tp, 4]>>
  %e = tx.exp %y : (tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<8x4xf32, #par.place<[16 @tp, 4]>>
  return %e : tensor<8x4xf32, #par.place<[16 @tp, 4]>>
}

// A rank of four samples over dp has two: a chunk of each has one block; four chunks of a rank's two samples are refused.
// RUN: partita-opt %s --decompose-matmuls=chunks=4 | FileCheck %s --check-prefix=FOUR
// CHECK-LABEL: func.func @flat_sequence_of_ranks
// CHECK: par.reduce_scatter {{.*}} along 0 in 2 blocks : {{.*}} -> tensor<2x4xf32, #par.place<[2 @dp x 4 @tp, 4]>>
// FOUR-LABEL: func.func @flat_sequence_of_ranks
// FOUR-NOT: par.chunk
// FOUR: return
func.func @flat_sequence_of_ranks(%x: tensor<8x8xf32, #par.place<[16 @dp, 16 @tp]>>, %w: tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<4x4xf32, #par.place<[4 @dp x 4 @tp, 4]>> attributes {par.no_cotangents} {
  %p = tx.matmul %x, %w : (tensor<8x8xf32, #par.place<[16 @dp, 16 @tp]>>, tensor<8x4xf32, #par.place<[16 @tp, 4]>>) -> tensor<8x4xf32, #par.place<[16 @dp, 4], partial [tp]>>
  %s = par.reduce_scatter %p over "tp" along 0 in 4 blocks : tensor<8x4xf32, #par.place<[16 @dp, 4], partial [tp]>> -> tensor<4x4xf32, #par.place<[4 @dp x 4 @tp, 4]>>
  %n = tx.neg %s : (tensor<4x4xf32, #par.place<[4 @dp x 4 @tp, 4]>>) -> tensor<4x4xf32, #par.place<[4 @dp x 4 @tp, 4]>>
  return %n : tensor<4x4xf32, #par.place<[4 @dp x 4 @tp, 4]>>
}

// What reads the full value before the matmul needs it at once; a matmul by itself has rows and columns of one value.
// CHECK-LABEL: func.func @read_before
// CHECK-NOT: par.chunk
// CHECK: return
func.func @read_before(%x: tensor<2x2x4xf32, #par.place<[2, 4 @tp, 4]>>, %u: tensor<4x8xf32, #par.place<[4, 16 @tp]>>) -> (tensor<8x8xf32, #par.place<[8, 16 @tp]>>, tensor<8x4xf32>) attributes {par.no_cotangents} {
  %g = par.all_gather %x over "tp" along 1 : tensor<2x2x4xf32, #par.place<[2, 4 @tp, 4]>> -> tensor<2x4x4xf32>
  %r = tx.reshape %g : tensor<2x4x4xf32> -> tensor<8x4xf32>
  %r2 = tx.reshape %g : tensor<2x4x4xf32> -> tensor<8x4xf32>
  %y = tx.matmul %r, %u : (tensor<8x4xf32>, tensor<4x8xf32, #par.place<[4, 16 @tp]>>) -> tensor<8x8xf32, #par.place<[8, 16 @tp]>>
  return %y, %r2 : tensor<8x8xf32, #par.place<[8, 16 @tp]>>, tensor<8x4xf32>
}

// CHECK-LABEL: func.func @by_itself
// CHECK-NOT: par.chunk
// CHECK: return
func.func @by_itself(%x: tensor<4x8xf32, #par.place<[4, 16 @tp]>>) -> tensor<4x4xf32> attributes {par.no_cotangents} {
  %p = tx.matmul_nt %x, %x : (tensor<4x8xf32, #par.place<[4, 16 @tp]>>, tensor<4x8xf32, #par.place<[4, 16 @tp]>>) -> tensor<4x4xf32, #par.place<[4, 4], partial [tp]>>
  %y = par.all_reduce %p over "tp" : tensor<4x4xf32, #par.place<[4, 4], partial [tp]>> -> tensor<4x4xf32>
  %z = tx.exp %y : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %z : tensor<4x4xf32>
}

}
