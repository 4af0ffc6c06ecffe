train.parameter @a0 : tensor<4x4xf32>
train.parameter @b0 : tensor<4x4xf32>

func.func @train_step(%xs: tensor<3x2x4xf32>) -> tensor<f32> attributes {train.entry_point = #train.entry_point<train_step>} {
  %w0 = train.read @a0 : tensor<4x4xf32>
  %w1 = train.read @b0 : tensor<4x4xf32>
  %loss = train.accumulate (%x = %xs) : (tensor<3x2x4xf32>) -> tensor<f32> {
    %s = tx.relu %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %0 = tx.matmul %s, %w0 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = tx.add %s, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = tx.matmul %1, %w1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %3 = tx.add %1, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %4 = tx.exp %3 : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %5 = tx.reduce_sum %4 [0, 1] : tensor<2x4xf32> -> tensor<f32>
    train.yield %5 : tensor<f32>
  }
  train.minimize %loss : tensor<f32>
  return %loss : tensor<f32>
}
