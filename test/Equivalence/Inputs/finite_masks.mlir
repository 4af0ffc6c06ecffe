// Masks that hide all keys of some queries by finite numbers, causal and both ways: such a query sees them all, by scores that the mask's
// number rounds. Every token counts in the loss.
module {
  train.parameter @table : tensor<16x8xf32> fill(<0.0, normal 0.5>)
  train.parameter @keys : tensor<8x8xf32> fill(<0.0, normal 0.5>)
  train.parameter @values : tensor<8x8xf32> fill(<0.0, normal 0.5>)
  train.parameter @positions : tensor<4x8x8xf32> fill(<0.0, normal 0.5>)
  train.parameter @head : tensor<8x16xf32> fill(<0.0, normal 0.3>)
  func.func @forward(%ids: tensor<4x8xi64> {train.name = "input_ids"}) -> (tensor<4x8x16xf32> {train.name = "logits"})
      attributes {train.entry_point = #train.entry_point<forward>} {
    %table = train.read @table : tensor<16x8xf32>
    %wk = train.read @keys : tensor<8x8xf32>
    %wv = train.read @values : tensor<8x8xf32>
    %learned = train.read @positions : tensor<4x8x8xf32>
    %wo = train.read @head : tensor<8x16xf32>
    %mask = tx.constant dense<[[[[-3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38],
        [-1.0E+9, -1.0E+9, -1.0E+9, -1.0E+9, -1.0E+9, -1.0E+9, -1.0E+9, -1.0E+9],
        [-6.144E+4, -6.144E+4, -6.144E+4, -6.144E+4, -6.144E+4, -6.144E+4, -6.144E+4, -6.144E+4],
        [0.0, -3.40282347E+38, 0.0, -1.0E+9, 0.0, -3.40282347E+38, 0.0, 0.0],
        [0.0, -3.40282347E+38, -3.40282347E+38, 0.0, 0.0, -1.0E+4, 0.0, 0.0],
        [-3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38],
        [-1.0E+4, -1.0E+4, -1.0E+4, -1.0E+4, -1.0E+9, -1.0E+9, -1.0E+9, -1.0E+9],
        [0.0, -3.40282347E+38, -3.40282347E+38, 0.0, 0.0, -1.0E+4, 0.0, 0.0]]]]> : tensor<1x1x8x8xf32> : tensor<1x1x8x8xf32>
    %x = tx.embedding %table, %ids : (tensor<16x8xf32>, tensor<4x8xi64>) -> tensor<4x8x8xf32>
    %q = tx.reshape %x : tensor<4x8x8xf32> -> tensor<4x8x4x2xf32>
    %k0 = tx.matmul %x, %wk : (tensor<4x8x8xf32>, tensor<8x8xf32>) -> tensor<4x8x8xf32>
    %k = tx.reshape %k0 : tensor<4x8x8xf32> -> tensor<4x8x4x2xf32>
    %v0 = tx.matmul %x, %wv : (tensor<4x8x8xf32>, tensor<8x8xf32>) -> tensor<4x8x8xf32>
    %v = tx.reshape %v0 : tensor<4x8x8xf32> -> tensor<4x8x4x2xf32>
    %a, %lse = tx.attention %q, %k, %v bias %mask scale 0.5 causal
      : (tensor<4x8x4x2xf32>, tensor<4x8x4x2xf32>, tensor<4x8x4x2xf32>, tensor<1x1x8x8xf32>) -> (tensor<4x8x4x2xf32>, tensor<4x4x8xf32>)
    %a0 = tx.reshape %a : tensor<4x8x4x2xf32> -> tensor<4x8x8xf32>
    %h = tx.add %x, %a0 : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
    %p = tx.reshape %learned : tensor<4x8x8xf32> -> tensor<1x4x8x8xf32>
    %all = tx.broadcast %mask : tensor<1x1x8x8xf32> -> tensor<1x4x8x8xf32>
    %both = tx.add %p, %all : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
    %q2 = tx.reshape %h : tensor<4x8x8xf32> -> tensor<4x8x4x2xf32>
    %b, %lse2 = tx.attention %q2, %k, %v bias %both scale 0.5
      : (tensor<4x8x4x2xf32>, tensor<4x8x4x2xf32>, tensor<4x8x4x2xf32>, tensor<1x4x8x8xf32>) -> (tensor<4x8x4x2xf32>, tensor<4x4x8xf32>)
    %b0 = tx.reshape %b : tensor<4x8x4x2xf32> -> tensor<4x8x8xf32>
    %y = tx.add %h, %b0 : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
    %logits = tx.matmul %y, %wo : (tensor<4x8x8xf32>, tensor<8x16xf32>) -> tensor<4x8x16xf32>
    return %logits : tensor<4x8x16xf32>
  }
}
