// A vocabulary that two ranks cannot share evenly. Kept full (--shard table=replicated), the table is looked up alike on
// every rank and multiplied with a rank's own rows.
module {
  train.parameter @table : tensor<257x8xf32> fill(<0.0, normal 0.5>)
  train.parameter @norm : tensor<8xf32> fill(<1.0, normal 0.1>)
  train.parameter @up : tensor<8x16xf32> fill(<0.0, normal 0.3>)
  train.parameter @down : tensor<16x8xf32> fill(<0.0, normal 0.3>)
  func.func @forward(%ids: tensor<2x4xi64> {train.name = "input_ids"}) -> (tensor<2x4x257xf32> {train.name = "logits"}) attributes {train.entry_point = #train.entry_point<forward>} {
    %table = train.read @table : tensor<257x8xf32>
    %norm = train.read @norm : tensor<8xf32>
    %up = train.read @up : tensor<8x16xf32>
    %down = train.read @down : tensor<16x8xf32>
    %e = tx.embedding %table, %ids : (tensor<257x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %y, %rstd = tx.rms_norm %e, %norm eps 1.0e-6 : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
    %u = tx.matmul %y, %up : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %a = tx.silu %u : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
    %d = tx.matmul %a, %down : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    %r = tx.add %e, %d : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %z, %rstd2 = tx.rms_norm %r, %norm eps 1.0e-6 : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
    %logits = tx.matmul_nt %z, %table : (tensor<2x4x8xf32>, tensor<257x8xf32>) -> tensor<2x4x257xf32>
    return %logits : tensor<2x4x257xf32>
  }
}
