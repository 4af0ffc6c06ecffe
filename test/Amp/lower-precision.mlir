// What is stored in 16 bits: by each op's class, contagious from parameters on.
// RUN: partita-opt %s --lower-precision=type=bfloat16 --canonicalize | FileCheck %s
// RUN: partita-opt %s --lower-precision=type=bfloat16 --elide-casts --canonicalize | FileCheck %s --check-prefix=ELIDED
// RUN: partita-opt %s --lower-precision=type=float16 --elide-casts --canonicalize | FileCheck %s --check-prefix=HALF
// RUN: partita-opt %s > %t.before && partita-opt %s --lower-precision --elide-casts | diff %t.before -
// RUN: not partita-opt %s --lower-precision=type=int8 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: precision 'int8' is unknown; known: float32, bfloat16, float16, fp8

// CHECK: train.parameter @table : tensor<16x8xbf16>
train.parameter @table : tensor<16x8xf32>
// CHECK: train.parameter @w : tensor<8x8xbf16>
train.parameter @w : tensor<8x8xf32>
// CHECK: train.parameter @b : tensor<8xbf16>
train.parameter @b : tensor<8xf32>
// A frozen vector keeps its type, unless it is a norm's.
// CHECK: train.parameter @frequencies : tensor<8xf32>
train.parameter @frequencies : tensor<8xf32> frozen
// CHECK: train.parameter @scale : tensor<8xbf16>
train.parameter @scale : tensor<8xf32> frozen

// Casts stand around each op but the matmuls.
// CHECK-LABEL: @example
// CHECK: %[[X:.*]] = tx.cast %arg0 : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: %[[Y:.*]] = tx.matmul %[[X]], {{.*}} -> tensor<4x8xbf16>
// CHECK: %[[WIDE:.*]] = tx.cast %[[Y]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: %[[GELU:.*]] = tx.gelu %[[WIDE]] : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: %[[Z:.*]] = tx.cast %[[GELU]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK: tx.matmul %[[Z]], {{.*}} -> tensor<4x8xbf16>
// ELIDED-LABEL: @example
// ELIDED: tx.gelu {{.*}} : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
func.func @example(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = train.read @w : tensor<8x8xf32>
  %y = tx.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = tx.gelu %y : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %o = tx.matmul %z, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %o : tensor<4x8xf32>
}

// CHECK-LABEL: @init
func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
  // CHECK: train.initial_value @w : tensor<8x8xbf16>
  %w = train.initial_value @w : tensor<8x8xf32>
  train.write @w, %w : tensor<8x8xf32>
  return
}

// Each op computes in 32 bits but for the matmuls.
// CHECK-LABEL: @block
// ELIDED-LABEL: @block
// ELIDED: %[[C:.*]] = tx.constant dense<1.000000e-01>
// HALF-LABEL: @block
func.func @block(%ids: tensor<2x4xi64>) -> tensor<2x4x8xf32> {
  %table = train.read @table : tensor<16x8xf32>
  %w = train.read @w : tensor<8x8xf32>
  %scale = train.read @scale : tensor<8xf32>
  // CHECK: %[[X:.*]] = tx.embedding {{.*}} : (tensor<16x8xbf16>, tensor<2x4xi64>) -> tensor<2x4x8xbf16>
  %x = tx.embedding %table, %ids : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  // CHECK: %[[WIDE:.*]] = tx.cast %[[X]] : tensor<2x4x8xbf16> -> tensor<2x4x8xf32>
  // CHECK: tx.rms_norm %[[WIDE]], {{.*}} : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  // CHECK: tx.cast {{.*}} : tensor<2x4x8xf32> -> tensor<2x4x8xbf16>
  // ELIDED: tx.rms_norm {{.*}} : (tensor<2x4x8xbf16>, tensor<8xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x4xf32>)
  // HALF: tx.rms_norm {{.*}} : (tensor<2x4x8xf16>, tensor<8xf16>) -> (tensor<2x4x8xf16>, tensor<2x4xf32>)
  %n, %rstd = tx.rms_norm %x, %scale eps 1.0e-05 : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  // CHECK: tx.matmul {{.*}} : (tensor<2x4x8xbf16>, tensor<8x8xbf16>) -> tensor<2x4x8xbf16>
  %y = tx.matmul %n, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  // A constant beside 16 bits stays as exact as it is.
  // CHECK: tx.mul {{.*}} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  // ELIDED: tx.mul {{.*}}, %[[C]] : (tensor<2x4x8xbf16>, tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
  %c = tx.constant dense<0.1> : tensor<2x4x8xf32> : tensor<2x4x8xf32>
  %s = tx.mul %y, %c : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %z = tx.add %s, %x : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  // ELIDED: %[[OUT:.*]] = tx.matmul
  // ELIDED: %[[RESULT:.*]] = tx.cast %[[OUT]] : tensor<2x4x8xbf16> -> tensor<2x4x8xf32>
  // ELIDED: return %[[RESULT]]
  %out = tx.matmul %z, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  return %out : tensor<2x4x8xf32>
}

