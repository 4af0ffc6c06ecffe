// RUN: partita-opt %s --zero-quantize-weights="on=true block=64" | FileCheck %s
// RUN: partita-opt %s --zero-quantize-weights="on=true block=100 exact=other,small" | FileCheck %s --check-prefix=SOME
// RUN: partita-opt %s --zero-quantize-weights | FileCheck %s --check-prefix=OFF --implicit-check-not=int8
// RUN: not partita-opt %s --zero-quantize-weights="on=true block=1" 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not partita-opt %s --zero-quantize-weights="on=true exact=oter" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not partita-opt %s --zero-quantize-weights="on=true exact=*" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not partita-opt %s --zero-quantize-weights="on=true exact=small,b" 2>&1 | FileCheck %s --check-prefix=IDLE
// IDLE: error: keep-exact: 'b' has no effect: b would be exact without it: rounded are parameters of two or more dimensions, with a last one that 8 divides; leave it out
// RUN: not partita-opt %s --zero-quantize-weights="on=true exact=small,odd" 2>&1 | FileCheck %s --check-prefix=ODD
// ODD: error: keep-exact: 'odd' has no effect: odd would be exact without it
// RUN: partita-opt %s --zero-quantize-weights="on=true exact=other,small,odd block=100 gradients=true" | FileCheck %s --check-prefix=SOME
// ONE: error: block=1, expected at least 8
// NAME: error: keep-exact: {{.*}}'oter'
// NONE: error: --zero-quantized-weights: has no effect, because no parameter of two or more dimensions, with a last one that 8 divides, is left by --keep-exact; leave it out

train.parameter @w : tensor<16x96xf32>
train.parameter @other : tensor<8x64xbf16>
train.parameter @small : tensor<2x48xf32>
train.parameter @odd : tensor<64x12xf32>
train.parameter @b : tensor<64xf32>

// OFF-LABEL: func.func @forward
// CHECK-LABEL: func.func @forward
// CHECK: train.read @w in int8 blocks of 32 : tensor<16x96xf32>
// CHECK: train.read @other in int8 blocks of 64 : tensor<8x64xbf16>
// CHECK: train.read @small in int8 blocks of 16 : tensor<2x48xf32>
// CHECK: train.read @odd : tensor<64x12xf32>
// CHECK: train.read @b : tensor<64xf32>
// SOME: train.read @w in int8 blocks of 32
// SOME: train.read @other :
// SOME: train.read @small :
func.func @forward() -> (tensor<16x96xf32>, tensor<8x64xbf16>, tensor<2x48xf32>, tensor<64x12xf32>, tensor<64xf32>) {
  %w = train.read @w : tensor<16x96xf32>
  %1 = train.read @other : tensor<8x64xbf16>
  %2 = train.read @small : tensor<2x48xf32>
  %3 = train.read @odd : tensor<64x12xf32>
  %4 = train.read @b : tensor<64xf32>
  return %w, %1, %2, %3, %4 : tensor<16x96xf32>, tensor<8x64xbf16>, tensor<2x48xf32>, tensor<64x12xf32>, tensor<64xf32>
}
