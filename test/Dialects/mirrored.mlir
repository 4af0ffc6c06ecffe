// Blocks that are dealt back and forth: types, ops and what each rank then has.
// RUN: partita-opt %s | partita-opt | FileCheck %s
// RUN: echo 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 > %t.txt
// RUN: partita-interp %s --entry shards --inputs %t.txt | FileCheck %s --check-prefix=SHARDS
// RUN: partita-interp %s --entry narrowed --inputs %t.txt | FileCheck %s --check-prefix=NARROWED
// RUN: partita-interp %s --entry behind | FileCheck %s --check-prefix=BEHIND

module attributes {par.mesh = #par.mesh<cp = 2, tp = 2>} {

// CHECK-LABEL: func.func @shards
// CHECK-SAME: tensor<2x4xf32, #par.place<[2, 2 x 4 @cp mirrored]>>
// SHARDS: result 0: 2x8 = {{\[\[}}0, 2, 4, 6, 8, 10, 12, 14], [16, 18, 20, 22, 24, 26, 28, 30]]
func.func @shards(%x: tensor<2x4xf32, #par.place<[2, 2 x 4 @cp mirrored]>>) -> tensor<2x4xf32, #par.place<[2, 2 x 4 @cp mirrored]>> {
  %0 = tx.add %x, %x : (tensor<2x4xf32, #par.place<[2, 2 x 4 @cp mirrored]>>, tensor<2x4xf32, #par.place<[2, 2 x 4 @cp mirrored]>>) -> tensor<2x4xf32, #par.place<[2, 2 x 4 @cp mirrored]>>
  return %0 : tensor<2x4xf32, #par.place<[2, 2 x 4 @cp mirrored]>>
}

// A narrow takes the shard that the type says, tp splits it again within each block, and widen puts it back.
// CHECK: par.narrow %{{.*}} over "cp" along 0 in 2 blocks mirrored
// CHECK: par.narrow %{{.*}} over "tp" along 0 in 2 blocks : tensor<8xf32, #par.place<[2 x 8 @cp mirrored]>> -> tensor<4xf32, #par.place<[2 x 8 @cp mirrored @tp]>>
// CHECK: par.widen %{{.*}} over "cp" along 0 in 2 blocks mirrored
// NARROWED: result 0: 16 = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
// NARROWED-NEXT: result 1: 16 = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
func.func @narrowed(%x: tensor<16xf32>) -> (tensor<4xf32, #par.place<[2 x 8 @cp mirrored @tp]>>, tensor<16xf32>) attributes {par.no_cotangents} {
  %0 = par.narrow %x over "cp" along 0 in 2 blocks mirrored : tensor<16xf32> -> tensor<8xf32, #par.place<[2 x 8 @cp mirrored]>>
  %1 = par.narrow %0 over "tp" along 0 in 2 blocks : tensor<8xf32, #par.place<[2 x 8 @cp mirrored]>> -> tensor<4xf32, #par.place<[2 x 8 @cp mirrored @tp]>>
  %2 = par.widen %0 over "cp" along 0 in 2 blocks mirrored : tensor<8xf32, #par.place<[2 x 8 @cp mirrored]>> -> tensor<16xf32, #par.place<[16], partial [cp]>>
  %3 = par.all_reduce %2 over "cp" : tensor<16xf32, #par.place<[16], partial [cp]>> -> tensor<16xf32>
  return %1, %3 : tensor<4xf32, #par.place<[2 x 8 @cp mirrored @tp]>>, tensor<16xf32>
}

// Where the two runs of a rank begin, and those of the rank before it: of the first one, that is the last.
// CHECK: par.first_index of 16 behind 1 : tensor<2xi64, #par.place<[2 x 2 @cp mirrored]>>
// BEHIND: result 0: 4 = [0, 4, 8, 12]
// BEHIND-NEXT: result 1: 4 = [4, 0, 12, 8]
func.func @behind() -> (tensor<2xi64, #par.place<[2 x 2 @cp mirrored]>>, tensor<2xi64, #par.place<[2 x 2 @cp mirrored]>>) {
  %0 = par.first_index of 16 : tensor<2xi64, #par.place<[2 x 2 @cp mirrored]>>
  %1 = par.first_index of 16 behind 1 : tensor<2xi64, #par.place<[2 x 2 @cp mirrored]>>
  return %0, %1 : tensor<2xi64, #par.place<[2 x 2 @cp mirrored]>>, tensor<2xi64, #par.place<[2 x 2 @cp mirrored]>>
}
}
