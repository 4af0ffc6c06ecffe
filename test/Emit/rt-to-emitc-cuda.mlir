// RUN: partita-opt %s --rt-to-emitc | FileCheck %s

// For CUDA kernels get the rank's stream in front, numbers from memory stay pointers, and nobody polls.
module attributes {rt.target = "cuda"} {

// A kernel is the arithmetic of one element: 16-bit operands are floats already.
// CHECK: emitc.verbatim "struct map_add_element {"
// CHECK-NEXT: emitc.verbatim "  __device__ void operator()(float &out, float a, int64_t b) const {"
// CHECK-NEXT: emitc.verbatim "    const float t0 = a + float(b);"
// CHECK-NEXT: emitc.verbatim "    out = t0;"
// CHECK: emitc.func @map_add(%[[STREAM:.*]]: !emitc.opaque<"const Stream &">, %[[OUT:[^:]*]]: !emitc.ptr<!emitc.opaque<"BFloat16">>
// CHECK: verbatim "mapElements({}, {{[{][{]}}{}, {}}, map_add_element(), each({}, {{[{][{]}}{}}), each({}, {{[{][{]}}{}}), same({}, {{[{][{]}}{}}));" args %[[STREAM]], %{{.*}}, %{{.*}}, %[[OUT]],
rt.kernel @map_add loops 2 outputs ["out"] [bf16] inputs ["a", "b"] [bf16, i64] steps [1, 1, 0] locals ["const float t0 = float($a) + float($b);"] computes ["t0"]

// CHECK: emitc.func @f(%{{.*}}: !emitc.opaque<"Rank &">)
func.func @f() {
  // CHECK: %[[S:.*]] = literal "rank.device->stream"{{.*}} : !emitc.opaque<"const Stream &">
  %x = rt.arena 64 [2, 4] : !rt.buffer<f32>
  %b = rt.arena 128 [8] : !rt.buffer<bf16>
  %ids = rt.input 1 [2] : !rt.buffer<i64>
  %number = rt.arena 192 [] : !rt.buffer<i64>
  %squares = rt.arena 256 [2] : !rt.buffer<f64>
  // CHECK: call_opaque "softmaxForward"(%[[S]], %[[X:.*]], %[[X]]) {args = [0{{.*}} : index, 1 : index, 2 : index, #emitc.opaque<"2">, #emitc.opaque<"4">]}
  rt.softmax_forward %x, %x {rows = 2 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  // CHECK: call_opaque "map_add"(%[[S]],
  rt.launch @map_add(%b, %b, %ids) [2, 4] [4, 4, 1] : !rt.buffer<bf16>, !rt.buffer<bf16>, !rt.buffer<i64>
  // CHECK: verbatim "countLabels({}, {}, {}, 2, -100);" args %[[S]], %[[X]],
  rt.count_labels %x, %ids {n = 2 : i64, ignore = -100 : i64} : !rt.buffer<f32>, !rt.buffer<i64>
  // CHECK: verbatim "stepNumber({}, {}, rank.device->control);" args %[[S]], %[[X]]
  rt.step_number %x : !rt.buffer<f32>
  // CHECK: verbatim "stepKey({}, {}, rank.device->control);" args %[[S]], %[[N:.*]] :
  rt.random_key %number : !rt.buffer<i64>
  // CHECK: verbatim "setScalar({}, {}, int64_t(rank.coordinates[0]) * 128);" args %[[S]], %[[N]]
  rt.first_element %number {axes = array<i64: 0>, strides = array<i64: 128>} : !rt.buffer<i64>
  // CHECK: verbatim "iota({}, {}, 0.0, 1.0, 8);" args %[[S]], %[[N]]
  rt.iota %number {start = 0.0 : f64, step = 1.0 : f64, n = 8 : i64} : !rt.buffer<i64>
  // CHECK: verbatim "embeddingForward({}, {}, {}, {}, 2, 4, TokenRowsAt{{[{][{]}}64, {}, 32});" args %[[S]],
  rt.embedding_forward %x, %ids, %x, %number {n = 2 : i64, width = 4 : i64, vocabulary = 64 : i64, rows = 32 : i64} : !rt.buffer<f32>, !rt.buffer<i64>, !rt.buffer<f32>, !rt.buffer<i64>
  // CHECK: verbatim "embeddingAdd({}, {}, {}, {}, {}, 1, 2, 4, TokenRowsAt{{[{][{]}}64, {}, 32});" args %[[S]],
  rt.embedding_add %x, %ids, %x, %x, %number {period = 1 : i64, n = 2 : i64, width = 4 : i64, vocabulary = 64 : i64, rows = 32 : i64} : !rt.buffer<f32>, !rt.buffer<i64>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<i64>
  // CHECK: verbatim "repeat({}, {}, {}, 1, 2, 3, IndicesAt{{[{][{]}}{}, 4}, 5);" args %[[S]],
  rt.repeat %x, %x, %number {outer = 1 : i64, indices = 2 : i64, times = 3 : i64, count = 4 : i64, inner = 5 : i64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<i64>
  // CHECK: verbatim "dropout({}, {}, {}, Shape{{[{][{]}}8}, Shape{{[{][{]}}8}, {{[{][{]}}0.5, 3, {}}, ElementAt{{[{][{]}}{}, 8});" args %[[S]],
  rt.dropout %x, %x, %number, %number {shape = array<i64: 8>, fullShape = array<i64: 8>, ratio = 0.5 : f64, id = 3 : i64} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<i64>, !rt.buffer<i64>
  // Numbers of dropout are pointers in attention's shape.
  // CHECK: verbatim "attentionForward({}, {{.*}}, {{[{][{]}}1, 1, 2, 2, 4, 4, 1, true, 0.5f, 0, false, nullptr, {{[{][{]}}0.5, 3, {}, {}, 1, 2, {}}});" args %[[S]],
  rt.attention_forward %x, %x, %x, %x, %number, %number, %number {strides = array<i64: 8, 4, 4, 8, 4, 4, 8, 4, 4, 8, 4, 4>, shape = array<i64: 1, 1, 2, 2, 4, 4, 1>, causal = true, scale = 0.5 : f64, window = 0 : i64, zeroHidden = false, ratio = 0.5 : f64, id = 3 : i64, fullShape = array<i64: 1, 2, 2, 2>, operandSegmentSizes = array<i32: 1, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1>} : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<i64>, !rt.buffer<i64>, !rt.buffer<i64>
  // CHECK: call_opaque "clipScale"(%[[S]], %{{.*}}) {args = [0{{.*}} : index, 1 : index, 2 : index, #emitc.opaque<"&rank.device->control->hyper.gradientClip">]}
  rt.clip %x, %x : !rt.buffer<f32>, !rt.buffer<f32>
  // What a step tells the host.
  // CHECK: verbatim "firstNonfinite({}, &rank.device->report->firstNonfinite, {{.*}}, {{[{][{]}}0, 3});" args %[[S]],
  rt.first_nonfinite %squares [2] for [0, 3] : !rt.buffer<f64>
  // CHECK: verbatim "report({}, &rank.device->report->loss, {}, {});" args %[[S]], %[[X]], %[[X]]
  rt.report "loss" %x over %x : !rt.buffer<f32>, !rt.buffer<f32>
  // CHECK: verbatim "report({}, &rank.device->report->tokenCount, {});" args %[[S]], %[[X]]
  rt.report "tokenCount" %x : !rt.buffer<f32>
  // A function that gets the rank finds its stream there.
  // CHECK: call_opaque "initialValue"(%[[X]]) {args = [#emitc.opaque<"rank">,
  rt.initial_value %x {index = 1 : i64, mean = 1.0 : f64, deviation = 0.0 : f64} : !rt.buffer<f32>
  // CHECK: verbatim "Pending p = allReduceStart(rank.group(kOverDp), {{.*}}, \22why\22);" args %[[X]]
  rt.all_reduce "p" %x [8] over "dp" because "why" : !rt.buffer<f32>
  // CHECK-NOT: poll
  rt.poll over ["dp"] bytes 65536
  // CHECK: verbatim "takeShard({}, {{[{][{]}}rank.coordinates[kDp], 2}, {}, {}, 4, 1);" args %[[S]], %[[X]], %[[X]]
  rt.take_part %x to %x 1 blocks of 4 of 0 over "dp" of 2 : !rt.buffer<f32> to !rt.buffer<f32>
  // CHECK: verbatim "wait(p);"
  rt.wait "p"
  return
}

// A constant array precedes the function, on the device.
// CHECK: emitc.verbatim "static __device__ const int64_t table0[] = {1, 2};"
// CHECK-NEXT: emitc.func @table
func.func @table() {
  %x = rt.arena 64 [2] : !rt.buffer<i64>
  // CHECK: literal "deviceTable(table0)"
  %t = rt.table dense<[1, 2]> : tensor<2xi64> : !rt.buffer<i64>
  rt.copy %x, %t {dstStrides = array<i64: 1>, srcStrides = array<i64: 1>, shape = array<i64: 2>, elementBytes = 8 : i64} : !rt.buffer<i64>, !rt.buffer<i64>
  return
}

// Nothing here runs on the device.
// CHECK-LABEL: emitc.func @none
// CHECK-NOT: rank.device
func.func @none() {
  return
}
// The GPU has a copy of a table of tensors; a kernel takes its rows in one launch. A single tensor has no function here.
// CHECK: emitc.verbatim "struct sgd_step {"
// CHECK-NOT: emitc.func @sgd(
// CHECK: emitc.func @sgd_all(%[[STREAM:.*]]: !emitc.opaque<"const Stream &">, %[[P:.*]]: !emitc.ptr<!emitc.opaque<"float">>, %[[G:.*]]: !emitc.ptr<!emitc.opaque<"const BFloat16">>, %[[ROWS:.*]]: !emitc.opaque<"const DeviceRows<2> &">, %[[STEPS:.*]]: !emitc.opaque<"std::initializer_list<sgd_step>">)
// CHECK: verbatim "updateAll({}, {}, {}, updated({}), each({}));" args %[[STREAM]], %[[ROWS]], %[[STEPS]], %[[P]], %[[G]]
// CHECK: emitc.verbatim "static constexpr TensorRow<2> kUpdates[] = {"
// CHECK: emitc.verbatim "static __device__ const TensorTable kUpdatesOnDevice(kUpdates);" {rt.layer
// CHECK: call_opaque "squareSum"(%[[S:.*]], %{{.*}}) {args = [0{{.*}} : index, 1 : index, #emitc.opaque<"tensorRows(kUpdates, kUpdatesOnDevice)">, #emitc.opaque<"1">, #emitc.opaque<"rank.at<BFloat16>(0)">]}
// CHECK: call_opaque "firstNonfinite"(%[[S]], %{{.*}}) {args = [0{{.*}} : index, #emitc.opaque<"&rank.device->report->firstNonfinite">, 1 : index, #emitc.opaque<"tensorRows(kUpdates, kUpdatesOnDevice)">]}
// CHECK: call_opaque "exposeGradients"() {args = [#emitc.opaque<"rank">,
// CHECK: verbatim "sgd_all({}, rank.persistent(0), rank.at<BFloat16>(0), tensorRows(kUpdates, kUpdatesOnDevice, 1, 1), {{[{][{]}}sgd_step{{[{][{]}}{}, 0.1}, sgd_step{{[{][{]}}{}, 0.0}});" args %[[S]],
rt.update_kernel @sgd ["p", "g"] [f32, bf16] scalars ["rate", "decay"] prepares [] factors ["rate", "decay"] computes ["float p_i = p[i];", "p[i] = p_i - rate_f * g[i];"]
rt.tensors @updates in ["persistent", "arena"] [f32, bf16] [#rt.tensor<"wte" at[0, 1024] elements 8 parameter 1>, #rt.tensor<"ln_f" at[64, 0] elements 4 step 1 parameter 2>]
func.func @over_tensors() {
  %squares = rt.arena 2048 [2] : <f64>
  %rate = rt.control "learningRate" : <f32>
  rt.square_sum_all %squares of @updates 1 0 2 : <f64>
  rt.first_nonfinite_all %squares for @updates 0 2 : <f64>
  rt.expose_gradients @updates 1 0 2 flat [0]
  rt.update_all @sgd over @updates 1 1 with [["{}", "0.1"], ["{}", "0.0"]] at(%rate, %rate) : !rt.buffer<f32>, !rt.buffer<f32>
  return
}
}
