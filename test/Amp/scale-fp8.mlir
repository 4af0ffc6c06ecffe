// Scales from earlier maxima, 8-bit operands, and the maxima of this step over all ranks.
// RUN: partita-opt %s --split-input-file --scale-fp8 --verify-diagnostics | FileCheck %s

// CHECK-LABEL: module {
module attributes {amp.fp8 = {backward = 0 : i64, forward = 2 : i64, rows = 16 : i64}} {
  // CHECK: train.state @fp8.maxima : tensor<16x2xf32> = 0.000000e+00
  train.parameter @w : tensor<16x16xbf16>
  // CHECK-LABEL: @example
  func.func @example(%x: tensor<16x16xbf16>) -> tensor<16x16xbf16> {
    // CHECK: %[[HISTORY:.*]] = train.read @fp8.maxima
    // CHECK: tx.reduce_max %[[HISTORY]] [0]
    // CHECK: %[[VECTOR:.*]] = tx.fp8_scale
    // CHECK: %[[COLUMN:.*]] = tx.reshape %[[VECTOR]] : tensor<2xf32> -> tensor<2x1xf32>
    // CHECK: %[[SCALES:.*]] = tx.broadcast %[[COLUMN]] : tensor<2x1xf32> -> tensor<2x4xf32>
    // CHECK: %[[M0:.*]] = amp.no_maxima : tensor<2xf32>
    // CHECK: %[[Q:.*]], %[[M1:.*]] = amp.quantize %arg0 by %[[SCALES]][0] in f8E4M3FN noting %[[M0]]
    // CHECK: %[[R:.*]], %[[M2:.*]] = amp.quantize %{{.*}} by %[[SCALES]][1] in f8E4M3FN noting %[[M1]]
    // CHECK: tx.scaled_matmul %[[Q]], %[[R]] scaled by %[[SCALES]][0, 1]
    // CHECK: %[[NEWEST:.*]] = tx.reshape %[[M2]]
    // CHECK: %[[OTHERS:.*]] = tx.slice %[[HISTORY]] [1, 0]
    // CHECK: %[[NEXT:.*]] = tx.concat %[[OTHERS]], %[[NEWEST]] along 0
    // CHECK: train.write @fp8.maxima, %[[NEXT]]
    %w = train.read @w : tensor<16x16xbf16>
    %x8 = tx.through_fp8 %x {number = 0 : i64, stored = f8E4M3FN} : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %w8 = tx.through_fp8 %w {number = 1 : i64, stored = f8E4M3FN} : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %y = tx.matmul %x8, %w8 : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xbf16>
    return %y : tensor<16x16xbf16>
  }
}

// -----

