// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-layer-norm{remarks}))' --split-input-file --verify-diagnostics | FileCheck %s

// PyTorch before opset 17.
// CHECK-LABEL: @pytorch(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}}, %{{.*}} = tx.layer_norm %[[X]], %[[W]], %[[B]] eps 9.9999{{[0-9]*}}E-6
// CHECK-NEXT:    return %[[Y]]
func.func @pytorch(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %two = tx.constant dense<2.0> : tensor<2x3x8xf32> : tensor<2x3x8xf32>
  %eps = tx.constant dense<1.0e-5> : tensor<1xf32> : tensor<1xf32>
  %epsf = tx.broadcast %eps : tensor<1xf32> -> tensor<2x3x1xf32>
  %m = tx.reduce_mean %x [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m1 = tx.reshape %m : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %mb = tx.broadcast %m1 : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %d = tx.sub %x, %mb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %dd = tx.pow %d, %two : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %v = tx.reduce_mean %dd [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %v1 = tx.reshape %v : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %ve = tx.add %v1, %epsf : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %s = tx.sqrt %ve : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %sb = tx.broadcast %s : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %n = tx.div %d, %sb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %wb = tx.broadcast %w : tensor<8xf32> -> tensor<2x3x8xf32>
  %nw = tx.mul %n, %wb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %bb = tx.broadcast %b : tensor<8xf32> -> tensor<2x3x8xf32>
  // expected-remark@+1 {{raised to tx.layer_norm}}
  %y = tx.add %nw, %bb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// TensorFlow's: x (w rstd) + (b - mean w rstd); the square is a product, the mean a scaled sum.
// CHECK-LABEL: @tensorflow(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}}, %{{.*}} = tx.layer_norm %[[X]], %[[W]], %[[B]] eps
// CHECK-NEXT:    return %[[Y]]
func.func @tensorflow(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %eighth = tx.constant dense<0.125> : tensor<4xf32> : tensor<4xf32>
  %eps = tx.constant dense<1.0e-5> : tensor<4x1xf32> : tensor<4x1xf32>
  %sum = tx.reduce_sum %x [1] : tensor<4x8xf32> -> tensor<4xf32>
  %m = tx.mul %sum, %eighth : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m1 = tx.reshape %m : tensor<4xf32> -> tensor<4x1xf32>
  %mb = tx.broadcast %m1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %d = tx.sub %x, %mb : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %dd = tx.mul %d, %d : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = tx.reduce_mean %dd [1] : tensor<4x8xf32> -> tensor<4xf32>
  %v1 = tx.reshape %v : tensor<4xf32> -> tensor<4x1xf32>
  %ve = tx.add %eps, %v1 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %r = tx.rsqrt %ve : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %rb = tx.broadcast %r : tensor<4x1xf32> -> tensor<4x8xf32>
  %wb = tx.broadcast %w : tensor<8xf32> -> tensor<4x8xf32>
  %wr = tx.mul %wb, %rb : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %xwr = tx.mul %x, %wr : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %mwr = tx.mul %mb, %wr : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %bb = tx.broadcast %b : tensor<8xf32> -> tensor<4x8xf32>
  %shift = tx.sub %bb, %mwr : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{raised to tx.layer_norm}}
  %y = tx.add %xwr, %shift : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// A power of -1/2, no bias: the bias is zero. What follows the norm is left alone.
// CHECK-LABEL: @no_bias(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8xf32>, %[[R:.*]]: tensor<4x8xf32>
// CHECK-NEXT:    %[[B:.*]] = tx.constant dense<0.{{0*}}e+00> : tensor<8xf32>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}}, %{{.*}} = tx.layer_norm %[[X]], %[[W]], %[[B]] eps
// CHECK-NEXT:    tx.add %[[Y]], %[[R]]
func.func @no_bias(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %res: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %power = tx.constant dense<-0.5> : tensor<4xf32> : tensor<4xf32>
  %eps = tx.constant dense<1.0e-6> : tensor<4xf32> : tensor<4xf32>
  %m = tx.reduce_mean %x [1] : tensor<4x8xf32> -> tensor<4xf32>
  %m1 = tx.reshape %m : tensor<4xf32> -> tensor<4x1xf32>
  %mb = tx.broadcast %m1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %d = tx.sub %x, %mb : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %dd = tx.mul %d, %d : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = tx.reduce_mean %dd [1] : tensor<4x8xf32> -> tensor<4xf32>
  %ve = tx.add %v, %eps : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r = tx.pow %ve, %power : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r1 = tx.reshape %r : tensor<4xf32> -> tensor<4x1xf32>
  %rb = tx.broadcast %r1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %n = tx.mul %d, %rb : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %wb = tx.broadcast %w : tensor<8xf32> -> tensor<4x8xf32>
  // expected-remark@+1 {{raised to tx.layer_norm}}
  %y = tx.mul %wb, %n : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = tx.add %y, %res : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// -----

// The exponent is to blame, and is named.
// CHECK-LABEL: @wrong_power(
// CHECK-NOT:     layer_norm
func.func @wrong_power(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %two = tx.constant dense<2.0001> : tensor<4x8xf32> : tensor<4x8xf32>
  %eps = tx.constant dense<1.0e-5> : tensor<4xf32> : tensor<4xf32>
  %m = tx.reduce_mean %x [1] : tensor<4x8xf32> -> tensor<4xf32>
  %m1 = tx.reshape %m : tensor<4xf32> -> tensor<4x1xf32>
  %mb = tx.broadcast %m1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %d = tx.sub %x, %mb : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = tx.abs %d : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %dd = tx.pow %a, %two : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = tx.reduce_mean %dd [1] : tensor<4x8xf32> -> tensor<4xf32>
  %ve = tx.add %v, %eps : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r = tx.rsqrt %ve : (tensor<4xf32>) -> tensor<4xf32>
  %r1 = tx.reshape %r : tensor<4xf32> -> tensor<4x1xf32>
  %rb = tx.broadcast %r1 : tensor<4x1xf32> -> tensor<4x8xf32>
  // expected-remark@+1 {{nearly layer_norm: operand 1 of tx.pow is 2.0001, it would be with 2}}
  %n = tx.mul %d, %rb : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// -----

// RMSNorm subtracts no mean: another function, and no news.
// CHECK-LABEL: @rms_norm(
// CHECK-NOT:     layer_norm
func.func @rms_norm(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %eps = tx.constant dense<1.0e-5> : tensor<4xf32> : tensor<4xf32>
  %dd = tx.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = tx.reduce_mean %dd [1] : tensor<4x8xf32> -> tensor<4xf32>
  %ve = tx.add %v, %eps : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r = tx.rsqrt %ve : (tensor<4xf32>) -> tensor<4xf32>
  %r1 = tx.reshape %r : tensor<4xf32> -> tensor<4x1xf32>
  %rb = tx.broadcast %r1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %n = tx.mul %x, %rb : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// -----

// Old PyTorch's: the difference twice, one squared, one divided.
// CHECK-LABEL: @two_differences(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}}, %{{.*}} = tx.layer_norm %[[X]], %[[W]], %[[B]] eps
// CHECK-NEXT:    return %[[Y]]
func.func @two_differences(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %eps = tx.constant dense<1.0e-5> : tensor<2x3x1xf32> : tensor<2x3x1xf32>
  %m0 = tx.reduce_mean %x [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m1 = tx.reshape %m0 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %mb = tx.broadcast %m1 : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %d = tx.sub %x, %mb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %e = tx.sub %x, %mb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %dd = tx.mul %e, %e : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %v0 = tx.reduce_mean %dd [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %v1 = tx.reshape %v0 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %ve = tx.add %v1, %eps : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %s = tx.sqrt %ve : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %sb = tx.broadcast %s : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %n = tx.div %d, %sb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %wb = tx.broadcast %w : tensor<8xf32> -> tensor<2x3x8xf32>
  %bb = tx.broadcast %b : tensor<8xf32> -> tensor<2x3x8xf32>
  %nw = tx.mul %n, %wb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  // expected-remark@+1 {{raised to tx.layer_norm}}
  %y = tx.add %nw, %bb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// A product with the reciprocal of the root, the weight's product on the left.
// CHECK-LABEL: @reciprocal(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}}, %{{.*}} = tx.layer_norm %[[X]], %[[W]], %[[B]] eps
// CHECK-NEXT:    return %[[Y]]
func.func @reciprocal(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %eps = tx.constant dense<1.0e-5> : tensor<2x3x1xf32> : tensor<2x3x1xf32>
  %m0 = tx.reduce_mean %x [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m1 = tx.reshape %m0 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %mb = tx.broadcast %m1 : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %d = tx.sub %x, %mb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %dd = tx.mul %d, %d : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %v0 = tx.reduce_mean %dd [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %v1 = tx.reshape %v0 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %ve = tx.add %eps, %v1 : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %s = tx.sqrt %ve : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r = tx.reciprocal %s : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %rb = tx.broadcast %r : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %n = tx.mul %d, %rb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %wb = tx.broadcast %w : tensor<8xf32> -> tensor<2x3x8xf32>
  %bb = tx.broadcast %b : tensor<8xf32> -> tensor<2x3x8xf32>
  %nw = tx.mul %wb, %n : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  // expected-remark@+1 {{raised to tx.layer_norm}}
  %y = tx.add %bb, %nw : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// One divided by the root.
// CHECK-LABEL: @one_over_root(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}}, %{{.*}} = tx.layer_norm %[[X]], %[[W]], %[[B]] eps
// CHECK-NEXT:    return %[[Y]]
func.func @one_over_root(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %eps = tx.constant dense<1.0e-5> : tensor<2x3x1xf32> : tensor<2x3x1xf32>
  %one = tx.constant dense<1.0> : tensor<2x3x1xf32> : tensor<2x3x1xf32>
  %m0 = tx.reduce_mean %x [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m1 = tx.reshape %m0 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %mb = tx.broadcast %m1 : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %d = tx.sub %x, %mb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %dd = tx.mul %d, %d : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %v0 = tx.reduce_mean %dd [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %v1 = tx.reshape %v0 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %ve = tx.add %eps, %v1 : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %s = tx.sqrt %ve : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r = tx.div %one, %s : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %rb = tx.broadcast %r : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %n = tx.mul %rb, %d : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %wb = tx.broadcast %w : tensor<8xf32> -> tensor<2x3x8xf32>
  %bb = tx.broadcast %b : tensor<8xf32> -> tensor<2x3x8xf32>
  %nw = tx.mul %wb, %n : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  // expected-remark@+1 {{raised to tx.layer_norm}}
  %y = tx.add %bb, %nw : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// Neither weight nor bias.
// CHECK-LABEL: @bare(
// CHECK:         tx.layer_norm %{{.*}}, %{{.*}}, %{{.*}} eps
// CHECK-NEXT:    return
func.func @bare(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %eps = tx.constant dense<1.0e-5> : tensor<2x3x1xf32> : tensor<2x3x1xf32>
  %m0 = tx.reduce_mean %x [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m1 = tx.reshape %m0 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %mb = tx.broadcast %m1 : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %d = tx.sub %x, %mb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %dd = tx.mul %d, %d : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %v0 = tx.reduce_mean %dd [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %v1 = tx.reshape %v0 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %ve = tx.add %eps, %v1 : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r = tx.rsqrt %ve : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %rb = tx.broadcast %r : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  // expected-remark@+1 {{raised to tx.layer_norm}}
  %y = tx.mul %d, %rb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// Half precision: the square, the mean of squares and the root in float32.
// CHECK-LABEL: @half(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8xf16>, %[[W:.*]]: tensor<8xf16>, %[[B:.*]]: tensor<8xf16>
// CHECK-NEXT:    %[[Y:.*]], %{{.*}}, %{{.*}} = tx.layer_norm %[[X]], %[[W]], %[[B]] eps
// CHECK-NEXT:    return %[[Y]]
func.func @half(%x: tensor<2x3x8xf16>, %w: tensor<8xf16>, %b: tensor<8xf16>) -> tensor<2x3x8xf16> {
  %eps = tx.constant dense<1.0e-5> : tensor<2x3x1xf32> : tensor<2x3x1xf32>
  %xf = tx.cast %x : tensor<2x3x8xf16> -> tensor<2x3x8xf32>
  %m0 = tx.reduce_mean %xf [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %m1 = tx.reshape %m0 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %mb = tx.broadcast %m1 : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %d = tx.sub %xf, %mb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %dd = tx.mul %d, %d : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %v0 = tx.reduce_mean %dd [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %v1 = tx.reshape %v0 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %ve = tx.add %eps, %v1 : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %s = tx.sqrt %ve : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %sb = tx.broadcast %s : tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %n = tx.div %d, %sb : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %h = tx.cast %n : tensor<2x3x8xf32> -> tensor<2x3x8xf16>
  %wb = tx.broadcast %w : tensor<8xf16> -> tensor<2x3x8xf16>
  %bb = tx.broadcast %b : tensor<8xf16> -> tensor<2x3x8xf16>
  %nw = tx.mul %h, %wb : (tensor<2x3x8xf16>, tensor<2x3x8xf16>) -> tensor<2x3x8xf16>
  // expected-remark@+1 {{raised to tx.layer_norm}}
  %y = tx.add %nw, %bb : (tensor<2x3x8xf16>, tensor<2x3x8xf16>) -> tensor<2x3x8xf16>
  return %y : tensor<2x3x8xf16>
}

// -----

// What a select decides by is no weight, though it has as many elements.
// CHECK-LABEL: @condition_of_one
// CHECK-NEXT:    tx.sqrt
// CHECK-NEXT:    tx.select
func.func @condition_of_one(%x: tensor<1xf32>, %c: tensor<1xi1>) -> tensor<1xf32> {
  %root = tx.sqrt %x : (tensor<1xf32>) -> tensor<1xf32>
  %y = tx.select %c, %x, %root : (tensor<1xi1>, tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  return %y : tensor<1xf32>
}

// -----

// Two numbers of opposite sign are normalized to 1 and -1, which their signs are, too.
// CHECK-LABEL: @sign_of_two
// CHECK-NOT:     tx.layer_norm
// CHECK:         tx.div
func.func @sign_of_two(%x: tensor<2xf32>) -> tensor<2xf32> {
  %e = tx.constant dense<1.0e-8> : tensor<2xf32> : tensor<2xf32>
  %q = tx.mul %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %s = tx.sqrt %q : (tensor<2xf32>) -> tensor<2xf32>
  %m = tx.max %s, %e shared : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %y = tx.div %x, %m : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
