// RUN: partita-opt %s --plan-memory | FileCheck %s

// CHECK: module attributes {rt.arena_bytes = {{[0-9]+}} : i64, rt.ledger

!partial = tensor<64xf32, #par.place<[64], partial [dp]>>

// What dies gives its place: the result of an elementwise op stands where its operand stood.
// CHECK-LABEL: func.func @in_place
// CHECK: tx.relu %arg0 {rt.buffers = [#rt.at<arena 0>]}
// CHECK-NEXT: tx.exp {{.*}} {rt.buffers = [#rt.at<arena 0>]}
func.func @in_place(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tx.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tx.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// A value that is used later keeps its own place; offsets are multiples of 64.
// CHECK-LABEL: func.func @kept
// CHECK: tx.relu %arg0 {rt.buffers = [#rt.at<arena [[A:[0-9]+]]>]}
// CHECK: tx.exp {{.*}} {rt.buffers = [#rt.at<arena [[B:[0-9]+]]>]}
// CHECK: tx.add {{.*}} {rt.buffers = [#rt.at<arena [[A]]>]}
func.func @kept(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tx.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tx.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = tx.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// Where the kernel reads the operand once more as another one, it may not be overwritten.
// CHECK-LABEL: func.func @twice
// CHECK: tx.exp {{.*}} {rt.buffers = [#rt.at<arena [[DY:[0-9]+]]>]}
// CHECK-NOT: tx.rms_norm_grad_add {{.*}} {rt.buffers = [#rt.at<arena [[DY]]>
func.func @twice(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %rstd: tensor<4xf32>) -> tensor<4x8xf32> {
  %0 = tx.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %dx, %dw = tx.rms_norm_grad_add %x, %w, %rstd, %0, %0 : (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return %dx : tensor<4x8xf32>
}

// The packed projection of query, key and value is read in place: slices and reshapes are views.
// CHECK-LABEL: func.func @packed
// CHECK: tx.matmul {{.*}}rt.buffers = [#rt.at<arena [[QKV:[0-9]+]]>]
// CHECK: tx.slice {{.*}}[0, 0, 0]{{.*}}rt.buffers = [#rt.at<arena [[QKV]], [48, 12, 1]>]
// CHECK: tx.reshape {{.*}}rt.buffers = [#rt.at<arena [[QKV]], [48, 12, 2, 1]>]
// CHECK: tx.attention
func.func @packed(%x: tensor<2x4x4xf32>, %w: tensor<4x12xf32>) -> tensor<2x4x2x2xf32> {
  %0 = tx.matmul %x, %w : (tensor<2x4x4xf32>, tensor<4x12xf32>) -> tensor<2x4x12xf32>
  %1 = tx.slice %0 [0, 0, 0] by [1, 1, 1] : tensor<2x4x12xf32> -> tensor<2x4x4xf32>
  %2 = tx.slice %0 [0, 0, 4] by [1, 1, 1] : tensor<2x4x12xf32> -> tensor<2x4x4xf32>
  %3 = tx.slice %0 [0, 0, 8] by [1, 1, 1] : tensor<2x4x12xf32> -> tensor<2x4x4xf32>
  %q = tx.reshape %1 : tensor<2x4x4xf32> -> tensor<2x4x2x2xf32>
  %k = tx.reshape %2 : tensor<2x4x4xf32> -> tensor<2x4x2x2xf32>
  %v = tx.reshape %3 : tensor<2x4x4xf32> -> tensor<2x4x2x2xf32>
  %out, %lse = tx.attention %q, %k, %v scale 0.5 causal : (tensor<2x4x2x2xf32>, tensor<2x4x2x2xf32>, tensor<2x4x2x2xf32>) -> (tensor<2x4x2x2xf32>, tensor<2x2x4xf32>)
  return %out : tensor<2x4x2x2xf32>
}

// A kernel that wants dense rows gets a copy.
// CHECK-LABEL: func.func @copied
// CHECK: tx.slice {{.*}}rt.buffers = [#rt.at<arena {{[0-9]+}}>]
func.func @copied(%x: tensor<4x6xf32>) -> tensor<4x3xf32> {
  %0 = tx.relu %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = tx.slice %0 [0, 3] by [1, 1] : tensor<4x6xf32> -> tensor<4x3xf32>
  %2 = tx.softmax %1 : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}

// The operands of a concatenation are computed into their places in it.
// CHECK-LABEL: func.func @joined
// CHECK: tx.exp {{.*}}rt.buffers = [#rt.at<arena [[C:[0-9]+]], [6, 1]>]
// CHECK: tx.tanh {{.*}}rt.buffers = [#rt.at<arena {{[0-9]+}}, [6, 1]>]
// CHECK: tx.concat {{.*}}rt.buffers = [#rt.at<arena [[C]]>]
func.func @joined(%x: tensor<4x3xf32>) -> tensor<4x6xf32> {
  %0 = tx.exp %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = tx.tanh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = tx.concat %0, %1 along 1 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}

// A constant that is only written as a literal has no memory, a broadcast none of its own.
// CHECK-LABEL: func.func @literal
// CHECK: tx.constant {{.*}}rt.buffers = [#rt.at<none>]
// CHECK: tx.broadcast %arg1 {rt.buffers = [#rt.at<input 1, [0, 1]>]}
func.func @literal(%x: tensor<2x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %c = tx.constant dense<2.0> : tensor<2x4xf32> : tensor<2x4xf32>
  %0 = tx.mul %x, %c : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = tx.broadcast %b : tensor<4xf32> -> tensor<2x4xf32>
  %2 = tx.add %0, %1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// What a collective works on lives until its wait and is not shared meanwhile: %y goes elsewhere.
// CHECK-LABEL: func.func @asynchronous
// CHECK: tx.neg %arg0 {rt.buffers = [#rt.at<arena [[G:[0-9]+]]>]}
// CHECK: par.all_reduce_start {{.*}}rt.buffers = [#rt.at<arena [[G]]>]
// CHECK-NOT: tx.neg {{.*}}#rt.at<arena [[G]]>
// CHECK: par.wait {{.*}}rt.buffers = [#rt.at<arena [[G]]>]
func.func @asynchronous(%x: !partial) -> (tensor<64xf32>, !partial) attributes {par.no_cotangents} {
  %0 = tx.neg %x : (!partial) -> !partial
  %p = par.all_reduce_start %0 over "dp" : !partial -> i64
  %y = tx.neg %x : (!partial) -> !partial
  %s = par.wait %p, %0 : i64, !partial -> tensor<64xf32>
  return %s, %y : tensor<64xf32>, !partial
}

// A collective whose operand others still read works on a copy.
// CHECK-LABEL: func.func @read_meanwhile
// CHECK: tx.neg %arg0 {rt.buffers = [#rt.at<arena [[G:[0-9]+]]>]}
// CHECK-NOT: par.all_reduce_start {{.*}}rt.buffers = [#rt.at<arena [[G]]>]
// CHECK: par.wait
func.func @read_meanwhile(%x: !partial) -> (tensor<64xf32>, !partial) attributes {par.no_cotangents} {
  %0 = tx.neg %x : (!partial) -> !partial
  %p = par.all_reduce_start %0 over "dp" : !partial -> i64
  %s = par.wait %p, %0 : i64, !partial -> tensor<64xf32>
  %y = tx.neg %0 : (!partial) -> !partial
  return %s, %y : tensor<64xf32>, !partial
}

// CHECK: train.parameter @w {{.*}}rt.at = #rt.at<persistent 256>
train.parameter @w : tensor<4xf32>
// CHECK: train.state @w.m {{.*}}rt.at = #rt.at<persistent 272>
train.state @w.m : tensor<4xf32> = 0.0 of @w "m"
train.state @w.v : tensor<4xf32> = 0.0 of @w "v"

// An update that is written back takes the parameter's own place.
// CHECK-LABEL: func.func @update
// CHECK: train.adamw {{.*}}rt.buffers = [#rt.at<persistent 256>, #rt.at<persistent 272>, #rt.at<persistent 288>]
func.func @update(%g: tensor<4xf32>) {
  %w = train.read @w : tensor<4xf32>
  %m = train.read @w.m : tensor<4xf32>
  %v = train.read @w.v : tensor<4xf32>
  %rate = train.learning_rate : tensor<f32>
  %t = train.step_number : tensor<f32>
  %w1, %m1, %v1 = train.adamw %w, %g, %m, %v, %rate, %t {beta1 = 0.9, beta2 = 0.999, epsilon = 1.0e-8, decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  train.write @w, %w1 : tensor<4xf32>
  train.write @w.m, %m1 : tensor<4xf32>
  train.write @w.v, %v1 : tensor<4xf32>
  return
}

// Somebody reads the old value afterwards: the new one is made elsewhere.
// CHECK-LABEL: func.func @old_value
// CHECK: train.sgd {{.*}}rt.buffers = [#rt.at<arena
func.func @old_value(%g: tensor<4xf32>) -> tensor<4xf32> {
  %w = train.read @w : tensor<4xf32>
  %rate = train.learning_rate : tensor<f32>
  %w1 = train.sgd %w, %g, %rate {decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %0 = tx.exp %w : (tensor<4xf32>) -> tensor<4xf32>
  train.write @w, %w1 : tensor<4xf32>
  return %0 : tensor<4xf32>
}


// What is written to a parameter that nobody reads is computed there.
train.parameter @fresh : tensor<64xf32>
// CHECK-LABEL: func.func @init
// CHECK: train.initial_value @fresh {rt.buffers = [#rt.at<persistent {{[0-9]+}}>]}
func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
  %0 = train.initial_value @fresh : tensor<64xf32>
  train.write @fresh, %0 : tensor<64xf32>
  return
}

// The host reads what @forward returns: an input and a view of one are copied, the rest stands where it was computed.
// CHECK-LABEL: func.func @forward
// CHECK: tx.reshape %arg0 {rt.buffers = [#rt.at<input 0>]}
// CHECK: tx.relu %arg0 {rt.buffers = [#rt.at<arena [[RELU:[0-9]+]]>]}
// CHECK: tx.reshape {{.*}} {rt.buffers = [#rt.at<arena [[RELU]]>]}
// CHECK: return {rt.buffers = [#rt.at<arena [[X:[0-9]+]]>, #rt.at<arena [[Y:[0-9]+]]>, #rt.at<arena [[RELU]]>]} %arg0, %0, %2
func.func @forward(%x: tensor<2x4xf32> {train.name = "x", train.role = "data"}) -> (tensor<2x4xf32>, tensor<8xf32>, tensor<8xf32>) attributes {train.entry_point = #train.entry_point<forward>} {
  %0 = tx.reshape %x : tensor<2x4xf32> -> tensor<8xf32>
  %1 = tx.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = tx.reshape %1 : tensor<2x4xf32> -> tensor<8xf32>
  return %x, %0, %2 : tensor<2x4xf32>, tensor<8xf32>, tensor<8xf32>
}
