// RUN: partita-opt %s --plan-memory --lower-to-rt | FileCheck %s
// RUN: partita-opt %s --plan-memory --lower-to-rt="learning-rate=0.5 lr-schedule=cosine" | FileCheck %s --check-prefix=RATE
// RATE: #rt.program<{{.*}} hyper = {learningRate = 5.000000e-01 : f64}, {{.*}} lr_schedule = "cosine"

// One kernel per distinct expression, made once; what is repeated stays where it is.
// CHECK-DAG: rt.kernel @map_add loops 2 outputs ["out"] [f32] inputs ["a", "b"] [f32, f32] steps [1, 1, 1] locals [] computes ["$a + $b"]
// CHECK-DAG: rt.kernel @map_gelu loops 1 outputs ["out"] [f32] inputs ["x"] [f32] steps [1, 1] locals [] computes ["0.5f * $x * (1.0f + erff($x * 0.70710677f))"]
// CHECK-DAG: rt.kernel @map_select loops 1 outputs ["out"] [f32] inputs ["c", "a"] [i1, f32] steps [1, 1, 1] locals [] computes ["select($c != 0, $a, (-1.5f))"]
// CHECK-DAG: rt.kernel @map_add_gelu loops 1 outputs ["out0", "out1"] [f32, f32] inputs ["a", "b"] [f32, f32] steps [1, 1, 1, 1] locals ["const float t0 = $a + $b;", "const float t1 = 0.5f * t0 * (1.0f + erff(t0 * 0.70710677f));"] computes ["t0", "t1"]

// CHECK-DAG: rt.kernel @map_sub loops 1 {{.*}} computes ["$a + 0.5f"]
// CHECK-DAG: rt.kernel @map_add_{{[0-9]+}} loops 1 {{.*}} computes ["$a - 0.5f"]

// An operand that is the same memory as another is read once.
// CHECK-DAG: rt.kernel @map_silu_mul loops 1 outputs ["out"] [f32] inputs ["a"] [f32] steps [1, 1] locals ["const float t0 = over_one_plus($a, expf(-$a));", "const float t1 = t0 * $a;"] computes ["t1"]

