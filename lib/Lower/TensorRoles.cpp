//===- TensorRoles.cpp - what tensors are in a Transformer ------------------------------------===//

#include "lib/Lower/TensorRoles.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/FusedMatmul.h"
#include "dialects/Tx/Tx.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

//===------------------------------------------------------------------------------------------===//
// Views
//===------------------------------------------------------------------------------------------===//

static bool isSameMemory(Operation *op) {
  return isa<tx::ReshapeOp, tx::BroadcastOp, tx::TransposeOp>(op);
}

/// What a value shows all of, in the forward pass if the backward pass was handed it.
static Value shownBy(Value value) {
  while (true) {
    Operation *definer = value.getDefiningOp();
    Value next = definer ? value : train::forwardOf(value);
    if (definer && isSameMemory(definer))
      next = definer->getOperand(0);
    if (next == value)
      return value;
    value = next;
  }
}

/// Does the op add this operand to another one?
static bool adds(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<tx::AddOp>(op))
    return true;
  if (!isa<tx::FusionOp, tx::FusedMatmulOp, tx::FusedLookupOp>(op))
    return false;
  Value inside = op->getRegion(0).getArgument(use.getOperandNumber());
  return llvm::any_of(inside.getUsers(), llvm::IsaPred<tx::AddOp>);
}

/// Does an op add the value, or a view of it, to another one?
static bool isAdded(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *op = use.getOwner();
    return isSameMemory(op) ? isAdded(op->getResult(0)) : adds(use);
  });
}

/// Is the first result of an op where that of another one is?
static bool isSamePlace(Value a, Value b) {
  auto placeOf = [](Value value) {
    Operation *definer = value.getDefiningOp();
    auto places = definer ? definer->getAttrOfType<ArrayAttr>(RtDialect::kBuffers) : ArrayAttr();
    return places && !places.empty() ? places[0] : Attribute();
  };
  return placeOf(a) && placeOf(a) == placeOf(b);
}

static bool isForwardNorm(Operation *op) { return isa<tx::LayerNormOp, tx::RmsNormOp>(op); }

//===------------------------------------------------------------------------------------------===//
// Names
//===------------------------------------------------------------------------------------------===//

/// "h.0." of "h.0.attn.c_attn"; "" if no part of it is a number.
static std::string layerIn(StringRef path) {
  size_t end = 0;
  while (end < path.size()) {
    size_t dot = std::min(path.find('.', end), path.size());
    StringRef part = path.slice(end, dot);
    if (!part.empty() && llvm::all_of(part, llvm::isDigit))
      return (path.take_front(dot) + ".").str();
    end = dot + 1;
  }
  return "";
}

std::string TensorRoles::layerOf(Operation *op) const {
  return op ? layerIn(names.moduleOf(op)) : "";
}

void TensorRoles::name(Value value, StringRef role, Operation *op) {
  Value shown = shownBy(value);
  if (shown.getDefiningOp() && !isa<train::ReadOp>(shown.getDefiningOp()))
    roles.try_emplace(shown, layerOf(op) + role.str());
}

void TensorRoles::nameOutputs(func::FuncOp function) {
  if (!train::is(function, train::EntryPoint::Forward))
    return;
  for (OpOperand &output : function.front().getTerminator()->getOpOperands()) {
    auto known = function.getResultAttrOfType<StringAttr>(output.getOperandNumber(),
                                                          train::TrainDialect::kName);
    if (!known)
      continue;
    auto cast = shownBy(output.get()).getDefiningOp<tx::CastOp>();
    name(output.get(), known.getValue().str() + (cast ? ".float" : ""));
    if (cast)
      name(cast->getOperand(0), known.getValue());
  }
}

/// Query, key and value, unless they are results of projections with names of their own, and the
/// tensor that they are slices of.
void TensorRoles::nameAttention(Operation *op) {
  Value packed;
  unsigned slices = 0;
  for (auto [operand, role] :
       llvm::zip(op->getOperands().take_front(3), ArrayRef<StringRef>{"query", "key", "value"})) {
    Operation *definer = shownBy(operand).getDefiningOp();
    if (!definer || names.hasParameter(definer))
      continue;
    name(operand, role, op);
    if (isa<tx::SliceOp>(definer)) {
      Value from = shownBy(definer->getOperand(0));
      slices += !packed || packed == from;
      packed = from;
    }
  }
  if (slices == 3)
    name(packed, "qkv", op);
  name(op->getResult(0), "atty", op);
  name(op->getResult(1), "lse", op);
}

