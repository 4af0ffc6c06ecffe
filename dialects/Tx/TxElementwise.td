//===- TxElementwise.td - op table: elementwise -----------------------------------------------------===//
//
// Operands of one shape; broadcasting is explicit (tx.broadcast). The scalar expression is C++ over the
// operands' names and the functions of Scalar.h.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TX_ELEMENTWISE
#define PARTITA_TX_ELEMENTWISE

include "dialects/Tx/TxBase.td"

//===------------------------------------------------------------------------------------------------===//
// Arithmetic
//===------------------------------------------------------------------------------------------------===//

def Tx_AddOp : Tx_Binary<"add", "a + b", [DeclareOpInterfaceMethods<PlacedInterface, ["cutTo"]>]> {
  let summary = "a + b";
  let shardRule = "~~*, ~~* -> *";
  let gradient = [{ return {g.dy(), g.dy()}; }];
  let hasFolder = 1;
}
def Tx_SubOp : Tx_Binary<"sub", "a - b"> {
  let summary = "a - b";
  let shardRule = "~~*, ~~* -> *";
  let gradient = [{ return {g.dy(), g.op<NegOp>(g.dy())}; }];
}
def Tx_MulOp : Tx_Binary<"mul", "a * b"> {
  let summary = "a * b";
  let shardRule = "~*, ~* -> *";
  let gradient = [{
    if (g.isPower(getA(), getB()) || g.isPower(getB(), getA()))
      return {g.op<ChainOp>(g.dy(), getB()), g.op<ChainOp>(g.dy(), getA())};
    return {g.op<MulOp>(g.dy(), getB()), g.op<MulOp>(g.dy(), getA())};
  }];
  let hasFolder = 1;
}
/// A multiplication by the chain rule. Zero times infinity is zero, so the gradient is zero where the cotangent or the slope
/// is. Files write out functions that are one operation in PyTorch (std, norm, sinc). There, PyTorch's gradient is 0 where the
/// root of a sum of squares is zero, or where a quotient by zero is not selected; the gradient of the written-out form would be
/// NaN.
class Tx_Chain<string mnemonic, string second, string expression>
    : Tx_Elementwise<mnemonic, ["dy", second], expression, "::partita::tx::storedElement(operands)"> {
  let arguments = !dag(ins, [Tx_Float, Tx_Float], ["dy", second]);
}
def Tx_ChainOp : Tx_Chain<"chain", "slope", "select(dy == 0.0, 0.0, select(slope == 0.0, 0.0, dy * slope))"> {
  let shardRule = "~*, ~* -> *";
  let summary = "dy slope; 0 where either is 0, even if the other is infinite or NaN";
  let description = [{
    Used in the gradients of functions whose slope can be infinite, and of functions that such a cotangent may reach where
    their own slope is zero: squares, absolute values, powers.
  }];
}
def Tx_ChainDivOp : Tx_Chain<"chain_div", "d", "select(dy == 0.0, 0.0, dy / d)"> {
  let shardRule = "~*, * -> *";
  let summary = "dy / d; 0 where dy is 0, even if d is 0 or NaN";
  let description = "Used in the gradients of quotients, logarithms and roots.";
}
def Tx_DivOp : Tx_Binary<"div", "a / b"> {
  let summary = "a / b";
  let shardRule = "~*, * -> *";
  let gradient = [{
    if (matchPattern(getB(), m_Constant()))
      return {g.op<DivOp>(g.dy(), getB()), Value()};
    Value da = g.op<ChainDivOp>(g.dy(), getB());
    return {da, g.op<NegOp>(g.op<ChainDivOp>(g.op<MulOp>(da, getA()), getB()))};
  }];
  let hasFolder = 1;
}
def Tx_PowOp : Tx_Binary<"pow", "pow(a, b)"> {
  let summary = "a to the power b; the gradient of a is 0 where b is 0, that of b where a <= 0";
  let precision = "High";
  let gradient = [{
    Value one = g.splat(getB().getType(), 1.0);
    Value slope = g.op<ChainOp>(getB(), g.op<PowOp>(getA(), g.op<SubOp>(getB(), one)));
    Value da = g.op<ChainOp>(g.dy(), slope);
    if (matchPattern(getB(), m_Constant()))
      return {da, Value()};
    Value positive = g.op<GreaterOp>(getA(), g.splat(getA().getType(), 0.0));
    Value log = g.op<SelectOp>(positive, g.op<LogOp>(getA()), g.splat(getA().getType(), 0.0));
    return {da, g.op<ChainOp>(g.dy(), g.op<ChainOp>(log, getResult()))};
  }];
}
/// A tie sends the gradient to a, or half of it to each operand, as PyTorch's maximum and minimum do.
class Tx_Extreme<string mnemonic, string expression, string compare, string reverse> : Tx_Binary<mnemonic, expression> {
  let arguments = (ins Tx_Tensor:$a, Tx_Tensor:$b, UnitAttr:$shared);
  let assemblyFormat = "$a `,` $b (`shared` $shared^)? attr-dict `:` functional-type(operands, results)";
  let gradient = [{
    Value first = g.op<}] # compare # [{>(getA(), getB()), zero = g.splat(g.dy().getType(), 0.0);
    if (!getShared())
      return {g.op<SelectOp>(first, g.dy(), zero), g.op<SelectOp>(first, zero, g.dy())};
    Value second = g.op<}] # reverse # [{>(getA(), getB()), half = g.op<MulOp>(g.dy(), g.splat(getType(), 0.5));
    return {g.op<SelectOp>(first, g.op<SelectOp>(second, half, g.dy()), zero),
            g.op<SelectOp>(second, g.op<SelectOp>(first, half, g.dy()), zero)};
  }];
}
def Tx_MaxOp : Tx_Extreme<"max", "max(a, b)", "GreaterEqualOp", "LessEqualOp"> {
  let summary = "the larger of a and b; a tie sends the gradient to a, or half of it to each if it is `shared`";
}
def Tx_MinOp : Tx_Extreme<"min", "min(a, b)", "LessEqualOp", "GreaterEqualOp"> {
  let summary = "the smaller of a and b; a tie sends the gradient to a, or half of it to each if it is `shared`";
}

