// RUN: partita-opt %s --make-init --verify-diagnostics

train.parameter @w : tensor<2xf32>
// expected-error@+1 {{the entry point 'init' takes no arguments and has a body of one block}}
func.func @init(%x: tensor<2xf32>) {
  train.write @w, %x : tensor<2xf32>
  return
}
