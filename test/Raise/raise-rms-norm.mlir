// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-rms-norm{remarks}))' --split-input-file --verify-diagnostics | FileCheck %s

// LLaMA: a square, a reciprocal root, the weight on the left.
// CHECK-LABEL: @llama(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<8xf32>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}} = tx.rms_norm %[[X]], %[[W]] eps 9.9999999{{[0-9]*}}E-7
// CHECK-NEXT:    return %[[Y]]
func.func @llama(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %eps = tx.constant dense<1.0e-6> : tensor<2x3x1xf32> : tensor<2x3x1xf32>
  %s = tx.mul %x, %x : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %m = tx.reduce_mean %s [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m1 = tx.reshape %m : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %e = tx.add %m1, %eps : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r = tx.rsqrt %e : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %rb = tx.broadcast %r : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %n = tx.mul %x, %rb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %wb = tx.broadcast %w : tensor<8xf32> -> tensor<2x3x8xf32>
  // expected-remark@+1 {{raised to tx.rms_norm}}
  %y = tx.mul %wb, %n : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// A power, a root and a division.
// CHECK-LABEL: @power_and_root(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<8xf32>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}} = tx.rms_norm %[[X]], %[[W]] eps 9.9999999{{[0-9]*}}E-7
// CHECK-NEXT:    return %[[Y]]
func.func @power_and_root(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %eps = tx.constant dense<1.0e-6> : tensor<2x3x1xf32> : tensor<2x3x1xf32>
  %two = tx.constant dense<2.0> : tensor<2x3x8xf32> : tensor<2x3x8xf32>
  %s = tx.pow %x, %two : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %m = tx.reduce_mean %s [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m1 = tx.reshape %m : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %e = tx.add %eps, %m1 : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r = tx.sqrt %e : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %rb = tx.broadcast %r : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %n = tx.div %x, %rb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %wb = tx.broadcast %w : tensor<8xf32> -> tensor<2x3x8xf32>
  // expected-remark@+1 {{raised to tx.rms_norm}}
  %y = tx.mul %n, %wb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// The reciprocal of the root; the weight multiplied before it.
// CHECK-LABEL: @reciprocal(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<8xf32>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}} = tx.rms_norm %[[X]], %[[W]] eps 9.9999999{{[0-9]*}}E-7
// CHECK-NEXT:    return %[[Y]]
func.func @reciprocal(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %eps = tx.constant dense<1.0e-6> : tensor<2x3x1xf32> : tensor<2x3x1xf32>
  %s = tx.mul %x, %x : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %m = tx.reduce_mean %s [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m1 = tx.reshape %m : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %e = tx.add %m1, %eps : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r = tx.sqrt %e : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %q = tx.reciprocal %r : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %wb = tx.broadcast %w : tensor<8xf32> -> tensor<2x3x8xf32>
  %xw = tx.mul %x, %wb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %rb = tx.broadcast %q : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  // expected-remark@+1 {{raised to tx.rms_norm}}
  %y = tx.mul %xw, %rb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// A power of -1/2 of a scaled sum, joined with the weight first.
// CHECK-LABEL: @power_of_minus_half(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<8xf32>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}} = tx.rms_norm %[[X]], %[[W]] eps 9.9999999{{[0-9]*}}E-7
// CHECK-NEXT:    return %[[Y]]
func.func @power_of_minus_half(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %eps = tx.constant dense<1.0e-6> : tensor<2x3xf32> : tensor<2x3xf32>
  %p = tx.constant dense<-0.5> : tensor<2x3xf32> : tensor<2x3xf32>
  %k = tx.constant dense<0.125> : tensor<2x3xf32> : tensor<2x3xf32>
  %s = tx.mul %x, %x : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %t = tx.reduce_sum %s [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m = tx.mul %t, %k : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %e = tx.add %m, %eps : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = tx.pow %e, %p : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %r1 = tx.reshape %r : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %rb = tx.broadcast %r1 : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %wb = tx.broadcast %w : tensor<8xf32> -> tensor<2x3x8xf32>
  %wr = tx.mul %wb, %rb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  // expected-remark@+1 {{raised to tx.rms_norm}}
  %y = tx.mul %x, %wr : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// T5 in float16: the statistics and the quotient in float32, the weight after the cast back.
// CHECK-LABEL: @t5_half(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf16>, %[[W:.*]]: tensor<8xf16>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}} = tx.rms_norm %[[X]], %[[W]] eps
// CHECK-NEXT:    return %[[Y]]
func.func @t5_half(%x: tensor<2x3x8xf16>, %w: tensor<8xf16>) -> tensor<2x3x8xf16> {
  %eps = tx.constant dense<1.0e-6> : tensor<2x3x1xf32> : tensor<2x3x1xf32>
  %xf = tx.cast %x : tensor<2x3x8xf16> -> tensor<2x3x8xf32>
  %s = tx.mul %xf, %xf : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %m = tx.reduce_mean %s [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m1 = tx.reshape %m : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %e = tx.add %m1, %eps : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r = tx.rsqrt %e : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %rb = tx.broadcast %r : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %n = tx.mul %xf, %rb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %h = tx.cast %n : tensor<2x3x8xf32> -> tensor<2x3x8xf16>
  %wb = tx.broadcast %w : tensor<8xf16> -> tensor<2x3x8xf16>
  // expected-remark@+1 {{raised to tx.rms_norm}}
  %y = tx.mul %wb, %h : (tensor<2x3x8xf16>, tensor<2x3x8xf16>) -> tensor<2x3x8xf16>
  return %y : tensor<2x3x8xf16>
}

// -----

// No weight: it is one. What follows the norm is left alone.
// CHECK-LABEL: @no_weight(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf32>, %[[Z:.*]]: tensor<2x3x8xf32>
// CHECK-NEXT:    %[[W:.*]] = tx.constant dense<1.{{0*}}e+00> : tensor<8xf32>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}} = tx.rms_norm %[[X]], %[[W]] eps
// CHECK-NEXT:    tx.mul %[[Y]], %[[Z]]
func.func @no_weight(%x: tensor<2x3x8xf32>, %z: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %eps = tx.constant dense<1.0e-6> : tensor<2x3x1xf32> : tensor<2x3x1xf32>
  %s = tx.mul %x, %x : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %m = tx.reduce_mean %s [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m1 = tx.reshape %m : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %e = tx.add %m1, %eps : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r = tx.rsqrt %e : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %rb = tx.broadcast %r : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  // expected-remark@+1 {{raised to tx.rms_norm}}
  %n = tx.mul %x, %rb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %y = tx.mul %n, %z : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// The exponent is to blame, and is named.
// CHECK-LABEL: @wrong_power(
// CHECK-NOT:     rms_norm
func.func @wrong_power(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %eps = tx.constant dense<1.0e-6> : tensor<2x3x1xf32> : tensor<2x3x1xf32>
  %two = tx.constant dense<2.0001> : tensor<2x3x8xf32> : tensor<2x3x8xf32>
  %a = tx.abs %x : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %s = tx.pow %a, %two : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %m = tx.reduce_mean %s [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m1 = tx.reshape %m : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %e = tx.add %eps, %m1 : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r = tx.sqrt %e : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %rb = tx.broadcast %r : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %wb = tx.broadcast %w : tensor<8xf32> -> tensor<2x3x8xf32>
  %n = tx.div %x, %rb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  // expected-remark@+1 {{nearly rms_norm: operand 1 of tx.pow is 2.0001, it would be with 2}}
  %y = tx.mul %n, %wb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// A mean by the wrong count.
// CHECK-LABEL: @wrong_mean(
// CHECK-NOT:     rms_norm
func.func @wrong_mean(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %eps = tx.constant dense<1.0e-6> : tensor<2x3xf32> : tensor<2x3xf32>
  %k = tx.constant dense<0.12> : tensor<2x3xf32> : tensor<2x3xf32>
  %s = tx.mul %x, %x : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %t = tx.reduce_sum %s [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m = tx.mul %t, %k : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %e = tx.add %m, %eps : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = tx.rsqrt %e : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r1 = tx.reshape %r : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %rb = tx.broadcast %r1 : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  // expected-remark@+1 {{nearly rms_norm: operand 1 of tx.mul is 0.12, it would be with 0.125}}
  %y = tx.mul %x, %rb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}