// A parameter is quantized once, before the loop. Maxima are those of the last micro-batch, which no loop is around; they are reduced
// over the axes that split some of the values. A rank's sizes that do not suit read the same numbers in 16 bits.
// CHECK-LABEL: module {{.*}}dp = 2
module attributes {amp.fp8 = {backward = 0 : i64, forward = 2 : i64, rows = 96 : i64}, par.mesh = #par.mesh<dp = 2>} {
  train.parameter @w : tensor<16x16xbf16>
  // CHECK-LABEL: @loop
  func.func @loop(%batches: tensor<2x16x16xbf16, #par.place<[2, 32 @dp, 16]>>, %last: tensor<8x16xbf16, #par.place<[16 @dp, 16]>>) -> tensor<16x16xf32, #par.place<[32 @dp, 16]>> attributes {par.no_cotangents} {
    // CHECK: %[[M0:.*]] = amp.no_maxima : tensor<2xf32, #par.place<[2], max [dp]>>
    // CHECK: %[[W:.*]], %[[M1:.*]] = amp.quantize %{{.*}} by %{{.*}}[1] in f8E4M3FN noting %[[M0]]
    // CHECK: %[[WIDE:.*]] = amp.quantize %{{.*}} by %{{.*}}[1] in f8E4M3FN : {{.*}} -> rows tensor<16x16xbf16>{{$}}
    // CHECK: train.accumulate
    // CHECK: amp.quantize %{{.*}} by %{{.*}}[0] in f8E4M3FN : {{.*}} -> rows tensor<16x16xf8E4M3FN
    // CHECK: tx.scaled_matmul %{{.*}}, %[[W]]
    // CHECK: train.yield
    // CHECK: %[[X:.*]], %[[M2:.*]] = amp.quantize %arg1 by %{{.*}}[0] in f8E4M3FN noting %[[M1]] {{.*}} -> rows tensor<8x16xbf16
    // CHECK: tx.matmul %[[X]], %[[WIDE]]
    // CHECK: par.all_reduce_max %[[M2]] over "dp" because "maxima of FP8 tensors"
    %w = train.read @w : tensor<16x16xbf16>
    %sum = train.accumulate (%x = %batches) : (tensor<2x16x16xbf16, #par.place<[2, 32 @dp, 16]>>) -> tensor<16x16xf32, #par.place<[32 @dp, 16]>> {
      %x8 = tx.through_fp8 %x {number = 0 : i64, stored = f8E4M3FN} : (tensor<16x16xbf16, #par.place<[32 @dp, 16]>>) -> tensor<16x16xbf16, #par.place<[32 @dp, 16]>>
      %w8 = tx.through_fp8 %w {number = 1 : i64, stored = f8E4M3FN} : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
      %y = tx.matmul %x8, %w8 : (tensor<16x16xbf16, #par.place<[32 @dp, 16]>>, tensor<16x16xbf16>) -> tensor<16x16xbf16, #par.place<[32 @dp, 16]>>
      %part = tx.cast %y : tensor<16x16xbf16, #par.place<[32 @dp, 16]>> -> tensor<16x16xf32, #par.place<[32 @dp, 16]>>
      train.yield %part : tensor<16x16xf32, #par.place<[32 @dp, 16]>>
    }
    %x8 = tx.through_fp8 %last {number = 0 : i64, stored = f8E4M3FN} : (tensor<8x16xbf16, #par.place<[16 @dp, 16]>>) -> tensor<8x16xbf16, #par.place<[16 @dp, 16]>>
    %w8 = tx.through_fp8 %w {number = 1 : i64, stored = f8E4M3FN} : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %y = tx.matmul %x8, %w8 : (tensor<8x16xbf16, #par.place<[16 @dp, 16]>>, tensor<16x16xbf16>) -> tensor<8x16xbf16, #par.place<[16 @dp, 16]>>
    return %sum : tensor<16x16xf32, #par.place<[32 @dp, 16]>>
  }
}

// -----

module attributes {amp.fp8 = {backward = 0 : i64, forward = 1 : i64, rows = 16 : i64}} {
  // expected-error @+1 {{parameter 'fp8.maxima' is called like a state of --precision fp8: rename it in the model's file, or train with --precision bfloat16}}
  train.parameter @fp8.maxima : tensor<16x16xbf16>
  func.func @taken(%x: tensor<16x16xbf16>) -> tensor<16x16xbf16> {
    %x8 = tx.through_fp8 %x {number = 0 : i64, stored = f8E4M3FN} : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
    return %x8 : tensor<16x16xbf16>
  }
}

// -----

// The gradient of a value that every rank computes is a sum over ranks, which has no max yet.
module attributes {amp.fp8 = {backward = 1 : i64, forward = 1 : i64, rows = 16 : i64}, par.mesh = #par.mesh<tp = 2>} {
  train.parameter @w : tensor<16x16xbf16>
  func.func @cotangent(%dy: tensor<16x16xbf16, #par.place<[16, 16], partial [tp]>>) -> tensor<16x16xbf16, #par.place<[16, 16], partial [tp]>> attributes {par.no_cotangents} {
    %w = train.read @w : tensor<16x16xbf16>
    %w8 = tx.through_fp8 %w {number = 0 : i64, stored = f8E4M3FN} : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
    // expected-error @+1 {{precision fp8 cannot round a sum over mesh axis tp before it is complete; use bfloat16, or a mesh on which each rank has heads of its own}}
    %dx = tx.matmul_nt %dy, %w8 : (tensor<16x16xbf16, #par.place<[16, 16], partial [tp]>>, tensor<16x16xbf16>) -> tensor<16x16xbf16, #par.place<[16, 16], partial [tp]>>
    return %dx : tensor<16x16xbf16, #par.place<[16, 16], partial [tp]>>
  }
}
