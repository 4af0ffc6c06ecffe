// RUN: partita-opt %s --split-input-file --zero-quantize-gathers | FileCheck %s --implicit-check-not="int8 blocks"

// Quantized once, where the shard is, for both gathers; dequantized where it is used. A bucket is one gather of numbers and one of
// scales, also of blocks of several sizes.
module attributes {par.mesh = #par.mesh<dp = 2>} {
  train.parameter @a : tensor<4x8xf32>
  train.parameter @b : tensor<8x8xf32>
  // CHECK-LABEL: func.func @example
  // CHECK: %[[Q:.*]], %[[S:.*]] = zero.quantize_blocks %{{.*}} by 4
  // CHECK-NEXT: %[[VALUES:.*]] = zero.gather %[[Q]] over "dp" because "parameter"
  // CHECK-NEXT: %[[SCALES:.*]] = zero.gather %[[S]] over "dp" because "parameter"
  // CHECK-NEXT: %[[W:.*]] = zero.dequantize_blocks %[[VALUES]], %[[SCALES]] by 4
  // CHECK-NEXT: tx.matmul %{{.*}}, %[[W]]
  func.func @example(%x: tensor<2x4xf32>) -> tensor<2x8xf32> {
    %shard = train.read @a : tensor<16xf32, #par.place<[4, 8], flat [dp]>>
    %w = zero.gather %shard over "dp" in int8 blocks of 4 because "parameter" : tensor<16xf32, #par.place<[4, 8], flat [dp]>> -> tensor<4x8xf32>
    %y = tx.matmul %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    return %y : tensor<2x8xf32>
  }

  // CHECK-LABEL: func.func @bucket
  // CHECK: %[[A:.*]] = train.read @a
  // CHECK-NEXT: %[[QA:.*]], %[[SA:.*]] = zero.quantize_blocks %[[A]] by 4 : tensor<16xf32, #par.place<[4, 8], flat [dp]>> -> tensor<16xi8, #par.place<[4, 8], flat [dp]>>, tensor<4xf32, #par.place<[4, 2], flat [dp]>>
  // CHECK-NEXT: %[[B:.*]] = train.read @b
  // CHECK-NEXT: %[[QB:.*]], %[[SB:.*]] = zero.quantize_blocks %[[B]] by 4
  // CHECK-NEXT: %[[Q:.*]]:2 = zero.gather %[[QA]], %[[QB]] over "dp" because "parameter" {{.*}} -> tensor<4x8xi8>, tensor<8x8xi8>
  // CHECK-NEXT: %[[S:.*]]:2 = zero.gather %[[SA]], %[[SB]] over "dp" because "parameter" {{.*}} -> tensor<4x2xf32>, tensor<8x2xf32>
  // CHECK-NEXT: tx.neg %arg0
  // CHECK-NEXT: %[[FA:.*]] = zero.dequantize_blocks %[[Q]]#0, %[[S]]#0 by 4 : tensor<4x8xi8>, tensor<4x2xf32> -> tensor<4x8xf32>
  // CHECK-NEXT: tx.matmul %{{.*}}, %[[FA]]
  // CHECK-NEXT: %[[FB:.*]] = zero.dequantize_blocks %[[Q]]#1, %[[S]]#1 by 4
  // CHECK-NEXT: tx.matmul %{{.*}}, %[[FB]]
  // CHECK-NEXT: %[[AGAIN:.*]] = zero.gather %[[QA]] over "dp" again because "parameter"
  // CHECK-NEXT: %[[AGAINS:.*]] = zero.gather %[[SA]] over "dp" again because "parameter"
  // CHECK-NEXT: %[[FAGAIN:.*]] = zero.dequantize_blocks %[[AGAIN]], %[[AGAINS]] by 4
  // CHECK-NEXT: tx.neg %[[FAGAIN]]
  func.func @bucket(%x: tensor<2x4xf32>) -> (tensor<2x8xf32>, tensor<4x8xf32>) {
    %a = train.read @a : tensor<16xf32, #par.place<[4, 8], flat [dp]>>
    %b = train.read @b : tensor<32xf32, #par.place<[8, 8], flat [dp]>>
    %w:2 = zero.gather %a, %b over "dp" in int8 blocks of 4 because "parameter" : tensor<16xf32, #par.place<[4, 8], flat [dp]>>, tensor<32xf32, #par.place<[8, 8], flat [dp]>> -> tensor<4x8xf32>, tensor<8x8xf32>
    %n = tx.neg %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %y = tx.matmul %n, %w#0 : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    %z = tx.matmul %y, %w#1 : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %again = zero.gather %a over "dp" again in int8 blocks of 4 because "parameter" : tensor<16xf32, #par.place<[4, 8], flat [dp]>> -> tensor<4x8xf32>
    %m = tx.neg %again : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %z, %m : tensor<2x8xf32>, tensor<4x8xf32>
  }
}

