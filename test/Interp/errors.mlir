// RUN: rm -rf %t && split-file %s %t

// RUN: not partita-interp %t/unknown.mlir 2>&1 | FileCheck %s --check-prefix=UNKNOWN --implicit-check-not=error:
// UNKNOWN: unknown.mlir:2:8: error: the interpreter does not know 'func.constant'
//--- unknown.mlir
func.func @f() -> tensor<f32> {
  %f = func.constant @f : () -> tensor<f32>
  %0 = func.call_indirect %f() : () -> tensor<f32>
  return %0 : tensor<f32>
}

//--- token.mlir
func.func @f() -> tensor<2x2xf32> {
  %t = tx.constant dense<0.0> : tensor<3x2xf32> : tensor<3x2xf32>
  %i = tx.constant dense<[2, 3]> : tensor<2xi64> : tensor<2xi64>
  %0 = tx.embedding %t, %i : (tensor<3x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// RUN: not partita-interp %t/token.mlir 2>&1 | FileCheck %s --check-prefix=TOKEN --implicit-check-not=error:
// TOKEN: token.mlir:4:8: error: index 3 at position 1 is outside 0 .. 2, the rows of the table

//--- take.mlir
func.func @f(%x: tensor<2x3x2xf32>) -> tensor<2x1x2xf32> {
  %i = tx.constant dense<[[2], [3]]> : tensor<2x1xi64> : tensor<2x1xi64>
  %0 = tx.take %x, %i : (tensor<2x3x2xf32>, tensor<2x1xi64>) -> tensor<2x1x2xf32>
  return %0 : tensor<2x1x2xf32>
}
// RUN: not partita-interp %t/take.mlir 2>&1 | FileCheck %s --check-prefix=TAKE --implicit-check-not=error:
// TAKE: take.mlir:3:8: error: index 3 at position 1 is outside a table of 3 rows

//--- label.mlir
func.func @f(%x: tensor<1x2xf32>) -> tensor<1xf32> {
  %i = tx.constant dense<-1> : tensor<1xi64> : tensor<1xi64>
  %loss, %lse = tx.cross_entropy %x, %i ignore -100 : (tensor<1x2xf32>, tensor<1xi64>) -> (tensor<1xf32>, tensor<1xf32>)
  return %loss : tensor<1xf32>
}
// RUN: not partita-interp %t/label.mlir 2>&1 | FileCheck %s --check-prefix=LABEL --implicit-check-not=error:
// LABEL: label.mlir:3:{{.*}}: error: index -1 at position 0 is outside 0 .. 1, the classes of a label

//--- shard.mlir
module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @f(%x: tensor<3x2xf32, #par.place<[8 @dp, 2]>>) -> tensor<3x2xf32, #par.place<[8 @dp, 2]>> {
  return %x : tensor<3x2xf32, #par.place<[8 @dp, 2]>>
}
}
// RUN: not partita-interp %t/shard.mlir 2>&1 | FileCheck %s --check-prefix=SHARD --implicit-check-not=error:
// SHARD: error: argument 0: one rank's shard should be tensor<4x2xf32, #par.place<[8 @dp, 2]>>, the program says tensor<3x2xf32

//--- division.mlir
func.func @f() -> tensor<i64> {
  %a = tx.constant dense<1> : tensor<i64> : tensor<i64>
  %b = tx.constant dense<0> : tensor<i64> : tensor<i64>
  %0 = tx.div %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %0 : tensor<i64>
}
// RUN: not partita-interp %t/division.mlir 2>&1 | FileCheck %s --check-prefix=DIVISION --implicit-check-not=error:
// DIVISION: division.mlir:4:8: error: yields {{inf|INF}}, which no i64 holds

//--- dynamic.mlir
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
// RUN: not partita-interp %t/dynamic.mlir 2>&1 | FileCheck %s --check-prefix=DYNAMIC --implicit-check-not=error:
// DYNAMIC: error: argument 0 must be a tensor of static shape, it is 'tensor<?xf32>'

//--- recursion.mlir
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// RUN: not partita-interp %t/recursion.mlir 2>&1 | FileCheck %s --check-prefix=RECURSION --implicit-check-not=error:
// RECURSION: recursion.mlir:2:8: error: calls 'f' more than 100 calls deep

//--- parameters.mlir
train.parameter @a : tensor<2xf32> initial(<"missing.bin", offset = 0, bytes = 8, f32>) fill(<0.0>)
func.func @f() -> tensor<2xf32> {
  %0 = train.read @a : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// RUN: not partita-interp %t/parameters.mlir --init file 2>&1 | FileCheck %s --check-prefix=MISSING --implicit-check-not=error:
// MISSING: parameters.mlir:1:1: error: external data {{.}}missing.bin{{.}} cannot be opened
// RUN: printf 1234567 > %t/missing.bin
// RUN: not partita-interp %t/parameters.mlir --init file 2>&1 | FileCheck %s --check-prefix=SHORT --implicit-check-not=error:
// SHORT: parameters.mlir:1:1: error: needs bytes 0 to 8 of 'missing.bin', which has 7
// RUN: printf '\0\0\200\077\0\0\0\300' > %t/missing.bin
// RUN: partita-interp %t/parameters.mlir --init file | FileCheck %s --check-prefix=READ
// READ: result 0: 2 = [1, -2]
// RUN: partita-interp %t/parameters.mlir --init perturbed | FileCheck %s --check-prefix=RANDOM
// RANDOM-NOT: result 0: 2 = [0, 0]

//--- arguments.mlir
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
// RUN: echo 1 2 3 > %t/three
// RUN: not partita-interp %t/arguments.mlir --inputs %t/three --entry f 2>&1 | FileCheck %s --check-prefix=THREE --implicit-check-not=error:
// THREE: error: argument 0 needs 4 numbers, 3 are left
// RUN: not partita-interp %t/arguments.mlir --entry g 2>&1 | FileCheck %s --check-prefix=NONE --implicit-check-not=error:
// NONE: error: has no function 'g'
