// RUN: partita-opt %s --split-input-file --pass-pipeline='builtin.module(plan-memory,lower-to-rt)' | FileCheck %s
// RUN: partita-opt %S/Inputs/stages.mlir --pass-pipeline='builtin.module(builtin.module(plan-memory,lower-to-rt))' | FileCheck %s --check-prefix=STAGES

// A row for the ranks of each axis that collectives are over, and one more for what begins ahead of its use. `narrow` does not communicate.
// CHECK: communicators = [#rt.communicator<name = "dp", axes = ["dp"], streams = [#par.stream<"dp">]>,
// CHECK-SAME: #rt.communicator<name = "tp", axes = ["tp"]>,
// CHECK-SAME: #rt.communicator<name = "dp ahead", axes = ["dp"], streams = [#par.stream<"dp" ahead>]>],
!summed = tensor<4xf32, #par.place<[4], partial [dp]>>
!flat = tensor<2xf32, #par.place<[4], flat [dp]>>
module attributes {par.mesh = #par.mesh<dp = 2, tp = 2, fsdp = 2>} {
  func.func @f(%x: !summed, %y: tensor<4xf32, #par.place<[4], partial [tp]>>, %w: !flat) -> tensor<2xf32, #par.place<[4 @fsdp]>> {
    // CHECK: rt.all_reduce "{{.*}}" %{{.*}} [4] over "dp" because "gradients"
    %sum = par.all_reduce_start %x over "dp" because "gradients" : !summed -> i64
    // CHECK: rt.all_gather "{{.+}}" %{{.*}} to %{{.*}} [1] blocks of [2] of [0] over "dp ahead"
    %gather, %full = zero.gather_start %w over "dp" : !flat -> i64, tensor<4xf32>
    // Those that are waited for soonest first; nothing of tp is under way beside the computation.
    // CHECK: rt.poll over ["dp ahead", "dp"] bytes 64
    par.poll over "dp" bytes 64
    // CHECK-NOT: rt.poll
    par.poll over "tp" bytes 64
    // CHECK: rt.all_reduce "" %{{.*}} [4] over "tp" because "loss"
    %loss = par.all_reduce %y over "tp" because "loss" : tensor<4xf32, #par.place<[4], partial [tp]>> -> tensor<4xf32>
    // CHECK: rt.take_part %{{.*}} to %{{.*}} 1 blocks of 2 of 0 over "fsdp" of 2
    %own = par.narrow %loss over "fsdp" along 0 : tensor<4xf32> -> tensor<2xf32, #par.place<[4 @fsdp]>>
    %full_1 = par.wait %gather, %full : i64, tensor<4xf32> -> tensor<4xf32>
    %sum_1 = par.wait %sum, %x : i64, !summed -> tensor<4xf32>
    return %own : tensor<2xf32, #par.place<[4 @fsdp]>>
  }
}

// -----

// Without communication there is no row.
// CHECK: rt.program = #rt.program<
// CHECK-NOT: communicators
// CHECK-NOT: channels
// CHECK-LABEL: func.func @alone
module attributes {par.mesh = #par.mesh<dp = 2>} {
  func.func @alone(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = tx.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// The stages list their own rows; those that two stages have are equal.
// STAGES: pipe.stage = 0 : i64, rt.arena_bytes
// STAGES-SAME: communicators = [#rt.communicator<name = "pp", axes = ["pp"]>, #rt.communicator<name = "stages 0 and 2", axes = ["pp"], stages = [0, 2]>],
// STAGES-SAME: channels = [#rt.channel<name = "stage 0 to 1", axis = "pp", source = 0, target = 1>, #rt.channel<name = "stage 0 to 1, value 2", axis = "pp", source = 0, target = 1, number = 2>],
// STAGES-SAME: messages = [#rt.message<function = "f", channel = "stage 0 to 1", reason = "a value", messages = 1, bytes = 32>,
// STAGES: rt.all_reduce "" %{{.*}} [8] over "stages 0 and 2"
// STAGES: rt.all_reduce "" %{{.*}} [8] over "pp"
// STAGES: rt.send %{{.*}} 8 over "stage 0 to 1" because "a value"
// STAGES: rt.send %{{.*}} 8 over "stage 0 to 1, value 2" because "a value"
// STAGES: pipe.stage = 1 : i64, rt.arena_bytes
// STAGES-SAME: communicators = [#rt.communicator<name = "pp", axes = ["pp"]>],
// STAGES: rt.receive %{{.*}} 8 over "stage 0 to 1" because "a value"
// STAGES: pipe.stage = 2 : i64, rt.arena_bytes
// STAGES-SAME: communicators = [#rt.communicator<name = "pp", axes = ["pp"]>, #rt.communicator<name = "stages 0 and 2", axes = ["pp"], stages = [0, 2]>]
// STAGES-NOT: channels
