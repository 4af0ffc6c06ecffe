// RUN: partita-opt %s --outline-layers --split-input-file --mlir-print-local-scope --mlir-print-debuginfo | FileCheck %s

// What layers differ in are the table's columns: numbers that differ by a constant share one. What the function's own rows
// have in common stays in it.
// CHECK-LABEL: rt.layer @h_forward of ["h.0", "h.1", "h.2"] columns ["previous_mlp", "mlp_weight"]
// CHECK-SAME: [array<i64: 0, 64, 128>, array<i64: 0, 128, 256>] pending [] copies []
// CHECK: rt.comment "mlp"
// CHECK-NEXT: %[[Y:.*]] = rt.arena 64 [4, 4] {rt.columns = {offset = #rt.column<"previous_mlp" plus 64>}{{.*}} : <f32> loc("mlp")
// CHECK-NEXT: %[[X:.*]] = rt.arena 0 [4, 4] {rt.columns = {offset = #rt.column<"previous_mlp">}{{.*}} : <f32> loc("previous_mlp")
// CHECK-NEXT: %[[W:.*]] = rt.persistent 0 [4, 4] {rt.columns = {offset = #rt.column<"mlp_weight">}{{.*}} : <f32> loc("mlp_weight")
// CHECK-NEXT: rt.gemm %[[Y]], %[[X]], %[[W]]
// CHECK-COUNT-5: rt.gemm %[[Y]], %[[Y]], %[[W]]
// CHECK-NOT: rt.gemm
// CHECK-LABEL: func.func @train_step
// CHECK-NEXT: rt.comment "wte"
// CHECK-NEXT: %[[FIRST:.*]] = rt.arena 0 [16]
// CHECK-NEXT: rt.fill %[[FIRST]]
// CHECK-NEXT: rt.call @h_forward 0 times 3 pending [] copies []
// CHECK-NEXT: rt.comment "ln_f"
// CHECK-NEXT: %[[LAST:.*]] = rt.arena 192 [4, 4]
// CHECK-NEXT: rt.softmax_forward %[[LAST]], %[[LAST]]
// CHECK-NEXT: return
func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
  rt.comment "wte"
  %x = rt.arena 0 [16] : <f32> loc("wte")
  rt.fill %x {value = 0.0 : f64, n = 16 : i64} : !rt.buffer<f32>
  rt.comment "h.0.mlp"
  %y0 = rt.arena 64 [4, 4] : <f32> loc("h_0_mlp")
  %w0 = rt.persistent 0 [4, 4] : <f32> loc("h_0_mlp_weight")
  rt.gemm %y0, %x, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "h.1.mlp"
  %y1 = rt.arena 128 [4, 4] : <f32> loc("h_1_mlp")
  %w1 = rt.persistent 128 [4, 4] : <f32> loc("h_1_mlp_weight")
  rt.gemm %y1, %y0, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "h.2.mlp"
  %y2 = rt.arena 192 [4, 4] : <f32> loc("h_2_mlp")
  %w2 = rt.persistent 256 [4, 4] : <f32> loc("h_2_mlp_weight")
  rt.gemm %y2, %y1, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "ln_f"
  rt.softmax_forward %y2, %y2 {rows = 4 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  return
}

// -----

// A layer that is another one stays, and so do few calls.
// CHECK-LABEL: func.func @train_step
// CHECK-COUNT-18: rt.gemm
// CHECK: rt.comment "g.0.mlp"
// CHECK-COUNT-8: rt.gemm
// CHECK-NOT: rt.call
func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
  %x = rt.arena 0 [4, 4] : <f32> loc("wte")
  rt.comment "h.0.mlp"
  %y0 = rt.arena 64 [4, 4] : <f32> loc("h_0_mlp")
  %w0 = rt.persistent 0 [4, 4] : <f32> loc("h_0_mlp_weight")
  rt.gemm %y0, %x, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "h.1.mlp"
  %y1 = rt.arena 128 [4, 4] : <f32> loc("h_1_mlp")
  %w1 = rt.persistent 128 [4, 4] : <f32> loc("h_1_mlp_weight")
  rt.gemm %y1, %y0, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 8 : i64, lda = 8 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "h.2.mlp"
  %y2 = rt.arena 192 [4, 4] : <f32> loc("h_2_mlp")
  %w2 = rt.persistent 256 [4, 4] : <f32> loc("h_2_mlp_weight")
  rt.gemm %y2, %y1, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  return
}
func.func @forward() attributes {train.entry_point = #train.entry_point<forward>} {
  %x = rt.arena 0 [4, 4] : <f32> loc("wte")
  rt.comment "g.0.mlp"
  %y0 = rt.arena 64 [4, 4] : <f32> loc("g_0_mlp")
  %w0 = rt.persistent 0 [4, 4] : <f32> loc("g_0_mlp_weight")
  rt.gemm %y0, %x, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "g.1.mlp"
  %y1 = rt.arena 128 [4, 4] : <f32> loc("g_1_mlp")
  %w1 = rt.persistent 128 [4, 4] : <f32> loc("g_1_mlp_weight")
  rt.gemm %y1, %y0, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  return
}

