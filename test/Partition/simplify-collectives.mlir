// RUN: partita-opt %s --simplify-collectives --cse | FileCheck %s
// RUN: partita-opt %s --simplify-collectives --cse -o %t.mlir
// RUN: bash %S/../Fuse/equal.sh %s %t.mlir pairs both stream onshards there sums branches less several

module attributes {par.mesh = #par.mesh<tp = 2>} {

// A sum of which each rank takes its shard, and a gather in front of f.
// CHECK-LABEL: func.func @pairs
// CHECK-NEXT: %[[N:.*]] = par.reduce_scatter %{{.*}} over "tp" along 1
// CHECK-NEXT: %[[E:.*]] = tx.exp %[[N]]
// CHECK-NEXT: %[[W:.*]] = par.all_gather %[[E]] over "tp" along 1 : {{.*}} -> tensor<2x4x2xf64, #par.place<[2, 4, 2], replicated [tp]>>
// CHECK-NEXT: return %[[W]]
func.func @pairs(%p: tensor<2x4x2xf64, #par.place<[2, 4, 2], partial [tp]>>) -> tensor<2x4x2xf64, #par.place<[2, 4, 2], replicated [tp]>> {
  %s = par.g %p over "tp" : tensor<2x4x2xf64, #par.place<[2, 4, 2], partial [tp]>> -> tensor<2x4x2xf64>
  %n = par.narrow %s over "tp" along 1 : tensor<2x4x2xf64> -> tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>>
  %e = tx.exp %n : (tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>>) -> tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>>
  %w = par.all_gather %e over "tp" along 1 : tensor<2x2x2xf64, #par.place<[2, 4 @tp, 2]>> -> tensor<2x4x2xf64>
  %f = par.f %w over "tp" : tensor<2x4x2xf64> -> tensor<2x4x2xf64, #par.place<[2, 4, 2], replicated [tp]>>
  return %f : tensor<2x4x2xf64, #par.place<[2, 4, 2], replicated [tp]>>
}

// A sum that is also used in full stays an all-reduce.
// CHECK-LABEL: func.func @both
// CHECK-NEXT: par.g
// CHECK-NEXT: par.narrow
// CHECK-NEXT: return
func.func @both(%p: tensor<4xf64, #par.place<[4], partial [tp]>>) -> (tensor<4xf64>, tensor<2xf64, #par.place<[4 @tp]>>) {
  %s = par.g %p over "tp" : tensor<4xf64, #par.place<[4], partial [tp]>> -> tensor<4xf64>
  %n = par.narrow %s over "tp" along 0 : tensor<4xf64> -> tensor<2xf64, #par.place<[4 @tp]>>
  return %s, %n : tensor<4xf64>, tensor<2xf64, #par.place<[4 @tp]>>
}

// A sum of which a shard is used, and which is needed in full as well: scattered, and gathered for that.
// CHECK-LABEL: func.func @stream
// CHECK-SAME: %[[P:.*]]: tensor
// CHECK-NEXT: %[[S:.*]] = par.reduce_scatter %[[P]]
// CHECK-NEXT: %[[W:.*]] = par.all_gather %[[S]] {{.*}} replicated [tp]
// CHECK-NEXT: %[[E:.*]] = tx.exp %[[S]]
// CHECK-NEXT: return %[[W]], %[[E]]
func.func @stream(%p: tensor<4xf64, #par.place<[4], partial [tp]>>) -> (tensor<4xf64, #par.place<[4], replicated [tp]>>, tensor<2xf64, #par.place<[4 @tp]>>) {
  %s = par.g %p over "tp" : tensor<4xf64, #par.place<[4], partial [tp]>> -> tensor<4xf64>
  %n = par.narrow %s over "tp" along 0 : tensor<4xf64> -> tensor<2xf64, #par.place<[4 @tp]>>
  %w = par.all_gather %n over "tp" along 0 : tensor<2xf64, #par.place<[4 @tp]>> -> tensor<4xf64>
  %f = par.f %w over "tp" : tensor<4xf64> -> tensor<4xf64, #par.place<[4], replicated [tp]>>
  %e = tx.exp %n : (tensor<2xf64, #par.place<[4 @tp]>>) -> tensor<2xf64, #par.place<[4 @tp]>>
  return %f, %e : tensor<4xf64, #par.place<[4], replicated [tp]>>, tensor<2xf64, #par.place<[4 @tp]>>
}

// The shard of a sum over ranks and something else, element by element: shards of both.
// CHECK-LABEL: func.func @onshards
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<4xf64, {{.*}}>, %[[Y:[a-z0-9]+]]: tensor<4xf64>
// CHECK-DAG: %[[S:.*]] = par.reduce_scatter %[[P]]
// CHECK-DAG: %[[N:.*]] = par.narrow %[[Y]]
// CHECK: %[[A:.*]] = tx.add %[[S]], %[[N]]
// CHECK-NEXT: return %[[A]]
func.func @onshards(%p: tensor<4xf64, #par.place<[4], partial [tp]>>, %y: tensor<4xf64>) -> tensor<2xf64, #par.place<[4 @tp]>> {
  %s = par.g %p over "tp" : tensor<4xf64, #par.place<[4], partial [tp]>> -> tensor<4xf64>
  %a = tx.add %s, %y : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %n = par.narrow %a over "tp" along 0 : tensor<4xf64> -> tensor<2xf64, #par.place<[4 @tp]>>
  return %n : tensor<2xf64, #par.place<[4 @tp]>>
}

// A gather of what is already there, in full or in shards.
// CHECK-LABEL: func.func @there
// CHECK-SAME: %[[X:.*]]: tensor<4xf64>, %[[Y:.*]]: tensor<2xf64, #par.place<[4 @tp]>>
// CHECK-NEXT: %[[F:.*]] = par.f %[[X]] over "tp"
// CHECK-NEXT: return %[[X]], %[[Y]], %[[F]]
func.func @there(%x: tensor<4xf64>, %y: tensor<2xf64, #par.place<[4 @tp]>>) -> (tensor<4xf64>, tensor<2xf64, #par.place<[4 @tp]>>, tensor<4xf64, #par.place<[4], replicated [tp]>>) {
  %a = par.narrow %x over "tp" along 0 : tensor<4xf64> -> tensor<2xf64, #par.place<[4 @tp]>>
  %b = par.all_gather %a over "tp" along 0 : tensor<2xf64, #par.place<[4 @tp]>> -> tensor<4xf64>
  %c = par.all_gather %a over "tp" along 0 : tensor<2xf64, #par.place<[4 @tp]>> -> tensor<4xf64, #par.place<[4], replicated [tp]>>
  %d = par.all_gather %y over "tp" along 0 : tensor<2xf64, #par.place<[4 @tp]>> -> tensor<4xf64>
  %e = par.narrow %d over "tp" along 0 : tensor<4xf64> -> tensor<2xf64, #par.place<[4 @tp]>>
  return %b, %e, %c : tensor<4xf64>, tensor<2xf64, #par.place<[4 @tp]>>, tensor<4xf64, #par.place<[4], replicated [tp]>>
}

// g(a) + c + g(b) + d = g(a + b) + c + d; likewise for shards.
// CHECK-LABEL: func.func @sums
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<4xf64, {{.*}}>, %[[B:[a-z0-9]+]]: tensor<4xf64, {{.*}}>, %[[C:[a-z0-9]+]]: tensor<4xf64>, %[[D:[a-z0-9]+]]: tensor<2xf64
// CHECK-NEXT: %[[AB:.*]] = tx.add %[[A]], %[[B]] : {{.*}} -> tensor<4xf64, #par.place<[4], partial [tp]>>
// CHECK-NEXT: %[[S:.*]] = par.g %[[AB]]
// CHECK-NEXT: %[[SC:.*]] = tx.add %[[S]], %[[C]]
// CHECK-NEXT: %[[P:.*]] = par.reduce_scatter %[[AB]]
// CHECK-NEXT: %[[PD:.*]] = tx.add %[[P]], %[[D]]
// CHECK-NEXT: return %[[SC]], %[[PD]]
func.func @sums(%a: tensor<4xf64, #par.place<[4], partial [tp]>>, %b: tensor<4xf64, #par.place<[4], partial [tp]>>,
                %c: tensor<4xf64>, %d: tensor<2xf64, #par.place<[4 @tp]>>) -> (tensor<4xf64>, tensor<2xf64, #par.place<[4 @tp]>>) {
  %ga = par.g %a over "tp" : tensor<4xf64, #par.place<[4], partial [tp]>> -> tensor<4xf64>
  %gb = par.g %b over "tp" : tensor<4xf64, #par.place<[4], partial [tp]>> -> tensor<4xf64>
  %ac = tx.add %ga, %c : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %s = tx.add %ac, %gb : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %ra = par.reduce_scatter %a over "tp" along 0 : tensor<4xf64, #par.place<[4], partial [tp]>> -> tensor<2xf64, #par.place<[4 @tp]>>
  %rb = par.reduce_scatter %b over "tp" along 0 : tensor<4xf64, #par.place<[4], partial [tp]>> -> tensor<2xf64, #par.place<[4 @tp]>>
  %bd = tx.add %rb, %d : (tensor<2xf64, #par.place<[4 @tp]>>, tensor<2xf64, #par.place<[4 @tp]>>) -> tensor<2xf64, #par.place<[4 @tp]>>
  %p = tx.add %ra, %bd : (tensor<2xf64, #par.place<[4 @tp]>>, tensor<2xf64, #par.place<[4 @tp]>>) -> tensor<2xf64, #par.place<[4 @tp]>>
  return %s, %p : tensor<4xf64>, tensor<2xf64, #par.place<[4 @tp]>>
}

// Two branches that begin with a norm of their own: one f, in front of both, and small ones of their weights.
// CHECK-LABEL: func.func @branches
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<6x2xf64>, %[[V:[a-z0-9]+]]: tensor<2xf64>, %[[W:[a-z0-9]+]]: tensor<2xf64>
// CHECK-DAG: %[[FX:.*]] = par.f %[[X]] over "tp"
// CHECK-DAG: %[[FV:.*]] = par.f %[[V]] over "tp"
// CHECK-DAG: %[[FW:.*]] = par.f %[[W]] over "tp"
// CHECK: %[[A:.*]], %{{.*}} = tx.rms_norm %[[FX]], %[[FV]] {{.*}} replicated [tp]
// CHECK: %[[B:.*]], %{{.*}} = tx.rms_norm %[[FX]], %[[FW]] {{.*}} replicated [tp]
// CHECK-NEXT: return %[[A]], %[[B]], %[[X]]
func.func @branches(%x: tensor<6x2xf64>, %v: tensor<2xf64>, %w: tensor<2xf64>) -> (tensor<6x2xf64, #par.place<[6, 2], replicated [tp]>>, tensor<6x2xf64, #par.place<[6, 2], replicated [tp]>>, tensor<6x2xf64>) {
  %a, %ra = tx.rms_norm %x, %v eps 1.0e-6 : (tensor<6x2xf64>, tensor<2xf64>) -> (tensor<6x2xf64>, tensor<6xf64>)
  %b, %rb = tx.rms_norm %x, %w eps 1.0e-6 : (tensor<6x2xf64>, tensor<2xf64>) -> (tensor<6x2xf64>, tensor<6xf64>)
  %fa = par.f %a over "tp" : tensor<6x2xf64> -> tensor<6x2xf64, #par.place<[6, 2], replicated [tp]>>
  %fb = par.f %b over "tp" : tensor<6x2xf64> -> tensor<6x2xf64, #par.place<[6, 2], replicated [tp]>>
  return %fa, %fb, %x : tensor<6x2xf64, #par.place<[6, 2], replicated [tp]>>, tensor<6x2xf64, #par.place<[6, 2], replicated [tp]>>, tensor<6x2xf64>
}

// What makes less of a gathered value comes before the gather: a slice of another dimension, a sum.
// CHECK-LABEL: func.func @less
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf64
// CHECK-NEXT: %[[L:.*]] = tx.slice %[[X]] [0, 1] by [1, 1] : tensor<2x4xf64, #par.place<[4 @tp, 4]>> -> tensor<2x1xf64, #par.place<[4 @tp, 1]>>
// CHECK-NEXT: %[[W:.*]] = par.all_gather %[[L]] over "tp" along 0 : {{.*}} -> tensor<4x1xf64>
// CHECK-NEXT: return %[[W]]
func.func @less(%x: tensor<2x4xf64, #par.place<[4 @tp, 4]>>) -> tensor<4x1xf64> {
  %w = par.all_gather %x over "tp" along 0 : tensor<2x4xf64, #par.place<[4 @tp, 4]>> -> tensor<4x4xf64>
  %l = tx.slice %w [0, 1] by [1, 1] : tensor<4x4xf64> -> tensor<4x1xf64>
  return %l : tensor<4x1xf64>
}

// One gather for several users.
// CHECK-LABEL: func.func @several
// CHECK-COUNT-1: par.all_gather
// CHECK-NOT: par.all_gather
func.func @several(%x: tensor<2xf64, #par.place<[4 @tp]>>) -> (tensor<4xf64>, tensor<4xf64>) {
  %a = par.all_gather %x over "tp" along 0 : tensor<2xf64, #par.place<[4 @tp]>> -> tensor<4xf64>
  %b = par.all_gather %x over "tp" along 0 : tensor<2xf64, #par.place<[4 @tp]>> -> tensor<4xf64>
  %e = tx.exp %a : (tensor<4xf64>) -> tensor<4xf64>
  %f = tx.log %b : (tensor<4xf64>) -> tensor<4xf64>
  return %e, %f : tensor<4xf64>, tensor<4xf64>
}

// What two entries of a layer are made of is entered instead, in their layer where it has none: a constant, which folders make
// without.
// CHECK-LABEL: func.func @constant
// CHECK: %[[C:.*]] = tx.constant
// CHECK-NEXT: par.f %[[C]] over "tp" {train.layer = #train.layer<0 of 2>}
// CHECK-NOT: par.f
func.func @constant() -> (tensor<4xf64, #par.place<[4], replicated [tp]>>, tensor<8xf64, #par.place<[8], replicated [tp]>>) {
  %c = tx.constant dense<[2.0]> : tensor<1xf64> : tensor<1xf64>
  %a = tx.broadcast %c {train.layer = #train.layer<0 of 2>} : tensor<1xf64> -> tensor<4xf64>
  %b = tx.broadcast %c {train.layer = #train.layer<0 of 2>} : tensor<1xf64> -> tensor<8xf64>
  %f = par.f %a over "tp" {train.layer = #train.layer<0 of 2>} : tensor<4xf64> -> tensor<4xf64, #par.place<[4], replicated [tp]>>
  %g = par.f %b over "tp" {train.layer = #train.layer<0 of 2>} : tensor<8xf64> -> tensor<8xf64, #par.place<[8], replicated [tp]>>
  return %f, %g : tensor<4xf64, #par.place<[4], replicated [tp]>>, tensor<8xf64, #par.place<[8], replicated [tp]>>
}
}
