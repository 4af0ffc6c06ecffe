func.func @train_step(%x: tensor<8x4xf32> {train.batch = 0}, %labels: tensor<8xi64> {train.batch = 0}) attributes {train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<4x6xf32>
  %logits = tx.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %losses, %lse = tx.cross_entropy %logits, %labels ignore -100 : (tensor<8x6xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
  %loss = tx.reduce_sum %losses [0] : tensor<8xf32> -> tensor<f32>
  train.minimize %loss : tensor<f32>
  return
}
train.parameter @w : tensor<4x6xf32>
