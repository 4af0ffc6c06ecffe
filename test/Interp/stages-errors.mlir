// RUN: rm -rf %t && split-file %s %t

// Each receives before it sends.
// RUN: not partita-interp %t/both.mlir --entry f 2>&1 | FileCheck %s --check-prefix=BOTH --implicit-check-not=error:
// BOTH: both.mlir:3:10: error: no stage can go on: stage 0 waits for stage 1 to send message 1
// BOTH: both.mlir:10:10: note: stage 1 waits for stage 0 to send message 1 of channel number 3
//--- both.mlir
module attributes {pipe.stage = 0} {
  func.func @f() {
    %x = pipe.recv over <1 to 0> : tensor<1xf32>
    pipe.send %x over <0 to 1, number 3> : tensor<1xf32>
    return
  }
}
module attributes {pipe.stage = 1} {
  func.func @f() {
    %x = pipe.recv over <0 to 1, number 3> : tensor<1xf32>
    pipe.send %x over <1 to 0> : tensor<1xf32>
    return
  }
}

// Each sends first: that needs a transport that keeps what was sent.
//--- first.mlir
module attributes {pipe.stage = 0} {
  func.func @f(%x: tensor<1xf32>) {
    pipe.send %x over <0 to 1> : tensor<1xf32>
    %y = pipe.recv over <1 to 0> : tensor<1xf32>
    return
  }
}
module attributes {pipe.stage = 1} {
  func.func @f(%x: tensor<1xf32>) {
    pipe.send %x over <1 to 0> : tensor<1xf32>
    %y = pipe.recv over <0 to 1> : tensor<1xf32>
    return
  }
}
// RUN: partita-interp %t/first.mlir --entry f
// RUN: not partita-interp %t/first.mlir --entry f --blocking-sends 2>&1 | FileCheck %s --check-prefix=FIRST --implicit-check-not=error:
// FIRST: first.mlir:3:5: error: no stage can go on: stage 0 waits for stage 1 to receive message 1
// FIRST: first.mlir:10:5: note: stage 1 waits for stage 0 to receive message 1

// One more is expected than is sent.
//--- few.mlir
module attributes {pipe.stage = 0} {
  func.func @f(%x: tensor<1xf32>) {
    pipe.send %x over <0 to 2> : tensor<1xf32>
    return
  }
}
module attributes {pipe.stage = 1} {
  func.func @f() {
    %x = pipe.recv over <2 to 1> : tensor<1xf32>
    return
  }
}
module attributes {pipe.stage = 2} {
  func.func @f() {
    %x = pipe.recv over <0 to 2> : tensor<1xf32>
    %y = pipe.recv over <0 to 2> : tensor<1xf32>
    pipe.send %y over <2 to 1> : tensor<1xf32>
    return
  }
}
// RUN: not partita-interp %t/few.mlir --entry f 2>&1 | FileCheck %s --check-prefix=FEW --implicit-check-not=error:
// FEW: few.mlir:9:10: error: no stage can go on: stage 1 waits for stage 2 to send message 1
// FEW: few.mlir:16:10: note: stage 2 waits for stage 0 to send message 2, but stage 0 has returned

//--- many.mlir
module attributes {pipe.stage = 0} {
  func.func @f(%x: tensor<1xf32>) {
    pipe.send %x over <0 to 1> : tensor<1xf32>
    return
  }
}
module attributes {pipe.stage = 1} {
  func.func @f() {
    return
  }
}
// RUN: not partita-interp %t/many.mlir --entry f 2>&1 | FileCheck %s --check-prefix=MANY --implicit-check-not=error:
// MANY: many.mlir:3:5: error: is never received: stage 1 has returned

//--- type.mlir
module attributes {pipe.stage = 0} {
  func.func @f(%x: tensor<2xf32>) {
    pipe.send %x over <0 to 1> : tensor<2xf32>
    return
  }
}
module attributes {pipe.stage = 1} {
  func.func @f() {
    %x = pipe.recv over <0 to 1> : tensor<1x2xf32>
    return
  }
}
// RUN: not partita-interp %t/type.mlir --entry f 2>&1 | FileCheck %s --check-prefix=TYPE --implicit-check-not=error:
// TYPE: type.mlir:9:10: error: message 1 is of type 'tensor<2xf32>', not 'tensor<1x2xf32>'
// TYPE: type.mlir:3:5: note: sent here

