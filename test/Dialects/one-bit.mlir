// Sums that send a bit per element: their errors' types, also beside tensor parallelism, and the step until which they are exact.
// RUN: partita-opt %s | partita-opt | FileCheck %s
// RUN: echo 1 2 3 4 -1 -2 3 9 0 0 0 0 > %t.txt
// RUN: partita-interp %s --entry exact --inputs %t.txt | FileCheck %s --check-prefix=EXACT
// RUN: partita-interp %s --entry signs --inputs %t.txt | FileCheck %s --check-prefix=SIGNS
// RUN: echo 1 2 3 4 -1 -2 nan 9 0 0 0 0 > %t.nan.txt
// RUN: partita-interp %s --entry signs --inputs %t.nan.txt | FileCheck %s --check-prefix=SPOILT

!term = tensor<4xf32, #par.place<[4], partial [dp]>>
!worker = tensor<1x4xf32, #par.place<[2 @dp, 4]>>
!server = tensor<2xf32, #par.place<[4], flat [dp]>>
!cut = tensor<3x2xf32, #par.place<[3, 4 @tp], partial [dp]>>
!cutsum = tensor<3x2xf32, #par.place<[3, 4 @tp]>>
!cutworker = tensor<1x3x2xf32, #par.place<[2 @dp, 3, 4 @tp]>>
!cutserver = tensor<3xf32, #par.place<[3, 4 @tp], flat [dp]>>
!padded = tensor<3xf32, #par.place<[5 @tp], partial [dp]>>
!paddedsum = tensor<3xf32, #par.place<[5 @tp]>>
!paddedworker = tensor<1x3xf32, #par.place<[2 @dp, 5 @tp]>>
!paddedserver = tensor<2xf32, #par.place<[5 @tp], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2>} {

// CHECK-LABEL: func.func @cut
// CHECK: par.one_bit_term %{{.*}}, %{{.*}} at %{{.*}} : tensor<f32> over "dp" beta 9.000000e-01 exact until 10
// CHECK: par.one_bit_all_reduce %{{.*}}, %{{.*}}, %{{.*}} at %{{.*}} : tensor<f32> over "dp" exact until 10 because "momentum"
func.func @cut(%g: !cut, %m: !cutsum, %w: !cutworker, %s: !cutserver, %t: tensor<f32>) -> !cutsum attributes {par.no_cotangents} {
  %x = par.one_bit_term %g, %m at %t : tensor<f32> over "dp" beta 0.9 exact until 10 : !cut, !cutsum -> !cut
  %y, %w1, %s1 = par.one_bit_all_reduce %x, %w, %s at %t : tensor<f32> over "dp" exact until 10 because "momentum" : (!cut, !cutworker, !cutserver) -> (!cutsum, !cutworker, !cutserver)
  return %y : !cutsum
}

// In the warm-up, the sum over dp of rows 1 2 3 4 and -1 -2 3 9; errors stay.
// EXACT: result 0: 4 = [0, 0, 6, 13]
// EXACT-NEXT: result 1: 2x4 = {{\[\[}}0, 0, 0, 0], [0, 0, 0, 0]]
// EXACT-NEXT: result 2: 4 = [0, 0, 0, 0]
func.func @exact(%g: !worker, %s: !server) -> (tensor<4xf32>, !worker, !server) attributes {par.no_cotangents} {
  %t = tx.constant dense<5.0> : tensor<f32> : tensor<f32>
  %w = tx.constant dense<0.0> : tensor<1x4xf32> : !worker
  %x = tx.reduce_sum %g [0] : !worker -> !term
  %y:3 = par.one_bit_all_reduce %x, %w, %s at %t : tensor<f32> over "dp" exact until 5 : (!term, !worker, !server) -> (tensor<4xf32>, !worker, !server)
  return %y#0, %y#1, %y#2 : tensor<4xf32>, !worker, !server
}

// In the warm-up 0.9 of the mean and 0.1 of half the sum; afterwards the sum.
// RUN: echo 1 2 3 4 10 20 30 40 5 > %t.mean.txt && partita-interp %s --entry mean --inputs %t.mean.txt | FileCheck %s --check-prefix=MEAN
// RUN: echo 1 2 3 4 10 20 30 40 6 > %t.mean.txt && partita-interp %s --entry mean --inputs %t.mean.txt | FileCheck %s --check-prefix=SUM
// MEAN: result 0: 4 = [1.4, 2.8, 4.2, 5.6]
// SUM: result 0: 4 = [10, 20, 30, 40]
func.func @mean(%m: tensor<4xf32>, %sum: tensor<4xf32>, %t: tensor<f32>) -> tensor<4xf32> attributes {par.no_cotangents} {
  %half = tx.constant dense<0.5> : tensor<f32> : tensor<f32>
  %m1 = par.one_bit_mean %sum, %m at %t : tensor<f32> times %half : tensor<f32> over "dp" beta 0.9 exact until 5 : tensor<4xf32>
  return %m1 : tensor<4xf32>
}

