// RUN: partita-opt %s --pass-pipeline='builtin.module(sparsify-attention{layout=mode=fixed,block=2,attention=unidirectional})' --split-input-file --verify-diagnostics | FileCheck %s
// RUN: partita-opt %s --pass-pipeline='builtin.module(sparsify-attention)' --split-input-file | FileCheck %s --check-prefix=DENSE --implicit-check-not=blocks

// DENSE-LABEL: @causal(
// DENSE: tx.attention
// CHECK-LABEL: @causal(
// CHECK: tx.attention %{{.*}} scale 5.000000e-01 causal blocks <2, [squares 0 to 8 by 4 below, columns 3 to 8 by 4 width 1 below]> :
func.func @causal(%x: tensor<1x16x2x4xf32>) -> tensor<1x16x2x4xf32> {
  %o, %l = tx.attention %x, %x, %x scale 0.5 causal : (tensor<1x16x2x4xf32>, tensor<1x16x2x4xf32>, tensor<1x16x2x4xf32>) -> (tensor<1x16x2x4xf32>, tensor<1x2x16xf32>)
  return %o : tensor<1x16x2x4xf32>
}

// -----

// The keys of the second attention are an encoder's; those of the third depend on both inputs, like its queries. Lengths
// may differ between attentions.
// CHECK-LABEL: @decoder(
// CHECK:      tx.attention %{{.*}} scale 5.000000e-01 blocks <2, [squares 0 to 4 by 4 below, columns 3 to 4 by 4 width 1 below]> :
// CHECK-NEXT: tx.attention %{{.*}} scale 5.000000e-01 :
// CHECK-NEXT: tx.attention %{{.*}} scale 5.000000e-01 blocks <2, [squares 0 to 4 by 4 below, columns 3 to 4 by 4 width 1 below]> :
func.func @decoder(%x: tensor<1x8x2x4xf32>, %e: tensor<1x8x2x4xf32>) -> tensor<1x8x2x4xf32> {
  // expected-warning@+1 {{sparse attention: attention=unidirectional hides blocks of later tokens, but the model is not causal: a token still sees later ones of its own block, as in DeepSpeed}}
  %o, %l = tx.attention %x, %x, %x scale 0.5 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  // expected-warning@+1 {{sparse attention: 1 attention stays dense, whose keys come from elsewhere than the queries (cross-attention, cached keys)}}
  %p, %m = tx.attention %o, %e, %e scale 0.5 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  %q, %n = tx.attention %p, %p, %p scale 0.5 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return %q : tensor<1x8x2x4xf32>
}
