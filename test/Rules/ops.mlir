// One function per op, sizes even. Each rule is tried by brute force: cut as the rule says, run the
// localized op on two ranks, put together as the rule says, compare with the full op; and the same
// with the op's gradient. Then the op table's gradients against five-point
// differences: the arguments that have one. --every-op-of: an op without a function is an error.
// RUN: partita-interp %s --check-rules --every-op-of=tx | FileCheck %s
// RUN: partita-interp %s --check-gradients | FileCheck %s --check-prefix=GRAD

// Elementwise.

// Rounding.

// CHECK: tx.floor @floor: split *0 *1; partial{{ *$}}
// GRAD: gradient of floor: none{{$}}
func.func @floor(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.floor %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.ceil @ceil: split *0 *1; partial{{ *$}}
// GRAD: gradient of ceil: none{{$}}
func.func @ceil(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.ceil %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.round @round: split *0 *1; partial{{ *$}}
// GRAD: gradient of round: none{{$}}
func.func @round(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.round %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.quotient @quotient: split *0 *1; partial{{ *$}}
// GRAD: gradient of quotient: none{{$}}
func.func @quotient(%a: tensor<2x4xi64>, %b: tensor<2x4xi64>) -> tensor<2x4xi64> {
  %0 = tx.quotient %a, %b : (tensor<2x4xi64>, tensor<2x4xi64>) -> tensor<2x4xi64>
  return %0 : tensor<2x4xi64>
}
// CHECK: tx.modulo @modulo: split *0 *1; partial{{ *$}}
// GRAD: gradient of modulo: none{{$}}
func.func @modulo(%a: tensor<2x4xi64>, %b: tensor<2x4xi64>) -> tensor<2x4xi64> {
  %0 = tx.modulo %a, %b : (tensor<2x4xi64>, tensor<2x4xi64>) -> tensor<2x4xi64>
  return %0 : tensor<2x4xi64>
}
// CHECK: tx.remainder @remainder: split *0 *1; partial{{ *$}}
// GRAD: gradient of remainder: 0 1{{$}}
func.func @remainder(%a: tensor<2x4xf64> {interp.range = [2.0, 2.9]}, %b: tensor<2x4xf64> {interp.range = [1.5, 1.9]}) -> tensor<2x4xf64> {
  %0 = tx.remainder %a, %b : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

// CHECK: tx.add @add: split *0 *1; partial 0+1{{ *$}}
// GRAD: gradient of add: 0 1{{$}}
func.func @add(%a: tensor<2x4xf64>, %b: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.add %a, %b : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.sub @sub: split *0 *1; partial 0+1{{ *$}}
// GRAD: gradient of sub: 0 1{{$}}
func.func @sub(%a: tensor<2x4xf64>, %b: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.sub %a, %b : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.mul @mul: split *0 *1; partial 0 1{{ *$}}
// GRAD: gradient of mul: 0 1{{$}}
func.func @mul(%a: tensor<2x4xf64>, %b: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.mul %a, %b : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.div @div: split *0 *1; partial 0{{ *$}}
// GRAD: gradient of div: 0 1{{$}}
func.func @div(%a: tensor<2x4xf64>, %b: tensor<2x4xf64> {interp.range = [0.5, 2.0]}) -> tensor<2x4xf64> {
  %0 = tx.div %a, %b : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.chain @chain: split *0 *1; partial 0 1{{ *$}}
// GRAD: gradient of chain: none{{$}}
func.func @chain(%dy: tensor<2x4xf64>, %slope: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.chain %dy, %slope : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.chain_div @chain_div: split *0 *1; partial 0{{ *$}}
// GRAD: gradient of chain_div: none{{$}}
func.func @chain_div(%dy: tensor<2x4xf64>, %d: tensor<2x4xf64> {interp.range = [0.5, 2.0]}) -> tensor<2x4xf64> {
  %0 = tx.chain_div %dy, %d : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.pow @pow: split *0 *1; partial{{ *$}}
// GRAD: gradient of pow: 0 1{{$}}
func.func @pow(%a: tensor<2x4xf64> {interp.range = [0.5, 2.0]}, %b: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.pow %a, %b : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.max @max: split *0 *1; partial{{ *$}}
// GRAD: gradient of max: 0 1{{$}}
func.func @max(%a: tensor<2x4xf64>, %b: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.max %a, %b : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.max @max_shared: split *0 *1; partial{{ *$}}
// GRAD: gradient of max_shared: 0 1{{$}}
func.func @max_shared(%a: tensor<2x4xf64>, %b: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.max %a, %b shared : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.min @min: split *0 *1; partial{{ *$}}
// GRAD: gradient of min: 0 1{{$}}
func.func @min(%a: tensor<2x4xf64>, %b: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.min %a, %b : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.neg @neg: split *0 *1; partial 0{{ *$}}
// GRAD: gradient of neg: 0{{$}}
func.func @neg(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.neg %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.exp @exp: split *0 *1; partial{{ *$}}
// GRAD: gradient of exp: 0{{$}}
func.func @exp(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.exp %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.log @log: split *0 *1; partial{{ *$}}
// GRAD: gradient of log: 0{{$}}
func.func @log(%x: tensor<2x4xf64> {interp.range = [0.5, 2.0]}) -> tensor<2x4xf64> {
  %0 = tx.log %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.sqrt @sqrt: split *0 *1; partial{{ *$}}
// GRAD: gradient of sqrt: 0{{$}}
func.func @sqrt(%x: tensor<2x4xf64> {interp.range = [0.5, 2.0]}) -> tensor<2x4xf64> {
  %0 = tx.sqrt %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.rsqrt @rsqrt: split *0 *1; partial{{ *$}}
// GRAD: gradient of rsqrt: 0{{$}}
func.func @rsqrt(%x: tensor<2x4xf64> {interp.range = [0.5, 2.0]}) -> tensor<2x4xf64> {
  %0 = tx.rsqrt %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.reciprocal @reciprocal: split *0 *1; partial{{ *$}}
// GRAD: gradient of reciprocal: 0{{$}}
func.func @reciprocal(%x: tensor<2x4xf64> {interp.range = [0.5, 2.0]}) -> tensor<2x4xf64> {
  %0 = tx.reciprocal %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.abs @abs: split *0 *1; partial{{ *$}}
// GRAD: gradient of abs: 0{{$}}
func.func @abs(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.abs %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.sign @sign: split *0 *1; partial{{ *$}}
// GRAD: gradient of sign: none{{$}}
func.func @sign(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.sign %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.tanh @tanh: split *0 *1; partial{{ *$}}
// GRAD: gradient of tanh: 0{{$}}
func.func @tanh(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.tanh %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.erf @erf: split *0 *1; partial{{ *$}}
// GRAD: gradient of erf: 0{{$}}
func.func @erf(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.erf %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.sigmoid @sigmoid: split *0 *1; partial{{ *$}}
// GRAD: gradient of sigmoid: 0{{$}}
func.func @sigmoid(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.sigmoid %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.cos @cos: split *0 *1; partial{{ *$}}
// GRAD: gradient of cos: 0{{$}}
func.func @cos(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.cos %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.sin @sin: split *0 *1; partial{{ *$}}
// GRAD: gradient of sin: 0{{$}}
func.func @sin(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.sin %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.relu @relu: split *0 *1; partial{{ *$}}
// GRAD: gradient of relu: 0{{$}}
func.func @relu(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.relu %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.softplus @softplus: split *0 *1; partial{{ *$}}
// GRAD: gradient of softplus: 0{{$}}
func.func @softplus(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.softplus %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.gelu @gelu: split *0 *1; partial{{ *$}}
// GRAD: gradient of gelu: 0{{$}}
func.func @gelu(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.gelu %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.gelu_tanh @gelu_tanh: split *0 *1; partial{{ *$}}
// GRAD: gradient of gelu_tanh: 0{{$}}
func.func @gelu_tanh(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.gelu_tanh %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.gelu_grad @gelu_grad: split *0 *1; partial 1{{ *$}}
// GRAD: gradient of gelu_grad: none{{$}}
func.func @gelu_grad(%x: tensor<2x4xf64>, %dy: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.gelu_grad %x, %dy : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.gelu_tanh_grad @gelu_tanh_grad: split *0 *1; partial 1{{ *$}}
// GRAD: gradient of gelu_tanh_grad: none{{$}}
func.func @gelu_tanh_grad(%x: tensor<2x4xf64>, %dy: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.gelu_tanh_grad %x, %dy : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.quick_gelu @quick_gelu: split *0 *1; partial{{ *$}}
// GRAD: gradient of quick_gelu: 0{{$}}
func.func @quick_gelu(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.quick_gelu %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.quick_gelu_grad @quick_gelu_grad: split *0 *1; partial 1{{ *$}}
// GRAD: gradient of quick_gelu_grad: none{{$}}
func.func @quick_gelu_grad(%x: tensor<2x4xf64>, %dy: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.quick_gelu_grad %x, %dy : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.silu @silu: split *0 *1; partial{{ *$}}
// GRAD: gradient of silu: 0{{$}}
func.func @silu(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.silu %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.silu_grad @silu_grad: split *0 *1; partial 1{{ *$}}
// GRAD: gradient of silu_grad: none{{$}}
func.func @silu_grad(%x: tensor<2x4xf64>, %dy: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.silu_grad %x, %dy : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.equal @equal: split *0 *1; partial{{ *$}}
// GRAD: gradient of equal: none{{$}}
func.func @equal(%a: tensor<2x4xi64>, %b: tensor<2x4xi64>) -> tensor<2x4xi1> {
  %0 = tx.equal %a, %b : (tensor<2x4xi64>, tensor<2x4xi64>) -> tensor<2x4xi1>
  return %0 : tensor<2x4xi1>
}
// CHECK: tx.less @less: split *0 *1; partial{{ *$}}
// GRAD: gradient of less: none{{$}}
func.func @less(%a: tensor<2x4xi64>, %b: tensor<2x4xi64>) -> tensor<2x4xi1> {
  %0 = tx.less %a, %b : (tensor<2x4xi64>, tensor<2x4xi64>) -> tensor<2x4xi1>
  return %0 : tensor<2x4xi1>
}
// CHECK: tx.less_equal @less_equal: split *0 *1; partial{{ *$}}
// GRAD: gradient of less_equal: none{{$}}
func.func @less_equal(%a: tensor<2x4xi64>, %b: tensor<2x4xi64>) -> tensor<2x4xi1> {
  %0 = tx.less_equal %a, %b : (tensor<2x4xi64>, tensor<2x4xi64>) -> tensor<2x4xi1>
  return %0 : tensor<2x4xi1>
}
// CHECK: tx.greater @greater: split *0 *1; partial{{ *$}}
// GRAD: gradient of greater: none{{$}}
func.func @greater(%a: tensor<2x4xi64>, %b: tensor<2x4xi64>) -> tensor<2x4xi1> {
  %0 = tx.greater %a, %b : (tensor<2x4xi64>, tensor<2x4xi64>) -> tensor<2x4xi1>
  return %0 : tensor<2x4xi1>
}
// CHECK: tx.greater_equal @greater_equal: split *0 *1; partial{{ *$}}
// GRAD: gradient of greater_equal: none{{$}}
func.func @greater_equal(%a: tensor<2x4xi64>, %b: tensor<2x4xi64>) -> tensor<2x4xi1> {
  %0 = tx.greater_equal %a, %b : (tensor<2x4xi64>, tensor<2x4xi64>) -> tensor<2x4xi1>
  return %0 : tensor<2x4xi1>
}
// CHECK: tx.and @and: split *0 *1; partial{{ *$}}
// GRAD: gradient of and: none{{$}}
func.func @and(%a: tensor<2x4xi1>, %b: tensor<2x4xi1>) -> tensor<2x4xi1> {
  %0 = tx.and %a, %b : (tensor<2x4xi1>, tensor<2x4xi1>) -> tensor<2x4xi1>
  return %0 : tensor<2x4xi1>
}
// CHECK: tx.or @or: split *0 *1; partial{{ *$}}
// GRAD: gradient of or: none{{$}}
func.func @or(%a: tensor<2x4xi1>, %b: tensor<2x4xi1>) -> tensor<2x4xi1> {
  %0 = tx.or %a, %b : (tensor<2x4xi1>, tensor<2x4xi1>) -> tensor<2x4xi1>
  return %0 : tensor<2x4xi1>
}
// CHECK: tx.not @not: split *0 *1; partial{{ *$}}
// GRAD: gradient of not: none{{$}}
func.func @not(%x: tensor<2x4xi1>) -> tensor<2x4xi1> {
  %0 = tx.not %x : (tensor<2x4xi1>) -> tensor<2x4xi1>
  return %0 : tensor<2x4xi1>
}
// CHECK: tx.is_nan @is_nan: split *0 *1; partial{{ *$}}
// GRAD: gradient of is_nan: none{{$}}
func.func @is_nan(%x: tensor<2x4xf64>) -> tensor<2x4xi1> {
  %0 = tx.is_nan %x : (tensor<2x4xf64>) -> tensor<2x4xi1>
  return %0 : tensor<2x4xi1>
}
// CHECK: tx.select @select: split *0 *1; partial 1+2{{ *$}}
// GRAD: gradient of select: 1 2{{$}}
func.func @select(%c: tensor<2x4xi1>, %a: tensor<2x4xf64>, %b: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.select %c, %a, %b : (tensor<2x4xi1>, tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.cast @cast: split *0 *1; partial 0{{ *$}}
// GRAD: gradient of cast: 0{{$}}
func.func @cast(%x: tensor<2x4xf32>) -> tensor<2x4xf64> {
  %0 = tx.cast %x : tensor<2x4xf32> -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

// Structure.

// CHECK: tx.constant @constant: split a b; partial{{ *$}}
// GRAD: gradient of constant: none{{$}}
func.func @constant() -> tensor<2x2xf64> {
  %0 = tx.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf64> : tensor<2x2xf64>
  return %0 : tensor<2x2xf64>
}
// CHECK: tx.constant @constant_splat: split a b; partial{{ *$}}
// GRAD: gradient of constant_splat: none{{$}}
func.func @constant_splat() -> tensor<2x4xf64> {
  %0 = tx.constant dense<2.0> : tensor<2x4xf64> : tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.iota @iota: split; partial{{ *$}}
// GRAD: gradient of iota: none{{$}}
func.func @iota() -> tensor<4xf64> {
  %0 = tx.iota 1.0, 2.0 : tensor<4xf64>
  return %0 : tensor<4xf64>
}
// CHECK: tx.reshape @reshape_split: split a b c; partial 0{{ *$}}
// GRAD: gradient of reshape_split: 0{{$}}
func.func @reshape_split(%x: tensor<2x24xf64>) -> tensor<2x4x6xf64> {
  %0 = tx.reshape %x : tensor<2x24xf64> -> tensor<2x4x6xf64>
  return %0 : tensor<2x4x6xf64>
}
// CHECK: tx.reshape @reshape_join: split a b c; partial 0{{ *$}}
// GRAD: gradient of reshape_join: 0{{$}}
func.func @reshape_join(%x: tensor<4x2x6xf64>) -> tensor<8x6xf64> {
  %0 = tx.reshape %x : tensor<4x2x6xf64> -> tensor<8x6xf64>
  return %0 : tensor<8x6xf64>
}
// CHECK: tx.reshape @reshape_ones: split a b; partial 0{{ *$}}
// GRAD: gradient of reshape_ones: 0{{$}}
func.func @reshape_ones(%x: tensor<4x1x6xf64>) -> tensor<1x4x6x1xf64> {
  %0 = tx.reshape %x : tensor<4x1x6xf64> -> tensor<1x4x6x1xf64>
  return %0 : tensor<1x4x6x1xf64>
}
// CHECK: tx.reshape @reshape_regroup: split e; partial 0{{ *$}}
// GRAD: gradient of reshape_regroup: 0{{$}}
func.func @reshape_regroup(%x: tensor<4x6x2xf64>) -> tensor<6x4x2xf64> {
  %0 = tx.reshape %x : tensor<4x6x2xf64> -> tensor<6x4x2xf64>
  return %0 : tensor<6x4x2xf64>
}
// CHECK: tx.reshape @reshape_shift: split a b c; partial 0{{ *$}}
// GRAD: gradient of reshape_shift: 0{{$}}
func.func @reshape_shift(%x: tensor<4x12xf64>) -> tensor<8x1x6xf64> {
  %0 = tx.reshape %x : tensor<4x12xf64> -> tensor<8x1x6xf64>
  return %0 : tensor<8x1x6xf64>
}
// CHECK: tx.reshape @reshape_chain: split a b c d e; partial 0{{ *$}}
// GRAD: gradient of reshape_chain: 0{{$}}
func.func @reshape_chain(%x: tensor<2x8x4xf64>) -> tensor<4x8x2xf64> {
  %0 = tx.reshape %x : tensor<2x8x4xf64> -> tensor<4x8x2xf64>
  return %0 : tensor<4x8x2xf64>
}
// CHECK: tx.transpose @transpose: split a b c; partial 0{{ *$}}
// GRAD: gradient of transpose: 0{{$}}
func.func @transpose(%x: tensor<2x4x6xf64>) -> tensor<6x2x4xf64> {
  %0 = tx.transpose %x [2, 0, 1] : tensor<2x4x6xf64> -> tensor<6x2x4xf64>
  return %0 : tensor<6x2x4xf64>
}
// CHECK: tx.broadcast @broadcast: split b a c; partial 0{{ *$}}
// GRAD: gradient of broadcast: 0{{$}}
func.func @broadcast(%x: tensor<4x1xf64>) -> tensor<2x4x6xf64> {
  %0 = tx.broadcast %x : tensor<4x1xf64> -> tensor<2x4x6xf64>
  return %0 : tensor<2x4x6xf64>
}
// CHECK: tx.broadcast @broadcast_bias: split c a b; partial 0{{ *$}}
// GRAD: gradient of broadcast_bias: 0{{$}}
func.func @broadcast_bias(%x: tensor<6xf64>) -> tensor<2x4x6xf64> {
  %0 = tx.broadcast %x : tensor<6xf64> -> tensor<2x4x6xf64>
  return %0 : tensor<2x4x6xf64>
}
// CHECK: tx.slice @slice: split a; partial 0{{ *$}}
// GRAD: gradient of slice: 0{{$}}
func.func @slice(%x: tensor<4x6xf64>) -> tensor<4x2xf64> {
  %0 = tx.slice %x [0, 1] by [1, 2] : tensor<4x6xf64> -> tensor<4x2xf64>
  return %0 : tensor<4x2xf64>
}
// CHECK: tx.slice @slice_back: split a; partial 0{{ *$}}
// GRAD: gradient of slice_back: 0{{$}}
func.func @slice_back(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %0 = tx.slice %x [0, 5] by [1, -1] : tensor<4x6xf64> -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}
// CHECK: tx.pad @pad: split a; partial 0{{ *$}}
// GRAD: gradient of pad: 0{{$}}
func.func @pad(%x: tensor<4x2xf64>) -> tensor<4x6xf64> {
  %0 = tx.pad %x [0, 1] by [1, 2] : tensor<4x2xf64> -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}
// Within the blocks that a slice cuts.
// CHECK: tx.slice @slice_block: split a c; partial 0{{ *$}}
// GRAD: gradient of slice_block: 0{{$}}
func.func @slice_block(%x: tensor<4x12xf64>) -> tensor<4x4xf64> {
  %0 = tx.slice %x [0, 8] by [1, 1] : tensor<4x12xf64> -> tensor<4x4xf64>
  return %0 : tensor<4x4xf64>
}
// CHECK: tx.pad @pad_block: split a c; partial 0{{ *$}}
// GRAD: gradient of pad_block: 0{{$}}
func.func @pad_block(%x: tensor<4x4xf64>) -> tensor<4x12xf64> {
  %0 = tx.pad %x [0, 4] by [1, 1] : tensor<4x4xf64> -> tensor<4x12xf64>
  return %0 : tensor<4x12xf64>
}
// CHECK: tx.concat @concat_blocks: split a y; partial 0+1{{ *$}}
// GRAD: gradient of concat_blocks: 0 1{{$}}
func.func @concat_blocks(%a: tensor<4x4xf64>, %b: tensor<4x4xf64>) -> tensor<4x8xf64> {
  %0 = tx.concat %a, %b along 1 : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x8xf64>
  return %0 : tensor<4x8xf64>
}
// CHECK: tx.concat @concat: split a; partial 0+1{{ *$}}
// GRAD: gradient of concat: 0 1{{$}}
func.func @concat(%a: tensor<4x2xf64>, %b: tensor<4x4xf64>) -> tensor<4x6xf64> {
  %0 = tx.concat %a, %b along 1 : (tensor<4x2xf64>, tensor<4x4xf64>) -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}
// CHECK: tx.reduce_sum @reduce_sum: split a b c; partial 0{{ *$}}
// GRAD: gradient of reduce_sum: 0{{$}}
func.func @reduce_sum(%x: tensor<2x4x6xf64>) -> tensor<4xf64> {
  %0 = tx.reduce_sum %x [0, 2] : tensor<2x4x6xf64> -> tensor<4xf64>
  return %0 : tensor<4xf64>
}
// CHECK: tx.reduce_mean @reduce_mean: split b; partial 0{{ *$}}
// GRAD: gradient of reduce_mean: 0{{$}}
func.func @reduce_mean(%x: tensor<2x4x6xf64>) -> tensor<4xf64> {
  %0 = tx.reduce_mean %x [0, 2] : tensor<2x4x6xf64> -> tensor<4xf64>
  return %0 : tensor<4xf64>
}
// CHECK: tx.reduce_max @reduce_max: split a b c; partial{{ *$}}
// GRAD: gradient of reduce_max: 0{{$}}
func.func @reduce_max(%x: tensor<2x4x6xf64>) -> tensor<4xf64> {
  %0 = tx.reduce_max %x [0, 2] : tensor<2x4x6xf64> -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// Matmuls.

// CHECK: tx.matmul @matmul: split *0 *1 k n; partial 0 1{{ *$}}
// GRAD: gradient of matmul: 0 1{{$}}
func.func @matmul(%a: tensor<2x4x6xf64>, %b: tensor<6x8xf64>) -> tensor<2x4x8xf64> {
  %0 = tx.matmul %a, %b : (tensor<2x4x6xf64>, tensor<6x8xf64>) -> tensor<2x4x8xf64>
  return %0 : tensor<2x4x8xf64>
}
// CHECK: tx.matmul_nt @matmul_nt: split *0 *1 k n; partial 0 1{{ *$}}
// GRAD: gradient of matmul_nt: 0 1{{$}}
func.func @matmul_nt(%a: tensor<2x4x6xf64>, %b: tensor<8x6xf64>) -> tensor<2x4x8xf64> {
  %0 = tx.matmul_nt %a, %b : (tensor<2x4x6xf64>, tensor<8x6xf64>) -> tensor<2x4x8xf64>
  return %0 : tensor<2x4x8xf64>
}
// CHECK: tx.matmul_tn @matmul_tn: split *0 *1 k n; partial 0 1{{ *$}}
// GRAD: gradient of matmul_tn: 0 1{{$}}
func.func @matmul_tn(%a: tensor<2x4x6xf64>, %b: tensor<2x4x8xf64>) -> tensor<6x8xf64> {
  %0 = tx.matmul_tn %a, %b : (tensor<2x4x6xf64>, tensor<2x4x8xf64>) -> tensor<6x8xf64>
  return %0 : tensor<6x8xf64>
}
// CHECK: tx.batch_matmul @batch_matmul: split *0 m k n; partial 0 1{{ *$}}
// GRAD: gradient of batch_matmul: 0 1{{$}}
func.func @batch_matmul(%a: tensor<2x4x6xf64>, %b: tensor<2x6x8xf64>) -> tensor<2x4x8xf64> {
  %0 = tx.batch_matmul %a, %b : (tensor<2x4x6xf64>, tensor<2x6x8xf64>) -> tensor<2x4x8xf64>
  return %0 : tensor<2x4x8xf64>
}
// CHECK: tx.matmul_bias @matmul_bias: split *0 *1 n; partial{{ *$}}
// GRAD: gradient of matmul_bias: none{{$}}
func.func @matmul_bias(%a: tensor<2x4x6xf64>, %b: tensor<6x8xf64>, %bias: tensor<8xf64>) -> tensor<2x4x8xf64> {
  %0 = tx.matmul_bias %a, %b plus %bias : (tensor<2x4x6xf64>, tensor<6x8xf64>, tensor<8xf64>) -> tensor<2x4x8xf64>
  return %0 : tensor<2x4x8xf64>
}
// CHECK: tx.matmul_nt_bias @matmul_nt_bias: split *0 *1 n; partial{{ *$}}
// GRAD: gradient of matmul_nt_bias: none{{$}}
func.func @matmul_nt_bias(%a: tensor<2x4x6xf64>, %b: tensor<8x6xf64>, %bias: tensor<8xf64>) -> tensor<2x4x8xf64> {
  %0 = tx.matmul_nt_bias %a, %b plus %bias : (tensor<2x4x6xf64>, tensor<8x6xf64>, tensor<8xf64>) -> tensor<2x4x8xf64>
  return %0 : tensor<2x4x8xf64>
}

// Rows.

// CHECK: tx.softmax @softmax: split *0 *1; partial{{ *$}}
// GRAD: gradient of softmax: 0{{$}}
func.func @softmax(%x: tensor<2x4x6xf64>) -> tensor<2x4x6xf64> {
  %0 = tx.softmax %x : (tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  return %0 : tensor<2x4x6xf64>
}
// CHECK: tx.softmax_grad @softmax_grad: split *0 *1; partial 1{{ *$}}
// GRAD: gradient of softmax_grad: none{{$}}
func.func @softmax_grad(%y: tensor<2x4x6xf64>, %dy: tensor<2x4x6xf64>) -> tensor<2x4x6xf64> {
  %0 = tx.softmax_grad %y, %dy : (tensor<2x4x6xf64>, tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  return %0 : tensor<2x4x6xf64>
}
// CHECK: tx.layer_norm @layer_norm: split *0 *1 n!; partial{{ *$}}
// GRAD: gradient of layer_norm: 0 1 2{{$}}
func.func @layer_norm(%x: tensor<2x4x6xf64>, %w: tensor<6xf64>, %b: tensor<6xf64>) -> (tensor<2x4x6xf64>, tensor<2x4xf64>, tensor<2x4xf64>) {
  %0:3 = tx.layer_norm %x, %w, %b eps 1.0e-5 : (tensor<2x4x6xf64>, tensor<6xf64>, tensor<6xf64>) -> (tensor<2x4x6xf64>, tensor<2x4xf64>, tensor<2x4xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x4x6xf64>, tensor<2x4xf64>, tensor<2x4xf64>
}
// CHECK: tx.layer_norm_grad @layer_norm_grad: split *0 *1; partial 4{{ *$}}
// GRAD: gradient of layer_norm_grad: none{{$}}
func.func @layer_norm_grad(%x: tensor<2x4x6xf64>, %w: tensor<6xf64>, %mean: tensor<2x4xf64>, %rstd: tensor<2x4xf64>, %dy: tensor<2x4x6xf64>) -> (tensor<2x4x6xf64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>) {
  %0:4 = tx.layer_norm_grad %x, %w, %mean, %rstd, %dy : (tensor<2x4x6xf64>, tensor<6xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4x6xf64>) -> (tensor<2x4x6xf64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x4x6xf64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>
}

// CHECK: tx.layer_norm_grad_add @layer_norm_grad_add: split *0 *1; partial{{ *$}}
// GRAD: gradient of layer_norm_grad_add: none{{$}}
func.func @layer_norm_grad_add(%x: tensor<2x4x6xf64>, %w: tensor<6xf64>, %mean: tensor<2x4xf64>, %rstd: tensor<2x4xf64>, %dy: tensor<2x4x6xf64>, %add: tensor<2x4x6xf64>) -> (tensor<2x4x6xf64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>) {
  %0:4 = tx.layer_norm_grad_add %x, %w, %mean, %rstd, %dy, %add : (tensor<2x4x6xf64>, tensor<6xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4x6xf64>, tensor<2x4x6xf64>) -> (tensor<2x4x6xf64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x4x6xf64>, tensor<6xf64>, tensor<6xf64>, tensor<6xf64>
}

// CHECK: tx.rms_norm @rms_norm: split *0 *1 n!; partial{{ *$}}
// GRAD: gradient of rms_norm: 0 1{{$}}
func.func @rms_norm(%x: tensor<2x4x6xf64>, %w: tensor<6xf64>) -> (tensor<2x4x6xf64>, tensor<2x4xf64>) {
  %0:2 = tx.rms_norm %x, %w eps 1.0e-5 : (tensor<2x4x6xf64>, tensor<6xf64>) -> (tensor<2x4x6xf64>, tensor<2x4xf64>)
  return %0#0, %0#1 : tensor<2x4x6xf64>, tensor<2x4xf64>
}
// CHECK: tx.rms_norm_grad @rms_norm_grad: split *0 *1; partial 3{{ *$}}
// GRAD: gradient of rms_norm_grad: none{{$}}
func.func @rms_norm_grad(%x: tensor<2x4x6xf64>, %w: tensor<6xf64>, %rstd: tensor<2x4xf64>, %dy: tensor<2x4x6xf64>) -> (tensor<2x4x6xf64>, tensor<6xf64>) {
  %0:2 = tx.rms_norm_grad %x, %w, %rstd, %dy : (tensor<2x4x6xf64>, tensor<6xf64>, tensor<2x4xf64>, tensor<2x4x6xf64>) -> (tensor<2x4x6xf64>, tensor<6xf64>)
  return %0#0, %0#1 : tensor<2x4x6xf64>, tensor<6xf64>
}
// CHECK: tx.rms_norm_grad_add @rms_norm_grad_add: split *0 *1; partial{{ *$}}
// GRAD: gradient of rms_norm_grad_add: none{{$}}
func.func @rms_norm_grad_add(%x: tensor<2x4x6xf64>, %w: tensor<6xf64>, %rstd: tensor<2x4xf64>, %dy: tensor<2x4x6xf64>, %add: tensor<2x4x6xf64>) -> (tensor<2x4x6xf64>, tensor<6xf64>) {
  %0:2 = tx.rms_norm_grad_add %x, %w, %rstd, %dy, %add : (tensor<2x4x6xf64>, tensor<6xf64>, tensor<2x4xf64>, tensor<2x4x6xf64>, tensor<2x4x6xf64>) -> (tensor<2x4x6xf64>, tensor<6xf64>)
  return %0#0, %0#1 : tensor<2x4x6xf64>, tensor<6xf64>
}
// CHECK: tx.rotary @rotary: split *0 *1; partial 0{{ *$}}
// GRAD: gradient of rotary: none{{$}}
func.func @rotary(%x: tensor<2x4x6xf64>, %cos: tensor<2x4x6xf64>, %sin: tensor<2x4x6xf64>) -> tensor<2x4x6xf64> {
  %0 = tx.rotary %x, %cos, %sin back : (tensor<2x4x6xf64>, tensor<2x4x6xf64>, tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  return %0 : tensor<2x4x6xf64>
}

// Attention.

// CHECK: tx.attention @attention: split b h; partial{{ *$}}
// GRAD: gradient of attention: 0 1 2{{$}}
func.func @attention(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>) {
  %0:2 = tx.attention %q, %k, %v scale 0.5 : (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>)
  return %0#0, %0#1 : tensor<2x4x2x4xf64>, tensor<2x2x4xf64>
}
// CHECK: tx.attention @attention_causal: split b h; partial{{ *$}}
// GRAD: gradient of attention_causal: 0 1 2{{$}}
func.func @attention_causal(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>) {
  %0:2 = tx.attention %q, %k, %v scale 0.5 causal : (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>)
  return %0#0, %0#1 : tensor<2x4x2x4xf64>, tensor<2x2x4xf64>
}
// First keys.
// CHECK: tx.attention @attention_documents: split b h; partial{{ *$}}
// GRAD: gradient of attention_documents: 0 1 2{{$}}
func.func @attention_documents(%q: tensor<2x4x2x6xf64>, %k: tensor<2x4x2x6xf64>, %v: tensor<2x4x2x4xf64>, %f: tensor<2x4xi32> {interp.range = [0, 0]}) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>) {
  %0:2 = tx.attention %q, %k, %v from %f scale 0.5 causal : (tensor<2x4x2x6xf64>, tensor<2x4x2x6xf64>, tensor<2x4x2x4xf64>, tensor<2x4xi32>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>)
  return %0#0, %0#1 : tensor<2x4x2x4xf64>, tensor<2x2x4xf64>
}
// CHECK: tx.attention_grad @attention_documents_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of attention_documents_grad: none{{$}}
func.func @attention_documents_grad(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %out: tensor<2x4x2x4xf64>, %lse: tensor<2x2x4xf64>, %dout: tensor<2x4x2x4xf64>, %bias: tensor<1x1x4x6xf64>, %f: tensor<2x4xi32> {interp.range = [1, 1]}) -> (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<1x1x4x6xf64>) {
  %0:4 = tx.attention_grad %q, %k, %v, %out, %lse, %dout bias %bias from %f scale 0.5 causal : (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x4x2x4xf64>, tensor<2x2x4xf64>, tensor<2x4x2x4xf64>, tensor<1x1x4x6xf64>, tensor<2x4xi32>) -> (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<1x1x4x6xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<1x1x4x6xf64>
}
// CHECK: tx.document_starts @document_starts: split *0; partial{{ *$}}
// GRAD: gradient of document_starts: none{{$}}
func.func @document_starts(%ids: tensor<2x4xi64> {interp.range = [3, 3]}) -> tensor<2x4xi32> {
  %0 = tx.document_starts %ids : (tensor<2x4xi64>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}
// CHECK: tx.attention_grad @attention_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of attention_grad: none{{$}}
func.func @attention_grad(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %out: tensor<2x4x2x4xf64>, %lse: tensor<2x2x4xf64>, %dout: tensor<2x4x2x4xf64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>) {
  %0:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal : (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x4x2x4xf64>, tensor<2x2x4xf64>, tensor<2x4x2x4xf64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>
}
// The sums of rows, with a bias and a single key head, too.
// CHECK: tx.attention_grad @attention_grad_sums: split b h; partial 5{{ *$}}
func.func @attention_grad_sums(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %out: tensor<2x4x2x4xf64>, %lse: tensor<2x2x4xf64>, %dout: tensor<2x4x2x4xf64>, %bias: tensor<1x2x4x6xf64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<1x2x4x6xf64>, tensor<2x6xf64>, tensor<2x6xf64>, tensor<2x4xf64>) {
  %0:7 = tx.attention_grad %q, %k, %v, %out, %lse, %dout bias %bias scale 0.5 causal sums : (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x4x2x4xf64>, tensor<2x2x4xf64>, tensor<2x4x2x4xf64>, tensor<1x2x4x6xf64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<1x2x4x6xf64>, tensor<2x6xf64>, tensor<2x6xf64>, tensor<2x4xf64>)
  return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5, %0#6 : tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<1x2x4x6xf64>, tensor<2x6xf64>, tensor<2x6xf64>, tensor<2x4xf64>
}
// CHECK: tx.attention_grad @attention_one_key_head_sums: split b h; partial 5{{ *$}}
func.func @attention_one_key_head_sums(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x1x6xf64>, %v: tensor<2x6x1x4xf64>, %out: tensor<2x4x2x4xf64>, %lse: tensor<2x2x4xf64>, %dout: tensor<2x4x2x4xf64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<2x6xf64>, tensor<1x6xf64>, tensor<1x4xf64>) {
  %0:6 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal sums : (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<2x4x2x4xf64>, tensor<2x2x4xf64>, tensor<2x4x2x4xf64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<2x6xf64>, tensor<1x6xf64>, tensor<1x4xf64>)
  return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5 : tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<2x6xf64>, tensor<1x6xf64>, tensor<1x4xf64>
}

// Four query heads read two key heads; with one, the query heads alone are split and the key's cotangent is
// a sum over them.
// CHECK: tx.attention @attention_grouped: split b h; partial{{ *$}}
// GRAD: gradient of attention_grouped: 0 1 2{{$}}
func.func @attention_grouped(%q: tensor<2x4x4x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>) -> (tensor<2x4x4x4xf64>, tensor<2x4x4xf64>) {
  %0:2 = tx.attention %q, %k, %v scale 0.5 causal : (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>) -> (tensor<2x4x4x4xf64>, tensor<2x4x4xf64>)
  return %0#0, %0#1 : tensor<2x4x4x4xf64>, tensor<2x4x4xf64>
}
// CHECK: tx.attention_grad @attention_grouped_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of attention_grouped_grad: none{{$}}
func.func @attention_grouped_grad(%q: tensor<2x4x4x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %out: tensor<2x4x4x4xf64>, %lse: tensor<2x4x4xf64>, %dout: tensor<2x4x4x4xf64>) -> (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>) {
  %0:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal : (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x4x4x4xf64>, tensor<2x4x4xf64>, tensor<2x4x4x4xf64>) -> (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>
}
// CHECK: tx.attention @attention_one_key_head: split b h; partial{{ *$}}
// GRAD: gradient of attention_one_key_head: 0 1 2{{$}}
func.func @attention_one_key_head(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x1x6xf64>, %v: tensor<2x6x1x4xf64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>) {
  %0:2 = tx.attention %q, %k, %v scale 0.5 causal : (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>)
  return %0#0, %0#1 : tensor<2x4x2x4xf64>, tensor<2x2x4xf64>
}
// CHECK: tx.attention_grad @attention_one_key_head_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of attention_one_key_head_grad: none{{$}}
func.func @attention_one_key_head_grad(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x1x6xf64>, %v: tensor<2x6x1x4xf64>, %out: tensor<2x4x2x4xf64>, %lse: tensor<2x2x4xf64>, %dout: tensor<2x4x2x4xf64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>) {
  %0:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal : (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<2x4x2x4xf64>, tensor<2x2x4xf64>, tensor<2x4x2x4xf64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>
}

// A bias is split along with what it has, and its cotangent a sum over what it lacks.
// CHECK: tx.attention @attention_bias: split b h; partial{{ *$}}
// GRAD: gradient of attention_bias: 0 1 2 3{{$}}
func.func @attention_bias(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %bias: tensor<2x2x4x6xf64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>) {
  %0:2 = tx.attention %q, %k, %v bias %bias scale 0.5  : (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x2x4x6xf64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>)
  return %0#0, %0#1 : tensor<2x4x2x4xf64>, tensor<2x2x4xf64>
}
// CHECK: tx.attention_grad @attention_bias_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of attention_bias_grad: none{{$}}
func.func @attention_bias_grad(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %out: tensor<2x4x2x4xf64>, %lse: tensor<2x2x4xf64>, %dout: tensor<2x4x2x4xf64>, %bias: tensor<2x2x4x6xf64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x2x4x6xf64>) {
  %0:4 = tx.attention_grad %q, %k, %v, %out, %lse, %dout bias %bias scale 0.5  : (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x4x2x4xf64>, tensor<2x2x4xf64>, tensor<2x4x2x4xf64>, tensor<2x2x4x6xf64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x2x4x6xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x2x4x6xf64>
}
// CHECK: tx.attention @attention_bias_shared: split b h; partial{{ *$}}
// GRAD: gradient of attention_bias_shared: 0 1 2 3{{$}}
func.func @attention_bias_shared(%q: tensor<2x4x4x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %bias: tensor<1x4x4x6xf64>) -> (tensor<2x4x4x4xf64>, tensor<2x4x4xf64>) {
  %0:2 = tx.attention %q, %k, %v bias %bias scale 0.5 causal window 2 : (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<1x4x4x6xf64>) -> (tensor<2x4x4x4xf64>, tensor<2x4x4xf64>)
  return %0#0, %0#1 : tensor<2x4x4x4xf64>, tensor<2x4x4xf64>
}
// CHECK: tx.attention_grad @attention_bias_shared_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of attention_bias_shared_grad: none{{$}}
func.func @attention_bias_shared_grad(%q: tensor<2x4x4x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %out: tensor<2x4x4x4xf64>, %lse: tensor<2x4x4xf64>, %dout: tensor<2x4x4x4xf64>, %bias: tensor<1x4x4x6xf64>) -> (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<1x4x4x6xf64>) {
  %0:4 = tx.attention_grad %q, %k, %v, %out, %lse, %dout bias %bias scale 0.5 causal window 2 : (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x4x4x4xf64>, tensor<2x4x4xf64>, tensor<2x4x4x4xf64>, tensor<1x4x4x6xf64>) -> (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<1x4x4x6xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<1x4x4x6xf64>
}
// CHECK: tx.attention @attention_bias_padding: split b h; partial{{ *$}}
// GRAD: gradient of attention_bias_padding: 0 1 2 3{{$}}
func.func @attention_bias_padding(%q: tensor<2x4x4x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %bias: tensor<2x1x1x6xf64>) -> (tensor<2x4x4x4xf64>, tensor<2x4x4xf64>) {
  %0:2 = tx.attention %q, %k, %v bias %bias scale 0.5  : (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x1x1x6xf64>) -> (tensor<2x4x4x4xf64>, tensor<2x4x4xf64>)
  return %0#0, %0#1 : tensor<2x4x4x4xf64>, tensor<2x4x4xf64>
}
// CHECK: tx.attention_grad @attention_bias_padding_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of attention_bias_padding_grad: none{{$}}
func.func @attention_bias_padding_grad(%q: tensor<2x4x4x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %out: tensor<2x4x4x4xf64>, %lse: tensor<2x4x4xf64>, %dout: tensor<2x4x4x4xf64>, %bias: tensor<2x1x1x6xf64>) -> (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x1x1x6xf64>) {
  %0:4 = tx.attention_grad %q, %k, %v, %out, %lse, %dout bias %bias scale 0.5  : (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x4x4x4xf64>, tensor<2x4x4xf64>, tensor<2x4x4x4xf64>, tensor<2x1x1x6xf64>) -> (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x1x1x6xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x1x1x6xf64>
}
// CHECK: tx.attention @attention_bias_one_key_head: split b h; partial{{ *$}}
// GRAD: gradient of attention_bias_one_key_head: 0 1 2 3{{$}}
func.func @attention_bias_one_key_head(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x1x6xf64>, %v: tensor<2x6x1x4xf64>, %bias: tensor<1x1x1x6xf64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>) {
  %0:2 = tx.attention %q, %k, %v bias %bias scale 0.5 zero_hidden : (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<1x1x1x6xf64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>)
  return %0#0, %0#1 : tensor<2x4x2x4xf64>, tensor<2x2x4xf64>
}
// CHECK: tx.attention_grad @attention_bias_one_key_head_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of attention_bias_one_key_head_grad: none{{$}}
func.func @attention_bias_one_key_head_grad(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x1x6xf64>, %v: tensor<2x6x1x4xf64>, %out: tensor<2x4x2x4xf64>, %lse: tensor<2x2x4xf64>, %dout: tensor<2x4x2x4xf64>, %bias: tensor<1x1x1x6xf64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<1x1x1x6xf64>) {
  %0:4 = tx.attention_grad %q, %k, %v, %out, %lse, %dout bias %bias scale 0.5 zero_hidden : (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<2x4x2x4xf64>, tensor<2x2x4xf64>, tensor<2x4x2x4xf64>, tensor<1x1x1x6xf64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<1x1x1x6xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<1x1x1x6xf64>
}

// CHECK: tx.rotate_half @rotate_half: split *0 *1; partial 0{{ *$}}
// GRAD: gradient of rotate_half: 0{{$}}
func.func @rotate_half(%x: tensor<2x4x6xf64>) -> tensor<2x4x6xf64> {
  %0 = tx.rotate_half %x : (tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  return %0 : tensor<2x4x6xf64>
}
// CHECK: tx.rotate_half @rotate_half_interleaved: split *0 *1; partial 0{{ *$}}
// GRAD: gradient of rotate_half_interleaved: 0{{$}}
func.func @rotate_half_interleaved(%x: tensor<2x4x6xf64>) -> tensor<2x4x6xf64> {
  %0 = tx.rotate_half %x interleaved : (tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  return %0 : tensor<2x4x6xf64>
}

// Repeated indices: a rank repeats what its shard of the result holds.

// CHECK: tx.repeat @repeat: split z a b; partial 0{{ *$}}
// GRAD: gradient of repeat: 0{{$}}
func.func @repeat(%x: tensor<2x3x4xf64>) -> tensor<2x6x4xf64> {
  %0 = tx.repeat %x times 2 along 1 : (tensor<2x3x4xf64>) -> tensor<2x6x4xf64>
  return %0 : tensor<2x6x4xf64>
}
// CHECK: tx.repeat_sum @repeat_sum: split z a b; partial 0{{ *$}}
// GRAD: gradient of repeat_sum: 0{{$}}
func.func @repeat_sum(%x: tensor<2x6x4xf64>) -> tensor<2x3x4xf64> {
  %0 = tx.repeat_sum %x times 2 along 1 : (tensor<2x6x4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

// Dropout of attention's probabilities: a shard drops what the full tensor drops there.

// CHECK: tx.attention @attention_dropout: split b h; partial{{ *$}}
// GRAD: gradient of attention_dropout: 0 1 2{{$}}
func.func @attention_dropout(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %key: tensor<i64>, %micro: tensor<i64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>) {
  %0:2 = tx.attention %q, %k, %v scale 0.5 causal dropout 0.3 id 7 key %key micro %micro : (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<i64>, tensor<i64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>)
  return %0#0, %0#1 : tensor<2x4x2x4xf64>, tensor<2x2x4xf64>
}
// CHECK: tx.attention_grad @attention_dropout_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of attention_dropout_grad: none{{$}}
func.func @attention_dropout_grad(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %out: tensor<2x4x2x4xf64>, %lse: tensor<2x2x4xf64>, %dout: tensor<2x4x2x4xf64>, %key: tensor<i64>, %micro: tensor<i64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>) {
  %0:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal dropout 0.3 id 7 key %key micro %micro : (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x4x2x4xf64>, tensor<2x2x4xf64>, tensor<2x4x2x4xf64>, tensor<i64>, tensor<i64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x4x2x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>
}
// CHECK: tx.attention @attention_dropout_grouped: split b h; partial{{ *$}}
// GRAD: gradient of attention_dropout_grouped: 0 1 2{{$}}
func.func @attention_dropout_grouped(%q: tensor<2x4x4x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %f: tensor<2x4xi32> {interp.range = [0, 0]}, %key: tensor<i64>, %micro: tensor<i64>) -> (tensor<2x4x4x4xf64>, tensor<2x4x4xf64>) {
  %0:2 = tx.attention %q, %k, %v from %f scale 0.5 causal dropout 0.3 id 7 key %key micro %micro : (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x4xi32>, tensor<i64>, tensor<i64>) -> (tensor<2x4x4x4xf64>, tensor<2x4x4xf64>)
  return %0#0, %0#1 : tensor<2x4x4x4xf64>, tensor<2x4x4xf64>
}
// CHECK: tx.attention_grad @attention_dropout_grouped_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of attention_dropout_grouped_grad: none{{$}}
func.func @attention_dropout_grouped_grad(%q: tensor<2x4x4x6xf64>, %k: tensor<2x6x2x6xf64>, %v: tensor<2x6x2x4xf64>, %out: tensor<2x4x4x4xf64>, %lse: tensor<2x4x4xf64>, %dout: tensor<2x4x4x4xf64>, %key: tensor<i64>, %micro: tensor<i64>) -> (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>) {
  %0:3 = tx.attention_grad %q, %k, %v, %out, %lse, %dout scale 0.5 causal dropout 0.3 id 7 key %key micro %micro : (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>, tensor<2x4x4x4xf64>, tensor<2x4x4xf64>, tensor<2x4x4x4xf64>, tensor<i64>, tensor<i64>) -> (tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x4x4x6xf64>, tensor<2x6x2x6xf64>, tensor<2x6x2x4xf64>
}
// CHECK: tx.attention @attention_dropout_one_key_head: split b h; partial{{ *$}}
// GRAD: gradient of attention_dropout_one_key_head: 0 1 2 3{{$}}
func.func @attention_dropout_one_key_head(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x1x6xf64>, %v: tensor<2x6x1x4xf64>, %bias: tensor<1x2x4x6xf64>, %key: tensor<i64>, %micro: tensor<i64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>) {
  %0:2 = tx.attention %q, %k, %v bias %bias scale 0.5 causal dropout 0.3 id 7 key %key micro %micro : (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<1x2x4x6xf64>, tensor<i64>, tensor<i64>) -> (tensor<2x4x2x4xf64>, tensor<2x2x4xf64>)
  return %0#0, %0#1 : tensor<2x4x2x4xf64>, tensor<2x2x4xf64>
}
// CHECK: tx.attention_grad @attention_dropout_one_key_head_grad: split b h; partial 5{{ *$}}
// GRAD: gradient of attention_dropout_one_key_head_grad: none{{$}}
func.func @attention_dropout_one_key_head_grad(%q: tensor<2x4x2x6xf64>, %k: tensor<2x6x1x6xf64>, %v: tensor<2x6x1x4xf64>, %out: tensor<2x4x2x4xf64>, %lse: tensor<2x2x4xf64>, %dout: tensor<2x4x2x4xf64>, %bias: tensor<1x2x4x6xf64>, %key: tensor<i64>, %micro: tensor<i64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<1x2x4x6xf64>) {
  %0:4 = tx.attention_grad %q, %k, %v, %out, %lse, %dout bias %bias scale 0.5 causal dropout 0.3 id 7 key %key micro %micro : (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<2x4x2x4xf64>, tensor<2x2x4xf64>, tensor<2x4x2x4xf64>, tensor<1x2x4x6xf64>, tensor<i64>, tensor<i64>) -> (tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<1x2x4x6xf64>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<2x4x2x6xf64>, tensor<2x6x1x6xf64>, tensor<2x6x1x4xf64>, tensor<1x2x4x6xf64>
}

// Dropout: a shard drops the elements that the full tensor drops there.

// CHECK: tx.dropout @dropout: split a b c; partial 0{{ *$}}
// GRAD: gradient of dropout: 0{{$}}
func.func @dropout(%x: tensor<2x4x6xf64>, %key: tensor<i64>, %micro: tensor<i64>) -> tensor<2x4x6xf64> {
  %0 = tx.dropout %x ratio 0.3 id 7 key %key micro %micro : (tensor<2x4x6xf64>, tensor<i64>, tensor<i64>) -> tensor<2x4x6xf64>
  return %0 : tensor<2x4x6xf64>
}
// CHECK: tx.dropout @dropout_off: split a b; partial 0{{ *$}}
// GRAD: gradient of dropout_off: 0{{$}}
func.func @dropout_off(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.dropout %x ratio 0.3 id 7 : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

// Tokens.

// CHECK: tx.embedding @embedding: split v h *0 *1; partial 0{{ *$}}
// GRAD: gradient of embedding: 0{{$}}
func.func @embedding(%table: tensor<4x6xf64>, %ids: tensor<2x4xi64>) -> tensor<2x4x6xf64> {
  %0 = tx.embedding %table, %ids : (tensor<4x6xf64>, tensor<2x4xi64>) -> tensor<2x4x6xf64>
  return %0 : tensor<2x4x6xf64>
}
// CHECK: tx.embedding_grad @embedding_grad_padding: split v *0 *1 h; partial 1{{ *$}}
// GRAD: gradient of embedding_grad_padding: 1{{$}}
func.func @embedding_grad_padding(%ids: tensor<2x4xi64>, %dy: tensor<2x4x6xf64>) -> tensor<4x6xf64> {
  %0 = tx.embedding_grad %ids, %dy padding 1 : (tensor<2x4xi64>, tensor<2x4x6xf64>) -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}
// CHECK: tx.embedding_grad @embedding_grad: split v *0 *1 h; partial 1{{ *$}}
// GRAD: gradient of embedding_grad: 1{{$}}
func.func @embedding_grad(%ids: tensor<2x4xi64>, %dy: tensor<2x4x6xf64>) -> tensor<4x6xf64> {
  %0 = tx.embedding_grad %ids, %dy : (tensor<2x4xi64>, tensor<2x4x6xf64>) -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}
// CHECK: tx.take @take: split *0 *1 h m; partial 0{{ *$}}
// GRAD: gradient of take: 0{{$}}
func.func @take(%x: tensor<2x4x6x2xf64>, %ids: tensor<2x4x4xi64>) -> tensor<2x4x4x2xf64> {
  %0 = tx.take %x, %ids : (tensor<2x4x6x2xf64>, tensor<2x4x4xi64>) -> tensor<2x4x4x2xf64>
  return %0 : tensor<2x4x4x2xf64>
}
// CHECK: tx.take_grad @take_grad: split *0 *1 m h; partial 1{{ *$}}
// GRAD: gradient of take_grad: 1{{$}}
func.func @take_grad(%ids: tensor<2x4x4xi64>, %dy: tensor<2x4x4x2xf64>) -> tensor<2x4x6x2xf64> {
  %0 = tx.take_grad %ids, %dy : (tensor<2x4x4xi64>, tensor<2x4x4x2xf64>) -> tensor<2x4x6x2xf64>
  return %0 : tensor<2x4x6x2xf64>
}
// CHECK: tx.cross_entropy @cross_entropy: split *0 *1 n!; partial{{ *$}}
// GRAD: gradient of cross_entropy: 0{{$}}
func.func @cross_entropy(%logits: tensor<2x4x6xf64>, %labels: tensor<2x4xi64>) -> (tensor<2x4xf64>, tensor<2x4xf64>) {
  %0:2 = tx.cross_entropy %logits, %labels ignore 3 : (tensor<2x4x6xf64>, tensor<2x4xi64>) -> (tensor<2x4xf64>, tensor<2x4xf64>)
  return %0#0, %0#1 : tensor<2x4xf64>, tensor<2x4xf64>
}
// CHECK: tx.cross_entropy_grad @cross_entropy_grad: split n *0 *1; partial 3{{ *$}}
// GRAD: gradient of cross_entropy_grad: none{{$}}
func.func @cross_entropy_grad(%logits: tensor<2x4x6xf64>, %labels: tensor<2x4xi64>, %lse: tensor<2x4xf64>, %dloss: tensor<2x4xf64>) -> tensor<2x4x6xf64> {
  %0 = tx.cross_entropy_grad %logits, %labels, %lse, %dloss ignore 3 : (tensor<2x4x6xf64>, tensor<2x4xi64>, tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4x6xf64>
  return %0 : tensor<2x4x6xf64>
}
// CHECK: tx.log_sum_exp @log_sum_exp: split n *0 *1; partial{{ *$}}
// GRAD: gradient of log_sum_exp: none{{$}}
func.func @log_sum_exp(%x: tensor<2x4x6xf64>) -> tensor<2x4x2xf64> {
  %0 = tx.log_sum_exp %x : (tensor<2x4x6xf64>) -> tensor<2x4x2xf64>
  return %0 : tensor<2x4x2xf64>
}
// Its gradient contains what flows through lse, which cross_entropy's split form above proves.
// CHECK: tx.token_loss @token_loss: split n *0 *1; partial{{ *$}}
// GRAD-NOT: gradient of token_loss
func.func @token_loss(%logits: tensor<2x4x6xf64>, %labels: tensor<2x4xi64>, %lse: tensor<2x4xf64>) -> tensor<2x4xf64> attributes {interp.no_differences} {
  %0 = tx.token_loss %logits, %labels, %lse ignore 3 : (tensor<2x4x6xf64>, tensor<2x4xi64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.classifier_loss @classifier_loss: split *0 *1; partial{{ *$}}
// GRAD: gradient of classifier_loss: none{{$}}
func.func @classifier_loss(%x: tensor<2x4x2xf64>, %w: tensor<6x2xf64>, %labels: tensor<2x4xi64>) -> tensor<2x4xf64> {
  %0 = tx.classifier_loss %x, %w, %labels ignore 3 : (tensor<2x4x2xf64>, tensor<6x2xf64>, tensor<2x4xi64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.classifier_loss_grad @classifier_loss_grad: split *0 *1; partial{{ *$}}
// GRAD: gradient of classifier_loss_grad: none{{$}}
func.func @classifier_loss_grad(%x: tensor<2x4x2xf64>, %w: tensor<6x2xf64>, %labels: tensor<2x4xi64>, %dloss: tensor<2x4xf64>) -> (tensor<2x4xf64>, tensor<2x4x2xf64>, tensor<6x2xf64>) {
  %0:3 = tx.classifier_loss_grad %x, %w, %labels, %dloss ignore 3 : (tensor<2x4x2xf64>, tensor<6x2xf64>, tensor<2x4xi64>, tensor<2x4xf64>) -> (tensor<2x4xf64>, tensor<2x4x2xf64>, tensor<6x2xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x4xf64>, tensor<2x4x2xf64>, tensor<6x2xf64>
}

// Training.

// CHECK: train.token_count @token_count: split *0 *1; partial{{ *$}}
// GRAD: gradient of token_count: none{{$}}
func.func @token_count(%labels: tensor<2x4xi64>) -> tensor<f64> {
  %0 = train.token_count %labels ignore 3 : (tensor<2x4xi64>) -> tensor<f64>
  return %0 : tensor<f64>
}
// CHECK: train.adamw @adamw: split *0 *1; partial{{ *$}}
// GRAD: gradient of adamw: none{{$}}
func.func @adamw(%p: tensor<2x4xf64>, %g: tensor<2x4xf64>, %m: tensor<2x4xf64>, %v: tensor<2x4xf64> {interp.range = [0.0, 1.0]}, %rate: tensor<f64>, %step: tensor<f64> {interp.range = [1.0, 1.0]}) -> (tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>) {
  %0:3 = train.adamw %p, %g, %m, %v, %rate, %step {beta1 = 0.9, beta2 = 0.999, epsilon = 1.0e-8, decay = 0.1} : (tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<f64>, tensor<f64>) -> (tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>
}
// CHECK: train.sgd @sgd: split *0 *1; partial{{ *$}}
// GRAD: gradient of sgd: none{{$}}
func.func @sgd(%p: tensor<2x4xf64>, %g: tensor<2x4xf64>, %rate: tensor<f64>) -> tensor<2x4xf64> {
  %0 = train.sgd %p, %g, %rate {decay = 0.1} : (tensor<2x4xf64>, tensor<2x4xf64>, tensor<f64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

// Matmuls in 8 bits. Marks are the identity, and so are their gradients.

// CHECK: tx.through_fp8 @through_fp8: split *0 *1; partial{{ *$}}
// GRAD: gradient of through_fp8: 0{{$}}
func.func @through_fp8(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.through_fp8 %x {number = 0 : i64, stored = f8E4M3FN} : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.cotangent_through_fp8 @cotangent_through_fp8: split *0 *1; partial{{ *$}}
// GRAD: gradient of cotangent_through_fp8: 0{{$}}
func.func @cotangent_through_fp8(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.cotangent_through_fp8 %x {number = 0 : i64, stored = f8E5M2} : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.fp8_scale @fp8_scale: split *0 *1; partial{{ *$}}
func.func @fp8_scale(%x: tensor<2x4xf64>, %unit: tensor<2x4xf64>, %initial: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = tx.fp8_scale %x, %unit, %initial : (tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
// CHECK: tx.scaled_matmul @scaled_matmul: split *0 k n; partial 0 1{{ *$}}
func.func @scaled_matmul(%a: tensor<4x6xf8E4M3FN>, %b: tensor<6x2xf8E4M3FN>, %scales: tensor<3x1xf32>) -> tensor<4x2xf32> {
  %0 = tx.scaled_matmul %a, %b scaled by %scales[0, 2] : (tensor<4x6xf8E4M3FN>, tensor<6x2xf8E4M3FN>, tensor<3x1xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
// CHECK: tx.scaled_matmul_nt @scaled_matmul_nt: split *0 k n; partial 0 1{{ *$}}
func.func @scaled_matmul_nt(%a: tensor<4x6xf8E5M2>, %b: tensor<2x6xf8E4M3FN>, %scales: tensor<3x1xf32>) -> tensor<4x2xf32> {
  %0 = tx.scaled_matmul_nt %a, %b scaled by %scales[0, 2] : (tensor<4x6xf8E5M2>, tensor<2x6xf8E4M3FN>, tensor<3x1xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
// CHECK: tx.scaled_matmul_bias @scaled_matmul_bias: split *0 n; partial{{ *$}}
func.func @scaled_matmul_bias(%a: tensor<4x6xf8E4M3FN>, %b: tensor<6x2xf8E4M3FN>, %scales: tensor<3x1xf32>, %bias: tensor<2xf32>) -> tensor<4x2xf32> {
  %0 = tx.scaled_matmul_bias %a, %b scaled by %scales[0, 2] plus %bias : (tensor<4x6xf8E4M3FN>, tensor<6x2xf8E4M3FN>, tensor<3x1xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
// CHECK: tx.scaled_matmul_nt_bias @scaled_matmul_nt_bias: split *0 n; partial{{ *$}}
func.func @scaled_matmul_nt_bias(%a: tensor<4x6xf8E4M3FN>, %b: tensor<2x6xf8E4M3FN>, %scales: tensor<3x1xf32>, %bias: tensor<2xf32>) -> tensor<4x2xf32> {
  %0 = tx.scaled_matmul_nt_bias %a, %b scaled by %scales[0, 2] plus %bias : (tensor<4x6xf8E4M3FN>, tensor<2x6xf8E4M3FN>, tensor<3x1xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
// CHECK: tx.scaled_matmul_tn @scaled_matmul_tn: split *0 k n; partial 0 1{{ *$}}
func.func @scaled_matmul_tn(%a: tensor<4x6xf8E4M3FN>, %b: tensor<4x2xf8E5M2>, %scales: tensor<3x1xf32>) -> tensor<6x2xf32> {
  %0 = tx.scaled_matmul_tn %a, %b scaled by %scales[0, 2] : (tensor<4x6xf8E4M3FN>, tensor<4x2xf8E5M2>, tensor<3x1xf32>) -> tensor<6x2xf32>
  return %0 : tensor<6x2xf32>
}

// CHECK: tx.scaled_matmul_columns @scaled_matmul_columns: split k *0 n; partial 0 1{{ *$}}
func.func @scaled_matmul_columns(%a: tensor<6x4xf8E4M3FN>, %b: tensor<2x4xf8E5M2>, %scales: tensor<3x1xf32>) -> tensor<6x2xf32> {
  %0 = tx.scaled_matmul_columns %a, %b scaled by %scales[0, 2] : (tensor<6x4xf8E4M3FN>, tensor<2x4xf8E5M2>, tensor<3x1xf32>) -> tensor<6x2xf32>
  return %0 : tensor<6x2xf32>
}

// Steps of a ring: what they compute depends on how the sequences are split, so that only batch and heads can be tried.
// CHECK: tx.attention_step @attention_step: split b h; partial{{ *$}}
func.func @attention_step(%q: tensor<2x4x2x6xf32>, %k: tensor<2x8x2x6xf32>, %v: tensor<2x8x2x4xf32>, %out: tensor<2x4x2x4xf32>, %lse: tensor<2x2x4xf32>, %first: tensor<1xi64>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>) {
  %0:2 = tx.attention_step %q, %k, %v onto %out, %lse at %first, %first scale 0.5 ring "x" : (tensor<2x4x2x6xf32>, tensor<2x8x2x6xf32>, tensor<2x8x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x2x4xf32>, tensor<1xi64>, tensor<1xi64>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  return %0#0, %0#1 : tensor<2x4x2x4xf32>, tensor<2x2x4xf32>
}
// CHECK: tx.attention_step_grad @attention_step_grad: split b h; partial 5{{ *$}}
func.func @attention_step_grad(%q: tensor<2x4x2x6xf32>, %k: tensor<2x8x2x6xf32>, %v: tensor<2x8x2x4xf32>, %out: tensor<2x4x2x4xf32>, %lse: tensor<2x2x4xf32>, %dout: tensor<2x4x2x4xf32>, %first: tensor<1xi64>) -> (tensor<2x4x2x6xf32>, tensor<2x8x2x6xf32>, tensor<2x8x2x4xf32>) {
  %0:3 = tx.attention_step_grad %q, %k, %v, %out, %lse, %dout at %first, %first scale 0.5 ring "x" : (tensor<2x4x2x6xf32>, tensor<2x8x2x6xf32>, tensor<2x8x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x2x4xf32>, tensor<2x4x2x4xf32>, tensor<1xi64>, tensor<1xi64>) -> (tensor<2x4x2x6xf32>, tensor<2x8x2x6xf32>, tensor<2x8x2x4xf32>)
  return %0#0, %0#1, %0#2 : tensor<2x4x2x6xf32>, tensor<2x8x2x6xf32>, tensor<2x8x2x4xf32>
}
