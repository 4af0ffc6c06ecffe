// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-blocks),canonicalize)' | FileCheck %s
// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-blocks))' -o %t.mlir
// RUN: bash %S/../Fuse/equal.sh %s %t.mlir documents window global head learned
// Whoever packs documents needs the masks.
// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-blocks{packs=0}))' | FileCheck %s --check-prefix=KEPT --implicit-check-not=blocks
// KEPT-LABEL: @documents(
// KEPT: tx.attention %arg0, %arg0, %arg0 bias
// Each of four ranks has whole blocks of 16 of 64 positions; of 96 it has 24, blocks of 8. One rank alone has none of these: its kernels
// would gain less.
// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(raise-blocks{ranks=4}))' | FileCheck %s --check-prefix=RING
// RING-LABEL: @documents(
// RING: blocks <16, [squares 0 to 4 by 2]> :
// RING-LABEL: @window(
// RING: blocks <8, [band -2 to 2]> :
// RING-LABEL: @global(
// RING: causal blocks <8, [band -2 to 0, columns 0 to 1 by 1 width 1]> :
module {

// Two documents of 32 positions: the mask says nothing else, and goes.
// CHECK-LABEL: @documents(
// CHECK-NOT: tx.iota
// CHECK: tx.attention %arg0, %arg0, %arg0 scale 5.000000e-01 blocks <32, [band 0 to 0]> :
func.func @documents(%x: tensor<1x64x2x4xf32>) -> tensor<1x64x2x4xf32> {
  %i = tx.iota 0.0, 1.0 : tensor<64xf32>
  %half = tx.constant dense<3.2e1> : tensor<64xf32> : tensor<64xf32>
  %d = tx.less %i, %half : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
  %e = tx.cast %d : tensor<64xi1> -> tensor<64xf32>
  %k = tx.broadcast %e : tensor<64xf32> -> tensor<64x64xf32>
  %f = tx.reshape %e : tensor<64xf32> -> tensor<64x1xf32>
  %q = tx.broadcast %f : tensor<64x1xf32> -> tensor<64x64xf32>
  %same = tx.equal %q, %k : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xi1>
  %zero = tx.constant dense<0.0> : tensor<64x64xf32> : tensor<64x64xf32>
  %low = tx.constant dense<-3.0e38> : tensor<64x64xf32> : tensor<64x64xf32>
  %m = tx.select %same, %zero, %low : (tensor<64x64xi1>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = tx.reshape %m : tensor<64x64xf32> -> tensor<1x1x64x64xf32>
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 : (tensor<1x64x2x4xf32>, tensor<1x64x2x4xf32>, tensor<1x64x2x4xf32>, tensor<1x1x64x64xf32>) -> (tensor<1x64x2x4xf32>, tensor<1x2x64xf32>)
  return %o : tensor<1x64x2x4xf32>
}

// A window of nine positions to either side: no block is full, so that the mask stays.
// CHECK-LABEL: @window(
// CHECK: tx.attention %{{.*}} bias %{{.*}} scale 5.000000e-01 blocks <16, [band -1 to 1]> :
func.func @window(%x: tensor<1x96x2x4xf32>) -> tensor<1x96x2x4xf32> {
  %i = tx.iota 0.0, 1.0 : tensor<96xf32>
  %k = tx.broadcast %i : tensor<96xf32> -> tensor<96x96xf32>
  %f = tx.reshape %i : tensor<96xf32> -> tensor<96x1xf32>
  %q = tx.broadcast %f : tensor<96x1xf32> -> tensor<96x96xf32>
  %d = tx.sub %q, %k : (tensor<96x96xf32>, tensor<96x96xf32>) -> tensor<96x96xf32>
  %a = tx.abs %d : (tensor<96x96xf32>) -> tensor<96x96xf32>
  %nine = tx.constant dense<9.0> : tensor<96x96xf32> : tensor<96x96xf32>
  %near = tx.less_equal %a, %nine : (tensor<96x96xf32>, tensor<96x96xf32>) -> tensor<96x96xi1>
  %zero = tx.constant dense<0.0> : tensor<96x96xf32> : tensor<96x96xf32>
  %low = tx.constant dense<-3.0e38> : tensor<96x96xf32> : tensor<96x96xf32>
  %m = tx.select %near, %zero, %low : (tensor<96x96xi1>, tensor<96x96xf32>, tensor<96x96xf32>) -> tensor<96x96xf32>
  %b = tx.reshape %m : tensor<96x96xf32> -> tensor<1x1x96x96xf32>
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 : (tensor<1x96x2x4xf32>, tensor<1x96x2x4xf32>, tensor<1x96x2x4xf32>, tensor<1x1x96x96xf32>) -> (tensor<1x96x2x4xf32>, tensor<1x2x96xf32>)
  return %o : tensor<1x96x2x4xf32>
}

// Longformer's: the first token sees all and is seen by all, in a model that is causal besides.
// CHECK-LABEL: @global(
// CHECK: tx.attention %{{.*}} bias %{{.*}} scale 5.000000e-01 causal blocks <16, [band -1 to 0, columns 0 to 1 by 1 width 1]> :
func.func @global(%x: tensor<1x96x2x4xf32>) -> tensor<1x96x2x4xf32> {
  %i = tx.iota 0.0, 1.0 : tensor<96xf32>
  %k = tx.broadcast %i : tensor<96xf32> -> tensor<96x96xf32>
  %f = tx.reshape %i : tensor<96xf32> -> tensor<96x1xf32>
  %q = tx.broadcast %f : tensor<96x1xf32> -> tensor<96x96xf32>
  %d = tx.sub %q, %k : (tensor<96x96xf32>, tensor<96x96xf32>) -> tensor<96x96xf32>
  %a = tx.abs %d : (tensor<96x96xf32>) -> tensor<96x96xf32>
  %nine = tx.constant dense<9.0> : tensor<96x96xf32> : tensor<96x96xf32>
  %one = tx.constant dense<1.0> : tensor<96x96xf32> : tensor<96x96xf32>
  %near = tx.less_equal %a, %nine : (tensor<96x96xf32>, tensor<96x96xf32>) -> tensor<96x96xi1>
  %first = tx.less %k, %one : (tensor<96x96xf32>, tensor<96x96xf32>) -> tensor<96x96xi1>
  %seen = tx.or %near, %first : (tensor<96x96xi1>, tensor<96x96xi1>) -> tensor<96x96xi1>
  %zero = tx.constant dense<0.0> : tensor<96x96xf32> : tensor<96x96xf32>
  %low = tx.constant dense<-3.0e38> : tensor<96x96xf32> : tensor<96x96xf32>
  %m = tx.select %seen, %zero, %low : (tensor<96x96xi1>, tensor<96x96xf32>, tensor<96x96xf32>) -> tensor<96x96xf32>
  %b = tx.reshape %m : tensor<96x96xf32> -> tensor<1x1x96x96xf32>
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 causal : (tensor<1x96x2x4xf32>, tensor<1x96x2x4xf32>, tensor<1x96x2x4xf32>, tensor<1x1x96x96xf32>) -> (tensor<1x96x2x4xf32>, tensor<1x2x96xf32>)
  return %o : tensor<1x96x2x4xf32>
}

// The second head sees all; where a bias adds something, it stays.
// CHECK-LABEL: @head(
// CHECK: tx.attention %{{.*}} bias %{{.*}} scale 5.000000e-01 blocks <32, [band 0 to 0], [band -1 to 1], heads [0, 1]> :
func.func @head(%x: tensor<1x64x2x4xf32>) -> tensor<1x64x2x4xf32> {
  %i = tx.iota 0.0, 1.0 : tensor<64xf32>
  %h = tx.iota 0.0, 1.0 : tensor<2xf32>
  %half = tx.constant dense<3.2e1> : tensor<64xf32> : tensor<64xf32>
  %d = tx.less %i, %half : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
  %e = tx.cast %d : tensor<64xi1> -> tensor<64xf32>
  %k = tx.broadcast %e : tensor<64xf32> -> tensor<2x64x64xf32>
  %f = tx.reshape %e : tensor<64xf32> -> tensor<64x1xf32>
  %q = tx.broadcast %f : tensor<64x1xf32> -> tensor<2x64x64xf32>
  %same = tx.equal %q, %k : (tensor<2x64x64xf32>, tensor<2x64x64xf32>) -> tensor<2x64x64xi1>
  %g = tx.reshape %h : tensor<2xf32> -> tensor<2x1x1xf32>
  %all = tx.broadcast %g : tensor<2x1x1xf32> -> tensor<2x64x64xf32>
  %open = tx.cast %all : tensor<2x64x64xf32> -> tensor<2x64x64xi1>
  %seen = tx.or %same, %open : (tensor<2x64x64xi1>, tensor<2x64x64xi1>) -> tensor<2x64x64xi1>
  %low = tx.constant dense<-3.0e38> : tensor<2x64x64xf32> : tensor<2x64x64xf32>
  %m = tx.select %seen, %all, %low : (tensor<2x64x64xi1>, tensor<2x64x64xf32>, tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %b = tx.reshape %m : tensor<2x64x64xf32> -> tensor<1x2x64x64xf32>
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 : (tensor<1x64x2x4xf32>, tensor<1x64x2x4xf32>, tensor<1x64x2x4xf32>, tensor<1x2x64x64xf32>) -> (tensor<1x64x2x4xf32>, tensor<1x2x64xf32>)
  return %o : tensor<1x64x2x4xf32>
}

// A bias that comes from elsewhere stays as it is.
// CHECK-LABEL: @learned(
// CHECK: tx.attention %{{.*}} bias %arg1 scale 5.000000e-01 :
func.func @learned(%x: tensor<1x64x2x4xf32>, %b: tensor<1x1x64x64xf32>) -> tensor<1x64x2x4xf32> {
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 : (tensor<1x64x2x4xf32>, tensor<1x64x2x4xf32>, tensor<1x64x2x4xf32>, tensor<1x1x64x64xf32>) -> (tensor<1x64x2x4xf32>, tensor<1x2x64xf32>)
  return %o : tensor<1x64x2x4xf32>
}
}
