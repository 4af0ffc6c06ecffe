//===- TxRounding.td - op table: rounding, integer division, remainders -----------------------------===//
//
// Rounding to integers. The gradients are zero, as in PyTorch, except that of a remainder.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TX_ROUNDING
#define PARTITA_TX_ROUNDING

include "dialects/Tx/TxBase.td"

def Tx_FloorOp : Tx_Unary<"floor", "floor(x)"> {
  let summary = "the largest integer that is not above x";
  let isStep = 1;
}
def Tx_CeilOp : Tx_Unary<"ceil", "ceil(x)"> {
  let summary = "the smallest integer that is not below x";
  let isStep = 1;
}
def Tx_RoundOp : Tx_Unary<"round", "round(x)"> {
  let summary = "the nearest integer, halves to the even one";
  let isStep = 1;
}

class Tx_IntBinary<string mnemonic, string expression> : Tx_Binary<mnemonic, expression> {
  let arguments = (ins Tx_Int:$a, Tx_Int:$b);
}
def Tx_QuotientOp : Tx_IntBinary<"quotient", "quotient(a, b)"> {
  let summary = "a / b of integers, truncated toward zero; 0 where b is 0";
}
def Tx_ModuloOp : Tx_IntBinary<"modulo", "modulo(a, b)"> {
  let summary = "a - b floor(a / b) of integers: the sign of b (Python's %); 0 where b is 0";
}
def Tx_RemainderOp : Tx_Binary<"remainder", "rest(a, b)"> {
  let summary = "a - b trunc(a / b): the sign of a (C's fmod); of integers 0 where b is 0";
  let gradient = [{
    Value quotient = g.op<DivOp>(g.op<SubOp>(getA(), getResult()), getB());
    return {g.dy(), g.op<NegOp>(g.op<MulOp>(g.dy(), quotient))};
  }];
}

#endif // PARTITA_TX_ROUNDING