// -----

// Over two axes, the shard over both is quantized. A shard of 12 elements holds no whole blocks of 8: it is gathered as it is, and
// quantized before the next gather, or rounded. What is not gathered is rounded where it is read.
module attributes {par.mesh = #par.mesh<dp = 2, cp = 2>} {
  train.parameter @a : tensor<4x8xf32>
  train.parameter @b : tensor<6x8xf32>
  train.parameter @c : tensor<3x8xf32>
  // CHECK-LABEL: func.func @two_axes
  // CHECK: %[[A:.*]] = train.read @a
  // CHECK-NEXT: %[[QA:.*]], %[[SA:.*]] = zero.quantize_blocks %[[A]] by 8 : tensor<8xf32, #par.place<[4, 8], flat [cp, dp]>> -> tensor<8xi8, #par.place<[4, 8], flat [cp, dp]>>, tensor<1xf32, #par.place<[4, 1], flat [cp, dp]>>
  // CHECK-NEXT: %[[Q1:.*]] = zero.gather %[[QA]] over "dp" because "parameter" {{.*}} -> tensor<16xi8, #par.place<[4, 8], flat [cp]>>
  // CHECK-NEXT: %[[S1:.*]] = zero.gather %[[SA]] over "dp" because "parameter" {{.*}} -> tensor<2xf32, #par.place<[4, 1], flat [cp]>>
  // CHECK-NEXT: %[[Q2:.*]] = zero.gather %[[Q1]] over "cp" because "parameter" {{.*}} -> tensor<4x8xi8>
  // CHECK-NEXT: %[[S2:.*]] = zero.gather %[[S1]] over "cp" because "parameter" {{.*}} -> tensor<4x1xf32>
  // CHECK-NEXT: %[[FULL:.*]] = zero.dequantize_blocks %[[Q2]], %[[S2]] by 8
  // CHECK-NEXT: tx.neg %[[FULL]]
  func.func @two_axes() -> tensor<4x8xf32> {
    %a = train.read @a : tensor<8xf32, #par.place<[4, 8], flat [cp, dp]>>
    %1 = zero.gather %a over "dp" because "parameter" : tensor<8xf32, #par.place<[4, 8], flat [cp, dp]>> -> tensor<16xf32, #par.place<[4, 8], flat [cp]>>
    %2 = zero.gather %1 over "cp" in int8 blocks of 8 because "parameter" : tensor<16xf32, #par.place<[4, 8], flat [cp]>> -> tensor<4x8xf32>
    %y = tx.neg %2 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %y : tensor<4x8xf32>
  }

  // CHECK-LABEL: func.func @whole_over_one
  // CHECK: %[[W:.*]] = zero.gather %{{.*}} over "dp" because "parameter" {{.*}} -> tensor<24xf32, #par.place<[6, 8], flat [cp]>>
  // CHECK-NEXT: %[[Q:.*]], %[[S:.*]] = zero.quantize_blocks %[[W]] by 8
  // CHECK-NEXT: zero.gather %[[Q]] over "cp"
  // CHECK-NEXT: zero.gather %[[S]] over "cp"
  func.func @whole_over_one() -> tensor<6x8xf32> {
    %b = train.read @b : tensor<12xf32, #par.place<[6, 8], flat [cp, dp]>>
    %1 = zero.gather %b over "dp" because "parameter" : tensor<12xf32, #par.place<[6, 8], flat [cp, dp]>> -> tensor<24xf32, #par.place<[6, 8], flat [cp]>>
    %2 = zero.gather %1 over "cp" in int8 blocks of 8 because "parameter" : tensor<24xf32, #par.place<[6, 8], flat [cp]>> -> tensor<6x8xf32>
    %y = tx.neg %2 : (tensor<6x8xf32>) -> tensor<6x8xf32>
    return %y : tensor<6x8xf32>
  }

  // CHECK-LABEL: func.func @not_whole
  // CHECK: %[[C:.*]] = train.read @c
  // CHECK-NEXT: %[[F:.*]] = zero.gather %[[C]] over "cp" because "parameter" {{.*}} -> tensor<3x8xf32>
  // CHECK-NEXT: %[[R:.*]] = zero.round_blocks %[[F]] by 8 : tensor<3x8xf32> -> tensor<3x8xf32>
  // CHECK-NEXT: tx.neg %[[R]]
  func.func @not_whole() -> tensor<3x8xf32> {
    %c = train.read @c : tensor<12xf32, #par.place<[3, 8], flat [cp]>>
    %1 = zero.gather %c over "cp" in int8 blocks of 8 because "parameter" : tensor<12xf32, #par.place<[3, 8], flat [cp]>> -> tensor<3x8xf32>
    %y = tx.neg %1 : (tensor<3x8xf32>) -> tensor<3x8xf32>
    return %y : tensor<3x8xf32>
  }

