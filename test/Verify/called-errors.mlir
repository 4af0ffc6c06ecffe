// From the objective on, a program is its entry points and what they call: nothing else is run, or emitted for a purpose.
// RUN: partita-opt %s --verify-phase=after=objective --verify-diagnostics --split-input-file

func.func @eval_step(%x: tensor<4xf32>) attributes {train.entry_point = #train.entry_point<eval_step>} { return }
// expected-error@+1 {{@helper is not an entry point of the program, nor does one call it, after phase 'objective'; give it its train.entry_point, or remove it}}
func.func @helper(%x: tensor<4xf32>) { return }

// -----

// Called, by a function that is called.
func.func @eval_step(%x: tensor<4xf32>) attributes {train.entry_point = #train.entry_point<eval_step>} {
  func.call @helper(%x) : (tensor<4xf32>) -> ()
  return
}
func.func private @helper(%x: tensor<4xf32>) {
  func.call @inner(%x) : (tensor<4xf32>) -> ()
  return
}
func.func private @inner(%x: tensor<4xf32>) { return }

// -----

// By itself alone.
func.func @eval_step(%x: tensor<4xf32>) attributes {train.entry_point = #train.entry_point<eval_step>} { return }
// expected-error@+1 {{@helper is not an entry point}}
func.func private @helper(%x: tensor<4xf32>) {
  func.call @helper(%x) : (tensor<4xf32>) -> ()
  return
}

// -----

// Its name makes none of it.
func.func @forward(%x: tensor<4xf32>) attributes {train.entry_point = #train.entry_point<forward>} { return }
// expected-error@+1 {{@train_step is not an entry point of the program, nor does one call it}}
func.func @train_step(%x: tensor<4xf32>) { return }

// -----

// A fragment.
func.func @step(%x: tensor<4xf32>) { return }