// What nothing of 16 bits flows into stays as it is: positions times frequencies. A mixed op stores 16 bits.
// CHECK-LABEL: @rotary
// ELIDED-LABEL: @rotary
func.func @rotary(%positions: tensor<4x1xf32>, %ids: tensor<4xi64>) -> tensor<4x8xf32> {
  %table = train.read @table : tensor<16x8xf32>
  %w = train.read @w : tensor<8x8xf32>
  %f = train.read @frequencies : tensor<8xf32>
  %row = tx.reshape %f : tensor<8xf32> -> tensor<1x8xf32>
  // ELIDED: %[[ANGLE:.*]] = tx.matmul {{.*}} : (tensor<4x1xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  %angle = tx.matmul %positions, %row : (tensor<4x1xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  // ELIDED: %[[COS:.*]] = tx.cos %[[ANGLE]] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %cos = tx.cos %angle : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %x = tx.embedding %table, %ids : (tensor<16x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  // ELIDED: %[[TURNED:.*]] = tx.mul {{.*}}, %[[COS]] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // ELIDED: tx.cast %[[TURNED]] : tensor<4x8xf32> -> tensor<4x8xbf16>
  %q = tx.mul %x, %cos : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = tx.matmul %q, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Attention's bias may stay in 32 bits; lse is always.
// ELIDED-LABEL: @attention
func.func @attention(%ids: tensor<1x4xi64>, %mask: tensor<1x1x4x4xf32>) -> tensor<1x4x2x4xf32> {
  %table = train.read @table : tensor<16x8xf32>
  %x = tx.embedding %table, %ids : (tensor<16x8xf32>, tensor<1x4xi64>) -> tensor<1x4x8xf32>
  %q = tx.reshape %x : tensor<1x4x8xf32> -> tensor<1x4x2x4xf32>
  // ELIDED: tx.attention {{.*}} : (tensor<1x4x2x4xbf16>, tensor<1x4x2x4xbf16>, tensor<1x4x2x4xbf16>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xbf16>, tensor<1x2x4xf32>)
  %o, %lse = tx.attention %q, %q, %q bias %mask scale 0.5 : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %o : tensor<1x4x2x4xf32>
}

// Losses are of 32 bits and read 16.
// ELIDED-LABEL: @loss
func.func @loss(%ids: tensor<4xi64>, %labels: tensor<4xi64>) -> tensor<4xf32> {
  %table = train.read @table : tensor<16x8xf32>
  %x = tx.embedding %table, %ids : (tensor<16x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %logits = tx.matmul_nt %x, %table : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  // ELIDED: tx.cross_entropy {{.*}} : (tensor<4x16xbf16>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  %loss, %lse = tx.cross_entropy %logits, %labels ignore -100 : (tensor<4x16xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss : tensor<4xf32>
}

// A loss that is written out: after the last matmul nothing that is of 32 bits is rounded. Before it, it is.
// ELIDED-LABEL: @written_out
func.func @written_out(%ids: tensor<4xi64>, %targets: tensor<4x8xf32>) -> tensor<4xf32> {
  %table = train.read @table : tensor<16x8xf32>
  %w = train.read @w : tensor<8x8xf32>
  %x = tx.embedding %table, %ids : (tensor<16x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  // ELIDED: %[[E:.*]] = tx.exp {{.*}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // ELIDED: tx.cast %[[E]] : tensor<4x8xf32> -> tensor<4x8xbf16>
  %e = tx.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = tx.matmul %e, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  // ELIDED: tx.sub {{.*}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // ELIDED-NOT: tx.cast
  %d = tx.sub %y, %targets : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = tx.mul %d, %d : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %m = tx.reduce_mean %s [1] : tensor<4x8xf32> -> tensor<4xf32>
  // ELIDED: return
  return %m : tensor<4xf32>
}