/// The residual stream is what norms read and others add to. It begins with the encoded tokens.
void TensorRoles::nameResidual(Operation *norm) {
  Value read = shownBy(norm->getOperand(0));
  Operation *definer = read.getDefiningOp();
  if (!definer || stream.contains(read))
    return;
  bool continues = false;
  for (OpOperand &operand : definer->getOpOperands()) {
    Value before = shownBy(operand.get());
    if (!adds(operand) || !stream.contains(before))
      continue;
    continues = true;
    if (encoded.contains(before) && isSamePlace(before, read))
      roles[before] = "residual"; // of all layers, one after the other
  }
  if (!continues && !isAdded(read))
    return;
  stream.insert(read);
  unsigned number = ++residuals[provenance::isBackward(norm)][norm->getBlock()][layerOf(norm)];
  if (!continues && isa<tx::TxDialect>(definer->getDialect())) {
    if (roles.try_emplace(read, "encoded").second)
      encoded.insert(read);
  } else {
    name(read, "residual" + (number == 1 ? "" : std::to_string(number)), norm);
  }
}

void TensorRoles::nameLoss(Operation *op) {
  if (isa<tx::CrossEntropyOp, tx::TokenLossOp>(op)) {
    auto cast = shownBy(op->getOperand(0)).getDefiningOp<tx::CastOp>();
    name(op->getOperand(0), cast ? "logits.float" : "logits");
    if (cast)
      name(cast->getOperand(0), "logits");
  }
  if (isa<tx::CrossEntropyOp>(op))
    name(op->getResult(1), "logits.lse");
  if (isa<tx::CrossEntropyOp, tx::TokenLossOp, tx::ClassifierLossOp, tx::ClassifierLossGradOp>(
          op)) {
    name(op->getResult(0), "losses");
    losses.insert(op->getResult(0));
  }
  if (isa<tx::CrossEntropyGradOp, tx::ClassifierLossGradOp>(op)) {
    Operation *definer = shownBy(op->getOperand(3)).getDefiningOp();
    if (definer && !isa<tx::ConstantOp>(definer))
      name(op->getOperand(3), "dloss");
  }
  if (isa<tx::ReduceSumOp>(op) && losses.contains(shownBy(op->getOperand(0))))
    name(op->getResult(0), "loss.sum");
}

void TensorRoles::nameOther(Operation *op) {
  if (isa<tx::RotaryOp>(op)) {
    name(op->getOperand(1), "cos");
    name(op->getOperand(2), "sin");
  }
  if (isa<train::SquareSumOp>(op))
    name(op->getResult(0), "squares");
  if (isa<train::NormOp>(op))
    name(op->getResult(0), "gradient.norm");
}

//===------------------------------------------------------------------------------------------===//
// Cotangents
//===------------------------------------------------------------------------------------------===//

void TensorRoles::pair(Value cotangent, Value value) {
  if (Value of = shownBy(value); of.getDefiningOp())
    pairs.insert({shownBy(cotangent), of});
}

/// A matmul with the operands that it computes from; of a fused one those of the op.
struct MatmulParts {
  Operation *matmul = nullptr;
  Value a, b, result;
};
static MatmulParts matmulParts(Operation *op) {
  MatmulParts parts;
  if (auto fused = dyn_cast<tx::FusedMatmulOp>(op)) {
    auto inside = tx::FusedMatmul::of(fused);
    parts.matmul = inside.matmul;
    parts.a = inside.input(inside.matmul->getOperand(0));
    parts.b = inside.input(inside.matmul->getOperand(1));
    parts.result = op->getResult(inside.gelu ? op->getNumResults() - 1 : 0);
  } else if (isa<tx::MatMulOp, tx::MatMulNTOp, tx::MatMulTNOp, tx::MatMulBiasOp,
                 tx::MatMulNTBiasOp>(op) ||
             tx::isScaled(op)) {
    parts = {op, op->getOperand(0), op->getOperand(1), op->getResult(0)};
  }
  return parts;
}

