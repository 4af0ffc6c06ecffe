// What each buffer is for, and for which layer, by the op that made it.
// RUN: partita-opt %s --plan-memory | grep -oE '#rt.(ledger<[^[]*|buffer<[^>]*>)' | FileCheck %s

!heads = tensor<2x4x2x2xf32>
!partial = tensor<4x4xf32, #par.place<[4, 4], partial [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
  train.parameter @w : tensor<4x4xf32>

  // A kernel's scratch lives for one op.
  // CHECK-DAG: #rt.buffer<name = "/h.3/attn", kind = activation, bytes = 128, offset = {{[0-9]+}}, begin = 0, end = 1, place = 3>
  // CHECK-DAG: #rt.buffer<name = "/h.3/attn (workspace)", kind = workspace, bytes = 64, offset = {{[0-9]+}}, begin = 1, end = 1, place = 3, backward = true>
  // CHECK-DAG: at = 1, name = "tx.attention_grad", node = "/h.3/attn", place = 3, backward = true,
  func.func @scratch(%q: !heads, %k: !heads, %v: !heads, %dout: !heads) -> (!heads, !heads, !heads) {
    %out, %lse = tx.attention %q, %k, %v scale 0.5 causal {train.layer = #train.layer<3 of 4>} : (!heads, !heads, !heads) -> (!heads, tensor<2x2x4xf32>) loc("/h.3/attn")
    %dq, %dk, %dv = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal {train.backward, train.layer = #train.layer<3 of 4>} : (!heads, !heads, !heads, !heads, tensor<2x2x4xf32>, !heads) -> (!heads, !heads, !heads) loc("/h.3/attn")
    return %dq, %dk, %dv : !heads, !heads, !heads
  }

  // What an update takes is a gradient, and so are the two that it is the sum of, over ranks; what ranks add up in because
  // others still read the operand is there for the exchange. No layer is noted: -5.
  // CHECK-DAG: #rt.buffer<name = "first", kind = gradient, {{.*}}place = -5
  // CHECK-DAG: #rt.buffer<name = "second", kind = gradient, {{.*}}place = -5
  // CHECK-DAG: #rt.buffer<name = "read twice", kind = communication, {{.*}}place = -5
  // CHECK-DAG: #rt.buffer<name = "read twice", kind = activation, {{.*}}place = -5
  func.func @update(%x: !partial) -> !partial attributes {par.no_cotangents} {
    %w = train.read @w : tensor<4x4xf32>
    %rate = train.learning_rate : tensor<f32>
    %0 = tx.neg %x {train.backward} : (!partial) -> !partial loc("first")
    %1 = tx.neg %0 {train.backward} : (!partial) -> !partial loc("second")
    %2 = tx.add %0, %1 {train.backward} : (!partial, !partial) -> !partial loc("sum")
    %p = par.all_reduce_start %2 over "dp" : !partial -> i64
    %g = par.wait %p, %2 : i64, !partial -> tensor<4x4xf32>
    %w1 = train.sgd %w, %g, %rate {decay = 0.0} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
    train.write @w, %w1 : tensor<4x4xf32>
    %3 = tx.neg %x : (!partial) -> !partial loc("read twice")
    %q = par.all_reduce_start %3 over "dp" : !partial -> i64
    %s = par.wait %q, %3 : i64, !partial -> tensor<4x4xf32>
    %4 = tx.neg %3 : (!partial) -> !partial
    return %4 : !partial
  }
}
