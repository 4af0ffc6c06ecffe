// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-activation{remarks}))' --split-input-file --verify-diagnostics | FileCheck %s

// PyTorch's gelu_new, as GPT-2 exports it: x^3 by a power, half x in front.
// CHECK-LABEL: @gpt2(
// CHECK-SAME:    %[[X:.*]]: tensor<2x8xf32>
// CHECK-NEXT:    %[[Y:.*]] = tx.gelu_tanh %[[X]] : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @gpt2(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %half = tx.constant dense<0.5> : tensor<2x8xf32> : tensor<2x8xf32>
  %three = tx.constant dense<3.0> : tensor<2x8xf32> : tensor<2x8xf32>
  %c = tx.constant dense<0.0447149985> : tensor<2x8xf32> : tensor<2x8xf32>
  %r = tx.constant dense<0.797884583> : tensor<2x8xf32> : tensor<2x8xf32>
  %one = tx.constant dense<1.0> : tensor<2x8xf32> : tensor<2x8xf32>
  %hx = tx.mul %x, %half : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %x3 = tx.pow %x, %three : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %cx3 = tx.mul %x3, %c : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %sum = tx.add %x, %cx3 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %u = tx.mul %sum, %r : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %t = tx.tanh %u : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %t1 = tx.add %t, %one : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  // expected-remark@+1 {{raised to tx.gelu_tanh}}
  %y = tx.mul %hx, %t1 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// TensorFlow's: the half multiplies the bracket.
