// RUN: partita-opt %s --expand-ring --split-input-file --verify-diagnostics | FileCheck %s

#s = #par.place<[1, 8 @cp, 2, 8]>
#l = #par.place<[1, 2, 8 @cp]>

// Two steps; the second block of keys travels during the first. What no query sees yet is hidden, not NaN.
// CHECK-LABEL: func.func @two
// CHECK-SAME: %[[Q:[a-z0-9]+]]: {{[^%]*}}%[[K:[a-z0-9]+]]: {{[^%]*}}%[[V:[a-z0-9]+]]:
// CHECK: %[[F:.*]] = par.first_index of 8 : tensor<1xi64, #par.place<[2 @cp]>>
// CHECK: %[[N:.*]]:2 = par.shift %[[K]], %[[V]] over "cp" because "keys and values"
// CHECK: %[[O:.*]], %[[L:.*]] = tx.attention_step %[[Q]], %[[K]], %[[V]] at %[[F]], %{{.*}} scale {{.*}} causal zero_hidden ring "cp"
// CHECK: %[[B:.*]] = par.first_index of 8 behind 1
// CHECK: %[[P:.*]], %{{.*}} = tx.attention_step %[[Q]], %[[N]]#0, %[[N]]#1 onto %[[O]], %[[L]] at %[[F]], %[[B]] scale {{[^ ]*}} causal ring "cp"
// CHECK: return %[[P]]
module attributes {par.mesh = #par.mesh<cp = 2>} {
  func.func @two(%q: tensor<1x4x2x8xf32, #s>, %k: tensor<1x4x2x8xf32, #s>, %v: tensor<1x4x2x8xf32, #s>) -> tensor<1x4x2x8xf32, #s> attributes {par.no_cotangents} {
    %out, %lse = tx.attention %q, %k, %v scale 0.5 causal ring "cp"
      : (tensor<1x4x2x8xf32, #s>, tensor<1x4x2x8xf32, #s>, tensor<1x4x2x8xf32, #s>) -> (tensor<1x4x2x8xf32, #s>, tensor<1x2x4xf32, #l>)
    return %out : tensor<1x4x2x8xf32, #s>
  }
}

// -----

#s = #par.place<[1, 8 @cp, 2, 8]>
#l = #par.place<[1, 2, 8 @cp]>

// On four ranks a window of 3 keys reaches one block back: two steps of four, and the gradients of the keys go one place home, beside the
// step with the rank's own keys. 16-bit gradients are summed in 32 bits.
// CHECK-LABEL: func.func @window
// CHECK-SAME: %[[K:[a-z0-9]+]]: {{[^%]*}}%[[V:[a-z0-9]+]]: {{[^%]*}}%{{[a-z0-9]+}}: tensor<1x2x2xf32
// CHECK: %[[N:.*]]:2 = par.shift %[[K]], %[[V]] over "cp" because
// CHECK: %[[DQ1:.*]], %[[DK1:.*]], %[[DV1:.*]] = tx.attention_step_grad %{{[^,]*}}, %[[N]]#0, %[[N]]#1, {{.*}} -> (tensor<1x2x2x8xf32
// CHECK: %[[H:.*]]:2 = par.shift %[[DK1]], %[[DV1]] over "cp" back because
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = tx.attention_step_grad %{{[^,]*}}, %[[K]], %[[V]], {{.*}} onto %[[DQ1]] at
// CHECK-NOT: par.shift
// CHECK: %[[S:.*]] = tx.add %[[H]]#0, %[[DK]]
// CHECK: tx.cast %[[DQ]]
// CHECK: tx.cast %[[S]]
module attributes {par.mesh = #par.mesh<cp = 4>} {
  func.func @window(%q: tensor<1x2x2x8xbf16, #s>, %k: tensor<1x2x2x8xbf16, #s>, %v: tensor<1x2x2x8xbf16, #s>, %lse: tensor<1x2x2xf32, #l>)
      -> tensor<1x2x2x8xbf16, #s> attributes {par.no_cotangents} {
    %dq, %dk, %dv = tx.attention_grad %q, %k, %v, %q, %lse, %q scale 0.5 causal window 3 ring "cp"
      : (tensor<1x2x2x8xbf16, #s>, tensor<1x2x2x8xbf16, #s>, tensor<1x2x2x8xbf16, #s>, tensor<1x2x2x8xbf16, #s>, tensor<1x2x2xf32, #l>, tensor<1x2x2x8xbf16, #s>)
      -> (tensor<1x2x2x8xbf16, #s>, tensor<1x2x2x8xbf16, #s>, tensor<1x2x2x8xbf16, #s>)
    %sum = tx.add %dq, %dk : (tensor<1x2x2x8xbf16, #s>, tensor<1x2x2x8xbf16, #s>) -> tensor<1x2x2x8xbf16, #s>
    return %sum : tensor<1x2x2x8xbf16, #s>
  }
}

// -----

#s = #par.place<[1, 8 @cp, 2, 8]>
#l = #par.place<[1, 2, 8 @cp]>

// In the backward pass keys and values start with the layer, before a matmul that makes the cotangent; the forms in which they are read do, too.
// CHECK-LABEL: func.func @early_start
// CHECK-SAME: %[[K:[a-z0-9]+]]: tensor<1x2x4x8xf32{{[^%]*}}%[[D:[a-z0-9]+]]:
// CHECK-NEXT: %[[T:.*]] = tx.transpose %[[K]]
// CHECK-NEXT: par.shift %[[T]], %[[T]] over "cp"
// CHECK: tx.matmul %[[D]]
// CHECK: tx.attention_step_grad
#k = #par.place<[1, 2, 8 @cp, 8]>
#m = #par.place<[1, 8 @cp, 16]>
module attributes {par.mesh = #par.mesh<cp = 2>} {
  func.func @early_start(%k: tensor<1x2x4x8xf32, #k>, %d: tensor<1x4x16xf32, #m>, %w: tensor<16x16xf32>, %lse: tensor<1x2x4xf32, #l>)
      -> tensor<1x4x2x8xf32, #s> attributes {par.no_cotangents} {
    %flat = tx.matmul %d, %w {train.layer = #train.layer<1 of 2>} : (tensor<1x4x16xf32, #m>, tensor<16x16xf32>) -> tensor<1x4x16xf32, #m>
    %dout = tx.reshape %flat {train.layer = #train.layer<1 of 2>} : tensor<1x4x16xf32, #m> -> tensor<1x4x2x8xf32, #s>
    %t = tx.transpose %k [0, 2, 1, 3] {train.layer = #train.layer<1 of 2>} : tensor<1x2x4x8xf32, #k> -> tensor<1x4x2x8xf32, #s>
    %dq, %dk, %dv = tx.attention_grad %t, %t, %t, %t, %lse, %dout scale 0.5 causal ring "cp" {train.layer = #train.layer<1 of 2>}
      : (tensor<1x4x2x8xf32, #s>, tensor<1x4x2x8xf32, #s>, tensor<1x4x2x8xf32, #s>, tensor<1x4x2x8xf32, #s>, tensor<1x2x4xf32, #l>, tensor<1x4x2x8xf32, #s>)
      -> (tensor<1x4x2x8xf32, #s>, tensor<1x4x2x8xf32, #s>, tensor<1x4x2x8xf32, #s>)
    %sum = tx.add %dq, %dk : (tensor<1x4x2x8xf32, #s>, tensor<1x4x2x8xf32, #s>) -> tensor<1x4x2x8xf32, #s>
    return %sum : tensor<1x4x2x8xf32, #s>
  }
}

// -----

#s = #par.place<[1, 2 x 4 @cp mirrored, 2, 8]>
#l = #par.place<[1, 2, 2 x 4 @cp mirrored]>

// In mirrored order a rank has two runs of the sequence, and each step work for every rank.
// CHECK-LABEL: func.func @mirrored
// CHECK: %[[F:.*]] = par.first_index of 8 : tensor<2xi64, #par.place<[2 x 2 @cp mirrored]>>
// CHECK: tx.attention_step %{{[^:]*}} at %[[F]], %{{[^:]*}} causal zero_hidden ring "cp"
// CHECK: %[[B:.*]] = par.first_index of 8 behind 1 : tensor<2xi64, #par.place<[2 x 2 @cp mirrored]>>
// CHECK: tx.attention_step %{{[^:]*}} at %[[F]], %[[B]]
module attributes {par.mesh = #par.mesh<cp = 2>} {
  func.func @mirrored(%q: tensor<1x4x2x8xf32, #s>) -> tensor<1x4x2x8xf32, #s> attributes {par.no_cotangents} {
    %out, %lse = tx.attention %q, %q, %q scale 0.5 causal ring "cp"
      : (tensor<1x4x2x8xf32, #s>, tensor<1x4x2x8xf32, #s>, tensor<1x4x2x8xf32, #s>) -> (tensor<1x4x2x8xf32, #s>, tensor<1x2x4xf32, #l>)
    return %out : tensor<1x4x2x8xf32, #s>
  }
}

// -----

#s = #par.place<[1, 8 @cp, 2, 8]>
#l = #par.place<[1, 2, 8 @cp]>

// Blocks that no rank computes with its neighbour's keys: these travel on, without a step, to the rank behind, whose keys some rank computes.
// CHECK-LABEL: func.func @blocks
// CHECK: %[[N:.*]]:2 = par.shift
// CHECK: %[[O:.*]], %[[L:.*]] = tx.attention_step {{.*}} blocks <2, [band -2 to -2, band 0 to 0]> behind 0 zero_hidden ring "cp"
// CHECK: %[[F:.*]]:2 = par.shift %[[N]]#0, %[[N]]#1
// CHECK-NOT: par.shift
// CHECK: %[[B:.*]] = par.first_index of 8 behind 2
// CHECK: tx.attention_step %{{.*}}, %[[F]]#0, %[[F]]#1 onto %[[O]], %[[L]] at %{{.*}}, %[[B]] scale {{.*}} blocks <2, [band -2 to -2, band 0 to 0]> behind 2 ring "cp"
// CHECK-NOT: tx.attention_step
module attributes {par.mesh = #par.mesh<cp = 4>} {
  func.func @blocks(%q: tensor<1x2x2x8xf32, #s>, %k: tensor<1x2x2x8xf32, #s>, %v: tensor<1x2x2x8xf32, #s>) -> tensor<1x2x2x8xf32, #s> attributes {par.no_cotangents} {
    %out, %lse = tx.attention %q, %k, %v scale 0.5 blocks <2, [band -2 to -2, band 0 to 0]> ring "cp"
      : (tensor<1x2x2x8xf32, #s>, tensor<1x2x2x8xf32, #s>, tensor<1x2x2x8xf32, #s>) -> (tensor<1x2x2x8xf32, #s>, tensor<1x2x2xf32, #l>)
    return %out : tensor<1x2x2x8xf32, #s>
  }
}

// -----

#s = #par.place<[1, 8 @cp, 2, 8]>
#l = #par.place<[1, 2, 8 @cp]>
module attributes {par.mesh = #par.mesh<cp = 2>} {
  func.func @early(%q: tensor<1x4x2x8xf32, #s>) -> tensor<1x4x2x8xf32, #s> {
    // expected-error@+1 {{is not differentiated yet, and its steps have no gradient}}
    %out, %lse = tx.attention %q, %q, %q scale 0.5 causal ring "cp"
      : (tensor<1x4x2x8xf32, #s>, tensor<1x4x2x8xf32, #s>, tensor<1x4x2x8xf32, #s>) -> (tensor<1x4x2x8xf32, #s>, tensor<1x2x4xf32, #l>)
    return %out : tensor<1x4x2x8xf32, #s>
  }
}
