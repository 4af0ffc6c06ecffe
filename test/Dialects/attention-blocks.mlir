// Every term of a pattern, patterns of heads, and the attribute by itself read back as they are printed.
// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK: pattern = #tx.block_pattern<[band 0 to 1] lower>
func.func private @f() attributes {pattern = #tx.block_pattern<[band 0 to 1] lower>}

// CHECK-LABEL: @all(
// CHECK: blocks <2, [band -1 to 0, squares 0 to 4 by 2 below, columns 1 to 4 by 2 width 1 below, rows 0 to 2 by 2 width 2, block 0 3, block 2 0]> :
func.func @all(%x: tensor<1x8x2x4xf32>) {
  %o, %l = tx.attention %x, %x, %x scale 0.5 causal blocks <2, [band -1 to 0, squares 0 to 4 by 2 below, columns 1 to 4 by 2 width 1 below, rows 0 to 2 by 2 width 2, block 0 3, block 2 0]> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// CHECK-LABEL: @heads(
// CHECK: blocks <4, [band 0 to 0], [band -1 to 1] lower, heads [1, 0]> :
// CHECK: tx.attention_grad %{{.*}} blocks <4, [band 0 to 0], [band -1 to 1] lower, heads [1, 0]> :
func.func @heads(%x: tensor<1x8x2x4xf32>) {
  %o, %l = tx.attention %x, %x, %x scale 0.5 blocks <4, [band 0 to 0], [band -1 to 1] lower, heads [1, 0]> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  %0:3 = tx.attention_grad %x, %x, %x, %o, %l, %x scale 0.5 blocks <4, [band 0 to 0], [band -1 to 1] lower, heads [1, 0]> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// CHECK-LABEL: @steps(
// CHECK: tx.attention_step %{{.*}} scale 5.000000e-01 causal blocks <2, [band 0 to 0], [band -1 to 0], heads [1, 0]> behind 0 head %{{.*}} ring "cp" :
// CHECK: tx.attention_step_grad %{{.*}} scale 5.000000e-01 blocks <2, [band 0 to 0], [band -1 to 0], heads [1, 0]> behind 0 ring "cp" :
module attributes {par.mesh = #par.mesh<cp = 2>} {
func.func @steps(%x: tensor<1x8x2x4xf32>, %n: tensor<2xi64>, %h: tensor<1xi64>) {
  %o, %l = tx.attention_step %x, %x, %x at %n, %n scale 0.5 causal blocks <2, [band 0 to 0], [band -1 to 0], heads [1, 0]> behind 0 head %h ring "cp" : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1xi64>, tensor<2xi64>, tensor<2xi64>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  %0:3 = tx.attention_step_grad %x, %x, %x, %o, %l, %x at %n, %n scale 0.5 blocks <2, [band 0 to 0], [band -1 to 0], heads [1, 0]> behind 0 ring "cp" : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<2xi64>, tensor<2xi64>) -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}
}
