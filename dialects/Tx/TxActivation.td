//===- TxActivation.td - op table: activations, comparisons, casts ---------------------------------===//

#ifndef PARTITA_TX_ACTIVATION
#define PARTITA_TX_ACTIVATION

include "dialects/Tx/TxBase.td"

//===------------------------------------------------------------------------------------------------===//
// Activations
//===------------------------------------------------------------------------------------------------===//

def Tx_ReluOp : Tx_Unary<"relu", "select(x < 0.0, 0.0, x)"> {
  let summary = "max(x, 0); NaN stays NaN";
  let gradient = [{
    Value zero = g.splat(g.dy().getType(), 0.0);
    return {g.op<SelectOp>(g.op<GreaterOp>(getX(), g.splat(getX().getType(), 0.0)), g.dy(), zero)};
  }];
}
def Tx_SoftplusOp : Tx_Unary<"softplus", "max(x, 0.0) + log(1.0 + exp(-abs(x)))"> {
  let summary = "log(1 + e^x), without overflow";
  let precision = "High";
  let gradient = [{ return {g.op<MulOp>(g.dy(), g.op<SigmoidOp>(getX()))}; }];
}
def Tx_GeluOp : Tx_Unary<"gelu", "0.5 * x * (1.0 + erf(x * 0.7071067811865476))"> {
  let summary = "x Phi(x), exact";
  let description = "Hendrycks and Gimpel, arXiv 1606.08415. ONNX Gelu, `approximate = none`.";
  let gradient = [{ return {g.op<GeluGradOp>(getX(), g.dy())}; }];
}
def Tx_GeluTanhOp : Tx_Unary<"gelu_tanh",
    "0.5 * x * (1.0 + near_tanh(0.7978845608028654 * x * (1.0 + 0.044715 * x * x)))"> {
  let summary = "x Phi(x), the tanh approximation";
  let description = "Hendrycks and Gimpel, arXiv 1606.08415. GPT-2's gelu_new; ONNX Gelu, `approximate = tanh`.";
  let gradient = [{ return {g.op<GeluTanhGradOp>(getX(), g.dy())}; }];
}
def Tx_GeluGradOp : Tx_Elementwise<"gelu_grad", ["x", "dy"],
    "dy * (0.5 * (1.0 + erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * exp(-0.5 * x * x))", "::partita::tx::storedElement(operands)"> {
  let summary = "dy gelu'(x)";
  let arguments = (ins Tx_Float:$x, Tx_Float:$dy);
  let shardRule = "*, ~* -> *";
}
def Tx_GeluTanhGradOp : Tx_Elementwise<"gelu_tanh_grad", ["x", "dy"],
    "gelu_tanh_slope(x, near_tanh(0.7978845608028654 * x * (1.0 + 0.044715 * x * x))) * dy", "::partita::tx::storedElement(operands)"> {
  let summary = "dy gelu_tanh'(x)";
  let arguments = (ins Tx_Float:$x, Tx_Float:$dy);
  let shardRule = "*, ~* -> *";
}

def Tx_QuickGeluOp : Tx_Unary<"quick_gelu", "over_one_plus(x, exp(-1.702 * x))"> {
  let summary = "x sigmoid(1.702 x)";
  let description = "Hendrycks and Gimpel, arXiv 1606.08415; CLIP's activation.";
  let gradient = [{ return {g.op<QuickGeluGradOp>(getX(), g.dy())}; }];
}
def Tx_SiluOp : Tx_Unary<"silu", "over_one_plus(x, exp(-x))"> {
  let summary = "x sigmoid(x)";
  let description = "Elfwing et al., arXiv 1702.03118; ONNX Swish. LLaMA's gate.";
  let gradient = [{ return {g.op<SiluGradOp>(getX(), g.dy())}; }];
}
def Tx_QuickGeluGradOp : Tx_Elementwise<"quick_gelu_grad", ["x", "dy"],
    "silu_slope(1.702 * x, over_one_plus(1.0, exp(-1.702 * x))) * dy", "::partita::tx::storedElement(operands)"> {
  let summary = "dy quick_gelu'(x)";
  let arguments = (ins Tx_Float:$x, Tx_Float:$dy);
  let shardRule = "*, ~* -> *";
}
def Tx_SiluGradOp : Tx_Elementwise<"silu_grad", ["x", "dy"], "silu_slope(x, over_one_plus(1.0, exp(-x))) * dy", "::partita::tx::storedElement(operands)"> {
  let summary = "dy silu'(x)";
  let arguments = (ins Tx_Float:$x, Tx_Float:$dy);
  let shardRule = "*, ~* -> *";
}