// CHECK-LABEL: @tensorflow(
// CHECK-NEXT:    tx.gelu_tanh %{{.*}} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    return
func.func @tensorflow(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = tx.constant dense<0.5> : tensor<4xf32> : tensor<4xf32>
  %three = tx.constant dense<3.0> : tensor<4xf32> : tensor<4xf32>
  %c = tx.constant dense<0.044715> : tensor<4xf32> : tensor<4xf32>
  %r = tx.constant dense<0.7978845608> : tensor<4xf32> : tensor<4xf32>
  %one = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
  %x3 = tx.pow %x, %three : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %cx3 = tx.mul %c, %x3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %sum = tx.add %cx3, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %u = tx.mul %r, %sum : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = tx.tanh %u : (tensor<4xf32>) -> tensor<4xf32>
  %t1 = tx.add %one, %t : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = tx.mul %t1, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+1 {{raised to tx.gelu_tanh}}
  %y = tx.mul %x, %p : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// OpenAI's and Megatron's: x * 0.5 * (1 + tanh(r x (1 + c x x))).
// CHECK-LABEL: @megatron(
// CHECK-NEXT:    tx.gelu_tanh
// CHECK-NEXT:    return
func.func @megatron(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = tx.constant dense<0.5> : tensor<4xf32> : tensor<4xf32>
  %c = tx.constant dense<0.044715> : tensor<4xf32> : tensor<4xf32>
  %r = tx.constant dense<0.79788456> : tensor<4xf32> : tensor<4xf32>
  %one = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
  %cx = tx.mul %c, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %cxx = tx.mul %cx, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = tx.add %one, %cxx : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %rx = tx.mul %r, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %u = tx.mul %rx, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = tx.tanh %u : (tensor<4xf32>) -> tensor<4xf32>
  %t1 = tx.add %one, %t : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %hx = tx.mul %x, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+1 {{raised to tx.gelu_tanh}}
  %y = tx.mul %hx, %t1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// PyTorch's tanh approximation: x * x * x by two products, the half last. What x is made of stays.
// CHECK-LABEL: @pytorch(
// CHECK-NEXT:    %[[X:.*]] = tx.add
// CHECK-NEXT:    %[[Y:.*]] = tx.gelu_tanh %[[X]]
// CHECK-NEXT:    return %[[Y]]
func.func @pytorch(%a: tensor<4xf32>, %bias: tensor<4xf32>) -> tensor<4xf32> {
  %x = tx.add %a, %bias : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %half = tx.constant dense<0.5> : tensor<4xf32> : tensor<4xf32>
  %c = tx.constant dense<0.044715> : tensor<4xf32> : tensor<4xf32>
  %r = tx.constant dense<0.79788456> : tensor<4xf32> : tensor<4xf32>
  %one = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
  %xx = tx.mul %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %xxx = tx.mul %xx, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %cx = tx.mul %c, %xxx : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = tx.add %x, %cx : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %u = tx.mul %r, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = tx.tanh %u : (tensor<4xf32>) -> tensor<4xf32>
  %t1 = tx.add %t, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = tx.mul %x, %t1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+1 {{raised to tx.gelu_tanh}}
  %y = tx.mul %p, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// The exact form.
// CHECK-LABEL: @erf(
// CHECK-NEXT:    tx.gelu %{{.*}} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    return
func.func @erf(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = tx.constant dense<0.5> : tensor<4xf32> : tensor<4xf32>
  %root = tx.constant dense<1.41421354> : tensor<4xf32> : tensor<4xf32>
  %one = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
  %d = tx.div %x, %root : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = tx.erf %d : (tensor<4xf32>) -> tensor<4xf32>
  %e1 = tx.add %e, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = tx.mul %x, %e1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+1 {{raised to tx.gelu}}
  %y = tx.mul %p, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// The exact form, x halved first and a product in place of the quotient.
// CHECK-LABEL: @erf_half_first(
// CHECK-NEXT:    tx.gelu %{{.*}} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    return
func.func @erf_half_first(%x: tensor<4xf32>) -> tensor<4xf32> {
  %h = tx.constant dense<0.5> : tensor<4xf32> : tensor<4xf32>
  %r = tx.constant dense<0.70710678> : tensor<4xf32> : tensor<4xf32>
  %one = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
  %xh = tx.mul %x, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %xr = tx.mul %x, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = tx.erf %xr : (tensor<4xf32>) -> tensor<4xf32>
  %e1 = tx.add %one, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+1 {{raised to tx.gelu}}
  %y = tx.mul %xh, %e1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// The half last.
// CHECK-LABEL: @erf_half_last(
// CHECK-NEXT:    tx.gelu %{{.*}} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    return
func.func @erf_half_last(%x: tensor<4xf32>) -> tensor<4xf32> {
  %h = tx.constant dense<0.5> : tensor<4xf32> : tensor<4xf32>
  %r = tx.constant dense<1.41421356> : tensor<4xf32> : tensor<4xf32>
  %one = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
  %xr = tx.div %x, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = tx.erf %xr : (tensor<4xf32>) -> tensor<4xf32>
  %e1 = tx.add %e, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = tx.mul %x, %e1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+1 {{raised to tx.gelu}}
  %y = tx.mul %p, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// The half on the bracket.
// CHECK-LABEL: @erf_half_inside(
// CHECK-NEXT:    tx.gelu %{{.*}} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    return
func.func @erf_half_inside(%x: tensor<4xf32>) -> tensor<4xf32> {
  %h = tx.constant dense<0.5> : tensor<4xf32> : tensor<4xf32>
  %r = tx.constant dense<1.41421356> : tensor<4xf32> : tensor<4xf32>
  %one = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
  %xr = tx.div %x, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e = tx.erf %xr : (tensor<4xf32>) -> tensor<4xf32>
  %e1 = tx.add %e, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = tx.mul %h, %e1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+1 {{raised to tx.gelu}}
  %y = tx.mul %p, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// GPT-2's: the cube is a power.
// CHECK-LABEL: @cube_by_power(
// CHECK-NEXT:    tx.gelu_tanh %{{.*}} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    return
func.func @cube_by_power(%x: tensor<4xf32>) -> tensor<4xf32> {
  %h = tx.constant dense<0.5> : tensor<4xf32> : tensor<4xf32>
  %three = tx.constant dense<3.0> : tensor<4xf32> : tensor<4xf32>
  %k = tx.constant dense<0.044715> : tensor<4xf32> : tensor<4xf32>
  %r = tx.constant dense<0.79788456> : tensor<4xf32> : tensor<4xf32>
  %one = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
  %x3 = tx.pow %x, %three : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %kx = tx.mul %x3, %k : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %i = tx.add %x, %kx : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %ri = tx.mul %i, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = tx.tanh %ri : (tensor<4xf32>) -> tensor<4xf32>
  %t1 = tx.add %t, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %xh = tx.mul %x, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+1 {{raised to tx.gelu_tanh}}
  %y = tx.mul %xh, %t1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A power that is not quite a cube is named.
// CHECK-LABEL: @wrong_power(
// CHECK:         tx.tanh
// CHECK-NOT:     gelu
func.func @wrong_power(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = tx.constant dense<0.5> : tensor<4xf32> : tensor<4xf32>
  %c = tx.constant dense<0.0447> : tensor<4xf32> : tensor<4xf32>
  %r = tx.constant dense<0.79788456> : tensor<4xf32> : tensor<4xf32>
  %one = tx.constant dense<1.0> : tensor<4xf32> : tensor<4xf32>
  %xx = tx.mul %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %xxx = tx.mul %xx, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %cx = tx.mul %xxx, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = tx.add %x, %cx : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %u = tx.mul %r, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = tx.tanh %u : (tensor<4xf32>) -> tensor<4xf32>
  %t1 = tx.add %t, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = tx.mul %x, %t1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+1 {{nearly gelu_tanh: operand 1 of tx.mul is 0.0447, it would be with 0.044715}}
  %y = tx.mul %p, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// The tanh of another tensor is no GELU; neither is a sigmoid of another slope.
// CHECK-LABEL: @others(
// CHECK-NOT:     {{gelu|silu}}
func.func @others(%x: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %t = tx.tanh %z : (tensor<4xf32>) -> tensor<4xf32>
  %y = tx.mul %x, %t : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = tx.constant dense<2.5> : tensor<4xf32> : tensor<4xf32>
  %cx = tx.mul %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = tx.sigmoid %cx : (tensor<4xf32>) -> tensor<4xf32>
  %silu = tx.mul %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y, %silu : tensor<4xf32>, tensor<4xf32>
}

// -----

// CLIP.
// CHECK-LABEL: @quick_gelu(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>
// CHECK-NEXT:    tx.quick_gelu %[[X]]
func.func @quick_gelu(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c = tx.constant dense<1.702> : tensor<4x8xf32> : tensor<4x8xf32>
  %s = tx.mul %x, %c : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %g = tx.sigmoid %s : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{raised to tx.quick_gelu}}
  %y = tx.mul %x, %g : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// LLaMA's gate: what it is multiplied with is left alone.
// CHECK-LABEL: @swiglu(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>, %[[U:.*]]: tensor<4x8xf32>
// CHECK-NEXT:    %[[S:.*]] = tx.silu %[[X]]
// CHECK-NEXT:    tx.mul %[[S]], %[[U]]
func.func @swiglu(%x: tensor<4x8xf32>, %u: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %g = tx.sigmoid %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{raised to tx.silu}}
  %s = tx.mul %g, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = tx.mul %s, %u : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @nearly_quick_gelu(
// CHECK-NOT:     quick_gelu
func.func @nearly_quick_gelu(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c = tx.constant dense<1.7> : tensor<4x8xf32> : tensor<4x8xf32>
  %s = tx.mul %x, %c : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %g = tx.sigmoid %s : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{nearly quick_gelu: operand 1 of tx.mul is 1.7, it would be with 1.702}}
  %y = tx.mul %x, %g : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