  // CHECK-LABEL: func.func @read
  // CHECK: %[[A:.*]] = train.read @a : tensor<4x8xf32>
  // CHECK-NEXT: %[[R:.*]] = zero.round_blocks %[[A]] by 8
  // CHECK-NEXT: tx.neg %[[R]]
  func.func @read() -> tensor<4x8xf32> {
    %a = train.read @a in int8 blocks of 8 : tensor<4x8xf32>
    %y = tx.neg %a : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %y : tensor<4x8xf32>
  }

  // hpZ's secondary copy, which the backward pass gathers within the group, is in 8 bits; no exact gather is left.
  // CHECK-LABEL: func.func @secondary
  // CHECK: %[[Q:.*]], %[[S:.*]] = zero.quantize_blocks %{{.*}} by 8
  // CHECK-NEXT: %[[Q1:.*]] = zero.gather %[[Q]] over "dp"
  // CHECK-NEXT: %[[S1:.*]] = zero.gather %[[S]] over "dp"
  // CHECK-NEXT: zero.gather %[[Q1]] over "cp" because
  // CHECK-NEXT: zero.gather %[[S1]] over "cp" because
  // CHECK: tx.neg
  // CHECK-NEXT: zero.gather %[[Q1]] over "cp" again
  // CHECK-NEXT: zero.gather %[[S1]] over "cp" again
  // CHECK-NOT: zero.gather
  // CHECK: return
  func.func @secondary() -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %a = train.read @a : tensor<8xf32, #par.place<[4, 8], flat [cp, dp]>>
    %1 = zero.gather %a over "dp" because "parameter" : tensor<8xf32, #par.place<[4, 8], flat [cp, dp]>> -> tensor<16xf32, #par.place<[4, 8], flat [cp]>>
    %2 = zero.gather %1 over "cp" in int8 blocks of 8 because "parameter" : tensor<16xf32, #par.place<[4, 8], flat [cp]>> -> tensor<4x8xf32>
    %y = tx.neg %2 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = zero.gather %1 over "cp" again in int8 blocks of 8 because "parameter" : tensor<16xf32, #par.place<[4, 8], flat [cp]>> -> tensor<4x8xf32>
    %z = tx.neg %3 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
  }

  // Between passes that stay apart (pipeline stages), too: what is saved is in 8 bits.
  // CHECK-LABEL: func.func @saved
  // CHECK: %[[Q1:.*]] = zero.gather %{{.*}} over "dp" {{.*}} -> tensor<16xi8
  // CHECK-NEXT: %[[S1:.*]] = zero.gather %{{.*}} over "dp" {{.*}} -> tensor<2xf32
  // CHECK-NOT: over "dp"
  // CHECK: train.yield %{{.*}} saves %[[Q1]], %[[S1]] :
  // CHECK-NEXT: } backward (%{{.*}}, %[[Q2:.*]], %[[S2:.*]]) {
  // CHECK-NEXT: %[[Q3:.*]] = zero.gather %[[Q2]] over "cp" again
  // CHECK-NEXT: %[[S3:.*]] = zero.gather %[[S2]] over "cp" again
  // CHECK-NEXT: zero.dequantize_blocks %[[Q3]], %[[S3]] by 8
  // CHECK-NOT: zero.gather
  // CHECK: return
  func.func @saved(%xs: tensor<1x4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) attributes {par.no_cotangents} {
    %a = train.read @a : tensor<8xf32, #par.place<[4, 8], flat [cp, dp]>>
    %s:2 = train.accumulate (%x = %xs) : (tensor<1x4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %1 = zero.gather %a over "dp" because "parameter" : tensor<8xf32, #par.place<[4, 8], flat [cp, dp]>> -> tensor<16xf32, #par.place<[4, 8], flat [cp]>>
      %2 = zero.gather %1 over "cp" in int8 blocks of 8 because "parameter" : tensor<16xf32, #par.place<[4, 8], flat [cp]>> -> tensor<4x8xf32>
      %y = tx.mul %x, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      train.yield %y : tensor<4x8xf32> saves %1 : tensor<16xf32, #par.place<[4, 8], flat [cp]>>
    } backward (%x1, %c1) {
      %3 = zero.gather %c1 over "cp" again in int8 blocks of 8 because "parameter" : tensor<16xf32, #par.place<[4, 8], flat [cp]>> -> tensor<4x8xf32>
      %z = tx.mul %x1, %3 {train.backward} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      train.yield %z : tensor<4x8xf32>
    }
    return %s#0, %s#1 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}
