// A model in training mode: dropout after the embedding and in the middle.
module {
  train.parameter @table : tensor<256x16xf32> fill(<0.0, normal 0.5>)
  train.parameter @w : tensor<16x16xf32> fill(<0.0, normal 0.3>)
  func.func @forward(%ids: tensor<BATCHx8xi64> {train.name = "input_ids"}) -> (tensor<BATCHx8x256xf32> {train.name = "logits"}) attributes {train.entry_point = #train.entry_point<forward>} {
    %table = train.read @table : tensor<256x16xf32>
    %w = train.read @w : tensor<16x16xf32>
    %e = tx.embedding %table, %ids : (tensor<256x16xf32>, tensor<BATCHx8xi64>) -> tensor<BATCHx8x16xf32>
    %d = tx.dropout %e ratio 0.3 id 0 : (tensor<BATCHx8x16xf32>) -> tensor<BATCHx8x16xf32>
    %h = tx.matmul %d, %w : (tensor<BATCHx8x16xf32>, tensor<16x16xf32>) -> tensor<BATCHx8x16xf32>
    %g = tx.silu %h : (tensor<BATCHx8x16xf32>) -> tensor<BATCHx8x16xf32>
    %f = tx.dropout %g ratio 0.5 id 1 : (tensor<BATCHx8x16xf32>) -> tensor<BATCHx8x16xf32>
    %logits = tx.matmul_nt %f, %table : (tensor<BATCHx8x16xf32>, tensor<256x16xf32>) -> tensor<BATCHx8x256xf32>
    return %logits : tensor<BATCHx8x256xf32>
  }
}
