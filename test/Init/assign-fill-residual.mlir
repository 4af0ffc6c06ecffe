// RUN: partita-opt %s --assign-fill="residual-scale=true" | FileCheck %s
// RUN: partita compile %data/families/t5_dynamo.onnx --dim batch=2 --dim sequence=8 --dim decoder_sequence=6 --scale-residual-init --compile-to objective -o - | FileCheck %s --check-prefix=T5
// RUN: partita compile %data/families/gpt_neox_torchscript.onnx --dim batch=2 --dim sequence=8 --scale-residual-init --compile-to objective -o - | FileCheck %s --check-prefix=NEOX
// RUN: partita compile %data/gpt2_training_torchscript.onnx --dim batch=2 --dim sequence=8 --scale-residual-init --compile-to objective -o - | FileCheck %s --check-prefix=GPT2
// RUN: partita compile %data/gpt2_training_torchscript.onnx --dim batch=2 --dim sequence=8 --compile-to objective -o - | FileCheck %s --check-prefix=PLAIN

// Three matmuls go into the stream of %x: one with a bias, two side by side, one of them repeated after a
// normalization. 0.02 / sqrt(3) = 0.011547.
// CHECK: train.parameter @first : tensor<4x4xf32> fill(<0.000000e+00, normal 0.011547
train.parameter @first : tensor<4x4xf32>
// CHECK: train.parameter @inner : tensor<4x4xf32> fill(<0.000000e+00, normal 2.000000e-02>)
train.parameter @inner : tensor<4x4xf32>
// CHECK: train.parameter @left : tensor<4x4xf32> fill(<0.000000e+00, normal 0.011547
train.parameter @left : tensor<4x4xf32>
// CHECK: train.parameter @right : tensor<4x4xf32> fill(<0.000000e+00, normal 0.011547
train.parameter @right : tensor<4x4xf32>
// CHECK: train.parameter @bias : tensor<4xf32> fill(<0.000000e+00>)
train.parameter @bias : tensor<4xf32>
train.parameter @scale : tensor<4xf32>
// Sums of matmuls that are no streams: neither of %p and %q is computed from the other.
// CHECK: train.parameter @apart : tensor<4x4xf32> fill(<0.000000e+00, normal 2.000000e-02>)
train.parameter @apart : tensor<4x4xf32>

func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  %first = train.read @first : tensor<4x4xf32>
  %inner = train.read @inner : tensor<4x4xf32>
  %left = train.read @left : tensor<4x4xf32>
  %right = train.read @right : tensor<4x4xf32>
  %bias = train.read @bias : tensor<4xf32>
  %scale = train.read @scale : tensor<4xf32>
  %apart = train.read @apart : tensor<4x4xf32>
  %p = tx.matmul %x, %apart : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %q = tx.matmul_nt %x, %apart : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %s = tx.add %p, %q : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %h = tx.matmul %s, %inner : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %g = tx.silu %h : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %f = tx.matmul %g, %first : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %b = tx.broadcast %bias : tensor<4xf32> -> tensor<2x4xf32>
  %fb = tx.add %f, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = tx.add %fb, %s : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %n, %r = tx.rms_norm %y, %scale eps 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  %e = tx.silu %n : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %l = tx.matmul %e, %left : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %m = tx.matmul %n, %right : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %lm = tx.add %l, %m : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = tx.add %n, %lm : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}

// Four matmuls in the encoder, six in the decoder.
// T5-DAG: train.parameter @lm_head.weight : {{.*}}normal 2.000000e-02
// T5-DAG: train.parameter @encoder.block.1.layer.0.SelfAttention.o.weight : {{.*}}normal 1.000000e-02
// T5-DAG: train.parameter @encoder.block.1.layer.1.DenseReluDense.wi.weight : {{.*}}normal 2.000000e-02
// T5-DAG: train.parameter @decoder.block.1.layer.1.EncDecAttention.o.weight : {{.*}}normal 0.00816
// T5-DAG: train.parameter @decoder.block.1.layer.2.DenseReluDense.wo.weight : {{.*}}normal 0.00816

// Attention and MLP side by side.
// NEOX-DAG: train.parameter @gpt_neox.layers.0.attention.dense.weight : {{.*}}normal 1.000000e-02
// NEOX-DAG: train.parameter @gpt_neox.layers.1.mlp.dense_4h_to_h.weight : {{.*}}normal 1.000000e-02
// NEOX-DAG: train.parameter @gpt_neox.layers.1.mlp.dense_h_to_4h.weight : {{.*}}normal 2.000000e-02

// Through dropout: 0.02 / sqrt(2 x 2 layers).
// GPT2-DAG: train.parameter @transformer.h.0.attn.c_proj.weight : {{.*}}normal 1.000000e-02
// GPT2-DAG: train.parameter @transformer.h.1.mlp.c_proj.weight : {{.*}}normal 1.000000e-02
// GPT2-DAG: train.parameter @transformer.h.1.mlp.c_fc.weight : {{.*}}normal 2.000000e-02
// PLAIN-NOT: normal 1.000000e-02
