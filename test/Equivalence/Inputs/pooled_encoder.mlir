// Attention both ways, then what an encoder gives: its hidden states, logits of each token, and classes of a sequence by the mean, the max and
// the first of its tokens.
module {
  train.parameter @table : tensor<16x8xf32> fill(<0.0, normal 0.5>)
  train.parameter @kv : tensor<8x8xf32> fill(<0.0, normal 0.3>)
  train.parameter @tokens : tensor<8x3xf32> fill(<0.0, normal 0.3>)
  train.parameter @classes : tensor<8x5xf32> fill(<0.0, normal 0.3>)
  func.func @forward(%ids: tensor<4x8xi64> {train.name = "input_ids"})
      -> (tensor<4x5xf32> {train.name = "logits"}, tensor<4x8x8xf32> {train.name = "last_hidden_state"}, tensor<4x8x3xf32> {train.name = "token_logits"},
          tensor<4x8xf32> {train.name = "pooled"}) attributes {train.entry_point = #train.entry_point<forward>} {
    %table = train.read @table : tensor<16x8xf32>
    %wk = train.read @kv : tensor<8x8xf32>
    %wt = train.read @tokens : tensor<8x3xf32>
    %wc = train.read @classes : tensor<8x5xf32>
    %x = tx.embedding %table, %ids : (tensor<16x8xf32>, tensor<4x8xi64>) -> tensor<4x8x8xf32>
    %q = tx.reshape %x : tensor<4x8x8xf32> -> tensor<4x8x4x2xf32>
    %k0 = tx.matmul %x, %wk : (tensor<4x8x8xf32>, tensor<8x8xf32>) -> tensor<4x8x8xf32>
    %k = tx.reshape %k0 : tensor<4x8x8xf32> -> tensor<4x8x4x2xf32>
    %a, %lse = tx.attention %q, %k, %k scale 0.5
      : (tensor<4x8x4x2xf32>, tensor<4x8x4x2xf32>, tensor<4x8x4x2xf32>) -> (tensor<4x8x4x2xf32>, tensor<4x4x8xf32>)
    %a0 = tx.reshape %a : tensor<4x8x4x2xf32> -> tensor<4x8x8xf32>
    %h = tx.add %x, %a0 : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
    %t = tx.matmul %h, %wt : (tensor<4x8x8xf32>, tensor<8x3xf32>) -> tensor<4x8x3xf32>
    %sum = tx.reduce_sum %h [1] : tensor<4x8x8xf32> -> tensor<4x8xf32>
    %count = tx.constant dense<0.125> : tensor<4x8xf32> : tensor<4x8xf32>
    %mean = tx.mul %sum, %count : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %most = tx.reduce_max %h [1] : tensor<4x8x8xf32> -> tensor<4x8xf32>
    %one = tx.slice %h [0, 0, 0] by [1, 1, 1] : tensor<4x8x8xf32> -> tensor<4x1x8xf32>
    %first = tx.reshape %one : tensor<4x1x8xf32> -> tensor<4x8xf32>
    %some = tx.add %mean, %most : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %pooled = tx.add %some, %first : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %logits = tx.matmul %pooled, %wc : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
    return %logits, %h, %t, %pooled : tensor<4x5xf32>, tensor<4x8x8xf32>, tensor<4x8x3xf32>, tensor<4x8xf32>
  }
}
