// RUN: partita-opt %s --split-input-file --partition-seed-context=how=ring | FileCheck %s
// RUN: partita-opt %s --split-input-file --partition-seed-context=how=all-to-all | FileCheck %s --check-prefix=HEADS

// Tokens are split; the mask of the keys stays full, and so do its columns. The table of positions is narrowed where it is used, the
// pooled token and the result gathered.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: tensor<2x8xi64> {par.split = #par.place<[2, 8 @cp]>, train.batch = 0
// CHECK-SAME: %[[MASK:[a-z0-9]+]]: tensor<2x1x1x8xf32> {train.batch = 0
// CHECK: %[[X:.*]] = tx.embedding %{{.*}}, %[[IDS]]
// CHECK: %[[ROWS:.*]] = tx.slice
// CHECK: %[[OWN:.*]] = par.narrow %[[ROWS]] over "cp" along 0
// CHECK: tx.broadcast %[[OWN]]
// CHECK: %[[OUT:.*]], %{{.*}} = tx.attention %[[Q:.*]], %[[Q]], %[[Q]] bias %[[MASK]] scale {{.*}} ring "cp"
// CHECK: %[[FULL:.*]] = par.all_gather %{{.*}} over "cp" along 1
// CHECK: tx.slice %[[FULL]]
// HEADS-LABEL: func.func @forward
// HEADS-COUNT-3: par.all_to_all %{{.*}} over "cp" from 1 to 2
// HEADS: %[[OUT:.*]], %{{.*}} = tx.attention
// HEADS-NOT: ring
// HEADS: par.all_to_all %[[OUT]] over "cp" from 2 to 1
module attributes {par.mesh = #par.mesh<cp = 2>} {
  train.parameter @wte : tensor<16x8xf32>
  train.parameter @wpe : tensor<12x8xf32>
  func.func @forward(%ids: tensor<2x8xi64> {train.batch = 0}, %mask: tensor<2x1x1x8xf32> {train.batch = 0}) -> (tensor<2x1x8xf32>) attributes {train.entry_point = #train.entry_point<forward>} {
    %wte = train.read @wte : tensor<16x8xf32>
    %wpe = train.read @wpe : tensor<12x8xf32>
    %e = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
    %rows = tx.slice %wpe [0, 0] by [1, 1] : tensor<12x8xf32> -> tensor<8x8xf32>
    %p = tx.broadcast %rows : tensor<8x8xf32> -> tensor<2x8x8xf32>
    %x = tx.add %e, %p : (tensor<2x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    %q = tx.reshape %x : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
    %out, %lse = tx.attention %q, %q, %q bias %mask scale 0.5
      : (tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x1x1x8xf32>) -> (tensor<2x8x2x4xf32>, tensor<2x2x8xf32>)
    %y = tx.reshape %out : tensor<2x8x2x4xf32> -> tensor<2x8x8xf32>
    %first = tx.slice %y [0, 0, 0] by [1, 1, 1] : tensor<2x8x8xf32> -> tensor<2x1x8xf32>
    return %first : tensor<2x1x8xf32>
  }
}

// -----

// A causal mask hides as much from every rank if each has a chunk of both halves; the table of positions is narrowed to the same ones.
// CHECK-LABEL: module attributes {par.mesh = #par.mesh<cp = 2>}
// CHECK: func.func @causal
// CHECK-SAME: tensor<2x8xi64> {par.split = #par.place<[2, 2 x 4 @cp mirrored]>, train.batch = 0
// CHECK: par.narrow %{{.*}} over "cp" along 0 in 2 blocks mirrored
// CHECK-NOT: par.all_gather
// CHECK: return
// HEADS-LABEL: func.func @causal
// HEADS-SAME: par.split = #par.place<[2, 8 @cp]>
module attributes {par.mesh = #par.mesh<cp = 2>} {
  train.parameter @wte : tensor<16x8xf32>
  train.parameter @wpe : tensor<8x8xf32>
  func.func @causal(%ids: tensor<2x8xi64> {train.batch = 0}) -> tensor<2x8x2x4xf32> {
    %wte = train.read @wte : tensor<16x8xf32>
    %wpe = train.read @wpe : tensor<8x8xf32>
    %e = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
    %p = tx.broadcast %wpe : tensor<8x8xf32> -> tensor<2x8x8xf32>
    %x = tx.add %e, %p : (tensor<2x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    %q = tx.reshape %x : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
    %out, %lse = tx.attention %q, %q, %q scale 0.5 causal
      : (tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>) -> (tensor<2x8x2x4xf32>, tensor<2x2x8xf32>)
    return %out : tensor<2x8x2x4xf32>
  }
}

// -----

// Three chunks for each of two ranks: shards are dealt in order, and the module says why.
// CHECK-LABEL: module attributes
// CHECK-SAME: par.in_order = "4 chunks do not divide it"
// CHECK: func.func @six
// CHECK-SAME: par.split = #par.place<[2, 6 @cp]>
module attributes {par.mesh = #par.mesh<cp = 2>} {
  train.parameter @wte : tensor<16x8xf32>
  func.func @six(%ids: tensor<2x6xi64> {train.batch = 0}) -> tensor<2x6x2x4xf32> {
    %wte = train.read @wte : tensor<16x8xf32>
    %x = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x6xi64>) -> tensor<2x6x8xf32>
    %q = tx.reshape %x : tensor<2x6x8xf32> -> tensor<2x6x2x4xf32>
    %out, %lse = tx.attention %q, %q, %q scale 0.5 causal
      : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
    return %out : tensor<2x6x2x4xf32>
  }
}

// -----

// CHECK-LABEL: module attributes
// CHECK-SAME: par.in_order = "attention {{.*}} has a window"
// CHECK: func.func @window
// CHECK-SAME: par.split = #par.place<[2, 8 @cp]>
module attributes {par.mesh = #par.mesh<cp = 2>} {
  train.parameter @wte : tensor<16x8xf32>
  func.func @window(%ids: tensor<2x8xi64> {train.batch = 0}) -> tensor<2x8x2x4xf32> {
    %wte = train.read @wte : tensor<16x8xf32>
    %x = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
    %q = tx.reshape %x : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
    %out, %lse = tx.attention %q, %q, %q scale 0.5 causal window 4
      : (tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>) -> (tensor<2x8x2x4xf32>, tensor<2x2x8xf32>)
    return %out : tensor<2x8x2x4xf32>
  }
}

// -----

// The last token's logits need the full sequence; elements that dropout drops are numbered along one part of it.
// CHECK-LABEL: module attributes
// CHECK-SAME: par.in_order = "tx.slice ({{.*}}) cannot work on two chunks of it"
// CHECK: func.func @last
// CHECK-SAME: par.split = #par.place<[2, 8 @cp]>
module attributes {par.mesh = #par.mesh<cp = 2>} {
  train.parameter @wte : tensor<16x8xf32>
  func.func @last(%ids: tensor<2x8xi64> {train.batch = 0}) -> tensor<2x1x2x4xf32> {
    %wte = train.read @wte : tensor<16x8xf32>
    %x = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
    %q = tx.reshape %x : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
    %out, %lse = tx.attention %q, %q, %q scale 0.5 causal
      : (tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>) -> (tensor<2x8x2x4xf32>, tensor<2x2x8xf32>)
    %y = tx.slice %out [0, 7, 0, 0] by [1, 1, 1, 1] : tensor<2x8x2x4xf32> -> tensor<2x1x2x4xf32>
    return %y : tensor<2x1x2x4xf32>
  }
}

// -----

// CHECK-LABEL: module attributes
// CHECK-SAME: par.in_order = "tx.dropout ({{.*}}) cannot work on two chunks of it"
// CHECK: func.func @dropout
// CHECK-SAME: par.split = #par.place<[2, 8 @cp]>
module attributes {par.mesh = #par.mesh<cp = 2>} {
  train.parameter @wte : tensor<16x8xf32>
  func.func @dropout(%ids: tensor<2x8xi64> {train.batch = 0}, %key: tensor<i64>, %micro: tensor<i64>) -> tensor<2x8x2x4xf32> {
    %wte = train.read @wte : tensor<16x8xf32>
    %x = tx.embedding %wte, %ids : (tensor<16x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
    %d = tx.dropout %x ratio 0.5 id 1 key %key micro %micro : (tensor<2x8x8xf32>, tensor<i64>, tensor<i64>) -> tensor<2x8x8xf32>
    %q = tx.reshape %d : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
    %out, %lse = tx.attention %q, %q, %q scale 0.5 causal
      : (tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>) -> (tensor<2x8x2x4xf32>, tensor<2x2x8xf32>)
    return %out : tensor<2x8x2x4xf32>
  }
}
