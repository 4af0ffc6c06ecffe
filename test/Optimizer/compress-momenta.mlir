// RUN: partita-opt %s --optimize="kind=onebit-adam freeze-step=10" --compress-momenta | FileCheck %s
// RUN: not partita-opt %s --optimize="kind=onebit-adam" --compress-momenta=stage=2 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: partita-opt %s --optimize="kind=onebit-adam freeze-step=10" --compress-momenta=stage=1 --zero-shard-states=stage=1 | FileCheck %s --check-prefix=SHARD
// RUN: partita-opt %s --optimize="kind=onebit-adam freeze-step=10 clip=1" --compress-momenta | FileCheck %s --check-prefix=CLIP
// RUN: partita-opt %s --optimize="kind=onebit-lamb freeze-step=10 clip=1" --compress-momenta | FileCheck %s --check-prefix=LAMBCLIP
// RUN: sed 's/mesh<dp = 2>/mesh<dp = 2, fsdp = 2>/' %s > %t.fsdp.mlir && not partita-opt %t.fsdp.mlir --optimize=kind=onebit-adam --compress-momenta 2>&1 | FileCheck %s --check-prefix=FSDP
// RUN: sed 's/f32/bf16/g' %s > %t.bf16.mlir && partita-opt %t.bf16.mlir --optimize=kind=onebit-adam --compress-momenta | FileCheck %s --check-prefix=BF16
// RUN: sed 's/f32/f64/g' %s > %t.f64.mlir && not partita-opt %t.f64.mlir --optimize=kind=onebit-adam --compress-momenta 2>&1 | FileCheck %s --check-prefix=F64
// RUN: partita-opt %s --optimize="kind=zero-one-adam var-freeze-step=20 var-update-scaler=4 clip=1" --compress-momenta=stage=1 | FileCheck %s --check-prefix=DOUBLING
// RUN: partita-opt %s --optimize="kind=onebit-lamb freeze-step=10" --compress-momenta=stage=1 --zero-shard-states=stage=1 --canonicalize --expand-norms | FileCheck %s --check-prefix=LAMB
// RUN: not partita-opt %s --optimize=kind=onebit-adam --compress-momenta=stage=1 --zero-shard-states=stage=1 --zero-quantize-gradients=on=true 2>&1 | FileCheck %s --check-prefix=INT4
// RUN: not partita-opt %s --optimize=kind=onebit-lamb --compress-momenta=stage=1 --zero-shard-states=stage=1 --zero-quantize-gradients=on=true 2>&1 | FileCheck %s --check-prefix=INT4
// RUN: not partita-opt %s --optimize=kind=zero-one-adam --compress-momenta=stage=1 --zero-shard-states=stage=1 --zero-quantize-gradients=on=true 2>&1 | FileCheck %s --check-prefix=INT4
// INT4: error: --zero-quantized-gradients: has no effect where momenta are summed with a bit per element: every rank keeps every sum in full, and none is scattered
// RUN: partita-opt %s --optimize=kind=adamw --compress-momenta | FileCheck %s --check-prefix=EXACT
// ZERO: error: onebit-adam over several ranks compresses what each rank has of every gradient, in full; a shard is a sum already, for which ranks have sent 16 times the bytes; use --zero-stage 0 or 1, not 2

// ZeRO-1: an update takes a shard of the momentum, which is computed in full from the sum. Its result for the shard has no use.
// SHARD: %[[V:.*]] = train.read @w.v : tensor<10xf32, #par.place<[4, 5], flat [dp]>>
// SHARD: %[[M:.*]] = train.read @w.m : tensor<4x5xf32>
// SHARD: par.one_bit_term %arg0, %[[M]] at
// SHARD: %[[Y:.*]]:6 = par.one_bit_all_reduce
// SHARD: %[[SHARD:.*]] = zero.shard %[[M]] over "dp"
// SHARD: %[[NEW:.*]], %[[OTHERS:.*]]:2 = train.onebit_adam %{{.*}}, %{{.*}}, %[[SHARD]], %[[V]],
// SHARD: %[[FULL:.*]] = zero.gather %[[NEW]] over "dp" because "updated parameter"
// SHARD: %[[MEAN:.*]] = par.one_bit_mean %[[Y]]#0, %[[M]] at %{{.*}} : tensor<f32> over "dp" beta 9.000000e-01 exact until 10 : tensor<4x5xf32>
// SHARD: train.write @w, %[[FULL]]
// SHARD: train.write @w.m, %[[MEAN]] : tensor<4x5xf32>
// SHARD: train.write @w.v, %[[OTHERS]]#1

