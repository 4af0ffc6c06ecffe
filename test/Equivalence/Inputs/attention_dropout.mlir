// Causal attention with ALiBi, two key heads for four heads, whose probabilities are dropped, and nothing else: a ring deals out the sequence in mirrored order.
module {
  train.parameter @table : tensor<16x8xf32> fill(<0.0, normal 0.5>)
  train.parameter @q : tensor<8x16xf32> fill(<0.0, normal 0.3>)
  train.parameter @kv : tensor<8x8xf32> fill(<0.0, normal 0.3>)
  train.parameter @o : tensor<16x8xf32> fill(<0.0, normal 0.3>)
  func.func @forward(%ids: tensor<4x8xi64> {train.name = "input_ids"}) -> (tensor<4x8x16xf32> {train.name = "logits"}) attributes {train.entry_point = #train.entry_point<forward>} {
    %table = train.read @table : tensor<16x8xf32>
    %wq = train.read @q : tensor<8x16xf32>
    %wk = train.read @kv : tensor<8x8xf32>
    %wo = train.read @o : tensor<16x8xf32>
    %x = tx.embedding %table, %ids : (tensor<16x8xf32>, tensor<4x8xi64>) -> tensor<4x8x8xf32>
    %q0 = tx.matmul %x, %wq : (tensor<4x8x8xf32>, tensor<8x16xf32>) -> tensor<4x8x16xf32>
    %q = tx.reshape %q0 : tensor<4x8x16xf32> -> tensor<4x8x4x4xf32>
    %k0 = tx.matmul %x, %wk : (tensor<4x8x8xf32>, tensor<8x8xf32>) -> tensor<4x8x8xf32>
    %k = tx.reshape %k0 : tensor<4x8x8xf32> -> tensor<4x8x2x4xf32>
    %positions = tx.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tensor<8xf32> : tensor<8xf32>
    %columns = tx.broadcast %positions : tensor<8xf32> -> tensor<8x8xf32>
    %rows = tx.transpose %columns [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
    %ahead = tx.sub %columns, %rows : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %each = tx.broadcast %ahead : tensor<8x8xf32> -> tensor<4x8x8xf32>
    %slopes = tx.constant dense<[0.5, 0.25, 0.125, 0.0625]> : tensor<4xf32> : tensor<4xf32>
    %spread = tx.broadcast %slopes : tensor<4xf32> -> tensor<8x8x4xf32>
    %turned = tx.transpose %spread [2, 0, 1] : tensor<8x8x4xf32> -> tensor<4x8x8xf32>
    %alibi = tx.mul %each, %turned : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
    %bias = tx.reshape %alibi : tensor<4x8x8xf32> -> tensor<1x4x8x8xf32>
    %a, %lse = tx.attention %q, %k, %k bias %bias scale 0.5 causal dropout 0.4 id 3
      : (tensor<4x8x4x4xf32>, tensor<4x8x2x4xf32>, tensor<4x8x2x4xf32>, tensor<1x4x8x8xf32>) -> (tensor<4x8x4x4xf32>, tensor<4x4x8xf32>)
    %a0 = tx.reshape %a : tensor<4x8x4x4xf32> -> tensor<4x8x16xf32>
    %a1 = tx.matmul %a0, %wo : (tensor<4x8x16xf32>, tensor<16x8xf32>) -> tensor<4x8x8xf32>
    %h = tx.add %x, %a1 : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
    %logits = tx.matmul_nt %h, %table : (tensor<4x8x8xf32>, tensor<16x8xf32>) -> tensor<4x8x16xf32>
    return %logits : tensor<4x8x16xf32>
  }
}
