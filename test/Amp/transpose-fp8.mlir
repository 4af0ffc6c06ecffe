// On a GPU both operands of a matmul in 8 bits are read by rows: what is read by columns is stored transposed when it is quantized.
// RUN: partita-opt %s --split-input-file --transpose-fp8 | FileCheck %s
// RUN: sed 's/rt.target = "cuda"/test.target = "cpu"/' %s | partita-opt --split-input-file --transpose-fp8 | FileCheck %s --check-prefix=CPU
// CPU-NOT: columns

// CHECK-LABEL: module
module attributes {rt.target = "cuda"} {
  // CHECK-LABEL: @example
  func.func @example(%x: tensor<32x16xbf16>, %w: tensor<16x48xbf16>, %dy: tensor<32x48xbf16>, %scales: tensor<3x1xf32>) -> (tensor<32x48xbf16>, tensor<32x16xbf16>, tensor<16x48xbf16>) {
    // CHECK: %[[Q:.*]], %[[QT:.*]] = amp.quantize %arg0 by %arg3[0] in f8E4M3FN : tensor<32x16xbf16>, tensor<3x1xf32> -> rows tensor<32x16xf8E4M3FN> columns tensor<16x32xf8E4M3FN>{{$}}
    // CHECK: %[[R:.*]], %[[RT:.*]] = amp.quantize %arg1 by %arg3[1] in f8E4M3FN : tensor<16x48xbf16>, tensor<3x1xf32> -> rows tensor<16x48xf8E4M3FN> columns tensor<48x16xf8E4M3FN>{{$}}
    // CHECK: %[[S:.*]], %[[ST:.*]] = amp.quantize %arg2 by %arg3[2] in f8E5M2
    // CHECK: tx.scaled_matmul_nt %[[Q]], %[[RT]] scaled by %arg3[0, 1]
    // CHECK: tx.scaled_matmul_nt %[[S]], %[[R]] scaled by %arg3[2, 1]
    // CHECK: tx.scaled_matmul_columns %[[QT]], %[[ST]] scaled by %arg3[0, 2]
    %q = amp.quantize %x by %scales[0] in f8E4M3FN : tensor<32x16xbf16>, tensor<3x1xf32> -> rows tensor<32x16xf8E4M3FN>
    %r = amp.quantize %w by %scales[1] in f8E4M3FN : tensor<16x48xbf16>, tensor<3x1xf32> -> rows tensor<16x48xf8E4M3FN>
    %s = amp.quantize %dy by %scales[2] in f8E5M2 : tensor<32x48xbf16>, tensor<3x1xf32> -> rows tensor<32x48xf8E5M2>
    %y = tx.scaled_matmul %q, %r scaled by %scales[0, 1] : (tensor<32x16xf8E4M3FN>, tensor<16x48xf8E4M3FN>, tensor<3x1xf32>) -> tensor<32x48xbf16>
    %dx = tx.scaled_matmul_nt %s, %r scaled by %scales[2, 1] : (tensor<32x48xf8E5M2>, tensor<16x48xf8E4M3FN>, tensor<3x1xf32>) -> tensor<32x16xbf16>
    %dw = tx.scaled_matmul_tn %q, %s scaled by %scales[0, 2] : (tensor<32x16xf8E4M3FN>, tensor<32x48xf8E5M2>, tensor<3x1xf32>) -> tensor<16x48xbf16>
    return %y, %dx, %dw : tensor<32x48xbf16>, tensor<32x16xbf16>, tensor<16x48xbf16>
  }
}

// -----

// What nothing reads by rows is stored transposed alone. Shards keep their dimensions' axes; leading dimensions stay behind the last one.
// CHECK-LABEL: module
module attributes {rt.target = "cuda", par.mesh = #par.mesh<dp = 2, tp = 2>} {
  // CHECK-LABEL: @alone
  func.func @alone(%x: tensor<2x16x16xbf16, #par.place<[4 @dp, 16, 32 @tp]>>, %dy: tensor<2x16x48xbf16, #par.place<[4 @dp, 16, 48]>>, %scales: tensor<3x1xf32>, %m0: tensor<3xf32>) -> (tensor<16x48xbf16, #par.place<[32 @tp, 48], partial [dp]>>, tensor<3xf32>) attributes {par.no_cotangents} {
    // CHECK: %[[QT:.*]], %[[M:.*]] = amp.quantize %arg0 by %arg2[0] in f8E4M3FN noting %arg3 : {{.*}} -> columns tensor<16x2x16xf8E4M3FN, #par.place<[32 @tp, 4 @dp, 16]>> maxima tensor<3xf32>
    // CHECK: %[[ST:.*]] = amp.quantize %arg1 by %arg2[2] in f8E5M2 : {{.*}} -> columns tensor<48x2x16xf8E5M2, #par.place<[48, 4 @dp, 16]>>
    // CHECK: tx.scaled_matmul_columns %[[QT]], %[[ST]] {{.*}} -> tensor<16x48xbf16, #par.place<[32 @tp, 48], partial [dp]>>
    %q, %m = amp.quantize %x by %scales[0] in f8E4M3FN noting %m0 : tensor<3xf32> : tensor<2x16x16xbf16, #par.place<[4 @dp, 16, 32 @tp]>>, tensor<3x1xf32> -> rows tensor<2x16x16xf8E4M3FN, #par.place<[4 @dp, 16, 32 @tp]>> maxima tensor<3xf32>
    %s = amp.quantize %dy by %scales[2] in f8E5M2 : tensor<2x16x48xbf16, #par.place<[4 @dp, 16, 48]>>, tensor<3x1xf32> -> rows tensor<2x16x48xf8E5M2, #par.place<[4 @dp, 16, 48]>>
    %dw = tx.scaled_matmul_tn %q, %s scaled by %scales[0, 2] : (tensor<2x16x16xf8E4M3FN, #par.place<[4 @dp, 16, 32 @tp]>>, tensor<2x16x48xf8E5M2, #par.place<[4 @dp, 16, 48]>>, tensor<3x1xf32>) -> tensor<16x48xbf16, #par.place<[32 @tp, 48], partial [dp]>>
    // CHECK: return %{{.*}}, %[[M]]
    return %dw, %m : tensor<16x48xbf16, #par.place<[32 @tp, 48], partial [dp]>>, tensor<3xf32>
  }
}
