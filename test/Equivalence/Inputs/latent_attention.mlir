// Multi-head latent attention (DeepSeek V3): queries, and keys with values, each come out of a small vector of all heads, after a
// norm; a part of the keys is one for all heads. tp splits the heads, so what stands in front of them is computed alike by all ranks.
module {
  train.parameter @table : tensor<16x8xf32> fill(<0.0, normal 0.5>)
  train.parameter @norm : tensor<8xf32> fill(<1.0, normal 0.1>)
  train.parameter @q_a : tensor<8x6xf32> fill(<0.0, normal 0.3>)
  train.parameter @q_norm : tensor<6xf32> fill(<1.0, normal 0.1>)
  train.parameter @q_b : tensor<6x16xf32> fill(<0.0, normal 0.3>)
  train.parameter @kv_a : tensor<8x5xf32> fill(<0.0, normal 0.3>)
  train.parameter @kv_norm : tensor<5xf32> fill(<1.0, normal 0.1>)
  train.parameter @k_b : tensor<5x8xf32> fill(<0.0, normal 0.3>)
  train.parameter @v_b : tensor<5x16xf32> fill(<0.0, normal 0.3>)
  train.parameter @k_shared : tensor<8x2xf32> fill(<0.0, normal 0.3>)
  train.parameter @o : tensor<16x8xf32> fill(<0.0, normal 0.3>)
  train.parameter @up : tensor<8x12xf32> fill(<0.0, normal 0.3>)
  train.parameter @down : tensor<12x8xf32> fill(<0.0, normal 0.3>)
  func.func @forward(%ids: tensor<2x4xi64> {train.name = "input_ids"}) -> (tensor<2x4x16xf32> {train.name = "logits"}) attributes {train.entry_point = #train.entry_point<forward>} {
    %table = train.read @table : tensor<16x8xf32>
    %norm = train.read @norm : tensor<8xf32>
    %q_a = train.read @q_a : tensor<8x6xf32>
    %q_norm = train.read @q_norm : tensor<6xf32>
    %q_b = train.read @q_b : tensor<6x16xf32>
    %kv_a = train.read @kv_a : tensor<8x5xf32>
    %kv_norm = train.read @kv_norm : tensor<5xf32>
    %k_b = train.read @k_b : tensor<5x8xf32>
    %v_b = train.read @v_b : tensor<5x16xf32>
    %k_shared = train.read @k_shared : tensor<8x2xf32>
    %o = train.read @o : tensor<16x8xf32>
    %up = train.read @up : tensor<8x12xf32>
    %down = train.read @down : tensor<12x8xf32>
    %e = tx.embedding %table, %ids : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %x, %r0 = tx.rms_norm %e, %norm eps 1.0e-6 : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
    %q0 = tx.matmul %x, %q_a : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
    %q1, %r1 = tx.rms_norm %q0, %q_norm eps 1.0e-6 : (tensor<2x4x6xf32>, tensor<6xf32>) -> (tensor<2x4x6xf32>, tensor<2x4xf32>)
    %q2 = tx.matmul %q1, %q_b : (tensor<2x4x6xf32>, tensor<6x16xf32>) -> tensor<2x4x16xf32>
    %q = tx.reshape %q2 : tensor<2x4x16xf32> -> tensor<2x4x4x4xf32>
    %c0 = tx.matmul %x, %kv_a : (tensor<2x4x8xf32>, tensor<8x5xf32>) -> tensor<2x4x5xf32>
    %c, %r2 = tx.rms_norm %c0, %kv_norm eps 1.0e-6 : (tensor<2x4x5xf32>, tensor<5xf32>) -> (tensor<2x4x5xf32>, tensor<2x4xf32>)
    %k1 = tx.matmul %c, %k_b : (tensor<2x4x5xf32>, tensor<5x8xf32>) -> tensor<2x4x8xf32>
    %k2 = tx.reshape %k1 : tensor<2x4x8xf32> -> tensor<2x4x4x2xf32>
    %s0 = tx.matmul %x, %k_shared : (tensor<2x4x8xf32>, tensor<8x2xf32>) -> tensor<2x4x2xf32>
    %s1 = tx.reshape %s0 : tensor<2x4x2xf32> -> tensor<2x4x1x2xf32>
    %s = tx.broadcast %s1 : tensor<2x4x1x2xf32> -> tensor<2x4x4x2xf32>
    %k = tx.concat %k2, %s along 3 : (tensor<2x4x4x2xf32>, tensor<2x4x4x2xf32>) -> tensor<2x4x4x4xf32>
    %v0 = tx.matmul %c, %v_b : (tensor<2x4x5xf32>, tensor<5x16xf32>) -> tensor<2x4x16xf32>
    %v = tx.reshape %v0 : tensor<2x4x16xf32> -> tensor<2x4x4x4xf32>
    %a, %lse = tx.attention %q, %k, %v scale 0.5 causal : (tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>) -> (tensor<2x4x4x4xf32>, tensor<2x4x4xf32>)
    %a0 = tx.reshape %a : tensor<2x4x4x4xf32> -> tensor<2x4x16xf32>
    %a1 = tx.matmul %a0, %o : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    %h = tx.add %e, %a1 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %y, %r3 = tx.rms_norm %h, %norm eps 1.0e-6 : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
    %u = tx.matmul %y, %up : (tensor<2x4x8xf32>, tensor<8x12xf32>) -> tensor<2x4x12xf32>
    %g = tx.silu %u : (tensor<2x4x12xf32>) -> tensor<2x4x12xf32>
    %d = tx.matmul %g, %down : (tensor<2x4x12xf32>, tensor<12x8xf32>) -> tensor<2x4x8xf32>
    %z = tx.add %h, %d : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %logits = tx.matmul_nt %z, %table : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
    return %logits : tensor<2x4x16xf32>
  }
}
