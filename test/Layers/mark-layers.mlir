// RUN: partita-opt %s --mark-layers > %t && FileCheck %s < %t && FileCheck %s --check-prefix=BRANCHES < %t && FileCheck %s --check-prefix=SHARED < %t && FileCheck %s --check-prefix=INIT < %t
// Carried on by all phases: a rank's gradient still has it, and the ledger reads it there.
// The functions below the step are no program's.
// RUN: sed '/^\/\/ Two branches of one value/,$d' %s | partita-opt --mark-layers --partita-partition=mesh=dp=2 --partita-differentiate --partita-optimize --partita-schedule --partita-fuse --partita-overlap --plan-memory | grep -o '#rt.buffer<[^>]*>' | FileCheck %s --check-prefix=LEDGER

// A parameter belongs to the layer that uses it first.
// CHECK: train.parameter @a0 : tensor<4x4xf32> {train.layer = #train.layer<0 of 2>}
// CHECK: train.parameter @b0 : tensor<4x4xf32> {train.layer = #train.layer<1 of 2>}
train.parameter @a0 : tensor<4x4xf32>
train.parameter @b0 : tensor<4x4xf32>
train.state @step : tensor<i64> = 0.0

// Two layers, each a matmul and what is added to the stream.
// CHECK-LABEL: func.func @forward
// CHECK: tx.relu %arg0 {train.layer = #train.layer<-1 of 2>
// CHECK: tx.matmul {{.*}} {train.layer = #train.layer<0 of 2>
// CHECK: tx.matmul {{.*}} {train.layer = #train.layer<1 of 2>
// CHECK: tx.exp {{.*}} {train.layer = #train.layer<-2 of 2>
func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %w0 = train.read @a0 : tensor<4x4xf32>
  %w1 = train.read @b0 : tensor<4x4xf32>
  %s = tx.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("start")
  %0 = tx.matmul %s, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.0/MatMul")
  %1 = tx.add %s, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.0/Add")
  %2 = tx.matmul %1, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.1/MatMul")
  %3 = tx.add %1, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.1/Add")
  %4 = tx.exp %3 : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("end")
  return %4 : tensor<2x4xf32>
}

// What stands beside the loop over micro-batches belongs to none.
// LEDGER-DAG: #rt.buffer<name = "/h.1/MatMul", kind = activation, bytes = {{[0-9]+}}, offset = {{[0-9]+}}, begin = {{[0-9]+}}, end = {{[0-9]+}}, place = 1>
// LEDGER-DAG: #rt.buffer<name = "/h.0/MatMul{{.*}}", kind = gradient, bytes = 64, offset = {{[0-9]+}}, begin = {{[0-9]+}}, end = {{[0-9]+}}, place = 0, backward = true>
func.func @train_step(%xs: tensor<3x2x4xf32>) -> tensor<f32> attributes {train.entry_point = #train.entry_point<train_step>} {
  %w0 = train.read @a0 : tensor<4x4xf32>
  %w1 = train.read @b0 : tensor<4x4xf32>
  %share = tx.constant dense<0.5> : tensor<f32> : tensor<f32>
  %loss = train.accumulate (%x = %xs) : (tensor<3x2x4xf32>) -> tensor<f32> {
    %s = tx.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("start")
    %0 = tx.matmul %s, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.0/MatMul")
    %1 = tx.add %s, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.0/Add")
    %2 = tx.matmul %1, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.1/MatMul")
    %3 = tx.add %1, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.1/Add")
    %4 = tx.exp %3 : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("end")
    %5 = tx.reduce_sum %4 [0, 1] : tensor<2x4xf32> -> tensor<f32> loc("sum")
    %6 = tx.mul %5, %share : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("part")
    train.yield %6 : tensor<f32>
  }
  train.minimize %loss : tensor<f32>
  return %loss : tensor<f32>
}

// What fills a parameter belongs to its layer, and @init counts the layers of the model, of which it has none.
// INIT-LABEL: func.func @init
// INIT: train.initial_value @b0 {train.layer = #train.layer<1 of 2>}
// INIT: train.write @b0, %{{.*}} {train.layer = #train.layer<1 of 2>}
// INIT: tx.constant {{.*}} {train.layer = #train.layer<-1 of 3>}
// INIT: train.write @step, %{{.*}} {train.layer = #train.layer<-1 of 3>}
func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
  %b0 = train.initial_value @b0 : tensor<4x4xf32>
  train.write @b0, %b0 : tensor<4x4xf32>
  %zero = tx.constant dense<0> : tensor<i64> : tensor<i64>
  train.write @step, %zero : tensor<i64>
  return
}

// Two branches of one value, added to the stream one after the other: neither feeds the other, and the stream is what
// both come from, not the longer of them.
// BRANCHES-LABEL: func.func @branches
// BRANCHES: tx.relu %arg0 {train.layer = #train.layer<-1 of 2>
// BRANCHES: tx.matmul {{.*}} {train.layer = #train.layer<0 of 2>
// BRANCHES: tx.matmul {{.*}} {train.layer = #train.layer<0 of 2>
// BRANCHES: tx.matmul {{.*}} {train.layer = #train.layer<1 of 2>
// BRANCHES: tx.matmul {{.*}} {train.layer = #train.layer<1 of 2>
// BRANCHES: tx.exp {{.*}} {train.layer = #train.layer<-2 of 2>
func.func @branches(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %w0 = train.read @a0 : tensor<4x4xf32>
  %w1 = train.read @b0 : tensor<4x4xf32>
  %s = tx.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("start")
  %n0 = tx.neg %s : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.0/norm")
  %a0 = tx.matmul %n0, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.0/attn")
  %0 = tx.add %s, %a0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.0/Add")
  %m0 = tx.matmul %n0, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.0/mlp")
  %g0 = tx.tanh %m0 : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.0/gate")
  %h0 = tx.mul %g0, %m0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.0/gated")
  %1 = tx.add %0, %h0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.0/Add_1")
  %n1 = tx.neg %1 : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.1/norm")
  %a1 = tx.matmul %n1, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.1/attn")
  %2 = tx.add %1, %a1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.1/Add")
  %m1 = tx.matmul %n1, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("/h.1/mlp")
  %g1 = tx.tanh %m1 : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.1/gate")
  %h1 = tx.mul %g1, %m1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.1/gated")
  %3 = tx.add %2, %h1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> loc("/h.1/Add_1")
  %4 = tx.exp %3 : (tensor<2x4xf32>) -> tensor<2x4xf32> loc("end")
  return %4 : tensor<2x4xf32>
}

// The last layer uses the first one's weight, transposed for both: a weight is outside of its layers, shared or not, and read
// wherever it is, so there are three layers.
// SHARED-LABEL: func.func @shared
// SHARED: tx.matmul %{{.*}} {train.layer = #train.layer<0 of 3>
// SHARED: tx.matmul %{{.*}} {train.layer = #train.layer<1 of 3>
// SHARED: tx.matmul %{{.*}} {train.layer = #train.layer<2 of 3>
func.func @shared(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %w0 = train.read @a0 : tensor<4x4xf32>
  %w1 = train.read @b0 : tensor<4x4xf32>
  %t0 = tx.transpose %w0 [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %t1 = tx.transpose %w1 [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %s = tx.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %0 = tx.matmul %s, %t0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = tx.add %s, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = tx.matmul %1, %t1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = tx.add %1, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = tx.matmul %3, %t0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %5 = tx.add %3, %4 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %6 = tx.exp %5 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %6 : tensor<2x4xf32>
}
