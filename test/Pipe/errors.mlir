// RUN: partita-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<8xf32>) {
  // expected-error@+1 {{is of no stage: no module around it has pipe.stage}}
  pipe.send %x over <0 to 1> : tensor<8xf32>
  return
}

// -----

module {
module attributes {pipe.stage = 1} {
  func.func @f(%x: tensor<8xf32>) {
    // expected-error@+1 {{is of stage 1, but stage 0 sends over this channel}}
    pipe.send %x over <0 to 1> : tensor<8xf32>
    return
  }
}
}

// -----

module {
module attributes {pipe.stage = 1} {
  func.func @f() {
    // expected-error@+1 {{is of stage 1, but stage 2 receives over this channel}}
    %x = pipe.recv over <0 to 2> : tensor<8xf32>
    return
  }
}
}

// -----

// expected-error@+1 {{a channel leads to another stage, not from 1 to itself}}
module attributes {test = #pipe.channel<1 to 1>} {}

// -----

// expected-error@+1 {{stages and channels are numbered from 0}}
module attributes {test = #pipe.channel<0 to 1, number -1>} {}

// -----

module {
// expected-error@+1 {{pipe.stage is -1 : i64, expected the number of a stage, an i64 from 0}}
module attributes {pipe.stage = -1} {}
}

// -----

// expected-error@+1 {{pipe.stage belongs on a module within the program's module}}
func.func private @f() attributes {pipe.stage = 0}

// -----

// expected-error@+1 {{"pipe.stages" is no attribute of an op}}
module attributes {pipe.stages = 2} {}
