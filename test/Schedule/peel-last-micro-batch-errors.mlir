// RUN: partita-opt %s --peel-last-micro-batch --split-input-file --verify-diagnostics

// The loop already adds to its sum by itself: what would be peeled off has no sum to add to.
func.func @grown(%xs: tensor<1x8x4xf32>, %dys: tensor<1x8x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{makes sums itself; fuse-accumulation comes after this pass}}
  %sum = train.accumulate (%x = %xs, %dy = %dys) : (tensor<1x8x4xf32>, tensor<1x8x6xf32>) -> tensor<4x6xf32> onto (%s = 0) {
    %0 = tx.matmul_tn %x, %dy : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %1 = tx.add %s, %0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    train.yield %1 : tensor<4x6xf32>
  }
  return %sum : tensor<4x6xf32>
}

// -----

func.func @two_regions(%xs: tensor<2x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // expected-error @+1 {{peel-last-micro-batch is for a program whose micro-batches are scheduled; schedule-backward comes first}}
  %s:2 = train.accumulate (%x = %xs) : (tensor<2x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    train.yield %x : tensor<8xf32>
  } backward (%x1) {
    train.yield %x1 : tensor<8xf32>
  }
  return %s#0, %s#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Between the stages of one program: the copy's message would have the loop's channel.
module attributes {pipe.stages = 2} {
func.func @moves(%xs: tensor<2x4xf32>) -> tensor<4xf32> {
  %sum = train.accumulate (%x = %xs) : (tensor<2x4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{would have a copy with the same channel; pipe-cut comes before this pass}}
    %0 = pipe.move %x over <0 to 1> : tensor<4xf32>
    train.yield %0 : tensor<4xf32>
  }
  return %sum : tensor<4xf32>
}
}
