// RUN: partita-opt %s --split-input-file --verify-diagnostics --partition-seed-context=how=all-to-all

module attributes {par.mesh = #par.mesh<cp = 4>} {
  func.func @heads(%x: tensor<2x8x8xf32> {train.batch = 0}) -> tensor<2x8x2x4xf32> {
    %q = tx.reshape %x : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
    // expected-error@+1 {{--context-parallel all-to-all deals out 2 heads to 4 ranks, which do not divide them; take ring, or cp = 2}}
    %out, %lse = tx.attention %q, %q, %q scale 0.5 : (tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>) -> (tensor<2x8x2x4xf32>, tensor<2x2x8xf32>)
    return %out : tensor<2x8x2x4xf32>
  }
}