// CHECK-LABEL: func.func @matmuls
func.func @matmuls(%x: tensor<2x4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<6xf32>, %sq: tensor<6x6xf32>) -> tensor<2x4x6xf32> {
  // CHECK: %[[Y:.*]] = rt.arena {{[0-9]+}} [2, 4, 6]
  // CHECK: rt.gemm %[[Y]], %{{.*}}, %{{.*}} {beta = 0.000000e+00 : f64, k = 8 : i64, lda = 8 : i64, ldb = 6 : i64, ldc = 6 : i64, m = 8 : i64, n = 6 : i64, transA = false, transB = false}
  %0 = tx.matmul %x, %w : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
  %1 = tx.broadcast %b : tensor<6xf32> -> tensor<2x4x6xf32>
  // CHECK: rt.launch @map_add({{.*}}) [8, 6] [6, 6, 0]
  %2 = tx.add %0, %1 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  // CHECK: rt.launch @map_gelu({{.*}}) [48] []
  %3 = tx.gelu %2 : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  // CHECK: rt.launch @map_gelu({{.*}}) [48] []
  %4 = tx.gelu %3 : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  // CHECK: rt.gemm_bias
  %5 = tx.matmul_bias %4, %sq plus %b : (tensor<2x4x6xf32>, tensor<6x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
  return %5 : tensor<2x4x6xf32>
}

// Positions repeat for each of two sequences. A table's gradient is added where the other one dies, or to a copy.
// CHECK-LABEL: func.func @lookups
func.func @lookups(%table: tensor<6x8xf32>, %ids: tensor<2x4xi64>, %rows: tensor<4x8xf32>, %x: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %0 = tx.broadcast %rows : tensor<4x8xf32> -> tensor<2x4x8xf32>
  // CHECK: rt.embedding_add %[[DY:.*]], %{{.*}}, %{{.*}}, %{{.*}} {n = 8 : i64, period = 4 : i64, rows = 6 : i64, vocabulary = 6 : i64, width = 8 : i64}
  %1 = tx.fused_lookup (%a = %table, %b = %ids, %c = %0) : (tensor<6x8xf32>, tensor<2x4xi64>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    %9 = tx.embedding %a, %b : (tensor<6x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %10 = tx.add %9, %c : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    tx.fused %10 : tensor<2x4x8xf32>
  }
  // CHECK: rt.launch @map_neg(%[[DW:.*]], %{{.*}}) [48] []
  %2 = tx.neg %x : (tensor<6x8xf32>) -> tensor<6x8xf32>
  // CHECK-NEXT: rt.embedding_backward %[[DW]], %[[DY]], %{{.*}} {add = true, n = 8 : i64, padding = 1 : i64, rows = 6 : i64, vocabulary = 6 : i64, width = 8 : i64}
  %3 = tx.fused_lookup (%a = %ids, %b = %1, %c = %2) : (tensor<2x4xi64>, tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32> {
    %9 = tx.embedding_grad %a, %b padding 1 : (tensor<2x4xi64>, tensor<2x4x8xf32>) -> tensor<6x8xf32>
    %10 = tx.add %c, %9 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    tx.fused %10 : tensor<6x8xf32>
  }
  // CHECK: rt.copy
  // CHECK: rt.embedding_backward {{.*}} {add = true
  %4 = tx.fused_lookup (%a = %ids, %b = %1, %c = %table) : (tensor<2x4xi64>, tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32> {
    %9 = tx.embedding_grad %a, %b : (tensor<2x4xi64>, tensor<2x4x8xf32>) -> tensor<6x8xf32>
    %10 = tx.add %c, %9 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    tx.fused %10 : tensor<6x8xf32>
  }
  return %3, %4 : tensor<6x8xf32>, tensor<6x8xf32>
}

// CHECK-LABEL: func.func @once
func.func @once(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = train.barrier %x : tensor<4xf32>
  // CHECK: rt.launch @map_silu_mul(%{{.*}}, %{{.*}}) [4] []
  %1 = tx.fusion (%a = %0, %b = %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    %2 = tx.silu %a : (tensor<4xf32>) -> tensor<4xf32>
    %3 = tx.mul %2, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tx.fused %3 : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%c: tensor<4xi1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tx.constant dense<-1.5> : tensor<4xf32> : tensor<4xf32>
  %1 = tx.select %c, %x, %0 : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: rt.launch @map_add_gelu(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) [4] []
  %2, %3 = tx.fusion (%a = %1, %b = %x) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %4 = tx.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %5 = tx.gelu %4 : (tensor<4xf32>) -> tensor<4xf32>
    tx.fused %4, %5 : tensor<4xf32>, tensor<4xf32>
  }
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// A negative number is added by its sign: what rounds alike reads better.
// CHECK-LABEL: func.func @negative
func.func @negative(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tx.constant dense<-0.5> : tensor<4xf32> : tensor<4xf32>
  %1 = tx.sub %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = tx.add %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// The loop's sums start at zero and take every micro-batch's share.
// CHECK-LABEL: func.func @micro_batches
// CHECK: %[[SUM:.*]] = rt.arena
// CHECK: rt.fill %[[SUM]] {n = 4 : i64, value = 0.000000e+00 : f64}
// CHECK: rt.for 3 {
// CHECK: ^bb0(%[[MICRO:.*]]: i64):
// CHECK: rt.input 0 micro %[[MICRO]]  [4]
// CHECK: rt.launch
// CHECK: rt.accumulate %[[SUM]], %{{.*}} {n = 4 : i64}
func.func @micro_batches(%x: tensor<3x4xf32>) -> tensor<4xf32> {
  %0 = train.accumulate (%m = %x) : (tensor<3x4xf32>) -> tensor<4xf32> {
    %1 = tx.exp %m : (tensor<4xf32>) -> tensor<4xf32>
    train.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// A state is filled; a parameter comes from where the run says: the numbers and the file stand in the call.
// CHECK-LABEL: func.func @init
// CHECK: %[[W:.*]] = rt.persistent 0 [6]
// CHECK: rt.initial_value %[[W]] {deviation = 2.000000e-02 : f64, element = f16, file = "a{{[{]}}b.onnx", index = 0 : i64, mean = 0.000000e+00 : f64, offset = 64 : i64}
// CHECK: %[[M:.*]] = rt.persistent 32 [6]
// CHECK: rt.fill %[[M]] {n = 6 : i64, value = 2.000000e+00 : f64}
train.parameter @w : tensor<6xf32> initial(<"a{b.onnx", offset = 64, bytes = 12, f16>) fill(<0.0, normal 0.02>)
train.state @w.m : tensor<6xf32> = 2.0 of @w "m"
func.func @init() attributes {train.entry_point = #train.entry_point<init>} {
  %0 = train.initial_value @w : tensor<6xf32>
  train.write @w, %0 : tensor<6xf32>
  %1 = train.initial_value @w.m : tensor<6xf32>
  train.write @w.m, %1 : tensor<6xf32>
  return
}

// Before the first call of a block that changes a parameter or state, however it comes there: as an update in place, or as a copy. A
// read changes nothing, nor does a view.
// CHECK-LABEL: func.func @train_step
// CHECK: rt.for 3 {
// CHECK-NOT: rt.begin_changes
// CHECK: rt.accumulate
// CHECK: rt.begin_changes
// CHECK-NEXT: rt.launch @map_add{{.*}} [6] []
// CHECK-NOT: rt.begin_changes
// CHECK: return
func.func @train_step(%x: tensor<3x6xf32> {train.name = "x", train.role = "data"}) attributes {train.entry_point = #train.entry_point<train_step>} {
  %w = train.read @w : tensor<6xf32>
  %view = tx.reshape %w : tensor<6xf32> -> tensor<2x3xf32>
  %back = tx.reshape %view : tensor<2x3xf32> -> tensor<6xf32>
  %0 = train.accumulate (%m = %x) : (tensor<3x6xf32>) -> tensor<6xf32> {
    %2 = tx.mul %m, %back : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    train.yield %2 : tensor<6xf32>
  }
  %m = train.read @w.m : tensor<6xf32>
  %1 = tx.add %m, %0 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  train.write @w.m, %1 : tensor<6xf32>
  %3 = tx.sub %w, %1 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  train.write @w, %3 : tensor<6xf32>
  return
}

// What the host reads is copied to the place that was planned for it.
// CHECK-LABEL: func.func @forward
// CHECK-DAG: %[[X:.*]] = rt.input 0 [2, 4]
// CHECK-DAG: %[[R:.*]] = rt.arena {{[0-9]+}} [2, 4]
// CHECK: rt.copy_rows %[[R]], %[[X]]
func.func @forward(%x: tensor<2x4xf32> {train.name = "x", train.role = "data"}) -> tensor<2x4xf32> attributes {train.entry_point = #train.entry_point<forward>} {
  return %x : tensor<2x4xf32>
}

// Where a dimension of size one stands changes nothing in memory.
// CHECK-LABEL: func.func @single
// CHECK-NOT: rt.copy
// CHECK: rt.reduce_sum
// CHECK: return
func.func @single(%x: tensor<3x5xf32>) -> tensor<3x1xf32> {
  %0 = tx.reshape %x : tensor<3x5xf32> -> tensor<3x5x1xf32>
  %1 = tx.transpose %0 [0, 2, 1] : tensor<3x5x1xf32> -> tensor<3x1x5xf32>
  %2 = tx.reduce_sum %1 [2] : tensor<3x1x5xf32> -> tensor<3x1xf32>
  return %2 : tensor<3x1xf32>
}