//===------------------------------------------------------------------------------------------------===//
// Comparisons and logic
//===------------------------------------------------------------------------------------------------===//

class Tx_Compare<string mnemonic, string expression> : Tx_Predicate<mnemonic, expression, [ComparesOperands]>;
def Tx_EqualOp : Tx_Compare<"equal", "a == b"> { let summary = "a == b"; }
def Tx_LessOp : Tx_Compare<"less", "a < b"> { let summary = "a < b"; }
def Tx_LessEqualOp : Tx_Compare<"less_equal", "a <= b"> { let summary = "a <= b"; }
def Tx_GreaterOp : Tx_Compare<"greater", "a > b"> { let summary = "a > b"; }
def Tx_GreaterEqualOp : Tx_Compare<"greater_equal", "a >= b"> { let summary = "a >= b"; }
def Tx_AndOp : Tx_Predicate<"and", "(a != 0) && (b != 0)"> { let summary = "logical and"; }
def Tx_OrOp : Tx_Predicate<"or", "(a != 0) || (b != 0)"> { let summary = "logical or"; }
def Tx_NotOp : Tx_Elementwise<"not", ["x"], "x == 0", "::mlir::IntegerType::get(context, 1)"> {
  let summary = "logical not";
  let arguments = (ins Tx_Bool:$x);
  let shardRule = "* -> *";
}
def Tx_IsNanOp : Tx_Elementwise<"is_nan", ["x"], "x != x", "::mlir::IntegerType::get(context, 1)"> {
  let summary = "true where x is NaN";
  let arguments = (ins Tx_Float:$x);
  let shardRule = "* -> *";
}
def Tx_SelectOp : Tx_Elementwise<"select", ["c", "a", "b"], "select(c != 0, a, b)",
                                 "::partita::tx::storedElement(operands.drop_front())"> {
  let summary = "c ? a : b";
  let arguments = (ins Tx_Bool:$c, Tx_Tensor:$a, Tx_Tensor:$b);
  let shardRule = "*, ~~*, ~~* -> *";
  let gradient = [{
    Value zero = g.splat(g.dy().getType(), 0.0);
    return {Value(), g.op<SelectOp>(getC(), g.dy(), zero), g.op<SelectOp>(getC(), zero, g.dy())};
  }];
}

def Tx_CastOp : Tx_Op<"cast", [SameOperandsAndResultShape]> {
  let summary = "to another element type";
  let description = [{
    Rounds to nearest even between floating-point types, and truncates toward zero to an integer; to i1, it is true
    where x is not zero. To a floating-point type it is linear.
  }];
  let shardRule = "";
  let arguments = (ins Tx_Tensor:$x);
  let results = (outs Tx_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let gradient = [{
    if (!par::isDifferentiable(getX().getType()) || !par::isDifferentiable(getType()))
      return {Value()};
    auto dx = CastOp::create(g.builder, getLoc(), par::cotangentType(getX().getType()), g.dy());
    if ((*this)->hasAttr(kRounds) && isShortFloat(dx.getType()))
      dx->setAttr(kRoundsGradient, g.builder.getUnitAttr());
    return {dx};
  }];
  let hasFolder = 1;
}

#endif // PARTITA_TX_ACTIVATION