/// The matmul of a cotangent and a parameter belongs to the matmul of the forward pass that reads
/// the parameter.
void TensorRoles::noteMatmulPairs(Operation *op) {
  MatmulParts parts = matmulParts(op);
  if (!parts.matmul || tx::isWeightGradient(parts.matmul))
    return;
  StringRef parameter = names.parameterOf(parts.b);
  if (parameter.empty())
    return;
  if (!provenance::isBackward(op)) {
    auto [known, isFirst] = matmuls.try_emplace(parameter, op);
    if (!isFirst)
      known->second = nullptr;
    return;
  }
  Operation *forward = matmuls.lookup(parameter);
  if (!forward)
    return;
  MatmulParts of = matmulParts(forward);
  pair(parts.a, of.result);
  auto fused = dyn_cast<tx::FusedMatmulOp>(op);
  if (tx::GeluTanhGradOp slope = fused ? tx::FusedMatmul::of(fused).slope : nullptr)
    pair(parts.result, tx::FusedMatmul::of(fused).input(slope.getX()));
  else
    pair(parts.result, of.a);
}

/// Cotangents of slices of a tensor, joined, are that tensor's.
void TensorRoles::noteJoin(Operation *op) {
  Value whole;
  for (Value part : op->getOperands()) {
    Value of = pairs.lookup(shownBy(part));
    auto slice = of ? of.getDefiningOp<tx::SliceOp>() : tx::SliceOp();
    Value from = slice ? shownBy(slice->getOperand(0)) : Value();
    if (!from || (whole && whole != from))
      return;
    whole = from;
  }
  if (whole)
    pair(op->getResult(0), whole);
}

void TensorRoles::notePairs(Operation *op) {
  if (isa<tx::LayerNormGradOp, tx::LayerNormGradAddOp, tx::RmsNormGradOp, tx::RmsNormGradAddOp>(
          op)) {
    bool isLayerNorm = isa<tx::LayerNormGradOp, tx::LayerNormGradAddOp>(op);
    Operation *norm = shownBy(op->getOperand(2)).getDefiningOp(); // has made the mean or the rstd
    if (norm && isForwardNorm(norm))
      pair(op->getOperand(isLayerNorm ? 4 : 3), norm->getResult(0));
    pair(op->getResult(0), op->getOperand(0));
  }
  if (isa<tx::AttentionGradOp>(op)) {
    pair(op->getOperand(5), op->getOperand(3));
    for (unsigned i = 0; i < 3; ++i)
      pair(op->getResult(i), op->getOperand(i));
    for (auto [i, role] : llvm::enumerate(ArrayRef<StringRef>{"dq", "dk", "dv"})) {
      name(op->getResult(i), role, op);
      if (ResultRange sums = cast<tx::AttentionGradOp>(op).getRowSums(); !sums.empty())
        name(sums[i], (role + ".sums").str(), op);
    }
  }
  if (isa<tx::ClassifierLossGradOp>(op))
    pair(op->getResult(1), op->getOperand(0));
  if (isa<tx::CrossEntropyGradOp, tx::GeluGradOp, tx::GeluTanhGradOp, tx::QuickGeluGradOp,
          tx::SiluGradOp>(op))
    pair(op->getResult(0), op->getOperand(0));
  if (isa<tx::ConcatOp>(op))
    noteJoin(op);
  noteMatmulPairs(op);
}

void TensorRoles::nameCotangents() {
  for (auto [cotangent, value] : pairs) {
    Operation *definer = value.getDefiningOp();
    std::string of;
    if (auto role = roles.find(value); role != roles.end())
      of = role->second;
    else if (names.hasParameter(definer))
      of = names.moduleOf(definer);
    else
      of = names.otherwise(value);
    std::string layer = layerIn(of);
    if (layer.size() < of.size())
      roles.try_emplace(cotangent, layer + "d" + of.substr(layer.size()));
  }
}

llvm::DenseMap<Value, std::string> TensorRoles::find(func::FuncOp function, const Names &names) {
  TensorRoles all(names);
  all.nameOutputs(function);
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->getParentOp() && isa<tx::TxDialect>(op->getParentOp()->getDialect()))
      return; // has no memory
    if (isa<tx::AttentionOp>(op))
      all.nameAttention(op);
    if (isForwardNorm(op))
      all.nameResidual(op);
    all.nameLoss(op);
    all.nameOther(op);
    all.notePairs(op);
  });
  all.nameCotangents();
  return std::move(all.roles);
}
