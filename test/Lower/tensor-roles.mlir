// RUN: partita-opt %s --plan-memory --lower-to-rt --mlir-print-local-scope --mlir-print-debuginfo | FileCheck %s

// What every Transformer has is named after what it is to the ops that make and read it, whatever the model calls its nodes: the
// encoded tokens, the residual stream, which a layer's first norm reads, and the slices that attention reads. A cotangent is called
// after its tensor. Views have the name of what they show; a projection keeps its module's name.
train.parameter @wte.weight : tensor<16x8xf32> {train.layer = #train.layer<-1 of 1>}
train.parameter @h.0.ln_1.weight : tensor<8xf32>
train.parameter @h.0.ln_1.bias : tensor<8xf32>
train.parameter @h.0.attn.c_attn.weight : tensor<8x24xf32>
train.parameter @h.0.attn.c_proj.weight : tensor<8x8xf32>
train.parameter @h.0.ln_2.weight : tensor<8xf32>
train.parameter @h.0.ln_2.bias : tensor<8xf32>
train.parameter @ln_f.weight : tensor<8xf32>
train.parameter @lm_head.weight : tensor<8x16xf32>

// CHECK-LABEL: func.func @train
func.func @train(%ids: tensor<2x4xi64>, %labels: tensor<2x4xi64>, %rows: tensor<2x4xf32>) -> (tensor<2x4x8xf32>, tensor<8x24xf32>, tensor<2x4xf32>, tensor<2x4x8xf32>) {
  %wte = train.read @wte.weight : tensor<16x8xf32>
  %w1 = train.read @h.0.ln_1.weight : tensor<8xf32>
  %b1 = train.read @h.0.ln_1.bias : tensor<8xf32>
  %wqkv = train.read @h.0.attn.c_attn.weight : tensor<8x24xf32>
  %wo = train.read @h.0.attn.c_proj.weight : tensor<8x8xf32>
  %w2 = train.read @h.0.ln_2.weight : tensor<8xf32>
  %b2 = train.read @h.0.ln_2.bias : tensor<8xf32>
  %wf = train.read @ln_f.weight : tensor<8xf32>
  %wv = train.read @lm_head.weight : tensor<8x16xf32>
  // CHECK: rt.arena {{.*}} loc("encoded")
  // CHECK: rt.embedding_forward
  %x = tx.embedding %wte, %ids {train.name = "node_embedding"} : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %y1, %mean1, %rstd1 = tx.layer_norm %x, %w1, %b1 eps 1.0e-05 {train.name = "node_layer_norm"} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  // CHECK: rt.arena {{.*}} loc("h_0_qkv")
  // CHECK: rt.gemm
  %qkv = tx.matmul %y1, %wqkv : (tensor<2x4x8xf32>, tensor<8x24xf32>) -> tensor<2x4x24xf32>
  %qs = tx.slice %qkv [0, 0, 0] by [1, 1, 1] : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
  %ks = tx.slice %qkv [0, 0, 8] by [1, 1, 1] : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
  %vs = tx.slice %qkv [0, 0, 16] by [1, 1, 1] : tensor<2x4x24xf32> -> tensor<2x4x8xf32>
  %q = tx.reshape %qs : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %k = tx.reshape %ks : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %v = tx.reshape %vs : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  // CHECK-DAG: rt.arena {{.*}} loc("h_0_atty")
  // CHECK-DAG: rt.arena {{.*}} loc("h_0_lse")
  // CHECK-DAG: rt.arena {{.*}} loc("h_0_key")
  // CHECK-DAG: rt.arena {{.*}} loc("h_0_value")
  // CHECK: rt.attention_forward
  %out, %lse = tx.attention %q, %k, %v scale 5.0e-01 causal : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  %atty = tx.reshape %out : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  // CHECK: rt.arena {{.*}} loc("h_0_attn_c_proj")
  %o = tx.matmul %atty, %wo : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  // CHECK: rt.arena {{.*}} loc("h_0_residual2")
  %r2 = tx.add %x, %o : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %y2, %mean2, %rstd2 = tx.layer_norm %r2, %w2, %b2 eps 1.0e-05 : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  %a = tx.gelu %y2 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  // CHECK: rt.arena {{.*}} loc("residual")
  %r3 = tx.add %r2, %a : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  // CHECK: rt.arena {{.*}} loc("ln_f")
  %yf, %rstdf = tx.rms_norm %r3, %wf eps 1.0e-05 : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  // CHECK: rt.arena {{.*}} loc("logits")
  %logits = tx.matmul %yf, %wv : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
  // CHECK: rt.arena {{.*}} loc("losses")
  %losses, %lsef = tx.cross_entropy %logits, %labels ignore -100 : (tensor<2x4x16xf32>, tensor<2x4xi64>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  // CHECK: rt.arena {{.*}} loc("dloss")
  %dloss = tx.exp %rows : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: rt.arena {{.*}} loc("dlogits")
  %dlogits = tx.cross_entropy_grad %logits, %labels, %lsef, %dloss ignore -100 {train.backward} : (tensor<2x4x16xf32>, tensor<2x4xi64>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4x16xf32>
  // CHECK: rt.arena {{.*}} loc("dln_f")
  %dyf = tx.matmul_nt %dlogits, %wv {train.backward} : (tensor<2x4x16xf32>, tensor<8x16xf32>) -> tensor<2x4x8xf32>
  // CHECK: rt.arena {{.*}} loc("dresidual")
  %dr3, %dwf = tx.rms_norm_grad %r3, %wf, %rstdf, %dyf {train.backward} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
  // CHECK: rt.arena {{.*}} loc("h_0_dln_2")
  %dy2 = tx.gelu_grad %y2, %dr3 {train.backward} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  // What is added to the residual's cotangent in its memory has no name of its own.
  // CHECK-NOT: loc("h_0_dresidual2")
  // CHECK: rt.layer_norm_backward
  %dr2, %dw2, %db2, %sums2 = tx.layer_norm_grad_add %r2, %w2, %mean2, %rstd2, %dy2, %dr3 {train.backward} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: rt.arena {{.*}} loc("h_0_datty")
  %datty = tx.matmul_nt %dr2, %wo {train.backward} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %dout = tx.reshape %datty : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  // CHECK-DAG: rt.arena {{.*}} loc("h_0_dq")
  // CHECK-DAG: rt.arena {{.*}} loc("h_0_dk")
  // CHECK-DAG: rt.arena {{.*}} loc("h_0_dv")
  // CHECK: rt.attention_backward
  %dq, %dk, %dv = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 5.0e-01 causal {train.backward} : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x2x4xf32>, tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>)
  %dqs = tx.reshape %dq : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  %dks = tx.reshape %dk : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  %dvs = tx.reshape %dv : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  // CHECK: rt.arena {{.*}} loc("h_0_dqkv")
  %dqkv = tx.concat %dqs, %dks, %dvs along 2 {train.backward} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x24xf32>
  %dwqkv = tx.matmul_tn %y1, %dqkv {train.backward} : (tensor<2x4x8xf32>, tensor<2x4x24xf32>) -> tensor<8x24xf32>
  // CHECK: rt.arena {{.*}} loc("h_0_dln_1")
  %dy1 = tx.matmul_nt %dqkv, %wqkv {train.backward} : (tensor<2x4x24xf32>, tensor<8x24xf32>) -> tensor<2x4x8xf32>
  return %dy1, %dwqkv, %losses, %x : tensor<2x4x8xf32>, tensor<8x24xf32>, tensor<2x4xf32>, tensor<2x4x8xf32>
}

// A residual stream that is kept in one place has one name; its first value is not called encoded there.
// CHECK-LABEL: func.func @forward
// CHECK: %[[R:.*]] = rt.arena {{.*}} loc("residual")
// CHECK: rt.embedding_forward %[[R]]
// CHECK: rt.launch @map_add
// CHECK: rt.arena {{.*}} loc("last_hidden_state")
// CHECK-NOT: loc("encoded")
func.func @forward(%ids: tensor<2x4xi64> {train.batch = 0 : i64, train.name = "input_ids", train.role = "ids"}) -> (tensor<2x4x8xf32> {train.name = "last_hidden_state"}) attributes {train.entry_point = #train.entry_point<forward>} {
  %wte = train.read @wte.weight : tensor<16x8xf32>
  %w1 = train.read @h.0.ln_1.weight : tensor<8xf32>
  %b1 = train.read @h.0.ln_1.bias : tensor<8xf32>
  %wo = train.read @h.0.attn.c_proj.weight : tensor<8x8xf32>
  %wf = train.read @ln_f.weight : tensor<8xf32>
  %x = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %y1, %mean1, %rstd1 = tx.layer_norm %x, %w1, %b1 eps 1.0e-05 : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  %o = tx.matmul %y1, %wo : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %r2 = tx.add %x, %o : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %yf, %rstdf = tx.rms_norm %r2, %wf eps 1.0e-05 : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  return %yf : tensor<2x4x8xf32>
}
