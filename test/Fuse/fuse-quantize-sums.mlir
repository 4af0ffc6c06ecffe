// RUN: partita-opt %s --fuse-quantize-sums | FileCheck %s
// RUN: partita-opt %s --fuse-quantize-sums -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir beside flat alone read early rows
// RUN: partita-opt %t.mlir --plan-memory --lower-to-rt | FileCheck %s --check-prefix=RT

module attributes {rt.target = "cuda"} {
  // CHECK-LABEL: func.func @beside(
  // CHECK: %[[Q:.*]], %[[QT:.*]], %[[SUMS:.*]] = amp.quantize %arg0 by %arg1[0] in f8E5M2 : {{.*}} -> rows tensor<32x48xf8E5M2> columns tensor<48x32xf8E5M2> sums tensor<48xbf16>
  // CHECK-NOT: tx.reduce_sum
  func.func @beside(%dy: tensor<32x48xbf16>, %scales: tensor<2x1xf32>) -> (tensor<32x48xf32>, tensor<48x32xf32>, tensor<48xbf16>) {
    %q, %qt = amp.quantize %dy by %scales[0] in f8E5M2 : tensor<32x48xbf16>, tensor<2x1xf32> -> rows tensor<32x48xf8E5M2> columns tensor<48x32xf8E5M2>
    %0 = tx.reduce_sum %dy [0] : tensor<32x48xbf16> -> tensor<48xbf16>
    %rows = tx.cast %q : tensor<32x48xf8E5M2> -> tensor<32x48xf32>
    %columns = tx.cast %qt : tensor<48x32xf8E5M2> -> tensor<48x32xf32>
    return %rows, %columns, %0 : tensor<32x48xf32>, tensor<48x32xf32>, tensor<48xbf16>
  }

  // The sum stands before or after, in whatever shape.
  // CHECK-LABEL: func.func @flat(
  // CHECK: %[[Q:.*]], %[[QT:.*]], %[[M:.*]], %[[SUMS:.*]] = amp.quantize %{{.*}} by %arg1[0] in f8E5M2 noting %arg2 : {{.*}} -> rows tensor<16x32xf8E5M2> columns tensor<32x16xf8E5M2> maxima tensor<2xf32> sums tensor<32xbf16>
  // CHECK-NOT: tx.reduce_sum
  // CHECK: return %{{.*}}, %{{.*}}, %[[M]], %[[SUMS]]
  // RT-LABEL: func.func @flat(
  // RT: rt.quantize_transposed {{.*}} {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>, rows = 16 : i64, width = 32 : i64}
  // RT-NOT: rt.reduce_sum
  // RT: return
  func.func @flat(%dy: tensor<2x8x32xbf16>, %scales: tensor<2x1xf32>, %m0: tensor<2xf32>) -> (tensor<16x32xf32>, tensor<32x16xf32>, tensor<2xf32>, tensor<32xbf16>) {
    %sums = tx.reduce_sum %dy [0, 1] : tensor<2x8x32xbf16> -> tensor<32xbf16>
    %flat = tx.reshape %dy : tensor<2x8x32xbf16> -> tensor<16x32xbf16>
    %q, %qt, %m = amp.quantize %flat by %scales[0] in f8E5M2 noting %m0 : tensor<2xf32> : tensor<16x32xbf16>, tensor<2x1xf32> -> rows tensor<16x32xf8E5M2> columns tensor<32x16xf8E5M2> maxima tensor<2xf32>
    %rows = tx.cast %q : tensor<16x32xf8E5M2> -> tensor<16x32xf32>
    %columns = tx.cast %qt : tensor<32x16xf8E5M2> -> tensor<32x16xf32>
    return %rows, %columns, %m, %sums : tensor<16x32xf32>, tensor<32x16xf32>, tensor<2xf32>, tensor<32xbf16>
  }

