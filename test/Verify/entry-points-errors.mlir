// RUN: partita-opt %s --verify-phase=after=import --verify-diagnostics --split-input-file

// A run calls one function for each entry point.
// expected-note@+1 {{the other one is here}}
func.func @forward() attributes {train.entry_point = #train.entry_point<forward>} { return }
// expected-error@+1 {{is entry point 'forward' of the program, but so is @forward}}
func.func @other() attributes {train.entry_point = #train.entry_point<forward>} { return }

// -----

// The attribute decides, not the name: a function that is merely called like an entry point is none.
func.func @forward() { return }
func.func @other() attributes {train.entry_point = #train.entry_point<forward>} { return }

// -----

func.func @forward() attributes {train.entry_point = #train.entry_point<eval_step>} { return }
func.func @other() attributes {train.entry_point = #train.entry_point<forward>} { return }

// -----

// expected-error@+1 {{train.entry_point is "forward"; a function has a #train.entry_point there}}
func.func @forward() attributes {train.entry_point = "forward"} { return }

// -----

// expected-error@+1 {{train.role of argument 0 is "tokens"; there are: ids, labels, targets, positions, ones, zeros, shifted, data, and "input" before the objective}}
func.func @forward(%ids: tensor<2xi64> {train.role = "tokens"}) attributes {train.entry_point = #train.entry_point<forward>} { return }