// The norm is of what is summed. Once momenta are, their terms take the typical factor of the gradients so far, and what they sum to takes none; a gradient that
// stays exact takes the typical factor.
// CLIP: train.state @clip_factor : tensor<f32> = 1.000000e+00
// CLIP: %[[TYPICAL:.*]] = train.read @clip_factor
// CLIP-COUNT-2: par.one_bit_term {{.*}} times %[[TYPICAL]] : tensor<f32> over "dp"
// CLIP: %[[Y:.*]]:6 = par.one_bit_all_reduce
// CLIP: train.global_norm %[[Y]]#0, %[[Y]]#1, %{{.*}} of
// CLIP: %[[SCALE:.*]] = train.clip
// CLIP: %[[SUMS:.*]], %[[GRADIENTS:.*]], %[[NEXT:.*]] = par.one_bit_clip %[[SCALE]], %[[TYPICAL]] at %{{.*}} beta 0.99{{[89][0-9]*}} exact until 10 : tensor<f32>
// CLIP: train.write @clip_factor, %[[NEXT]]
// CLIP-COUNT-2: train.onebit_adam {{.*}}, %[[SUMS]] {
// CLIP: train.onebit_adam {{.*}}, %[[GRADIENTS]] {
// CLIP: train.initial_value @clip_factor
// LAMBCLIP: %[[SUMS:.*]], %[[GRADIENTS:.*]], %{{.*}} = par.one_bit_clip
// LAMBCLIP-COUNT-2: train.frozen_trust_ratio {{.*}}, %[[SUMS]] with
// LAMBCLIP: train.frozen_trust_ratio {{.*}}, %[[GRADIENTS]] with
// A parameter that is called like the state is refused.
// RUN: sed 's/@s\b/@clip_factor/g' %s > %t.named.mlir && not partita-opt %t.named.mlir --optimize="kind=onebit-adam clip=1" --compress-momenta 2>&1 | FileCheck %s --check-prefix=NAMED
// NAMED: error: parameter 'clip_factor' is called like a state of --clip with this optimizer: rename it in the model's file, or train without --clip
// FSDP: error: onebit-adam over several ranks sums momenta over dp alone, and ranks of fsdp have samples of their own too; use --mesh dp=4

// What is compressed is float32. Ten bytes of @b are not worth a scale and a byte of bits for each rank.
// BF16: %[[G:.*]] = tx.cast %arg0 {{.*}}: tensor<4x5xbf16, #par.place<[4, 5], partial [dp]>> -> tensor<4x5xf32, #par.place<[4, 5], partial [dp]>>
// BF16: par.one_bit_term %[[G]],
// BF16: par.one_bit_all_reduce {{.*}} -> (tensor<4x5xf32>, tensor<1x4x5xf32, {{.*}}>, tensor<10xf32, {{[^)]*}}>)
// F64: error: onebit-adam over several ranks compresses float32, and updates 'tensor<4x5xf64>'
// EXACT-NOT: one_bit
// RUN: partita-opt %s --optimize="kind=onebit-adam freeze-step=10" | sed '0,/freeze = 1.0/s//freeze = 2.0/' | not partita-opt --compress-momenta 2>&1 | FileCheck %s --check-prefix=STEPS
// STEPS: error: onebit-adam over several ranks sums all momenta at once: their updates are in one function, and exact in the same steps

// Padding at the end of a shard is left out; a sum whose shards have it elsewhere stays exact.
// RUN: partita-opt %S/Inputs/padded.mlir --optimize="kind=onebit-adam freeze-step=10" --compress-momenta | FileCheck %s --check-prefix=PADDED
// PADDED-DAG: train.state @rows.worker : tensor<2x5x8xf32> = 0.000000e+00 of @rows "worker"
// PADDED-DAG: train.state @rows.server : tensor<5x8xf32> = 0.000000e+00 of @rows "server"
// PADDED-DAG: train.state @bias.worker : tensor<2x1x9xf32>
// PADDED-NOT: @columns.worker
// PADDED: %[[COLUMNS:.*]] = par.all_reduce %arg1 over "dp"
// PADDED: par.one_bit_all_reduce {{.*}} (tensor<3x8xf32, #par.place<[5 @tp, 8]>>, tensor<1x5xf32, #par.place<[1, 9 @tp]>>, tensor<1x3x8xf32, #par.place<[2 @dp, 5 @tp, 8]>>,
// PADDED: train.onebit_adam %{{.*}}, %[[COLUMNS]],

