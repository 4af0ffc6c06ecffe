// RUN: partita-opt %s --pass-pipeline='builtin.module(func.func(check-visible-keys))' --split-input-file --verify-diagnostics

// Each token sees those before it: the first one none.
func.func @before(%x: tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32> {
  %b = tx.constant dense<[[[[0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0xFF800000]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  // expected-error@+1 {{attention: query 0 sees no key: the model's own mask adds -inf to all of its scores, whose softmax is NaN; let each query see a key in the model, or mask by a finite number}}
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}

// -----

// A causal model whose last token sees nothing.
func.func @last(%x: tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32> {
  %b = tx.constant dense<[[[[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  // expected-error@+1 {{attention: query 3 sees no key: the model's own mask adds -inf to all of its scores, whose softmax is NaN; let each query see a key in the model, or mask by a finite number}}
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 causal : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}

// -----

// One head's third query.
func.func @head(%x: tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32> {
  %b = tx.constant dense<[[[[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0.0]]]]> : tensor<1x2x4x4xf32> : tensor<1x2x4x4xf32>
  // expected-error@+1 {{attention: query 2 of head 1 sees no key: the model's own mask adds -inf to all of its scores, whose softmax is NaN; let each query see a key in the model, or mask by a finite number}}
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}

// -----

// A layout of blocks on the diagonal, which the mask hides.
func.func @blocks(%x: tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32> {
  %b = tx.constant dense<[[[[0xFF800000, 0xFF800000, 0.0, 0.0], [0xFF800000, 0xFF800000, 0.0, 0.0], [0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  // expected-error@+1 {{sparse attention: query 0 sees no key: the layout computes 2 keys, of 0 to 1, and the model's own mask hides them; choose a layout that computes key 2, which the mask shows, or leave --sparse-attention out}}
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 blocks <2, [band 0 to 0]> : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}

// -----

// By a finite number too: the mean over hidden keys is no attention.
func.func @blocks_by_number(%x: tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32> {
  %b = tx.constant dense<[[[[-3.0e38, -3.0e38, 0.0, 0.0], [-3.0e38, -3.0e38, 0.0, 0.0], [0.0, 0.0, -3.0e38, -3.0e38], [0.0, 0.0, -3.0e38, -3.0e38]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  // expected-error@+1 {{sparse attention: query 0 sees no key: the layout computes 2 keys, of 0 to 1, and the model's own mask hides them; choose a layout that computes key 2, which the mask shows, or leave --sparse-attention out}}
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 blocks <2, [band 0 to 0]> : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}

// -----

// The model sees keys, its layout shows none.
func.func @blocks_guarded(%x: tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32> {
  %b = tx.constant dense<[[[[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0xFF800000, 0xFF800000]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  // expected-error@+1 {{sparse attention: query 3 sees no key: the layout computes 2 keys, of 2 to 3, and the model's own mask hides them; choose a layout that computes key 0, which the mask shows, or leave --sparse-attention out}}
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 blocks <2, [band 0 to 0]> zero_hidden : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}

// -----

// With the model's causal mask: the second half sees the first key, which is not in its block.
func.func @causal_blocks(%x: tensor<1x4x2x4xf32>) -> tensor<1x4x2x4xf32> {
  %b = tx.constant dense<[[[[0.0, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0xFF800000, 0xFF800000, 0xFF800000]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  // expected-error@+1 {{sparse attention: query 2 sees no key: the layout computes 1 keys, of 2 to 2, and the model's own mask hides them; choose a layout that computes key 0, which the mask shows, or leave --sparse-attention out}}
  %o, %l = tx.attention %x, %x, %x bias %b scale 0.5 causal blocks <2, [band 0 to 0]> : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}
