// RUN: partita-opt %s --make-init --verify-diagnostics --split-input-file

train.parameter @w : tensor<2xf32>
// expected-error@+1 {{the entry point 'init' takes no arguments and has a body of one block}}
func.func @init(%x: tensor<2xf32>) attributes {train.entry_point = #train.entry_point<init>} {
  train.write @w, %x : tensor<2xf32>
  return
}

// -----

train.parameter @w : tensor<2xf32>
// expected-error@+1 {{@init is the name of an entry point that is made here, and this is none; rename it, or give it its train.entry_point}}
func.func @init() { return }
