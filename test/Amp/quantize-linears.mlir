// Which matmuls read 8 bits: those of an activation and a parameter that another matmul follows, with sizes that are multiples of 16.
// RUN: partita-opt %s --split-input-file --quantize-linears=type=fp8 --verify-diagnostics | FileCheck %s
// RUN: partita-opt %s --split-input-file | sed '/#loc/d' > %t.before && partita-opt %s --split-input-file --quantize-linears=type=bfloat16 | sed '/#loc/d' | diff %t.before -

// CHECK: module attributes {amp.fp8 = {backward = 1 : i64, forward = 2 : i64, rows = 16 : i64}}
module {
  train.parameter @w : tensor<16x16xbf16>
  // CHECK-LABEL: @example
  func.func @example(%x: tensor<16x16xbf16>) {
    %w = train.read @w : tensor<16x16xbf16>
    // CHECK: %[[X:.*]] = tx.through_fp8 %arg0 {number = 0 : i64, stored = f8E4M3FN}
    // CHECK: %[[W:.*]] = tx.through_fp8 %{{.*}} {number = 1 : i64, stored = f8E4M3FN}
    // CHECK: %[[Y:.*]] = tx.matmul %[[X]], %[[W]]
    // CHECK: tx.cotangent_through_fp8 %[[Y]] {number = 2 : i64, stored = f8E5M2}
    %y = tx.matmul %x, %w : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xbf16>
    // The last one, and what belongs to no parameter, stays.
    // CHECK: tx.matmul_nt %{{.*}}, %arg0
    // CHECK: tx.matmul %
    // CHECK-NOT: fp8
    %p = tx.matmul_nt %y, %x : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %z = tx.matmul %p, %w : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xbf16>
    %wide = tx.cast %z : tensor<16x16xbf16> -> tensor<16x16xf32>
    %loss = tx.reduce_sum %wide [0, 1] : tensor<16x16xf32> -> tensor<f32>
    train.minimize %loss : tensor<f32>
    return
  }
}

// -----

// One mark for a value that several matmuls read; forward numbers first.
// CHECK: module attributes {amp.fp8 = {backward = 2 : i64, forward = 3 : i64, rows = 64 : i64}}
module {
  train.parameter @q : tensor<32x16xbf16>
  train.parameter @k : tensor<16x32xbf16>
  // CHECK-LABEL: @shared
  func.func @shared(%batches: tensor<2x32x32xbf16>) {
    %q = train.read @q : tensor<32x16xbf16>
    %k = train.read @k : tensor<16x32xbf16>
    %sum = train.accumulate (%x = %batches) : (tensor<2x32x32xbf16>) -> tensor<f32> {
      // CHECK: %[[X:.*]] = tx.through_fp8 %{{.*}} {number = 0 : i64
      // CHECK: tx.through_fp8 %{{.*}} {number = 1 : i64
      // CHECK: tx.matmul %[[X]],
      // CHECK: tx.cotangent_through_fp8 %{{.*}} {number = 3 : i64
      // CHECK: tx.through_fp8 %{{.*}} {number = 2 : i64
      // CHECK: tx.matmul_nt %[[X]],
      // CHECK: tx.cotangent_through_fp8 %{{.*}} {number = 4 : i64
      %a = tx.matmul %x, %q : (tensor<32x32xbf16>, tensor<32x16xbf16>) -> tensor<32x16xbf16>
      %b = tx.matmul_nt %x, %k : (tensor<32x32xbf16>, tensor<16x32xbf16>) -> tensor<32x16xbf16>
      %c = tx.matmul_nt %a, %b : (tensor<32x16xbf16>, tensor<32x16xbf16>) -> tensor<32x32xbf16>
      %wide = tx.cast %c : tensor<32x32xbf16> -> tensor<32x32xf32>
      %part = tx.reduce_sum %wide [0, 1] : tensor<32x32xf32> -> tensor<f32>
      train.yield %part : tensor<f32>
    }
    train.minimize %sum : tensor<f32>
    return
  }
}

// -----

// expected-error @+1 {{precision fp8 has no effect, because no linear layer but the last has sizes that are multiples of 16; use bfloat16}}
module {
  train.parameter @w : tensor<8x8xbf16>
  func.func @small(%x: tensor<16x8xbf16>) {
    %w = train.read @w : tensor<8x8xbf16>
    %y = tx.matmul %x, %w : (tensor<16x8xbf16>, tensor<8x8xbf16>) -> tensor<16x8xbf16>
    %z = tx.matmul %y, %w : (tensor<16x8xbf16>, tensor<8x8xbf16>) -> tensor<16x8xbf16>
    %wide = tx.cast %z : tensor<16x8xbf16> -> tensor<16x8xf32>
    %loss = tx.reduce_sum %wide [0, 1] : tensor<16x8xf32> -> tensor<f32>
    train.minimize %loss : tensor<f32>
    return
  }
}

// -----

// expected-error @+1 {{precision fp8 has no effect, because the program does not train; use bfloat16}}
module {
  func.func @forward(%x: tensor<16x16xbf16>) -> tensor<16x16xbf16> {
    return %x : tensor<16x16xbf16>
  }
}