//===------------------------------------------------------------------------------------------------===//
// Functions of one operand
//===------------------------------------------------------------------------------------------------===//

def Tx_NegOp : Tx_Unary<"neg", "-x"> {
  let summary = "-x";
  let shardRule = "~* -> *";
  let gradient = [{ return {g.op<NegOp>(g.dy())}; }];
}
def Tx_ExpOp : Tx_Unary<"exp", "exp(x)"> {
  let summary = "e to the power x";
  let precision = "High";
  let gradient = [{ return {g.op<ChainOp>(g.dy(), getResult())}; }];
}
def Tx_LogOp : Tx_Unary<"log", "log(x)"> {
  let summary = "natural logarithm";
  let precision = "High";
  let gradient = [{ return {g.op<ChainDivOp>(g.dy(), getX())}; }];
}
def Tx_SqrtOp : Tx_Unary<"sqrt", "sqrt(x)"> {
  let summary = "square root";
  let precision = "High";
  let gradient = [{ return {g.op<ChainDivOp>(g.op<MulOp>(g.dy(), g.splat(getType(), 0.5)), getResult())}; }];
}
def Tx_RsqrtOp : Tx_Unary<"rsqrt", "1.0 / sqrt(x)"> {
  let summary = "one over the square root";
  let precision = "High";
  let gradient = [{
    Value y = getResult();
    return {g.op<ChainOp>(g.op<MulOp>(g.dy(), g.splat(getType(), -0.5)), g.op<MulOp>(y, g.op<MulOp>(y, y)))};
  }];
}
def Tx_ReciprocalOp : Tx_Unary<"reciprocal", "1.0 / x"> {
  let summary = "1 / x";
  let precision = "High";
  let gradient = [{ return {g.op<NegOp>(g.op<ChainOp>(g.dy(), g.op<MulOp>(getResult(), getResult())))}; }];
}
def Tx_AbsOp : Tx_Unary<"abs", "abs(x)"> {
  let summary = "absolute value; gradient 0 at 0";
  let gradient = [{ return {g.op<ChainOp>(g.dy(), g.op<SignOp>(getX()))}; }];
}
def Tx_SignOp : Tx_Unary<"sign", "select(x > 0.0, 1.0, select(x < 0.0, -1.0, 0.0))"> {
  let summary = "-1, 0 or 1";
  let isStep = 1;
}
def Tx_TanhOp : Tx_Unary<"tanh", "tanh(x)"> {
  let summary = "hyperbolic tangent";
  let gradient = [{
    Value one = g.splat(getType(), 1.0);
    return {g.op<MulOp>(g.dy(), g.op<SubOp>(one, g.op<MulOp>(getResult(), getResult())))};
  }];
}
def Tx_ErfOp : Tx_Unary<"erf", "erf(x)"> {
  let summary = "the error function";
  let gradient = [{
    Value slope = g.op<MulOp>(g.splat(getType(), 1.1283791670955126), g.op<ExpOp>(g.op<NegOp>(g.op<MulOp>(getX(), getX()))));
    return {g.op<MulOp>(g.dy(), slope)};
  }];
}
def Tx_SigmoidOp : Tx_Unary<"sigmoid", "over_one_plus(1.0, exp(-x))"> {
  let summary = "the logistic function";
  let gradient = [{
    Value one = g.splat(getType(), 1.0);
    return {g.op<MulOp>(g.dy(), g.op<MulOp>(getResult(), g.op<SubOp>(one, getResult())))};
  }];
}
def Tx_CosOp : Tx_Unary<"cos", "cos(x)"> {
  let summary = "cosine";
  let precision = "High";
  let gradient = [{ return {g.op<NegOp>(g.op<MulOp>(g.dy(), g.op<SinOp>(getX())))}; }];
}
def Tx_SinOp : Tx_Unary<"sin", "sin(x)"> {
  let summary = "sine";
  let precision = "High";
  let gradient = [{ return {g.op<MulOp>(g.dy(), g.op<CosOp>(getX()))}; }];
}

#endif // PARTITA_TX_ELEMENTWISE
