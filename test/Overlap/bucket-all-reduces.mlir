// RUN: partita-opt %s --bucket-all-reduces=bytes=32 | FileCheck %s
// RUN: not partita-opt %s --bucket-all-reduces=bytes=-1 2>&1 | FileCheck %s --check-prefix=BYTES

// RUN: partita-opt %s --bucket-all-reduces | FileCheck %s --check-prefix=SHARE
// BYTES: error: bucket of -1 bytes, expected at least 1, or 0 for a share of all

// 16 bytes each: two fill a bucket, which starts when its last operand is there.
// CHECK-LABEL: func.func @two_and_one
// CHECK: %[[A:.*]] = tx.neg
// CHECK: tx.exp
// CHECK: %[[B:.*]] = tx.mul
// CHECK-NEXT: %[[AB:.*]]:2 = par.all_reduce %[[A]], %[[B]] over "dp" because "gradient"
// CHECK: tx.tanh
// CHECK: %[[C:.*]] = tx.mul
// CHECK-NEXT: %[[C1:.*]] = par.all_reduce %[[C]] over "dp" because "gradient"
// CHECK: return %[[AB]]#0, %[[AB]]#1, %[[C1]]
!p = tensor<4xf32, #par.place<[4], partial [dp]>>
func.func @two_and_one(%x: !p) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {par.no_cotangents} {
  %a = "tx.neg"(%x) : (!p) -> !p
  %g = par.g %x over "dp" : !p -> tensor<4xf32>
  %e = tx.exp %g : (tensor<4xf32>) -> tensor<4xf32>
  %b = tx.mul %x, %e : (!p, tensor<4xf32>) -> !p
  %t = tx.tanh %g : (tensor<4xf32>) -> tensor<4xf32>
  %c = tx.mul %x, %t : (!p, tensor<4xf32>) -> !p
  %a1 = par.all_reduce %a over "dp" because "gradient" : !p -> tensor<4xf32>
  %b1 = par.all_reduce %b over "dp" because "gradient" : !p -> tensor<4xf32>
  %c1 = par.all_reduce %c over "dp" because "gradient" : !p -> tensor<4xf32>
  return %a1, %b1, %c1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What is needed before the next operand is there cannot wait for it.
// CHECK-LABEL: func.func @needed
// CHECK: par.all_reduce %{{[^,]*}} over
// CHECK: tx.exp
// CHECK: par.all_reduce %{{[^,]*}} over
func.func @needed(%x: !p) -> tensor<4xf32> attributes {par.no_cotangents} {
  %a = par.all_reduce %x over "dp" because "partial sum" : !p -> tensor<4xf32>
  %e = tx.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %y = tx.mul %x, %e : (!p, tensor<4xf32>) -> !p
  %b = par.all_reduce %y over "dp" because "partial sum" : !p -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// Without a size: an eighth of the 4 MiB that the backward pass reduces, so two of 256 KiB each.
// What is reduced elsewhere does not count, and has buckets of 256 KiB at the least.
// SHARE-LABEL: func.func @share
// SHARE: par.all_reduce %{{[^,]*}}, %{{[^,]*}} over "dp" because "gradient"
// SHARE: tx.exp
// SHARE: par.all_reduce %{{[^,]*}}, %{{[^,]*}} over "dp" because "partial sum"
// SHARE: par.all_reduce %{{[^,]*}}, %{{[^,]*}} over "dp" because "gradient"
!q = tensor<65536xf32, #par.place<[65536], partial [dp]>>
!w = tensor<851968xf32, #par.place<[851968], partial [dp]>>
func.func @share(%x: !q, %w: !w) -> (tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>, tensor<851968xf32>, tensor<4xf32>, tensor<4xf32>) attributes {par.no_cotangents} {
  %a = "tx.neg"(%x) : (!q) -> !q
  %b = "tx.neg"(%a) : (!q) -> !q
  %a1 = par.all_reduce %a over "dp" because "gradient" {train.backward} : !q -> tensor<65536xf32>
  %b1 = par.all_reduce %b over "dp" because "gradient" {train.backward} : !q -> tensor<65536xf32>
  %g = par.g %x over "dp" : !q -> tensor<65536xf32>
  %e = tx.exp %g : (tensor<65536xf32>) -> tensor<65536xf32>
  %c = tx.mul %x, %e : (!q, tensor<65536xf32>) -> !q
  %m = tx.slice %c [0] by [1] : !q -> !p
  %n = "tx.neg"(%m) : (!p) -> !p
  %m1 = par.all_reduce %m over "dp" because "partial sum" : !p -> tensor<4xf32>
  %n1 = par.all_reduce %n over "dp" because "partial sum" : !p -> tensor<4xf32>
  %d = "tx.neg"(%w) : (!w) -> !w
  %c1 = par.all_reduce %c over "dp" because "gradient" {train.backward} : !q -> tensor<65536xf32>
  %d1 = par.all_reduce %d over "dp" because "gradient" {train.backward} : !w -> tensor<851968xf32>
  return %a1, %b1, %c1, %d1, %m1, %n1 : tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>, tensor<851968xf32>, tensor<4xf32>, tensor<4xf32>
}

// Sums that are summed up again over another axis: the inner ones join first, then the outer ones, with
// those that were no inner ones' sums.
// CHECK-LABEL: func.func @twice
// CHECK: %[[INNER:.*]]:2 = par.all_reduce %{{.*}}, %{{.*}} over "tp" because "gradient"
// CHECK-NEXT: par.all_reduce %{{.*}}, %[[INNER]]#{{[01]}}, %[[INNER]]#{{[01]}} over "dp" because "gradient"
// CHECK-NOT: par.all_reduce
!t = tensor<2xf32, #par.place<[2], partial [dp, tp]>>
!d = tensor<2xf32, #par.place<[2], partial [dp]>>
func.func @twice(%x: !t, %y: !t, %z: !d) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) attributes {par.no_cotangents} {
  %z1 = par.all_reduce %z over "dp" because "gradient" : !d -> tensor<2xf32>
  %a = par.all_reduce %x over "tp" because "gradient" : !t -> !d
  %a1 = par.all_reduce %a over "dp" because "gradient" : !d -> tensor<2xf32>
  %n = "tx.neg"(%y) : (!t) -> !t
  %b = par.all_reduce %n over "tp" because "gradient" : !t -> !d
  %b1 = par.all_reduce %b over "dp" because "gradient" : !d -> tensor<2xf32>
  return %a1, %b1, %z1 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// Shards that are only added to other micro-batches' are waited for at the end: their sums all stand there.
// CHECK-LABEL: func.func @sums_of_micro_batches
// CHECK: %[[P:.*]]:2 = zero.reduce_scatter {{.*}} over "dp" because "gradient"
// CHECK-NOT: tx.add
// CHECK: %[[Q:.*]] = zero.reduce_scatter {{.*}} over "dp" because "gradient"
// CHECK-DAG: tx.add %{{.*}}, %[[P]]#0
// CHECK-DAG: tx.add %{{.*}}, %[[P]]#1
// CHECK-DAG: tx.add %{{.*}}, %[[Q]]
// CHECK-NEXT: return
!flat_shard = tensor<2xf32, #par.place<[4], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2>} {
func.func @sums_of_micro_batches(%x: !p, %s: !flat_shard, %t: !flat_shard, %u: !flat_shard) -> (!flat_shard, !flat_shard, !flat_shard) attributes {par.no_cotangents} {
  %a = "tx.neg"(%x) : (!p) -> !p
  %a1 = zero.reduce_scatter %a over "dp" because "gradient" : !p -> !flat_shard
  %as = tx.add %s, %a1 : (!flat_shard, !flat_shard) -> !flat_shard
  %b = "tx.neg"(%a) : (!p) -> !p
  %b1 = zero.reduce_scatter %b over "dp" because "gradient" : !p -> !flat_shard
  %bs = tx.add %t, %b1 : (!flat_shard, !flat_shard) -> !flat_shard
  %g = par.g %b over "dp" : !p -> tensor<4xf32>
  %e = tx.tanh %g : (tensor<4xf32>) -> tensor<4xf32>
  %c = tx.mul %b, %e : (!p, tensor<4xf32>) -> !p
  %c1 = zero.reduce_scatter %c over "dp" because "gradient" : !p -> !flat_shard
  %cs = tx.add %u, %c1 : (!flat_shard, !flat_shard) -> !flat_shard
  return %as, %bs, %cs : !flat_shard, !flat_shard, !flat_shard
}
}

// Sums of shards that are reduced over another axis share a bucket there, although one is used before the next is there.
// CHECK-LABEL: func.func @sums_over_two_axes
// CHECK: %[[P:.*]]:2 = zero.reduce_scatter {{.*}} over "fsdp" because "gradient"
// CHECK: %[[AS:.*]] = tx.add %{{.*}}, %[[P]]#0
// CHECK-NEXT: %[[BS:.*]] = tx.add %{{.*}}, %[[P]]#1
// CHECK-NEXT: %[[R:.*]]:2 = par.all_reduce %[[AS]], %[[BS]] over "dp"
// CHECK-NEXT: tx.neg %[[R]]#0
// CHECK-NEXT: tx.neg %[[R]]#1
!partial = tensor<4xf32, #par.place<[4], partial [dp, fsdp]>>
!shard = tensor<2xf32, #par.place<[4], flat [fsdp], partial [dp]>>
!sum = tensor<2xf32, #par.place<[4], flat [fsdp]>>
module attributes {par.mesh = #par.mesh<dp = 2, fsdp = 2>} {
func.func @sums_over_two_axes(%x: !partial, %s: !shard, %t: !shard) -> (!sum, !sum) attributes {par.no_cotangents} {
  %a = "tx.neg"(%x) : (!partial) -> !partial
  %a1 = zero.reduce_scatter %a over "fsdp" because "gradient" : !partial -> !shard
  %b = "tx.neg"(%a) : (!partial) -> !partial
  %b1 = zero.reduce_scatter %b over "fsdp" because "gradient" : !partial -> !shard
  %as = tx.add %s, %a1 : (!shard, !shard) -> !shard
  %ar = par.all_reduce %as over "dp" because "gradient" : !shard -> !sum
  %ua = "tx.neg"(%ar) : (!sum) -> !sum
  %bs = tx.add %t, %b1 : (!shard, !shard) -> !shard
  %br = par.all_reduce %bs over "dp" because "gradient" : !shard -> !sum
  %ub = "tx.neg"(%br) : (!sum) -> !sum
  return %ua, %ub : !sum, !sum
}
}

// An attribute that no pass knows, a plugin's, belongs to the ops that have it.
// CHECK-LABEL: func.func @foreign
// CHECK-DAG: %[[AC:.*]]:2 = par.all_reduce %{{arg[02]}}, %{{arg[02]}} over "dp" : tensor
// CHECK-DAG: %[[BD:.*]]:2 = par.all_reduce %{{arg[13]}}, %{{arg[13]}} over "dp" {experiment.bits = 4 : i64}
// CHECK: return %[[AC]]#{{.}}, %[[BD]]#{{.}}, %[[AC]]#{{.}}, %[[BD]]#{{.}} :
func.func @foreign(%a: !d, %b: !d, %c: !d, %d: !d) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) attributes {par.no_cotangents} {
  %a1 = par.all_reduce %a over "dp" : !d -> tensor<2xf32>
  %b1 = par.all_reduce %b over "dp" {experiment.bits = 4 : i64} : !d -> tensor<2xf32>
  %c1 = par.all_reduce %c over "dp" : !d -> tensor<2xf32>
  %d1 = par.all_reduce %d over "dp" {experiment.bits = 4 : i64} : !d -> tensor<2xf32>
  return %a1, %b1, %c1, %d1 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
