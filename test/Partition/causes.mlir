// RUN: partita-opt %s --partition-seed=mesh=tp=2 --partition-seed-tensor | FileCheck %s --check-prefix=SEED
// RUN: partita-opt %s --partition-seed=mesh=dp=2,tp=2 --partition-seed-user=shard=up=tp@1 --partition-seed-tensor --partition-propagate --partition-materialize | FileCheck %s
// RUN: partita-opt %s --partition-seed=mesh=tp=2 --partition-seed-tensor --partition-propagate --partition-materialize --simplify-collectives --differentiate --expand-conjugates --bucket-all-reduces --start-collectives | FileCheck %s --check-prefix=BACKWARD

// What is inserted says why: role, letter, rule, op, node, layer, and the seed of the split.
module {
train.parameter @up : tensor<4x16xf32>
train.parameter @down : tensor<16x4xf32>
train.parameter @scale : tensor<4xf32>
// SEED: train.parameter @up : {{.*}} {par.seeds = {tp = #par.seed<"analysis" "" of ["up@1", "down@0"]>}, par.split
// SEED: train.parameter @down : {{.*}} {par.seeds = {tp = #par.seed<"analysis" "" of ["up@1", "down@0"]>}, par.split
// CHECK-NOT: par.seeds
// CHECK-LABEL: func.func @train_step
func.func @train_step(%x: tensor<8x4xf32> {train.batch = 0, train.name = "x"}) attributes {train.entry_point = #train.entry_point<train_step>} {
  // CHECK: train.read @up
  %up = train.read @up : tensor<4x16xf32>
  %down = train.read @down : tensor<16x4xf32>
  %scale = train.read @scale : tensor<4xf32>
  %n, %rstd = tx.rms_norm %x, %scale eps 1.0e-6 : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) loc("entry")
  %h = tx.matmul %n, %up : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> loc("node_up")
  %g = tx.gelu %h : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = tx.matmul %g, %down : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> loc("node_down")
  %e = tx.exp %y : (tensor<8x4xf32>) -> tensor<8x4xf32> loc("behind")
  %s = tx.reduce_sum %e [0, 1] : tensor<8x4xf32> -> tensor<f32> loc("loss")
  train.minimize %s : tensor<f32>
  return
}
// CHECK-DAG: {par.causes = [#par.cause<share "n" in "~* k+, ~k+ n -> * n" of "tx.matmul" "node_up" layer -1 of 0 seed <"user" "up=tp@1" of ["up@1", "down@0"]>>]
// CHECK-DAG: {par.causes = [#par.cause<sum "k" in "~* k+, ~k+ n -> * n" of "tx.matmul" "node_down" layer -1 of 0 seed <"user" "up=tp@1" of ["up@1", "down@0"]>>]
// CHECK-DAG: {par.causes = [#par.cause<parameter "*0" in "~* k+, ~k+ n -> * n" of "tx.matmul" "node_up" layer -1 of 0 seed <"batch" "x" of []>>]
// CHECK-DAG: {par.causes = [#par.cause<sum "a" in "~a+ b+ -> " of "tx.reduce_sum" "loss" layer -1 of 0 seed <"batch" "x" of []>>]

// The backward half and the start of a collective have it too.
// BACKWARD: par.all_reduce {{.*}} {par.causes = [#par.cause<sum "k"
// BACKWARD: par.all_reduce_start {{.*}} {par.causes = [#par.cause<share "n" {{.*}}], train.backward
// BACKWARD: par.wait {{.*}} {par.causes = [#par.cause<share "n" {{.*}}], train.backward
}
