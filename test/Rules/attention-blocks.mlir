// Attention with blocks: its rule and its gradients, as ops.mlir tests the others, where heads have different patterns. Each of two
// ranks has the patterns of its own heads, 0 and 1 or 1 and 0.
// RUN: partita-interp %s --check-rules | FileCheck %s
// RUN: partita-interp %s --check-gradients | FileCheck %s --check-prefix=GRAD
// CHECK: tx.attention @shared: split b h; partial{{ *$}}
// GRAD: gradient of shared: 0 1 2{{$}}
func.func @shared(%q: tensor<2x6x2x4xf64>, %k: tensor<2x6x2x4xf64>, %v: tensor<2x6x2x3xf64>) -> (tensor<2x6x2x3xf64>, tensor<2x2x6xf64>) {
  %0:2 = tx.attention %q, %k, %v scale 0.5 blocks <2, [band 0 to 0, columns 0 to 1 by 1 width 1]> : (tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>) -> (tensor<2x6x2x3xf64>, tensor<2x2x6xf64>)
  return %0#0, %0#1 : tensor<2x6x2x3xf64>, tensor<2x2x6xf64>
}
// CHECK: tx.attention_grad @shared_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of shared_grad: none{{$}}
func.func @shared_grad(%q: tensor<2x6x2x4xf64>, %k: tensor<2x6x2x4xf64>, %v: tensor<2x6x2x3xf64>, %out: tensor<2x6x2x3xf64>, %lse: tensor<2x2x6xf64>, %dout: tensor<2x6x2x3xf64>) -> (tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>) {
  %0:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 blocks <2, [band 0 to 0, columns 0 to 1 by 1 width 1]> : (tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>, tensor<2x6x2x3xf64>, tensor<2x2x6xf64>, tensor<2x6x2x3xf64>) -> (tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>
}
// CHECK: tx.attention @causal: split b h; partial{{ *$}}
// GRAD: gradient of causal: 0 1 2{{$}}
func.func @causal(%q: tensor<2x6x2x4xf64>, %k: tensor<2x6x2x4xf64>, %v: tensor<2x6x2x3xf64>) -> (tensor<2x6x2x3xf64>, tensor<2x2x6xf64>) {
  %0:2 = tx.attention %q, %k, %v scale 0.5 causal blocks <2, [band 0 to 0, columns 0 to 1 by 1 width 1]> : (tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>) -> (tensor<2x6x2x3xf64>, tensor<2x2x6xf64>)
  return %0#0, %0#1 : tensor<2x6x2x3xf64>, tensor<2x2x6xf64>
}
// CHECK: tx.attention_grad @causal_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of causal_grad: none{{$}}
func.func @causal_grad(%q: tensor<2x6x2x4xf64>, %k: tensor<2x6x2x4xf64>, %v: tensor<2x6x2x3xf64>, %out: tensor<2x6x2x3xf64>, %lse: tensor<2x2x6xf64>, %dout: tensor<2x6x2x3xf64>) -> (tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>) {
  %0:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal blocks <2, [band 0 to 0, columns 0 to 1 by 1 width 1]> : (tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>, tensor<2x6x2x3xf64>, tensor<2x2x6xf64>, tensor<2x6x2x3xf64>) -> (tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>
}
// CHECK: tx.attention @per_head: split b h; partial{{ *$}}
// GRAD: gradient of per_head: 0 1 2{{$}}
func.func @per_head(%q: tensor<2x6x4x4xf64>, %k: tensor<2x6x4x4xf64>, %v: tensor<2x6x4x3xf64>) -> (tensor<2x6x4x3xf64>, tensor<2x4x6xf64>) {
  %0:2 = tx.attention %q, %k, %v scale 0.5 blocks <2, [band 0 to 0, columns 0 to 1 by 1 width 1], [squares 0 to 3 by 2, block 2 0], heads [0, 1, 1, 0]> : (tensor<2x6x4x4xf64>, tensor<2x6x4x4xf64>, tensor<2x6x4x3xf64>) -> (tensor<2x6x4x3xf64>, tensor<2x4x6xf64>)
  return %0#0, %0#1 : tensor<2x6x4x3xf64>, tensor<2x4x6xf64>
}
// CHECK: tx.attention_grad @per_head_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of per_head_grad: none{{$}}
func.func @per_head_grad(%q: tensor<2x6x4x4xf64>, %k: tensor<2x6x4x4xf64>, %v: tensor<2x6x4x3xf64>, %out: tensor<2x6x4x3xf64>, %lse: tensor<2x4x6xf64>, %dout: tensor<2x6x4x3xf64>) -> (tensor<2x6x4x4xf64>, tensor<2x6x4x4xf64>, tensor<2x6x4x3xf64>) {
  %0:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 blocks <2, [band 0 to 0, columns 0 to 1 by 1 width 1], [squares 0 to 3 by 2, block 2 0], heads [0, 1, 1, 0]> : (tensor<2x6x4x4xf64>, tensor<2x6x4x4xf64>, tensor<2x6x4x3xf64>, tensor<2x6x4x3xf64>, tensor<2x4x6xf64>, tensor<2x6x4x3xf64>) -> (tensor<2x6x4x4xf64>, tensor<2x6x4x4xf64>, tensor<2x6x4x3xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x6x4x4xf64>, tensor<2x6x4x4xf64>, tensor<2x6x4x3xf64>
}
// CHECK: tx.attention @grouped: split b h; partial{{ *$}}
// GRAD: gradient of grouped: 0 1 2{{$}}
func.func @grouped(%q: tensor<2x6x4x4xf64>, %k: tensor<2x6x2x4xf64>, %v: tensor<2x6x2x3xf64>) -> (tensor<2x6x4x3xf64>, tensor<2x4x6xf64>) {
  %0:2 = tx.attention %q, %k, %v scale 0.5 blocks <2, [band 0 to 0, columns 0 to 1 by 1 width 1], [squares 0 to 3 by 2, block 2 0], heads [0, 1, 1, 0]> : (tensor<2x6x4x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>) -> (tensor<2x6x4x3xf64>, tensor<2x4x6xf64>)
  return %0#0, %0#1 : tensor<2x6x4x3xf64>, tensor<2x4x6xf64>
}
// CHECK: tx.attention_grad @grouped_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of grouped_grad: none{{$}}
func.func @grouped_grad(%q: tensor<2x6x4x4xf64>, %k: tensor<2x6x2x4xf64>, %v: tensor<2x6x2x3xf64>, %out: tensor<2x6x4x3xf64>, %lse: tensor<2x4x6xf64>, %dout: tensor<2x6x4x3xf64>) -> (tensor<2x6x4x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>) {
  %0:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 blocks <2, [band 0 to 0, columns 0 to 1 by 1 width 1], [squares 0 to 3 by 2, block 2 0], heads [0, 1, 1, 0]> : (tensor<2x6x4x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>, tensor<2x6x4x3xf64>, tensor<2x4x6xf64>, tensor<2x6x4x3xf64>) -> (tensor<2x6x4x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x6x4x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x3xf64>
}
// CHECK: tx.attention @one_key_head: split b h; partial{{ *$}}
// GRAD: gradient of one_key_head: 0 1 2{{$}}
func.func @one_key_head(%q: tensor<2x6x4x4xf64>, %k: tensor<2x6x1x4xf64>, %v: tensor<2x6x1x3xf64>) -> (tensor<2x6x4x3xf64>, tensor<2x4x6xf64>) {
  %0:2 = tx.attention %q, %k, %v scale 0.5 causal blocks <2, [band 0 to 0, columns 0 to 1 by 1 width 1], [squares 0 to 3 by 2, block 2 0], heads [0, 1, 1, 0]> : (tensor<2x6x4x4xf64>, tensor<2x6x1x4xf64>, tensor<2x6x1x3xf64>) -> (tensor<2x6x4x3xf64>, tensor<2x4x6xf64>)
  return %0#0, %0#1 : tensor<2x6x4x3xf64>, tensor<2x4x6xf64>
}
// CHECK: tx.attention_grad @one_key_head_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of one_key_head_grad: none{{$}}
func.func @one_key_head_grad(%q: tensor<2x6x4x4xf64>, %k: tensor<2x6x1x4xf64>, %v: tensor<2x6x1x3xf64>, %out: tensor<2x6x4x3xf64>, %lse: tensor<2x4x6xf64>, %dout: tensor<2x6x4x3xf64>) -> (tensor<2x6x4x4xf64>, tensor<2x6x1x4xf64>, tensor<2x6x1x3xf64>) {
  %0:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal blocks <2, [band 0 to 0, columns 0 to 1 by 1 width 1], [squares 0 to 3 by 2, block 2 0], heads [0, 1, 1, 0]> : (tensor<2x6x4x4xf64>, tensor<2x6x1x4xf64>, tensor<2x6x1x3xf64>, tensor<2x6x4x3xf64>, tensor<2x4x6xf64>, tensor<2x6x4x3xf64>) -> (tensor<2x6x4x4xf64>, tensor<2x6x1x4xf64>, tensor<2x6x1x3xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x6x4x4xf64>, tensor<2x6x1x4xf64>, tensor<2x6x1x3xf64>
}
// CHECK: tx.attention @dropped: split b h; partial{{ *$}}
// GRAD: gradient of dropped: 0 1 2{{$}}
func.func @dropped(%q: tensor<2x6x4x4xf64>, %k: tensor<2x6x4x4xf64>, %v: tensor<2x6x4x3xf64>, %key: tensor<i64>, %micro: tensor<i64>) -> (tensor<2x6x4x3xf64>, tensor<2x4x6xf64>) {
  %0:2 = tx.attention %q, %k, %v scale 0.5 blocks <2, [band 0 to 0, columns 0 to 1 by 1 width 1], [squares 0 to 3 by 2, block 2 0], heads [0, 1, 1, 0]> dropout 0.5 id 7 key %key micro %micro : (tensor<2x6x4x4xf64>, tensor<2x6x4x4xf64>, tensor<2x6x4x3xf64>, tensor<i64>, tensor<i64>) -> (tensor<2x6x4x3xf64>, tensor<2x4x6xf64>)
  return %0#0, %0#1 : tensor<2x6x4x3xf64>, tensor<2x4x6xf64>
}
// CHECK: tx.attention_grad @dropped_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of dropped_grad: none{{$}}
func.func @dropped_grad(%q: tensor<2x6x4x4xf64>, %k: tensor<2x6x4x4xf64>, %v: tensor<2x6x4x3xf64>, %out: tensor<2x6x4x3xf64>, %lse: tensor<2x4x6xf64>, %dout: tensor<2x6x4x3xf64>, %key: tensor<i64>, %micro: tensor<i64>) -> (tensor<2x6x4x4xf64>, tensor<2x6x4x4xf64>, tensor<2x6x4x3xf64>) {
  %0:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 blocks <2, [band 0 to 0, columns 0 to 1 by 1 width 1], [squares 0 to 3 by 2, block 2 0], heads [0, 1, 1, 0]> dropout 0.5 id 7 key %key micro %micro : (tensor<2x6x4x4xf64>, tensor<2x6x4x4xf64>, tensor<2x6x4x3xf64>, tensor<2x6x4x3xf64>, tensor<2x4x6xf64>, tensor<2x6x4x3xf64>, tensor<i64>, tensor<i64>) -> (tensor<2x6x4x4xf64>, tensor<2x6x4x4xf64>, tensor<2x6x4x3xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x6x4x4xf64>, tensor<2x6x4x4xf64>, tensor<2x6x4x3xf64>
}
// A step of a ring of one rank.
// CHECK: tx.attention_step @step: split b h; partial{{ *$}}
func.func @step(%q: tensor<2x4x2x4xf64>, %k: tensor<2x4x2x4xf64>, %v: tensor<2x4x2x3xf64>, %first: tensor<1xi64>) -> (tensor<2x4x2x3xf64>, tensor<2x2x4xf64>) {
  %0:2 = tx.attention_step %q, %k, %v at %first, %first scale 0.5 blocks <2, [band 0 to 0]> behind 0 ring "x" : (tensor<2x4x2x4xf64>, tensor<2x4x2x4xf64>, tensor<2x4x2x3xf64>, tensor<1xi64>, tensor<1xi64>) -> (tensor<2x4x2x3xf64>, tensor<2x2x4xf64>)
  return %0#0, %0#1 : tensor<2x4x2x3xf64>, tensor<2x2x4xf64>
}
// CHECK: tx.attention_step_grad @step_grad: split b h; partial 5{{ *$}}
func.func @step_grad(%q: tensor<2x4x2x4xf64>, %k: tensor<2x4x2x4xf64>, %v: tensor<2x4x2x3xf64>, %out: tensor<2x4x2x3xf64>, %lse: tensor<2x2x4xf64>, %dout: tensor<2x4x2x3xf64>, %first: tensor<1xi64>) -> (tensor<2x4x2x4xf64>, tensor<2x4x2x4xf64>, tensor<2x4x2x3xf64>) {
  %0:3 = tx.attention_step_grad %q, %k, %v, %out, %lse, %dout at %first, %first scale 0.5 causal blocks <2, [band 0 to 0]> behind 0 ring "x" : (tensor<2x4x2x4xf64>, tensor<2x4x2x4xf64>, tensor<2x4x2x3xf64>, tensor<2x4x2x3xf64>, tensor<2x2x4xf64>, tensor<2x4x2x3xf64>, tensor<1xi64>, tensor<1xi64>) -> (tensor<2x4x2x4xf64>, tensor<2x4x2x4xf64>, tensor<2x4x2x3xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x4x2x4xf64>, tensor<2x4x2x4xf64>, tensor<2x4x2x3xf64>
}