// What fails on one stage is the only error.
//--- fails.mlir
module attributes {pipe.stage = 0} {
  func.func @f() {
    %x = pipe.recv over <1 to 0> : tensor<1xf32>
    return
  }
}
module attributes {pipe.stage = 1} {
  func.func @f() -> tensor<2x2xf32> {
    %t = tx.constant dense<0.0> : tensor<3x2xf32> : tensor<3x2xf32>
    %i = tx.constant dense<[2, 3]> : tensor<2xi64> : tensor<2xi64>
    %0 = tx.embedding %t, %i : (tensor<3x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
    return %0 : tensor<2x2xf32>
  }
}
// RUN: not partita-interp %t/fails.mlir --entry f 2>&1 | FileCheck %s --check-prefix=FAILS --implicit-check-not=error:
// FAILS: fails.mlir:11:10: error: index 3 at position 1 is outside 0 .. 2, the rows of the table

//--- twice.mlir
module attributes {pipe.stage = 0} {}
module attributes {pipe.stage = 0} {}
// RUN: not partita-interp %t/twice.mlir --entry f 2>&1 | FileCheck %s --check-prefix=TWICE --implicit-check-not=error:
// TWICE: twice.mlir:2:1: error: is a second stage 0
// TWICE: twice.mlir:1:1: note: the first one

//--- gap.mlir
module attributes {pipe.stage = 0} {}
module attributes {pipe.stage = 2} {}
// RUN: not partita-interp %t/gap.mlir --entry f 2>&1 | FileCheck %s --check-prefix=GAP --implicit-check-not=error:
// GAP: gap.mlir:2:1: error: is stage 2, and there is no stage 1

//--- mesh.mlir
module attributes {pipe.stage = 0, par.mesh = #par.mesh<dp = 2>} {}
module attributes {pipe.stage = 1, par.mesh = #par.mesh<dp = 4>} {}
// RUN: not partita-interp %t/mesh.mlir --entry f 2>&1 | FileCheck %s --check-prefix=MESH --implicit-check-not=error:
// MESH: mesh.mlir:2:1: error: stage 1 has the mesh #par.mesh<dp = 4>, stage 0 has #par.mesh<dp = 2>

//--- alone.mlir
module {
  module attributes {pipe.stage = 0} {
    func.func @f(%x: tensor<1xf32>) {
      pipe.send %x over <0 to 1> : tensor<1xf32>
      return
    }
  }
}
// RUN: not partita-interp %t/alone.mlir --entry f 2>&1 | FileCheck %s --check-prefix=ALONE --implicit-check-not=error:
// ALONE: alone.mlir:4:7: error: is never received: there is no stage 1

// One stage never comes to a sum that the other waits for.
//--- sum.mlir
module attributes {pipe.stage = 0} {
  func.func @f(%x: tensor<1xf32>) -> tensor<1xf32> {
    %0 = pipe.sum %x on [0, 1] : tensor<1xf32>
    %1 = pipe.sum %0 on [0, 1] : tensor<1xf32>
    return %1 : tensor<1xf32>
  }
}
module attributes {pipe.stage = 1} {
  func.func @f(%x: tensor<1xf32>) -> tensor<1xf32> {
    %0 = pipe.sum %x on [0, 1] : tensor<1xf32>
    return %0 : tensor<1xf32>
  }
}
// RUN: not partita-interp %t/sum.mlir --entry f 2>&1 | FileCheck %s --check-prefix=SUM --implicit-check-not=error:
// SUM: sum.mlir:4:10: error: no stage can go on: stage 0 waits for stage 1 to come to sum 2, but stage 1 has returned

// Stages that do something else than the program of all stages: another result, another parameter, a parameter too few.
//--- one.mlir
module attributes {pipe.stage = 0} {
  func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = tx.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func @g(%x: tensor<2xf32>) {
    %w = train.read @w : tensor<2xf32>
    %0 = tx.add %w, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    train.write @w, %0 : tensor<2xf32>
    return
  }
  train.parameter @w : tensor<2xf32> fill(<0.0, normal 1.0>)
}
module attributes {pipe.stage = 1} {
  func.func @f(%x: tensor<2xf32>) {
    return
  }
  func.func @g(%x: tensor<2xf32>) {
    return
  }
}
//--- full.mlir
func.func @f(%x: tensor<2xf32> {train.name = "x", train.role = "data"}) -> tensor<2xf32> {
  %0 = tx.mul %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @g(%x: tensor<2xf32> {train.name = "x", train.role = "data"}) {
  return
}
train.parameter @w : tensor<2xf32> fill(<0.0, normal 1.0>)
//--- more.mlir
func.func @f(%x: tensor<2xf32> {train.name = "x", train.role = "data"}) -> tensor<2xf32> {
  %0 = tx.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @g(%x: tensor<2xf32> {train.name = "x", train.role = "data"}) -> tensor<2xf32> {
  %w = train.read @w : tensor<2xf32>
  %0 = tx.add %w, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  train.write @w, %0 : tensor<2xf32>
  return %0 : tensor<2xf32>
}
train.parameter @w : tensor<2xf32> fill(<0.0, normal 1.0>)
// RUN: partita-interp %t/one.mlir --entry f --full %t/more.mlir | FileCheck %s --check-prefix=SAME
// SAME: equal: 2 stages, 2 values; largest error 0.0e+00
// RUN: not partita-interp %t/one.mlir --entry f --full %t/full.mlir 2>&1 | FileCheck %s --check-prefix=RESULT
// RESULT: error: result 0 of stage 0 differs by {{.*}}, more than 1.0e-12
// RUN: not partita-interp %t/one.mlir --entry g --full %t/full.mlir 2>&1 | FileCheck %s --check-prefix=VALUE
// VALUE: error: 'w' of stage 0 differs by {{.*}}, more than 1.0e-12
// RUN: not partita-interp %t/one.mlir --entry g --full %t/more.mlir 2>&1 | FileCheck %s --check-prefix=NORESULT
// NORESULT: error: no stage has result 0
// RUN: not partita-interp %t/one.mlir --entry f --log %t/log 2>&1 | FileCheck %s --check-prefix=LOG
// LOG: partita-interp: error: a program of stages takes none of --inputs, --log
// RUN: not partita-interp %t/more.mlir --entry f --blocking-sends 2>&1 | FileCheck %s --check-prefix=BLOCKING
// BLOCKING: partita-interp: error: --blocking-sends and --full need a program of stages