// -----

// What a layer begins and another one waits for is declared by their caller, unless it is declared already (p2, as for a pass of a
// schedule); what it waits for itself is its own. Why something is
// exchanged is a column of text. Comments name nothing: the function is called after its tensors.
// CHECK-LABEL: rt.layer @h_forward of ["h.0", "h.1", "h.2"] columns ["why", "previous_mlp", "mlp_weight"]
// CHECK-SAME: {{[[][[]}}"g0", "g1", "g2"], {{.*}} pending ["started", "awaited"] copies []
// CHECK: rt.all_gather "started"
// CHECK-SAME: {{[{]}}reason = #rt.column<"why">
// CHECK: rt.wait "awaited"
// CHECK: rt.all_reduce "pending"
// CHECK-NEXT: rt.wait "pending"
// CHECK-LABEL: func.func @train_step
// CHECK: rt.pending "p2"
// CHECK: rt.all_gather "p0"
// CHECK-NEXT: rt.pending "p1"
// CHECK-NEXT: rt.call @h_forward 0 times 1 pending ["p1", "p0"] copies []
// CHECK-NEXT: rt.call @h_forward 1 times 1 pending ["p2", "p1"] copies []
// CHECK-NEXT: rt.pending "p3"
// CHECK-NEXT: rt.call @h_forward 2 times 1 pending ["p3", "p2"] copies []
// CHECK: rt.wait "p3"
func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
  rt.pending "p2"
  %x = rt.arena 0 [4, 4] : <f32> loc("wte")
  rt.all_gather "p0" %x to %x [1] blocks of [4] of [0] over "dp" because "first" : !rt.buffer<f32> to !rt.buffer<f32>
  rt.comment "other.0.mlp"
  rt.all_gather "p1" %x to %x [1] blocks of [4] of [0] over "dp" because "g0" : !rt.buffer<f32> to !rt.buffer<f32>
  rt.wait "p0"
  %y0 = rt.arena 64 [4, 4] : <f32> loc("h_0_mlp")
  %w0 = rt.persistent 0 [4, 4] : <f32> loc("h_0_mlp_weight")
  rt.gemm %y0, %x, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.all_reduce "q0" %y0 [16] over "tp" because "sum" : !rt.buffer<f32>
  rt.wait "q0"
  rt.comment "other.1.mlp"
  rt.all_gather "p2" %x to %x [1] blocks of [4] of [0] over "dp" because "g1" : !rt.buffer<f32> to !rt.buffer<f32>
  rt.wait "p1"
  %y1 = rt.arena 128 [4, 4] : <f32> loc("h_1_mlp")
  %w1 = rt.persistent 128 [4, 4] : <f32> loc("h_1_mlp_weight")
  rt.gemm %y1, %y0, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.all_reduce "q1" %y1 [16] over "tp" because "sum" : !rt.buffer<f32>
  rt.wait "q1"
  rt.comment "other.2.mlp"
  rt.all_gather "p3" %x to %x [1] blocks of [4] of [0] over "dp" because "g2" : !rt.buffer<f32> to !rt.buffer<f32>
  rt.wait "p2"
  %y2 = rt.arena 192 [4, 4] : <f32> loc("h_2_mlp")
  %w2 = rt.persistent 256 [4, 4] : <f32> loc("h_2_mlp_weight")
  rt.gemm %y2, %y1, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.all_reduce "q2" %y2 [16] over "tp" because "sum" : !rt.buffer<f32>
  rt.wait "q2"
  rt.wait "p3"
  return
}