// With two exact steps of each interval, 1, 2, 4, 6 and 8 are exact: in these both factors are the one that clips. In all others sums of momenta have 1,
// and gradients the typical factor. In step 6, the fourth of these, its square moves by (1 - 0.9) / (1 - 0.9^4) from 0.64 toward 0.25.
// RUN: echo 1 2 3 4 10 20 30 40 5 > %t.mean.txt && partita-interp %s --entry alternating --inputs %t.mean.txt | FileCheck %s --check-prefixes=ODD,SUM
// RUN: echo 1 2 3 4 10 20 30 40 6 > %t.mean.txt && partita-interp %s --entry alternating --inputs %t.mean.txt | FileCheck %s --check-prefixes=EVEN,MEAN
// RUN: echo 1 2 3 4 10 20 30 40 10 > %t.mean.txt && partita-interp %s --entry alternating --inputs %t.mean.txt | FileCheck %s --check-prefixes=ODD,SUM
// CHECK: par.one_bit_clip %{{.*}}, %{{.*}} at %{{.*}} : tensor<f32> beta 9.000000e-01 exact until 9 doubling 2 : tensor<f32>
// CHECK: par.one_bit_mean %{{.*}} exact until 9 doubling 2
// ODD: result 1: = 1{{$}}
// ODD-NEXT: result 2: = 0.8
// ODD-NEXT: result 3: = 0.8
// EVEN: result 1: = 0.5
// EVEN-NEXT: result 2: = 0.5
// EVEN-NEXT: result 3: = 0.725669
func.func @alternating(%m: tensor<4xf32>, %sum: tensor<4xf32>, %t: tensor<f32>) -> (tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>) attributes {par.no_cotangents} {
  %half = tx.constant dense<0.5> : tensor<f32> : tensor<f32>
  %typical = tx.constant dense<0.8> : tensor<f32> : tensor<f32>
  %sums, %gradients, %next = par.one_bit_clip %half, %typical at %t : tensor<f32> beta 0.9 exact until 9 doubling 2 : tensor<f32>
  %m1 = par.one_bit_mean %sum, %m at %t : tensor<f32> times %half : tensor<f32> over "dp" beta 0.9 exact until 9 doubling 2 : tensor<4xf32>
  return %m1, %sums, %gradients, %next : tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>
}

// Afterwards scales sqrt(30 / 4) and sqrt(95 / 4), and those of the chunks' sums, of which the first is all equal.
// SIGNS: result 0: 4 = [-2.13478, -2.13478, 7.61201, 7.61201]
// SPOILT: result 0: 4 = [nan, nan, nan, nan]
// SPOILT-NEXT: result 1: 2x4 = {{\[\[}}0, 0, 0, 0], [0, 0, 0, 0]]
func.func @signs(%g: !worker, %s: !server) -> (tensor<4xf32>, !worker, !server) attributes {par.no_cotangents} {
  %t = tx.constant dense<6.0> : tensor<f32> : tensor<f32>
  %w = tx.constant dense<0.0> : tensor<1x4xf32> : !worker
  %x = tx.reduce_sum %g [0] : !worker -> !term
  %y:3 = par.one_bit_all_reduce %x, %w, %s at %t : tensor<f32> over "dp" exact until 5 : (!term, !worker, !server) -> (tensor<4xf32>, !worker, !server)
  return %y#0, %y#1, %y#2 : tensor<4xf32>, !worker, !server
}

// A shard that ends in padding: the first tp rank has 3 elements, in chunks of 2 and 1, with scales sqrt(14 / 3) and sqrt(62 / 3). The second one has 2,
// with scales 4 and 2, and its second chunk is padding. Its NaN is not the first one's.
// RUN: echo 1 2 3 4 4 -1 -5 6 -2 2 0 0 0 0 0 > %t.padded.txt && partita-interp %s --entry padded --inputs %t.padded.txt | FileCheck %s --check-prefix=PADDED
// RUN: echo 1 2 3 4 4 -1 -5 6 -2 nan 0 0 0 0 0 > %t.padded.txt && partita-interp %s --entry padded --inputs %t.padded.txt | FileCheck %s --check-prefix=HALFSPOILT
// PADDED: result 0: 5 = [-2.38581, -2.38581, 6.70631, 4.47214, 4.47214]
// PADDED-NEXT: result 1: 2x5 = {{\[\[}}-1.16025, -0.160247, 0.839753, 0, 0], [3.54606, -0.453939, 1.45394, 0, 0]]
// PADDED-NEXT: result 2: 5 = [0, 0, 0, -2.47214, 1.52786]
// HALFSPOILT: result 0: 5 = [-2.38581, -2.38581, 6.70631, nan, nan]
// HALFSPOILT-NEXT: result 1: 2x5 = {{\[\[}}-1.16025, -0.160247, 0.839753, 0, 0], [3.54606, -0.453939, 1.45394, 0, 0]]
func.func @padded(%g: !paddedworker, %s: !paddedserver) -> (!paddedsum, !paddedworker, !paddedserver) attributes {par.no_cotangents} {
  %t = tx.constant dense<6.0> : tensor<f32> : tensor<f32>
  %w = tx.constant dense<0.0> : tensor<1x3xf32> : !paddedworker
  %x = tx.reduce_sum %g [0] : !paddedworker -> !padded
  %y:3 = par.one_bit_all_reduce %x, %w, %s at %t : tensor<f32> over "dp" exact until 5 : (!padded, !paddedworker, !paddedserver) -> (!paddedsum, !paddedworker, !paddedserver)
  return %y#0, %y#1, %y#2 : !paddedsum, !paddedworker, !paddedserver
}
}
