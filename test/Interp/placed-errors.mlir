// A program with a memory plan is executed where its tensors stand: a plan that loses a value is an
// error that names the ops. (Real plans pass: test/Equivalence/verify.test runs them.)
// RUN: rm -rf %t && split-file %s %t

//--- good.mlir
module attributes {rt.arena_bytes = 64 : i64, rt.persistent_bytes = 0 : i64} {
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tx.exp %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tx.tanh %0 {rt.buffers = [#rt.at<arena 32>]} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = tx.add %0, %1 {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = tx.reshape %2 {rt.buffers = [#rt.at<arena 0>]} : tensor<4xf32> -> tensor<2x2xf32>
  %4 = tx.transpose %3 [1, 0] {rt.buffers = [#rt.at<arena 0, [1, 2]>]} : tensor<2x2xf32> -> tensor<2x2xf32>
  %5 = tx.reduce_sum %4 [0] {rt.buffers = [#rt.at<arena 32>]} : tensor<2x2xf32> -> tensor<2xf32>
  return %2 : tensor<4xf32>
}
}
// RUN: partita-interp %t/good.mlir | FileCheck %s --check-prefix=GOOD
// GOOD: result 0: 4 =

//--- lost.mlir
module attributes {rt.arena_bytes = 64 : i64, rt.persistent_bytes = 0 : i64} {
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tx.exp %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tx.tanh %x {rt.buffers = [#rt.at<arena 12>]} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = tx.add %0, %1 {rt.buffers = [#rt.at<arena 32>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
}
// RUN: not partita-interp %t/lost.mlir 2>&1 | FileCheck %s --check-prefix=LOST --implicit-check-not=error:
// LOST: lost.mlir:5:8: error: needs a value at #rt.at<arena 0> that was overwritten: element [3] was
// LOST: lost.mlir:4:8: note: by 'tx.tanh' here

//--- kernel.mlir
module attributes {rt.arena_bytes = 64 : i64, rt.persistent_bytes = 0 : i64} {
func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = tx.exp %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = tx.matmul %0, %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}
}
// RUN: not partita-interp %t/kernel.mlir 2>&1 | FileCheck %s --check-prefix=KERNEL --implicit-check-not=error:
// KERNEL: kernel.mlir:4:8: error: result 0 at #rt.at<arena 0> overwrites operand 0 at #rt.at<arena 0> while its kernel still reads it

//--- collective.mlir
module attributes {par.mesh = #par.mesh<dp = 2>, rt.arena_bytes = 64 : i64, rt.persistent_bytes = 0 : i64} {
func.func @f(%x: tensor<4xf32, #par.place<[8 @dp]>>) -> (tensor<f32>, tensor<f32, #par.place<[], partial [dp]>>) attributes {par.no_cotangents} {
  %0 = tx.reduce_sum %x [0] {rt.buffers = [#rt.at<arena 0>]} : tensor<4xf32, #par.place<[8 @dp]>> -> tensor<f32, #par.place<[], partial [dp]>>
  %token = par.all_reduce_start %0 over "dp" {rt.buffers = [#rt.at<arena 16>]} : tensor<f32, #par.place<[], partial [dp]>> -> i64
  %1 = tx.neg %0 {rt.buffers = [#rt.at<arena 16>]} : (tensor<f32, #par.place<[], partial [dp]>>) -> tensor<f32, #par.place<[], partial [dp]>>
  %2 = par.wait %token, %0 {rt.buffers = [#rt.at<arena 16>]} : i64, tensor<f32, #par.place<[], partial [dp]>> -> tensor<f32>
  return %2, %1 : tensor<f32>, tensor<f32, #par.place<[], partial [dp]>>
}
}
// RUN: not partita-interp %t/collective.mlir 2>&1 | FileCheck %s --check-prefix=COLLECTIVE --implicit-check-not=error:
// COLLECTIVE: collective.mlir:4:12: error: works in #rt.at<arena 16>, which is written before the collective is complete
// COLLECTIVE: collective.mlir:5:8: note: by 'tx.neg' here

//--- loop.mlir
module attributes {rt.arena_bytes = 64 : i64, rt.persistent_bytes = 0 : i64} {
func.func @f(%x: tensor<2x4xf32>) -> tensor<f32> {
  %0 = "train.accumulate"(%x) <{resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%i: tensor<4xf32>):
    %1 = tx.exp %i {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = tx.reduce_sum %1 [0] {rt.buffers = [#rt.at<arena 32>]} : tensor<4xf32> -> tensor<f32>
    train.yield %2 : tensor<f32>
  }) {rt.buffers = [#rt.at<arena 8>]} : (tensor<2x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
}
// RUN: not partita-interp %t/loop.mlir 2>&1 | FileCheck %s --check-prefix=LOOP --implicit-check-not=error:
// LOOP: loop.mlir:3:8: error: needs a value at #rt.at<arena 8> that was overwritten: element [] was 0
// LOOP: loop.mlir:5:10: note: by 'tx.exp' here

//--- outside.mlir
module attributes {rt.arena_bytes = 16 : i64, rt.persistent_bytes = 0 : i64} {
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tx.exp %x {rt.buffers = [#rt.at<arena 4>]} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}
// RUN: not partita-interp %t/outside.mlir 2>&1 | FileCheck %s --check-prefix=OUTSIDE --implicit-check-not=error:
// OUTSIDE: outside.mlir:3:8: error: the place #rt.at<arena 4> of a 'tensor<4xf32>' lies outside the 16 bytes that the plan announces

//--- returned.mlir
module attributes {rt.arena_bytes = 32 : i64, rt.persistent_bytes = 0 : i64} {
func.func @forward(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {train.entry_point = #train.entry_point<forward>} {
  %0 = tx.exp %x {rt.buffers = [#rt.at<arena 0>]} : (tensor<4xf32>) -> tensor<4xf32>
  return {rt.buffers = [#rt.at<arena 8>, #rt.at<arena 0>]} %x, %0 : tensor<4xf32>, tensor<4xf32>
}
}
// RUN: not partita-interp %t/returned.mlir 2>&1 | FileCheck %s --check-prefix=RETURNED --implicit-check-not=error:
// RETURNED: returned.mlir:4:3: error: needs a value at #rt.at<arena 0> that was overwritten: element [2] was
// RETURNED: note: by 'func.return' here