// -----

// One function for all that is equal within training, or outside of it: a loop, and what stands after it, however many layers each
// has. What depends on the micro-batch is handed over.
// CHECK-LABEL: rt.layer @h_forward of ["h.0", "h.1", "h.0", "h.1"]
// CHECK: ^bb0(%[[M:.*]]: !rt.buffer<f32> loc("mask")):
// CHECK: rt.accumulate %{{.*}}, %[[M]]
// CHECK-LABEL: func.func @train_step
// CHECK: %[[FULL:.*]] = rt.arena 4096
// CHECK-NEXT: rt.for 2
// CHECK: %[[SHARD:.*]] = rt.advance %[[FULL]]
// CHECK-NEXT: rt.call @h_forward 0 times 2(%[[SHARD]]{{.*}} : 
// CHECK: %[[LAST:.*]] = rt.advance %[[FULL]]
// CHECK-NEXT: rt.call @h_forward 2 times 2(%[[LAST]]{{.*}} : 
// CHECK-LABEL: rt.layer @h_eval of ["h.0", "h.1", "h.2", "h.0", "h.1", "h.2"]
// CHECK-LABEL: func.func @eval_step
// CHECK: rt.call @h_eval 0 times 3
// CHECK-LABEL: func.func @forward
// CHECK: rt.call @h_eval 3 times 3
func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
  %x = rt.arena 0 [4, 4] : <f32> loc("wte")
  %m = rt.arena 4096 [4, 4] : <f32> loc("masks")
  rt.for 2 {
  ^bb0(%micro: i64):
  %p = rt.advance %m by %micro times 16 : !rt.buffer<f32> -> <f32> loc("mask")
  rt.comment "h.0.mlp"
  %y0 = rt.arena 64 [4, 4] : <f32> loc("h_0_mlp")
  %w0 = rt.persistent 0 [4, 4] : <f32> loc("h_0_mlp_weight")
  rt.gemm %y0, %x, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.accumulate %y0, %p {n = 16 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "h.1.mlp"
  %y1 = rt.arena 128 [4, 4] : <f32> loc("h_1_mlp")
  %w1 = rt.persistent 128 [4, 4] : <f32> loc("h_1_mlp_weight")
  rt.gemm %y1, %y0, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.accumulate %y1, %p {n = 16 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  }
  rt.for 1 {
  ^bb0(%micro: i64):
  %p = rt.advance %m by %micro times 16 : !rt.buffer<f32> -> <f32> loc("mask")
  rt.comment "h.0.mlp"
  %y0 = rt.arena 64 [4, 4] : <f32> loc("h_0_mlp")
  %w0 = rt.persistent 0 [4, 4] : <f32> loc("h_0_mlp_weight")
  rt.gemm %y0, %x, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.accumulate %y0, %p {n = 16 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "h.1.mlp"
  %y1 = rt.arena 128 [4, 4] : <f32> loc("h_1_mlp")
  %w1 = rt.persistent 128 [4, 4] : <f32> loc("h_1_mlp_weight")
  rt.gemm %y1, %y0, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.accumulate %y1, %p {n = 16 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  }
  return
}
func.func @eval_step() attributes {train.entry_point = #train.entry_point<eval_step>} {
  %x = rt.arena 0 [4, 4] : <f32> loc("wte")
  rt.comment "h.0.mlp"
  %y0 = rt.arena 64 [4, 4] : <f32> loc("h_0_mlp")
  %w0 = rt.persistent 0 [4, 4] : <f32> loc("h_0_mlp_weight")
  rt.gemm %y0, %x, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "h.1.mlp"
  %y1 = rt.arena 128 [4, 4] : <f32> loc("h_1_mlp")
  %w1 = rt.persistent 128 [4, 4] : <f32> loc("h_1_mlp_weight")
  rt.gemm %y1, %y0, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "h.2.mlp"
  %y2 = rt.arena 192 [4, 4] : <f32> loc("h_2_mlp")
  %w2 = rt.persistent 256 [4, 4] : <f32> loc("h_2_mlp_weight")
  rt.gemm %y2, %y1, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  return
}
func.func @forward() attributes {train.entry_point = #train.entry_point<forward>} {
  %x = rt.arena 0 [4, 4] : <f32> loc("wte")
  rt.comment "h.0.mlp"
  %y0 = rt.arena 64 [4, 4] : <f32> loc("h_0_mlp")
  %w0 = rt.persistent 0 [4, 4] : <f32> loc("h_0_mlp_weight")
  rt.gemm %y0, %x, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "h.1.mlp"
  %y1 = rt.arena 128 [4, 4] : <f32> loc("h_1_mlp")
  %w1 = rt.persistent 128 [4, 4] : <f32> loc("h_1_mlp_weight")
  rt.gemm %y1, %y0, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "h.2.mlp"
  %y2 = rt.arena 192 [4, 4] : <f32> loc("h_2_mlp")
  %w2 = rt.persistent 256 [4, 4] : <f32> loc("h_2_mlp_weight")
  rt.gemm %y2, %y1, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  return
}

// -----

// What is between the layers stays. On a GPU nobody polls, and no poll splits anything.
// CHECK-LABEL: module
// CHECK: rt.layer @h_forward of ["h.0", "h.1", "h.2", "h.3"]
// CHECK-NOT: rt.poll
// CHECK-LABEL: func.func @train_step
// CHECK: rt.call @h_forward 0 times 1
// CHECK-NEXT: rt.comment "h.0.mlp"
// CHECK-NEXT: %[[X:.*]] = rt.arena 0
// CHECK-NEXT: rt.fill %[[X]] {n = 1
// CHECK: rt.call @h_forward 1 times 1
// CHECK-NEXT: rt.comment "h.1.mlp"
// CHECK-NEXT: rt.fill %[[X]] {n = 2
module attributes {rt.target = "cuda"} {
func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
  %x = rt.arena 0 [4, 4] : <f32> loc("wte")
  rt.comment "h.0.mlp"
  %y0 = rt.arena 64 [4, 4] : <f32> loc("h_0_mlp")
  %w0 = rt.persistent 0 [4, 4] : <f32> loc("h_0_mlp_weight")
  rt.gemm %y0, %x, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.fill %x {value = 0.0 : f64, n = 1 : i64} : !rt.buffer<f32>
  rt.comment "h.1.mlp"
  %y1 = rt.arena 128 [4, 4] : <f32> loc("h_1_mlp")
  %w1 = rt.persistent 128 [4, 4] : <f32> loc("h_1_mlp_weight")
  rt.gemm %y1, %y0, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.fill %x {value = 1.0 : f64, n = 2 : i64} : !rt.buffer<f32>
  rt.comment "h.2.mlp"
  rt.poll over ["dp"] bytes 64
  %y2 = rt.arena 192 [4, 4] : <f32> loc("h_2_mlp")
  %w2 = rt.persistent 256 [4, 4] : <f32> loc("h_2_mlp_weight")
  rt.gemm %y2, %y1, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.fill %x {value = 2.0 : f64, n = 3 : i64} : !rt.buffer<f32>
  rt.comment "h.3.mlp"
  %y3 = rt.arena 256 [4, 4] : <f32> loc("h_3_mlp")
  %w3 = rt.persistent 384 [4, 4] : <f32> loc("h_3_mlp_weight")
  rt.gemm %y3, %y2, %w3 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y3, %y3, %w3 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y3, %y3, %w3 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y3, %y3, %w3 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y3, %y3, %w3 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y3, %y3, %w3 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.fill %x {value = 3.0 : f64, n = 4 : i64} : !rt.buffer<f32>
  return
}
}

// -----

// What several values share is called like the first of them; if it is all that persists, the parameters.
// CHECK-LABEL: rt.layer @h_forward of ["h.0", "h.1", "h.2"] columns ["up", "parameters"]
// CHECK-SAME: [array<i64: 128, 256, 384>, array<i64: 0, 128, 256>]
// CHECK: rt.arena 192 [4, 4] {rt.columns = {offset = #rt.column<"up" plus 64>}{{.*}} : <f32> loc("down")
// CHECK: rt.persistent 64 [4, 4] {rt.columns = {offset = #rt.column<"parameters" plus 64>}{{.*}} : <f32> loc("down_weight")
func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
  %x = rt.arena 0 [4, 4] : <f32> loc("wte")
  rt.comment "h.0.up"
  %u0 = rt.arena 128 [4, 4] : <f32> loc("h_0_up")
  %v0 = rt.persistent 0 [4, 4] : <f32> loc("h_0_up_weight")
  %d0 = rt.arena 192 [4, 4] : <f32> loc("h_0_down")
  %w0 = rt.persistent 64 [4, 4] : <f32> loc("h_0_down_weight")
  rt.gemm %u0, %x, %v0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %u0, %u0, %v0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %u0, %u0, %v0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %d0, %u0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %d0, %d0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %d0, %d0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "h.1.up"
  %u1 = rt.arena 256 [4, 4] : <f32> loc("h_1_up")
  %v1 = rt.persistent 128 [4, 4] : <f32> loc("h_1_up_weight")
  %d1 = rt.arena 320 [4, 4] : <f32> loc("h_1_down")
  %w1 = rt.persistent 192 [4, 4] : <f32> loc("h_1_down_weight")
  rt.gemm %u1, %x, %v1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %u1, %u1, %v1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %u1, %u1, %v1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %d1, %u1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %d1, %d1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %d1, %d1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.comment "h.2.up"
  %u2 = rt.arena 384 [4, 4] : <f32> loc("h_2_up")
  %v2 = rt.persistent 256 [4, 4] : <f32> loc("h_2_up_weight")
  %d2 = rt.arena 448 [4, 4] : <f32> loc("h_2_down")
  %w2 = rt.persistent 320 [4, 4] : <f32> loc("h_2_down_weight")
  rt.gemm %u2, %x, %v2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %u2, %u2, %v2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %u2, %u2, %v2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %d2, %u2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %d2, %d2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %d2, %d2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  return
}

// -----

// A layer that lacks an operand shares the function: its offset is below 0.
// CHECK-LABEL: rt.layer @h_backward of ["h.2", "h.1", "h.0"]
// CHECK: array<i64: 1152, 1088, -1>
// CHECK: %[[SUMS:.*]] = rt.arena 1152 optional [4] {rt.columns = {offset = #rt.column<"sums">}{{.*}}} : <f32> loc("sums")
// CHECK-NEXT: rt.layer_norm_backward %{{.*}}, %[[SUMS]],
// CHECK-LABEL: func.func @train_step
// CHECK-NOT: rt.null
// CHECK: rt.call @h_backward 0 times 3
// CHECK-NOT: rt.layer_norm_backward
func.func @train_step() attributes {train.entry_point = #train.entry_point<train_step>} {
  rt.work backward
  %y2 = rt.arena 192 [4, 4] : <f32> loc("h_2_mlp")
  %w2 = rt.persistent 256 [4, 4] : <f32> loc("h_2_mlp_weight")
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y2, %y2, %w2 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  %s2 = rt.arena 1152 [4] : <f32> loc("h_2_sums")
  rt.layer_norm_backward %y2, %s2, %y2, %y2, %w2, %y2, %y2 {add = true, rows = 4 : i64, width = 4 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1, 1, 1, 1>} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  %y1 = rt.arena 128 [4, 4] : <f32> loc("h_1_mlp")
  %w1 = rt.persistent 128 [4, 4] : <f32> loc("h_1_mlp_weight")
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y1, %y1, %w1 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  %s1 = rt.arena 1088 [4] : <f32> loc("h_1_sums")
  rt.layer_norm_backward %y1, %s1, %y1, %y1, %w1, %y1, %y1 {add = true, rows = 4 : i64, width = 4 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1, 1, 1, 1>} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  %y0 = rt.arena 64 [4, 4] : <f32> loc("h_0_mlp")
  %w0 = rt.persistent 0 [4, 4] : <f32> loc("h_0_mlp_weight")
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  rt.gemm %y0, %y0, %w0 {transA = false, transB = false, m = 4 : i64, n = 4 : i64, k = 4 : i64, lda = 4 : i64, ldb = 4 : i64, ldc = 4 : i64, beta = 0.0 : f64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  %s0 = rt.null : <f32>
  rt.layer_norm_backward %y0, %s0, %y0, %y0, %w0, %y0, %y0 {add = true, rows = 4 : i64, width = 4 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1, 1, 1, 1>} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  return
}
