// RUN: partita-opt %s --fuse-attention-sums | FileCheck %s
// RUN: partita-opt %s --fuse-attention-sums -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir packed per_head grouped apart with_bias
// RUN: sed '/^module/s/cuda/cpu/' %t.mlir | partita-opt --plan-memory --lower-to-rt | FileCheck %s --check-prefix=RT
// RUN: partita-opt %t.mlir --plan-memory --lower-to-rt | FileCheck %s --check-prefix=RT

module attributes {rt.target = "cuda"} {
  // As in GPT-2: the sums are computed where they lie side by side in the bias's gradient, so nothing copies them.
  // CHECK-LABEL: func.func @packed(
  // CHECK: %dq, %dk, %dv, %[[G:.*]]:3 = tx.attention_grad %{{.*}} scale 5.000000e-01 causal sums :
  // CHECK: %[[ROWS:.*]] = tx.concat %{{.*}} along 2
  // CHECK: %[[V:.*]] = tx.reshape %[[G]]#2 : tensor<3x4xbf16> -> tensor<12xbf16>
  // CHECK: %[[SUMS:.*]] = tx.concat %{{.*}}, %{{.*}}, %[[V]] along 0
  // CHECK-NEXT: return %{{.*}}, %[[SUMS]]
  // RT-LABEL: func.func @packed(
  // RT-NOT: rt.column_sum
  // RT: rt.attention_backward {{.*}}operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1, 1, 1,
  // RT-NEXT: return
  func.func @packed(%q: tensor<2x4x3x4xbf16>, %k: tensor<2x4x3x4xbf16>, %v: tensor<2x4x3x4xbf16>, %out: tensor<2x4x3x4xbf16>, %lse: tensor<2x3x4xf32>, %dout: tensor<2x4x3x4xbf16>) -> (tensor<8x36xbf16>, tensor<36xbf16>) {
    %dq, %dk, %dv = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal : (tensor<2x4x3x4xbf16>, tensor<2x4x3x4xbf16>, tensor<2x4x3x4xbf16>, tensor<2x4x3x4xbf16>, tensor<2x3x4xf32>, tensor<2x4x3x4xbf16>) -> (tensor<2x4x3x4xbf16>, tensor<2x4x3x4xbf16>, tensor<2x4x3x4xbf16>)
    %0 = tx.reshape %dv : tensor<2x4x3x4xbf16> -> tensor<2x4x12xbf16>
    %1 = tx.reshape %dk : tensor<2x4x3x4xbf16> -> tensor<2x4x12xbf16>
    %2 = tx.reshape %dq : tensor<2x4x3x4xbf16> -> tensor<2x4x12xbf16>
    %3 = tx.concat %2, %1, %0 along 2 : (tensor<2x4x12xbf16>, tensor<2x4x12xbf16>, tensor<2x4x12xbf16>) -> tensor<2x4x36xbf16>
    %4 = tx.reshape %3 : tensor<2x4x36xbf16> -> tensor<8x36xbf16>
    %5 = tx.reduce_sum %4 [0] : tensor<8x36xbf16> -> tensor<36xbf16>
    return %4, %5 : tensor<8x36xbf16>, tensor<36xbf16>
  }

