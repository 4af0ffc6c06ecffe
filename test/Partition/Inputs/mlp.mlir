module attributes {par.mesh = #par.mesh<dp = 4, tp = 2>} {
  train.parameter @up : tensor<4x6xf32>
  train.parameter @down : tensor<6x4xf32>
  train.parameter @w : tensor<8x8xf32>
  train.parameter @v : tensor<8x8xf32>
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %up = train.read @up : tensor<4x6xf32>
    %down = train.read @down : tensor<6x4xf32>
    %n = tx.softmax %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %0 = tx.matmul %n, %up : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = tx.relu %0 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %2 = tx.matmul %1, %down : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
  func.func @other(%x: tensor<2x8xf32>) -> tensor<8x8xf32> {
    %w = train.read @w : tensor<8x8xf32>
    %v = train.read @v : tensor<8x8xf32>
    %0 = tx.matmul %w, %v : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
