// RUN: partita-opt %s --split-input-file --partition-seed-tensor --verify-diagnostics

module attributes {par.mesh = #par.mesh<tp = 4>} {
  // expected-error@+1 {{dimension 1 of 'up' is split together with a dimension of size 6, which does not divide over tp = 4; sizes of tp that do for all weights: 1, 2, 3, 6}}
  train.parameter @up : tensor<4x6xf32>
  train.parameter @down : tensor<6x4xf32>
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    // expected-note@+1 {{it does not divide here}}
    %up = train.read @up : tensor<4x6xf32>
    %down = train.read @down : tensor<6x4xf32>
    %n = tx.softmax %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %0 = tx.matmul %n, %up : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = tx.relu %0 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %2 = tx.matmul %1, %down : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    %3 = tx.softmax %2 : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %3 : tensor<8x4xf32>
  }
}

// -----

// Sizes that suit one family of weights and not another are not named: shards of 8 over 3 would be uneven, and exp of their padding one.
module attributes {par.mesh = #par.mesh<tp = 5>} {
  // expected-error@+1 {{a dimension of size 12, which does not divide over tp = 5; sizes of tp that do for all weights: 1, 2, 4}}
  train.parameter @up : tensor<4x12xf32>
  train.parameter @down : tensor<12x4xf32>
  train.parameter @up2 : tensor<4x8xf32>
  train.parameter @down2 : tensor<8x4xf32>
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    // expected-note@+1 {{it does not divide here}}
    %up = train.read @up : tensor<4x12xf32>
    %down = train.read @down : tensor<12x4xf32>
    %up2 = train.read @up2 : tensor<4x8xf32>
    %down2 = train.read @down2 : tensor<8x4xf32>
    %n = tx.softmax %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %0 = tx.matmul %n, %up : (tensor<8x4xf32>, tensor<4x12xf32>) -> tensor<8x12xf32>
    %1 = tx.relu %0 : (tensor<8x12xf32>) -> tensor<8x12xf32>
    %2 = tx.matmul %1, %down : (tensor<8x12xf32>, tensor<12x4xf32>) -> tensor<8x4xf32>
    %3 = tx.softmax %2 : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %4 = tx.matmul %3, %up2 : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %5 = tx.exp %4 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %6 = tx.matmul %5, %down2 : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %7 = tx.softmax %6 : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %7 : tensor<8x4xf32>
  }
}

// -----

// expected-error@+1 {{nothing can be split over mesh axis 'tp': no dimension of a parameter belongs to a matmul and is free of softmax, and of inputs, on its way}}
module attributes {par.mesh = #par.mesh<tp = 2>} {
  train.parameter @w : tensor<4x4xf32>
  func.func @forward(%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %w = train.read @w : tensor<4x4xf32>
    %n = tx.softmax %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %0 = tx.matmul %n, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %1 = tx.softmax %0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}

// -----

// A vocabulary that does not divide stays full where an op would not keep padding zero.
module attributes {par.mesh = #par.mesh<tp = 2>} {
  // expected-remark@+1 {{dimension 0 of 'tokens' stays full: 15 does not divide over tp = 2}}
  train.parameter @tokens : tensor<15x8xf32>
  train.parameter @up : tensor<8x6xf32>
  func.func @forward(%ids: tensor<2x4xi64>) -> tensor<2x4x6xf32> attributes {train.entry_point = #train.entry_point<forward>} {
    %tokens = train.read @tokens : tensor<15x8xf32>
    %up = train.read @up : tensor<8x6xf32>
    %positive = tx.exp %tokens : (tensor<15x8xf32>) -> tensor<15x8xf32>
    %0 = tx.embedding %positive, %ids : (tensor<15x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %1 = tx.softmax %0 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %2 = tx.matmul %1, %up : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
    return %2 : tensor<2x4x6xf32>
  }
}