  // As in GPT-NeoX: q, k and v of each head lie side by side.
  // CHECK-LABEL: func.func @per_head(
  // CHECK: %dq, %dk, %dv, %[[G:.*]]:3 = tx.attention_grad %{{.*}} sums :
  // CHECK-NOT: tx.reduce_sum
  // CHECK: %[[SUMS:.*]] = tx.concat %[[G]]#0, %[[G]]#1, %[[G]]#2 along 1 : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x12xf32>
  // CHECK-NEXT: %[[FLAT:.*]] = tx.reshape %[[SUMS]] : tensor<3x12xf32> -> tensor<36xf32>
  // CHECK-NEXT: return %{{.*}}, %[[FLAT]]
  func.func @per_head(%q: tensor<2x4x3x4xf32>, %k: tensor<2x4x3x4xf32>, %v: tensor<2x4x3x4xf32>, %out: tensor<2x4x3x4xf32>, %lse: tensor<2x3x4xf32>, %dout: tensor<2x4x3x4xf32>) -> (tensor<2x4x36xf32>, tensor<36xf32>) {
    %dq, %dk, %dv = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>)
    %0 = tx.concat %dq, %dk, %dv along 3 : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x12xf32>
    %1 = tx.reshape %0 : tensor<2x4x3x12xf32> -> tensor<2x4x36xf32>
    %2 = tx.reduce_sum %1 [0, 1] : tensor<2x4x36xf32> -> tensor<36xf32>
    return %1, %2 : tensor<2x4x36xf32>, tensor<36xf32>
  }

  // Parts of different widths, in another order; two sums of the same rows.
  // CHECK-LABEL: func.func @grouped(
  // CHECK: %dq, %dk, %dv, %[[G:.*]]:3 = tx.attention_grad %{{.*}} sums :
  // CHECK-NOT: tx.attention_grad
  // CHECK-NOT: tx.reduce_sum
  func.func @grouped(%q: tensor<2x4x3x4xf32>, %k: tensor<2x4x1x4xf32>, %v: tensor<2x4x1x6xf32>, %out: tensor<2x4x3x6xf32>, %lse: tensor<2x3x4xf32>, %dout: tensor<2x4x3x6xf32>) -> (tensor<2x4x22xf32>, tensor<22xf32>, tensor<22xf32>) {
    %dq, %dk, %dv = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal : (tensor<2x4x3x4xf32>, tensor<2x4x1x4xf32>, tensor<2x4x1x6xf32>, tensor<2x4x3x6xf32>, tensor<2x3x4xf32>, tensor<2x4x3x6xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x1x4xf32>, tensor<2x4x1x6xf32>)
    %0 = tx.reshape %dq : tensor<2x4x3x4xf32> -> tensor<2x4x12xf32>
    %1 = tx.reshape %dk : tensor<2x4x1x4xf32> -> tensor<2x4x4xf32>
    %2 = tx.reshape %dv : tensor<2x4x1x6xf32> -> tensor<2x4x6xf32>
    %3 = tx.concat %1, %0, %2 along 2 : (tensor<2x4x4xf32>, tensor<2x4x12xf32>, tensor<2x4x6xf32>) -> tensor<2x4x22xf32>
    %4 = tx.reduce_sum %3 [0, 1] : tensor<2x4x22xf32> -> tensor<22xf32>
    %5 = tx.reshape %3 : tensor<2x4x22xf32> -> tensor<8x22xf32>
    %6 = tx.reduce_sum %5 [0] : tensor<8x22xf32> -> tensor<22xf32>
    return %3, %4, %6 : tensor<2x4x22xf32>, tensor<22xf32>, tensor<22xf32>
  }

  // Projections apart, of other positions for keys; sums that nobody wants are not computed.
  // CHECK-LABEL: func.func @apart(
  // CHECK: tx.attention_grad %{{.*}} sums :
  // CHECK-NOT: tx.reduce_sum
  // RT-LABEL: func.func @apart(
  // RT: rt.attention_backward {{.*}}operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0, 1, 1,
  func.func @apart(%q: tensor<2x4x3x4xf32>, %k: tensor<2x5x3x4xf32>, %v: tensor<2x5x3x4xf32>, %out: tensor<2x4x3x4xf32>, %lse: tensor<2x3x4xf32>, %dout: tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x5x3x4xf32>, tensor<12xf32>, tensor<3x4xf32>) {
    %dq, %dk, %dv = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 : (tensor<2x4x3x4xf32>, tensor<2x5x3x4xf32>, tensor<2x5x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x5x3x4xf32>, tensor<2x5x3x4xf32>)
    %0 = tx.reshape %dq : tensor<2x4x3x4xf32> -> tensor<8x12xf32>
    %1 = tx.reduce_sum %0 [0] : tensor<8x12xf32> -> tensor<12xf32>
    %2 = tx.reduce_sum %dv [0, 1] : tensor<2x5x3x4xf32> -> tensor<3x4xf32>
    return %dq, %dv, %1, %2 : tensor<2x4x3x4xf32>, tensor<2x5x3x4xf32>, tensor<12xf32>, tensor<3x4xf32>
  }

  // Sums come after the gradient of a bias of the scores.
  // CHECK-LABEL: func.func @with_bias(
  // CHECK: %dq, %[[DK:.*]], %[[DV:.*]], %[[G:.*]]:4 = tx.attention_grad %{{.*}} bias %{{.*}} sums :
  // CHECK-NEXT: return %[[DV]], %[[G]]#0, %[[G]]#3
  // RT-LABEL: func.func @with_bias(
  // RT: rt.attention_backward {{.*}}operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 1, 1,
  func.func @with_bias(%q: tensor<2x4x3x4xf32>, %k: tensor<2x4x3x4xf32>, %v: tensor<2x4x3x4xf32>, %out: tensor<2x4x3x4xf32>, %lse: tensor<2x3x4xf32>, %dout: tensor<2x4x3x4xf32>, %bias: tensor<1x3x4x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<1x3x4x4xf32>, tensor<3x4xf32>) {
    %dq, %dk, %dv, %dbias = tx.attention_grad %q, %k, %v, %out, %lse, %dout bias %bias scale 0.5 : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x3x4xf32>, tensor<2x4x3x4xf32>, tensor<1x3x4x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<1x3x4x4xf32>)
    %0 = tx.reduce_sum %dv [0, 1] : tensor<2x4x3x4xf32> -> tensor<3x4xf32>
    return %dv, %dbias, %0 : tensor<2x4x3x4xf32>, tensor<1x3x4x4xf32>, tensor<3x4xf32>
  }

  // Other dimensions, a part of the positions, rows of two attentions, of something else, and in another order of elements.
  // CHECK-LABEL: func.func @others(
  // CHECK-NOT: sums
  // CHECK-COUNT-5: tx.reduce_sum
  func.func @others(%q: tensor<2x4x3x4xf32>, %k: tensor<2x4x3x4xf32>, %v: tensor<2x4x3x4xf32>, %out: tensor<2x4x3x4xf32>, %lse: tensor<2x3x4xf32>, %dout: tensor<2x4x3x4xf32>) -> (tensor<2x4xf32>, tensor<4x12xf32>, tensor<3x8xf32>, tensor<3x4xf32>, tensor<4x3xf32>) {
    %dq, %dk, %dv = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>)
    %dq2, %dk2, %dv2 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.25 : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x3x4xf32>, tensor<2x4x3x4xf32>) -> (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>)
    %0 = tx.reduce_sum %dq [2, 3] : tensor<2x4x3x4xf32> -> tensor<2x4xf32>
    %1 = tx.reshape %dk : tensor<2x4x3x4xf32> -> tensor<2x4x12xf32>
    %2 = tx.reduce_sum %1 [0] : tensor<2x4x12xf32> -> tensor<4x12xf32>
    %3 = tx.concat %dq, %dk2 along 3 : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x8xf32>
    %4 = tx.reduce_sum %3 [0, 1] : tensor<2x4x3x8xf32> -> tensor<3x8xf32>
    %5 = tx.mul %dv, %dv2 : (tensor<2x4x3x4xf32>, tensor<2x4x3x4xf32>) -> tensor<2x4x3x4xf32>
    %6 = tx.reduce_sum %5 [0, 1] : tensor<2x4x3x4xf32> -> tensor<3x4xf32>
    %7 = tx.transpose %dv2 [0, 1, 3, 2] : tensor<2x4x3x4xf32> -> tensor<2x4x4x3xf32>
    %8 = tx.reduce_sum %7 [0, 1] : tensor<2x4x4x3xf32> -> tensor<4x3xf32>
    return %0, %2, %4, %6, %8 : tensor<2x4xf32>, tensor<4x12xf32>, tensor<3x8xf32>, tensor<3x4xf32>, tensor<4x3xf32>
  }

  // A sum over micro-batches in 32 bits: rounded before it is added, these would lose bits.
  // CHECK-LABEL: func.func @wide(
  // CHECK: tx.reduce_sum
  func.func @wide(%q: tensor<2x4x3x4xbf16>, %k: tensor<2x4x3x4xbf16>, %v: tensor<2x4x3x4xbf16>, %out: tensor<2x4x3x4xbf16>, %lse: tensor<2x3x4xf32>, %dout: tensor<2x4x3x4xbf16>, %sum: tensor<3x4xf32>) -> (tensor<2x4x3x4xbf16>, tensor<3x4xf32>) {
    %dq, %dk, %dv = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 : (tensor<2x4x3x4xbf16>, tensor<2x4x3x4xbf16>, tensor<2x4x3x4xbf16>, tensor<2x4x3x4xbf16>, tensor<2x3x4xf32>, tensor<2x4x3x4xbf16>) -> (tensor<2x4x3x4xbf16>, tensor<2x4x3x4xbf16>, tensor<2x4x3x4xbf16>)
    %0 = tx.reduce_sum %dv [0, 1] : tensor<2x4x3x4xbf16> -> tensor<3x4xbf16>
    %1 = tx.cast %0 : tensor<3x4xbf16> -> tensor<3x4xf32>
    %2 = tx.add %sum, %1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    return %dv, %2 : tensor<2x4x3x4xbf16>, tensor<3x4xf32>
  }
}
