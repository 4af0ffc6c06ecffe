// Integers and truth values computed on shards of the sequence and used in full, as sequence parallelism leaves positions that one op
// takes in shards and another one in full.
module {
  train.parameter @table : tensor<64x8xf32> fill(<0.0, normal 0.5>)
  train.parameter @positions : tensor<4x8xf32> fill(<0.0, normal 0.5>)
  train.parameter @up : tensor<8x16xf32> fill(<0.0, normal 0.3>)
  train.parameter @down : tensor<16x8xf32> fill(<0.0, normal 0.3>)
  func.func @forward(%ids: tensor<2x4xi64> {train.name = "input_ids"}) -> (tensor<2x4x64xf32> {train.name = "logits"}) attributes {train.entry_point = #train.entry_point<forward>} {
    %table = train.read @table : tensor<64x8xf32>
    %positions = train.read @positions : tensor<4x8xf32>
    %up = train.read @up : tensor<8x16xf32>
    %down = train.read @down : tensor<16x8xf32>
    %shard = par.narrow %ids over "tp" along 1 : tensor<2x4xi64> -> tensor<2x4xi64>
    %four = tx.constant dense<4> : tensor<2x4xi64> : tensor<2x4xi64>
    %rest = tx.modulo %shard, %four : (tensor<2x4xi64>, tensor<2x4xi64>) -> tensor<2x4xi64>
    %is_low = tx.less %shard, %four : (tensor<2x4xi64>, tensor<2x4xi64>) -> tensor<2x4xi1>
    %short = tx.cast %rest : tensor<2x4xi64> -> tensor<2x4xi32>
    %full = par.all_gather %rest over "tp" along 1 : tensor<2x4xi64> -> tensor<2x4xi64>
    %full_short = par.all_gather %short over "tp" along 1 : tensor<2x4xi32> -> tensor<2x4xi32>
    %full_low = par.all_gather %is_low over "tp" along 1 : tensor<2x4xi1> -> tensor<2x4xi1>
    %e = tx.embedding %table, %ids : (tensor<64x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %p = tx.embedding %positions, %full : (tensor<4x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %long = tx.cast %full_short : tensor<2x4xi32> -> tensor<2x4xi64>
    %r = tx.embedding %positions, %long : (tensor<4x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %l0 = tx.reshape %full_low : tensor<2x4xi1> -> tensor<2x4x1xi1>
    %l = tx.broadcast %l0 : tensor<2x4x1xi1> -> tensor<2x4x8xi1>
    %r2 = tx.mul %r, %r : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %s = tx.select %l, %p, %r2 : (tensor<2x4x8xi1>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %x = tx.add %e, %s : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %u = tx.matmul %x, %up : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %a = tx.silu %u : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
    %d = tx.matmul %a, %down : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    %z = tx.add %x, %d : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %logits = tx.matmul_nt %z, %table : (tensor<2x4x8xf32>, tensor<64x8xf32>) -> tensor<2x4x64xf32>
    return %logits : tensor<2x4x64xf32>
  }
}