// A sum for all parameters but one of a single element, which is smaller than a scale for each rank.
module attributes {par.mesh = #par.mesh<dp = 2>} {
train.parameter @w : tensor<4x5xf32>
train.parameter @b : tensor<5xf32>
train.parameter @s : tensor<f32>

// CHECK-DAG: train.state @w.worker : tensor<2x4x5xf32> = 0.000000e+00 of @w "worker"
// CHECK-DAG: train.state @w.server : tensor<4x5xf32> = 0.000000e+00 of @w "server"
// CHECK-DAG: train.state @b.worker : tensor<2x5xf32> = 0.000000e+00 of @b "worker"
// CHECK-DAG: train.state @b.server : tensor<5xf32> = 0.000000e+00 of @b "server"
// CHECK-NOT: @s.worker

func.func @train_step(%gw: tensor<4x5xf32, #par.place<[4, 5], partial [dp]>>, %gb: tensor<5xf32, #par.place<[5], partial [dp]>>, %gs: tensor<f32, #par.place<[], partial [dp]>>) attributes {par.no_cotangents, train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<4x5xf32>
  %b = train.read @b : tensor<5xf32>
  %s = train.read @s : tensor<f32>
  %0 = par.all_reduce %gw over "dp" because "gradient" : tensor<4x5xf32, #par.place<[4, 5], partial [dp]>> -> tensor<4x5xf32>
  %1 = par.all_reduce %gb over "dp" because "gradient" : tensor<5xf32, #par.place<[5], partial [dp]>> -> tensor<5xf32>
  %2 = par.all_reduce %gs over "dp" because "gradient" : tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  train.update @w, %w by %0 : tensor<4x5xf32>, tensor<4x5xf32>
  train.update @b, %b by %1 : tensor<5xf32>, tensor<5xf32>
  train.update @s, %s by %2 : tensor<f32>, tensor<f32>
  return
}
// CHECK-LABEL: func.func @train_step
// CHECK: %[[S:.*]] = par.all_reduce %{{.*}} over "dp" because "gradient" : tensor<f32,
// CHECK-NOT: par.all_reduce
// CHECK: par.one_bit_term %arg0, %{{.*}} over "dp" beta 9.000000e-01 exact until 10
// CHECK: par.one_bit_term %arg1, %{{.*}} over "dp" beta 9.000000e-01 exact until 10
// CHECK: %[[Y:.*]]:6 = par.one_bit_all_reduce {{.*}} over "dp" exact until 10 because "momentum"
// CHECK: train.onebit_adam %{{.*}}, %[[Y]]#0, {{.*}}compressed = 1.0{{.*}}freeze = 1.000000e+01
// CHECK-DAG: train.write @w.worker, %[[Y]]#2
// CHECK-DAG: train.write @w.server, %[[Y]]#4
// CHECK: train.onebit_adam %{{.*}}, %[[Y]]#1, {{.*}}compressed = 1.0
// CHECK-DAG: train.write @b.worker, %[[Y]]#3
// CHECK-DAG: train.write @b.server, %[[Y]]#5
// CHECK: train.onebit_adam %{{.*}}, %[[S]], 
// CHECK-NOT: compressed = 1.0

func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
  %0 = train.initial_value @w : tensor<4x5xf32>
  train.write @w, %0 : tensor<4x5xf32>
  %1 = train.initial_value @b : tensor<5xf32>
  train.write @b, %1 : tensor<5xf32>
  %2 = train.initial_value @s : tensor<f32>
  train.write @s, %2 : tensor<f32>
  return
}

// 0/1 Adam has the same program, with other exact steps.
// DOUBLING: par.one_bit_term {{.*}} exact until 20 doubling 4
// DOUBLING: par.one_bit_all_reduce {{.*}} exact until 20 doubling 4 because "momentum"
// DOUBLING: par.one_bit_clip {{.*}} exact until 20 doubling 4
// DOUBLING: train.zero_one_adam {{.*}}compressed = 1.0{{.*}}var_freeze = 2.000000e+01{{.*}}var_update_scaler = 4.0
// DOUBLING: par.one_bit_mean {{.*}} exact until 20 doubling 4

// 1-bit LAMB's ratio is of shards, and its operand of the gradient is the momentum. A parameter that no sum compresses has its gradient.
// LAMB: %[[Y:.*]]:6 = par.one_bit_all_reduce
// LAMB: %[[G:.*]] = zero.shard %[[Y]]#0 over "dp"
// LAMB: %[[SUMS:.*]], %[[LARGEST:.*]] = train.direction_squares %{{.*}}, %[[G]], {{.*}} of "onebit_lamb" {hyper = {{.*}}compressed = 1.0{{.*}} -> (tensor<3xf64, #par.place<[3], partial [dp]>>, tensor<1xf64, #par.place<[1], max [dp]>>)
// LAMB: %[[SUM:.*]] = par.all_reduce %[[SUMS]] over "dp" because "trust ratio"
// LAMB: %[[MAX:.*]] = par.all_reduce_max %[[LARGEST]] over "dp" because "trust ratio"
// LAMB: %[[R:.*]], %{{.*}}, %{{.*}} = train.frozen_ratio %[[SUM]], %[[MAX]],
// LAMB: train.onebit_lamb %{{.*}}, %[[G]], {{.*}} %[[R]] {{.*}}compressed = 1.0
// LAMB: train.direction_squares {{.*}} of "onebit_lamb" {hyper = {{.*}}compressed = 0.0

// CHECK-LABEL: func.func @init
// CHECK: %[[I:.*]] = train.initial_value @w.worker {{.*}}: tensor<1x4x5xf32, #par.place<[2 @dp, 4, 5]>>
// CHECK-NEXT: train.write @w.worker, %[[I]]
}
