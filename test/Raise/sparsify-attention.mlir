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

// -----

// A padding mask hides no later token: the bias of one query is that of all.
// CHECK-LABEL: @padding(
func.func @padding(%x: tensor<1x8x2x4xf32>, %seen: tensor<1x8xi64>) -> tensor<1x8x2x4xf32> {
  %n = tx.cast %seen : tensor<1x8xi64> -> tensor<1x8xi1>
  %b = tx.reshape %n : tensor<1x8xi1> -> tensor<1x1x1x8xi1>
  %zero = tx.constant dense<0.0> : tensor<1x1x1x8xf32> : tensor<1x1x1x8xf32>
  %low = tx.constant dense<-3.0e38> : tensor<1x1x1x8xf32> : tensor<1x1x1x8xf32>
  %bias = tx.select %b, %zero, %low : (tensor<1x1x1x8xi1>, tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>) -> tensor<1x1x1x8xf32>
  // expected-warning@+1 {{sparse attention: attention=unidirectional hides blocks of later tokens, but the model is not causal: a token still sees later ones of its own block, as in DeepSpeed}}
  %o, %l = tx.attention %x, %x, %x bias %bias scale 0.5 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x1x1x8xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return %o : tensor<1x8x2x4xf32>
}

// -----

// The same with ones for the tokens that are hidden.
// CHECK-LABEL: @padding_by_ones(
func.func @padding_by_ones(%x: tensor<1x8x2x4xf32>, %hidden: tensor<1x8xi1>) -> tensor<1x8x2x4xf32> {
  %b = tx.reshape %hidden : tensor<1x8xi1> -> tensor<1x1x1x8xi1>
  %zero = tx.constant dense<0.0> : tensor<1x1x1x8xf32> : tensor<1x1x1x8xf32>
  %low = tx.constant dense<-3.0e38> : tensor<1x1x1x8xf32> : tensor<1x1x1x8xf32>
  %bias = tx.select %b, %low, %zero : (tensor<1x1x1x8xi1>, tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>) -> tensor<1x1x1x8xf32>
  // expected-warning@+1 {{but the model is not causal}}
  %o, %l = tx.attention %x, %x, %x bias %bias scale 0.5 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x1x1x8xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return %o : tensor<1x8x2x4xf32>
}

// -----

// Relative positions that are learned hide nothing.
// CHECK-LABEL: @learned(
func.func @learned(%x: tensor<1x8x2x4xf32>, %positions: tensor<1x2x8x8xf32>) -> tensor<1x8x2x4xf32> {
  // expected-warning@+1 {{but the model is not causal}}
  %o, %l = tx.attention %x, %x, %x bias %positions scale 0.5 : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8x8xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return %o : tensor<1x8x2x4xf32>
}

// -----

// A constant window of three: a query sees the next one too.
// CHECK-LABEL: @window(
func.func @window(%x: tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32> {
  %bias = tx.constant dense<[[[[0.0, 0.0, -3.0e38, -3.0e38], [0.0, 0.0, 0.0, -3.0e38], [-3.0e38, 0.0, 0.0, 0.0], [-3.0e38, -3.0e38, 0.0, 0.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  // expected-warning@+1 {{but the model is not causal}}
  %o, %l = tx.attention %x, %x, %x bias %bias scale 0.5 : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}

// -----

// A causal mask with a padding mask, in one bias: no warning.
// CHECK-LABEL: @causal_and_padding(
func.func @causal_and_padding(%x: tensor<1x4x2x4xf32>, %seen: tensor<1x4xf32>) -> tensor<1x4x2x4xf32> {
  %lower = tx.constant dense<[[[[0.0, -3.0e38, -3.0e38, -3.0e38], [0.0, 0.0, -3.0e38, -3.0e38], [0.0, 0.0, 0.0, -3.0e38], [0.0, 0.0, 0.0, 0.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %one = tx.constant dense<1.0> : tensor<1x4xf32> : tensor<1x4xf32>
  %low = tx.constant dense<-1.0e38> : tensor<1x4xf32> : tensor<1x4xf32>
  %hidden = tx.sub %one, %seen : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %down = tx.mul %hidden, %low : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %row = tx.reshape %down : tensor<1x4xf32> -> tensor<1x1x1x4xf32>
  %rows = tx.broadcast %row : tensor<1x1x1x4xf32> -> tensor<1x1x4x4xf32>
  %bias = tx.add %lower, %rows : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %o, %l = tx.attention %x, %x, %x bias %bias scale 0.5 : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}