  // CHECK-LABEL: func.func @alone(
  // CHECK: amp.quantize {{.*}} -> columns tensor<32x16xf8E5M2> sums tensor<32xf32>
  // CHECK-NOT: tx.reduce_sum
  func.func @alone(%dy: tensor<16x32xf32>, %scales: tensor<2x1xf32>) -> (tensor<32x16xf32>, tensor<32xf32>) {
    %qt = amp.quantize %dy by %scales[1] in f8E5M2 : tensor<16x32xf32>, tensor<2x1xf32> -> columns tensor<32x16xf8E5M2>
    %sums = tx.reduce_sum %dy [0] : tensor<16x32xf32> -> tensor<32xf32>
    %columns = tx.cast %qt : tensor<32x16xf8E5M2> -> tensor<32x16xf32>
    return %columns, %sums : tensor<32x16xf32>, tensor<32xf32>
  }

  // The sum is read at once: it is quantized there.
  // CHECK-LABEL: func.func @read(
  // CHECK-NEXT: %[[QT:.*]], %[[SUMS:.*]] = amp.quantize {{.*}} -> columns tensor<32x16xf8E5M2> sums tensor<32xf32>
  // CHECK-NEXT: tx.exp %[[SUMS]]
  func.func @read(%dy: tensor<16x32xf32>, %scales: tensor<2x1xf32>) -> (tensor<32xf32>, tensor<32x16xf32>) {
    %sums = tx.reduce_sum %dy [0] : tensor<16x32xf32> -> tensor<32xf32>
    %0 = tx.exp %sums : (tensor<32xf32>) -> tensor<32xf32>
    %qt = amp.quantize %dy by %scales[1] in f8E5M2 : tensor<16x32xf32>, tensor<2x1xf32> -> columns tensor<32x16xf8E5M2>
    %columns = tx.cast %qt : tensor<32x16xf8E5M2> -> tensor<32x16xf32>
    return %0, %columns : tensor<32xf32>, tensor<32x16xf32>
  }

  // The sum is needed before the scale is known.
  // CHECK-LABEL: func.func @early(
  // CHECK: tx.reduce_sum
  // CHECK-NOT: sums tensor
  func.func @early(%dy: tensor<16x32xf32>) -> tensor<32x16xf32> {
    %sums = tx.reduce_sum %dy [0] : tensor<16x32xf32> -> tensor<32xf32>
    %exp = tx.exp %sums : (tensor<32xf32>) -> tensor<32xf32>
    %scales = tx.reshape %exp : tensor<32xf32> -> tensor<32x1xf32>
    %qt = amp.quantize %dy by %scales[1] in f8E5M2 : tensor<16x32xf32>, tensor<32x1xf32> -> columns tensor<32x16xf8E5M2>
    %columns = tx.cast %qt : tensor<32x16xf8E5M2> -> tensor<32x16xf32>
    return %columns : tensor<32x16xf32>
  }

  // Without a transpose another kernel quantizes; sums over columns are others.
  // CHECK-LABEL: func.func @rows(
  // CHECK-COUNT-2: tx.reduce_sum
  // CHECK-NOT: sums tensor
  func.func @rows(%dy: tensor<16x16xf32>, %scales: tensor<2x1xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
    %q = amp.quantize %dy by %scales[1] in f8E5M2 : tensor<16x16xf32>, tensor<2x1xf32> -> rows tensor<16x16xf8E5M2>
    %sums = tx.reduce_sum %dy [0] : tensor<16x16xf32> -> tensor<16xf32>
    %x = tx.exp %dy : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %qt = amp.quantize %x by %scales[1] in f8E5M2 : tensor<16x16xf32>, tensor<2x1xf32> -> columns tensor<16x16xf8E5M2>
    %others = tx.reduce_sum %x [1] : tensor<16x16xf32> -> tensor<16xf32>
    %rows = tx.cast %q : tensor<16x16xf8E5M2> -> tensor<16x16xf32>
    %columns = tx.cast %qt : tensor<16x16xf8E5M2> -> tensor<16x16xf32>
    return %rows, %columns, %sums, %others : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
  }
}
