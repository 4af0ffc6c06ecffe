// A table, a matrix and a bias: what optimizers treat differently.
module {
  train.parameter @table : tensor<256x12xf32> fill(<0.0, normal 0.5>)
  train.parameter @w : tensor<12x256xf32> fill(<0.0, normal 0.3>)
  train.parameter @b : tensor<256xf32> fill(<0.0>)
  func.func @forward(%ids: tensor<4x8xi64> {train.name = "input_ids"}) -> (tensor<4x8x256xf32> {train.name = "logits"}) attributes {train.entry_point = #train.entry_point<forward>} {
    %table = train.read @table : tensor<256x12xf32>
    %w = train.read @w : tensor<12x256xf32>
    %b = train.read @b : tensor<256xf32>
    %x = tx.embedding %table, %ids : (tensor<256x12xf32>, tensor<4x8xi64>) -> tensor<4x8x12xf32>
    %h = tx.tanh %x : (tensor<4x8x12xf32>) -> tensor<4x8x12xf32>
    %y = tx.matmul %h, %w : (tensor<4x8x12xf32>, tensor<12x256xf32>) -> tensor<4x8x256xf32>
    %bias = tx.broadcast %b : tensor<256xf32> -> tensor<4x8x256xf32>
    %z = tx.add %y, %bias : (tensor<4x8x256xf32>, tensor<4x8x256xf32>) -> tensor<4x8x256xf32>
    return %z : tensor<4x8x256xf32>
  }
}
