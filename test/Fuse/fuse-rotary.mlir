// RUN: partita-opt %s --fuse-rotary --canonicalize | FileCheck %s
// RUN: partita-opt %s --fuse-rotary --canonicalize -o %t.mlir
// RUN: bash %S/equal.sh %s %t.mlir forth back swapped transposed around rounded read_twice other_x

// CHECK-LABEL: @forth(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: {{.*}}, %[[COS:[a-z0-9]*]]: {{.*}}, %[[SIN:[a-z0-9]*]]:
// CHECK-NEXT:    %[[Y:.*]] = tx.rotary %[[X]], %[[COS]], %[[SIN]] : (
// CHECK-NEXT:    return %[[Y]]
func.func @forth(%x: tensor<2x3x4xf64>, %cos: tensor<2x3x4xf64>, %sin: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %0 = tx.mul %x, %cos : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %1 = tx.rotate_half %x : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %2 = tx.mul %1, %sin : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %3 = tx.add %0, %2 : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %3 : tensor<2x3x4xf64>
}

// What differentiation makes of it: the cotangent turns back. Angles of a pair need not be equal.
// CHECK-LABEL: @back(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: {{.*}}, %[[COS:[a-z0-9]*]]: {{.*}}, %[[SIN:[a-z0-9]*]]:
// CHECK-NEXT:    %[[Y:.*]] = tx.rotary %[[X]], %[[COS]], %[[SIN]] interleaved back : (
// CHECK-NEXT:    return %[[Y]]
func.func @back(%x: tensor<2x3x4xf64>, %cos: tensor<2x3x4xf64>, %sin: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %0 = tx.mul %x, %sin : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %1 = tx.rotate_half %0 interleaved : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %2 = tx.neg %1 : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %3 = tx.mul %x, %cos : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %4 = tx.add %2, %3 : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %4 : tensor<2x3x4xf64>
}

// CHECK-LABEL: @swapped(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: {{.*}}, %[[COS:[a-z0-9]*]]: {{.*}}, %[[SIN:[a-z0-9]*]]:
// CHECK-NEXT:    tx.rotary %[[X]], %[[COS]], %[[SIN]] interleaved : (
func.func @swapped(%x: tensor<2x3x4xf64>, %cos: tensor<2x3x4xf64>, %sin: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %0 = tx.mul %cos, %x : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %1 = tx.rotate_half %x interleaved : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %2 = tx.mul %sin, %1 : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %3 = tx.add %2, %0 : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %3 : tensor<2x3x4xf64>
}

// Heads are taken out of the sequence, turned, and put back: nothing is moved.
// CHECK-LABEL: @around(
// CHECK-SAME:    %[[X:[a-z0-9]*]]: {{.*}}, %[[ANGLES:[a-z0-9]*]]:
// CHECK-NEXT:    %[[ALL:.*]] = tx.broadcast %[[ANGLES]]
// CHECK-NEXT:    %[[MOVED:.*]] = tx.transpose %[[ALL]] [0, 2, 1, 3] : tensor<2x3x5x4xf64> -> tensor<2x5x3x4xf64>
// CHECK:         %[[Y:.*]] = tx.rotary %[[X]], %{{.*}}, %{{.*}} : (tensor<2x5x3x4xf64>,
// CHECK-NEXT:    return %[[Y]]
func.func @around(%x: tensor<2x5x3x4xf64>, %angles: tensor<5x4xf64>) -> tensor<2x5x3x4xf64> {
  %t = tx.transpose %x [0, 2, 1, 3] : tensor<2x5x3x4xf64> -> tensor<2x3x5x4xf64>
  %a = tx.broadcast %angles : tensor<5x4xf64> -> tensor<2x3x5x4xf64>
  %0 = tx.mul %t, %a : (tensor<2x3x5x4xf64>, tensor<2x3x5x4xf64>) -> tensor<2x3x5x4xf64>
  %1 = tx.rotate_half %t : (tensor<2x3x5x4xf64>) -> tensor<2x3x5x4xf64>
  %2 = tx.mul %1, %a : (tensor<2x3x5x4xf64>, tensor<2x3x5x4xf64>) -> tensor<2x3x5x4xf64>
  %3 = tx.add %0, %2 : (tensor<2x3x5x4xf64>, tensor<2x3x5x4xf64>) -> tensor<2x3x5x4xf64>
  %4 = tx.transpose %3 [0, 2, 1, 3] : tensor<2x3x5x4xf64> -> tensor<2x5x3x4xf64>
  return %4 : tensor<2x5x3x4xf64>
}

// Rows stay rows: a permutation that takes them apart is left where it is.
// CHECK-LABEL: @transposed(
// CHECK-NEXT:    %[[T:.*]] = tx.transpose
// CHECK-NEXT:    tx.rotary %[[T]],
func.func @transposed(%x: tensor<3x4x2xf64>, %cos: tensor<2x3x4xf64>, %sin: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %t = tx.transpose %x [2, 0, 1] : tensor<3x4x2xf64> -> tensor<2x3x4xf64>
  %0 = tx.mul %t, %cos : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %1 = tx.rotate_half %t : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %2 = tx.mul %1, %sin : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %3 = tx.add %0, %2 : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %3 : tensor<2x3x4xf64>
}

