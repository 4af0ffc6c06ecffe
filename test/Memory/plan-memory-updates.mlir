// RUN: partita-opt %s --plan-memory --split-input-file | FileCheck %s

// Updates become one launch on a GPU only if none writes where another one reads: what they read lives until the last of them. The
// arena is no larger for it.
// CHECK-LABEL: func.func @one_launch
// CHECK: tx.exp %arg0 {rt.buffers = [#rt.at<arena [[GRADIENT:[0-9]+]]>]
// CHECK: train.sgd
// CHECK-NOT: train.sgd {{.*}}#rt.at<arena [[GRADIENT]]>
// CHECK: return
module attributes {rt.target = "cuda"} {
func.func @one_launch(%p: tensor<64xf32>, %q: tensor<1024xf32>, %rate: tensor<f32>) -> tensor<64xf32> {
  %large = tx.exp %q : (tensor<1024xf32>) -> tensor<1024xf32>
  %sum = tx.reduce_sum %large [0] : tensor<1024xf32> -> tensor<f32>
  %g0 = tx.exp %p : (tensor<64xf32>) -> tensor<64xf32>
  %g1 = tx.tanh %p : (tensor<64xf32>) -> tensor<64xf32>
  %r0 = train.sgd %p, %g0, %rate {decay = 0.0} : (tensor<64xf32>, tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %r1 = train.sgd %p, %g1, %sum {decay = 0.0} : (tensor<64xf32>, tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %s = tx.add %r0, %r1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}
}

// -----

// Here it would be: the second update writes where the first one's gradient was.
// CHECK-LABEL: func.func @small_arena
// CHECK: tx.exp %arg0 {rt.buffers = [#rt.at<arena [[GRADIENT:[0-9]+]]>]
// CHECK: train.sgd
// CHECK: train.sgd {{.*}}#rt.at<arena [[GRADIENT]]>
module attributes {rt.target = "cuda"} {
func.func @small_arena(%p: tensor<64xf32>, %rate: tensor<f32>) -> tensor<64xf32> {
  %g0 = tx.exp %p : (tensor<64xf32>) -> tensor<64xf32>
  %g1 = tx.tanh %p : (tensor<64xf32>) -> tensor<64xf32>
  %r0 = train.sgd %p, %g0, %rate {decay = 0.0} : (tensor<64xf32>, tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %r1 = train.sgd %p, %g1, %rate {decay = 0.0} : (tensor<64xf32>, tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %s = tx.add %r0, %r1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}
}

// -----

// A CPU gains nothing by it.
// CHECK-LABEL: func.func @on_a_cpu
// CHECK: tx.exp %arg0 {rt.buffers = [#rt.at<arena [[GRADIENT:[0-9]+]]>]
// CHECK: train.sgd
// CHECK: train.sgd {{.*}}#rt.at<arena [[GRADIENT]]>
func.func @on_a_cpu(%p: tensor<64xf32>, %q: tensor<1024xf32>, %rate: tensor<f32>) -> tensor<64xf32> {
  %large = tx.exp %q : (tensor<1024xf32>) -> tensor<1024xf32>
  %sum = tx.reduce_sum %large [0] : tensor<1024xf32> -> tensor<f32>
  %g0 = tx.exp %p : (tensor<64xf32>) -> tensor<64xf32>
  %g1 = tx.tanh %p : (tensor<64xf32>) -> tensor<64xf32>
  %r0 = train.sgd %p, %g0, %rate {decay = 0.0} : (tensor<64xf32>, tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %r1 = train.sgd %p, %g1, %sum {decay = 0.0} : (tensor<64xf32>, tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %s = tx.add %r0, %r1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}
