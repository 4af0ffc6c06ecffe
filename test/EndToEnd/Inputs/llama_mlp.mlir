func.func @train_step(%x: tensor<8x16xf32> {train.batch = 0}) attributes {train.entry_point = #train.entry_point<train_step>} {
  %norm = train.read @norm : tensor<16xf32>
  %gate = train.read @gate : tensor<48x16xf32>
  %up = train.read @up : tensor<48x16xf32>
  %down = train.read @down : tensor<16x48xf32>
  %y, %rstd = tx.rms_norm %x, %norm eps 1.0e-6 : (tensor<8x16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>)
  %a = tx.matmul_nt %y, %gate : (tensor<8x16xf32>, tensor<48x16xf32>) -> tensor<8x48xf32>
  %b = tx.silu %a : (tensor<8x48xf32>) -> tensor<8x48xf32>
  %c = tx.matmul_nt %y, %up : (tensor<8x16xf32>, tensor<48x16xf32>) -> tensor<8x48xf32>
  %d = tx.mul %b, %c : (tensor<8x48xf32>, tensor<8x48xf32>) -> tensor<8x48xf32>
  %e = tx.matmul_nt %d, %down : (tensor<8x48xf32>, tensor<16x48xf32>) -> tensor<8x16xf32>
  %z = tx.add %x, %e : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %s = tx.reduce_sum %z [0, 1] : tensor<8x16xf32> -> tensor<f32>
  train.minimize %s : tensor<f32>
  return
}
train.parameter @norm : tensor<16xf32>
train.parameter @gate : tensor<48x16xf32>
train.parameter @up : tensor<48x16xf32>
train.parameter @down : tensor<16x48xf32>