// In 16 bits the angles are not rounded, and what is between is not either.
// CHECK-LABEL: @rounded(
// CHECK-NEXT:    tx.rotary %{{.*}} : (tensor<2x3x4xbf16>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xbf16>
// CHECK-NEXT:    return
func.func @rounded(%x: tensor<2x3x4xbf16>, %cos: tensor<2x3x4xf32>, %sin: tensor<2x3x4xf32>) -> tensor<2x3x4xbf16> {
  %wide = tx.cast %x : tensor<2x3x4xbf16> -> tensor<2x3x4xf32>
  %0 = tx.mul %wide, %cos : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %c = tx.cast %0 : tensor<2x3x4xf32> -> tensor<2x3x4xbf16>
  %1 = tx.rotate_half %x : (tensor<2x3x4xbf16>) -> tensor<2x3x4xbf16>
  %w = tx.cast %1 : tensor<2x3x4xbf16> -> tensor<2x3x4xf32>
  %2 = tx.mul %w, %sin : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %s = tx.cast %2 : tensor<2x3x4xf32> -> tensor<2x3x4xbf16>
  %3 = tx.add %c, %s : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) -> tensor<2x3x4xbf16>
  return %3 : tensor<2x3x4xbf16>
}

// Angles of 16 bits have no kernel.
// CHECK-LABEL: @short_angles(
// CHECK-NOT:     tx.rotary
func.func @short_angles(%x: tensor<2x4xbf16>, %cos: tensor<2x4xbf16>, %sin: tensor<2x4xbf16>) -> tensor<2x4xbf16> {
  %0 = tx.mul %x, %cos : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<2x4xbf16>
  %1 = tx.rotate_half %x : (tensor<2x4xbf16>) -> tensor<2x4xbf16>
  %2 = tx.mul %1, %sin : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<2x4xbf16>
  %3 = tx.add %0, %2 : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<2x4xbf16>
  return %3 : tensor<2x4xbf16>
}

// A product that somebody else reads is needed anyway.
// CHECK-LABEL: @read_twice(
// CHECK-NOT:     tx.rotary
func.func @read_twice(%x: tensor<2x4xf64>, %cos: tensor<2x4xf64>, %sin: tensor<2x4xf64>) -> (tensor<2x4xf64>, tensor<2x4xf64>) {
  %0 = tx.mul %x, %cos : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  %1 = tx.rotate_half %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  %2 = tx.mul %1, %sin : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  %3 = tx.add %0, %2 : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %3, %2 : tensor<2x4xf64>, tensor<2x4xf64>
}

// Another tensor's turn.
// CHECK-LABEL: @other_x(
// CHECK-NOT:     tx.rotary
func.func @other_x(%x: tensor<2x4xf64>, %z: tensor<2x4xf64>, %cos: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.mul %x, %cos : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  %1 = tx.rotate_half %z : (tensor<2x4xf64>) -> tensor<2x4xf64>
  %2 = tx.mul %1, %cos : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  %3 = tx.add %0, %2 : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %3 : tensor<2x4xf64>
}

// Nor have wider ones.
// CHECK-LABEL: @wide_angles(
// CHECK-NOT:     tx.rotary
func.func @wide_angles(%x: tensor<2x4xf32>, %cos: tensor<2x4xf64>, %sin: tensor<2x4xf64>) -> tensor<2x4xf32> {
  %wide = tx.cast %x : tensor<2x4xf32> -> tensor<2x4xf64>
  %0 = tx.mul %wide, %cos : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  %c = tx.cast %0 : tensor<2x4xf64> -> tensor<2x4xf32>
  %1 = tx.rotate_half %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %w = tx.cast %1 : tensor<2x4xf32> -> tensor<2x4xf64>
  %2 = tx.mul %w, %sin : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  %s = tx.cast %2 : tensor<2x4xf64> -> tensor<2x4xf32>
  %3 = tx.add %c, %s : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// Half of it is of what the model itself has rounded.
// CHECK-LABEL: @own_rounding(
// CHECK-NOT: tx.rotary
// CHECK: return
func.func @own_rounding(%x: tensor<2x3x4xf32>, %cos: tensor<2x3x4xf32>, %sin: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = tx.mul %x, %cos : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %1 = tx.cast %x {tx.rounds} : tensor<2x3x4xf32> -> tensor<2x3x4xbf16>
  %2 = tx.cast %1 {tx.rounds} : tensor<2x3x4xbf16> -> tensor<2x3x4xf32>
  %3 = tx.rotate_half %2 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %4 = tx.mul %3, %sin : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %5 = tx.add %0, %4 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %5 : tensor<2x3x4xf32>
}
