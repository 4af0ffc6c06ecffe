// RUN: partita-opt %s --rt-to-emitc | FileCheck %s

// CHECK: emitc.func @map_add(%[[OUT:.*]]: !emitc.ptr<!emitc.opaque<"float">>, %[[A:.*]]: !emitc.ptr<!emitc.opaque<"const float">>, %[[B:.*]]: !emitc.ptr<!emitc.opaque<"const float">>, %[[N:.*]]: i64) attributes {specifiers = ["static"]
// CHECK: verbatim "for (int64_t i = 0; i < {}; ++i)" args %[[N]]{{.*}} : i64
// CHECK: verbatim "{{ +}}{}[i] = {}[i] + {}[i];" args %[[OUT]], %[[A]], %[[B]]
rt.kernel @map_add loops 1 outputs ["out"] [f32] inputs ["a", "b"] [f32, f32] steps [1, 1, 1] locals [] computes ["$a + $b"]

// CHECK: emitc.func @f(%{{.*}}: !emitc.opaque<"Rank &">)
func.func @f() {
  // CHECK: %[[X:.*]] = call_opaque "rank.at"() {args = [64], rt.comment = "[2, 4]"}{{.*}} : () -> !emitc.ptr<!emitc.opaque<"float">>
  %x = rt.arena 64 [2, 4] : !rt.buffer<f32>
  // CHECK: %[[W:.*]] = call_opaque "rank.persistent"() {args = [0], rt.comment = "[4]"}
  %w = rt.persistent 0 [4] : !rt.buffer<f32>
  // CHECK: %[[IDS:.*]] = call_opaque "rank.input"() {args = [1], rt.comment = "[2]", template_args = [#emitc.opaque<"int64_t">]}{{.*}} : () -> !emitc.ptr<!emitc.opaque<"const int64_t">>
  %ids = rt.input 1 [2] : !rt.buffer<i64>
  // CHECK: call_opaque "softmaxForward"(%[[X]], %[[X]]) {args = [0{{.*}} : index, 1 : index, #emitc.opaque<"2">, #emitc.opaque<"4">]}
  rt.softmax_forward %x, %x {rows = 2 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  // CHECK: verbatim "*{} = float(countLabels({}, 2, -100));" args %[[X]], %[[IDS]]
  rt.count_labels %x, %ids {n = 2 : i64, ignore = -100 : i64} : !rt.buffer<f32>, !rt.buffer<i64>
  // CHECK: call_opaque "map_add"(%[[X]], %[[X]], %[[W]])
  rt.launch @map_add(%x, %x, %w) [4] [] : !rt.buffer<f32>, !rt.buffer<f32>, !rt.buffer<f32>
  // CHECK: call_opaque "initialValue"(%[[W]]) {args = [#emitc.opaque<"rank">, #emitc.opaque<"1">, 0{{.*}} : index, #emitc.opaque<"Fill::constant(1.0)">]}
  rt.initial_value %w {index = 1 : i64, mean = 1.0 : f64, deviation = 0.0 : f64} : !rt.buffer<f32>
  // CHECK: call_opaque "initialValue"(%[[W]]) {args = [#emitc.opaque<"rank">, #emitc.opaque<"1">, 0{{.*}} : index, #emitc.opaque<"Fill::normal(0.5)">, #emitc.opaque<"{\22a\\173\\173b\22, 64, DType::Float16}">]}
  rt.initial_value %w {index = 1 : i64, mean = 0.0 : f64, deviation = 0.5 : f64, file = "a{{b", offset = 64 : i64, element = f16} : !rt.buffer<f32>
  // A reason is untrusted text.
  // CHECK: verbatim "Pending p = allReduceStart(rank.group(kOverDp), {{[{][{][{][{]}}{}, 8}, {{[{][{]}}{}, 4}}, \22a \\042quoted\\042 {{[{][{]}}reason\\134\22);" args %[[X]], %[[W]]
  rt.all_reduce "p" %x, %w [8, 4] over "dp" because "a \22quoted\22 {reason\\" : !rt.buffer<f32>, !rt.buffer<f32>
  // Gathers that begin ahead of their use do not queue behind sums.
  // CHECK: verbatim "Pending g = allGatherStart(rank.group(kOverDpAhead), {{.*}}, \22ahead\22);" args %[[X]], %[[W]]
  rt.all_gather "g" %x to %w [1] blocks of [4] of [0] over "dp ahead" because "ahead" : !rt.buffer<f32> to !rt.buffer<f32>
  // CHECK: verbatim "allGather(rank.group(kOverDp), {{.*}}, \22now\22);" args %[[X]], %[[W]]
  rt.all_gather "" %x to %w [1] blocks of [4] of [0] over "dp" because "now" : !rt.buffer<f32> to !rt.buffer<f32>
  // CHECK: verbatim "poll(rank, {{[{][{]}}kOverDpAhead, kOverDp}, 65536);"
  rt.poll over ["dp ahead", "dp"] bytes 65536
  // CHECK: verbatim "beginWork(rank, Work::Backward);"
  rt.work backward
  // CHECK: verbatim "wait(p);"
  rt.wait "p"
  // CHECK: for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} : i64 {
  rt.for 2 {
  ^bb0(%micro: i64):
    // CHECK: call_opaque "rank.input"(%{{.*}}) {args = [0, 0{{.*}} : index]
    %m = rt.input 0 micro %micro [2] : !rt.buffer<i64>
    rt.end
  }
  return
}

// A layer's function has a table before it; the numbers that differ are its columns, but for those that are linear in the layer,
// which it computes. A call of several rows is a loop.
// CHECK: emitc.verbatim "// h./.0 to h.2: what they differ in, places in bytes."
// CHECK: emitc.verbatim "struct HForwardRow {"
// CHECK-NEXT: emitc.verbatim " int64_t ln_1;"
// CHECK: emitc.verbatim " const char *why;"
// CHECK: emitc.verbatim "static const HForwardRow kHForward[] = {"
// CHECK: emitc.verbatim " {64, \22a\\042{\22}," {rt.comment = "h./.0", rt.layer}
// CHECK: emitc.func @h_forward(%[[RANK:.*]]: !emitc.opaque<"Rank &">, %[[LAYER:.*]]: !emitc.opaque<"int64_t">, %[[MASK:.*]]: !emitc.ptr<!emitc.opaque<"const float">>, %{{.*}}: !emitc.opaque<"Pending &">, %{{.*}}: !emitc.opaque<"HostCopy &">)
// CHECK: verbatim "const HForwardRow &at = kHForward[layer];"
// CHECK: call_opaque "rank.at"() {args = [#emitc.opaque<"at.ln_1">],
// CHECK: call_opaque "rank.at"() {args = [#emitc.opaque<"at.ln_1 + 512">],
// CHECK: literal "7 + layer * 2"{{.*}} : i64
// CHECK: call_opaque "initialValue"(%{{.*}}) {args = [#emitc.opaque<"rank">, #emitc.opaque<"3 + layer * 2">,
// CHECK: verbatim "started = allReduceStart(rank.group(kOverDp), {{.*}}, at.why);"
// CHECK: verbatim "wait(started);"
// CHECK: verbatim "copied = toHostStart(rank, {}, {}, 8);"
rt.layer @h_forward of ["h*/.0", "h.1", "h.2"] columns ["why", "ln_1", "index"] [["a\22{", "b", "c"], array<i64: 64, 128, 256>, array<i64: 3, 5, 7>] pending ["started"] copies ["copied"] {
^bb0(%mask: !rt.buffer<f32>):
  %x = rt.arena 64 [2] {rt.columns = {offset = #rt.column<"ln_1">}} : !rt.buffer<f32>
  %y = rt.arena 576 [2] {rt.columns = {offset = #rt.column<"ln_1" plus 512>}} : !rt.buffer<f32>
  %z = rt.offset %y plus 7 {rt.columns = {elements = #rt.column<"index" plus 4>}} : !rt.buffer<f32> -> !rt.buffer<f32>
  rt.accumulate %z, %mask {n = 2 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  rt.initial_value %y {index = 3 : i64, mean = 1.0 : f64, deviation = 0.0 : f64, rt.columns = {index = #rt.column<"index">}} : !rt.buffer<f32>
  rt.all_reduce "started" %x [2] over "dp" because "a" {rt.columns = {reason = #rt.column<"why">}} : !rt.buffer<f32>
  rt.wait "started"
  rt.transfer "copied" %y from %x 8 host true : !rt.buffer<f32>, !rt.buffer<f32>
}
// CHECK: emitc.func @layers
func.func @layers() {
  %mask = rt.input 0 [2] : !rt.buffer<f32>
  // CHECK: verbatim "Pending p;"
  rt.pending "p"
  // CHECK: verbatim "HostCopy q;"
  rt.pending "q" copy
  // CHECK: verbatim "h_forward(rank, 0, {}, p, q);" args %[[M:.*]] :
  rt.call @h_forward 0 times 1(%mask : !rt.buffer<f32>) pending ["p"] copies ["q"]
  // CHECK: verbatim "// h.1 to h.2"
  // CHECK: for %[[ROW:.*]] =
  // CHECK: verbatim "h_forward(rank, {}, {}, p, q);" args %[[ROW]], %[[M]] :
  rt.call @h_forward 1 times 2(%mask : !rt.buffer<f32>) pending ["p"] copies ["q"]
  return
}

// Calls over a table of tensors: an array in the text, and for each kernel that takes one a loop over its rows.
// CHECK: emitc.verbatim "struct sgd_step {"
// CHECK-NEXT: emitc.verbatim "  double rate, decay;"
// CHECK: emitc.func @sgd_all(%[[P:.*]]: !emitc.ptr<!emitc.opaque<"float">>, %[[G:.*]]: !emitc.ptr<!emitc.opaque<"const BFloat16">>, %[[ROWS:.*]]: !emitc.opaque<"TensorRows<2>">, %[[STEPS:.*]]: !emitc.opaque<"std::initializer_list<sgd_step>">)
// CHECK: verbatim "for (const TensorRow<2> &row : {}) {{[{][{]}}" args %[[ROWS]]
// CHECK-NEXT: verbatim "  const sgd_step &step = {}.begin()[row.step];" args %[[STEPS]]
// CHECK-NEXT: verbatim "  sgd(moved({}, row.offsets[0]), moved({}, row.offsets[1]), row.elements, step.rate, step.decay);" args %[[P]], %[[G]]
// CHECK: emitc.verbatim "static constexpr TensorRow<2> kUpdates[] = {" {rt.layer
// CHECK-NEXT: emitc.verbatim "  {{[{][{]}}0, 1024}, 8, 0, 1}," {rt.comment = "wte", rt.layer
// CHECK-NEXT: emitc.verbatim "  {{[{][{]}}64, 0}, 4, 1, 2}," {rt.comment = "ln_f", rt.layer
// CHECK-NEXT: emitc.verbatim "};"
// CHECK-NOT: OnDevice
// CHECK: emitc.func @over_tensors
// CHECK: call_opaque "squareSum"(%{{.*}}) {args = [0{{.*}} : index, #emitc.opaque<"tensorRows(kUpdates)">, #emitc.opaque<"1">, #emitc.opaque<"rank.at<BFloat16>(0)">]}
// CHECK: call_opaque "firstNonfinite"(%{{.*}}) {args = [#emitc.opaque<"rank">, 0{{.*}} : index, #emitc.opaque<"tensorRows(kUpdates)">]}
// CHECK: call_opaque "exposeGradients"() {args = [#emitc.opaque<"rank">, #emitc.opaque<"tensorRows(kUpdates)">, #emitc.opaque<"1">, #emitc.opaque<"rank.at<BFloat16>(0)">, #emitc.opaque<"{0}">]}
// CHECK: verbatim "sgd_all(rank.persistent(0), rank.at<BFloat16>(0), tensorRows(kUpdates, 1, 1), {{[{][{]}}sgd_step{{[{][{]}}*{}, 0.1}, sgd_step{{[{][{]}}*{}, 0.0}});" args
rt.update_kernel @sgd ["p", "g"] [f32, bf16] scalars ["rate", "decay"] prepares [] factors ["rate", "decay"] computes ["float p_i = p[i];", "p[i] = p_i - rate_f * g[i];"]
rt.tensors @updates in ["persistent", "arena"] [f32, bf16] [#rt.tensor<"wte" at[0, 1024] elements 8 parameter 1>, #rt.tensor<"ln_f" at[64, 0] elements 4 step 1 parameter 2>]
func.func @over_tensors() {
  %squares = rt.arena 2048 [2] : <f64>
  %rate = rt.control "learningRate" : <f32>
  rt.square_sum_all %squares of @updates 1 0 2 : <f64>
  rt.first_nonfinite_all %squares for @updates 0 2 : <f64>
  rt.expose_gradients @updates 1 0 2 flat [0]
  rt.update_all @sgd over @updates 1 1 with [["*{}", "0.1"], ["*{}", "0.0"]] at(%rate, %rate) : !rt.buffer<f32>, !rt.buffer<f32>
  return
}

// Work of a pass for its last micro-batch only is one branch, with the pointers that nothing else needs.
// CHECK: emitc.func @pass(%[[RANK:.*]]: !emitc.opaque<"Rank &">, %{{.*}}: i64, %{{.*}}: !emitc.ptr<!emitc.opaque<"Pending">>)
func.func @pass(%micro: i64) attributes {rt.pass_of, rt.pendings = #rt.pendings<"begun" x 2>} {
  // CHECK-NEXT: %[[X:.*]] = call_opaque "rank.at"() {args = [0]
  // CHECK-NEXT: call_opaque "softmaxForward"(%[[X]], %[[X]])
  %x = rt.arena 0 [4] : !rt.buffer<f32>
  rt.softmax_forward %x, %x {rows = 1 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  // CHECK-NEXT: %[[SHARED:.*]] = call_opaque "rank.at"() {args = [128]
  // CHECK-NEXT: %[[AT:.*]] = literal "rank.slot.microBatch" : i64
  // CHECK-NEXT: %[[LAST:.*]] = literal "3" : i64
  // CHECK-NEXT: %[[IS:.*]] = cmp eq, %[[AT]], %[[LAST]]
  // CHECK-NEXT: if %[[IS]] {
  // CHECK-NEXT: %[[OWN:.*]] = call_opaque "rank.at"() {args = [64]
  // CHECK-NEXT: verbatim "begun[0] = allReduceStart({{.*}} args %[[OWN]]
  // CHECK-NEXT: verbatim "begun[1] = allReduceStart({{.*}} args %[[SHARED]]
  // CHECK-NEXT: }
  // CHECK-NEXT: call_opaque "softmaxForward"(%[[SHARED]], %[[SHARED]])
  %own = rt.arena 64 [4] : !rt.buffer<f32>
  rt.all_reduce "begun[0]" %own [4] over "dp" because "a" {rt.last = 3 : i64} : !rt.buffer<f32>
  %shared = rt.arena 128 [4] : !rt.buffer<f32>
  rt.all_reduce "begun[1]" %shared [4] over "dp" because "b" {rt.last = 3 : i64} : !rt.buffer<f32>
  rt.softmax_forward %shared, %shared {rows = 1 : i64, width = 4 : i64} : !rt.buffer<f32>, !rt.buffer<f32>
  return
}
