//===- TxAttentionRules.cpp - rules of attention, and the work they do not show ---------------===//
//
// Which letters there are depends on how many key heads and which dimensions of a bias an op has, and on
// whether it is in a ring. A layout of blocks and a ring compute another share of the points that the letters span.
//
//===------------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Tx/TxRules.h"
#include <numeric>

using namespace mlir;
using namespace partita;
using namespace partita::tx;

/// The patterns of operands and results; gradients have those of what they are the gradients of.
namespace {
struct AttentionPatterns {
  std::string q, k, v, out, lse, bias, firstKeys, firstHead, numbers, rowSums;

  /// The optional operands' patterns, each after a comma.
  std::string optionals() const { return bias + firstKeys + firstHead + numbers; }
};

/// What the operands after `operands[required - 1]` are: a bias has four dimensions, first keys two, the first
/// head one; key and micro-batch of dropout none, and only where its shard begins comes after them.
struct AttentionOptionals {
  Type bias, firstKeys, firstHead, key, first;
  AttentionOptionals(TypeRange operands, size_t required) {
    for (Type type : operands.drop_front(std::min(required, operands.size()))) {
      int64_t rank = cast<RankedTensorType>(type).getRank();
      (rank == 0 ? key : key ? first : rank == 4 ? bias : rank == 2 ? firstKeys : firstHead) = type;
    }
  }
};

/// What of an attention's attributes its rule depends on.
struct AttentionForm {
  bool perHead = false; ///< heads differ
  bool ring = false;    ///< an axis may split both sequences
  bool step =
      false; ///< of a ring: what it computes depends on the split, which it must have from the start
  bool rowSums = false; ///< of a gradient: it also sums over the batch
};

/// How the sequences of queries and keys are spelled. In a ring, r counts the shards of both: the largest number that
/// may be, their greatest common divisor.
struct SequencePatterns {
  std::string queries = "s^", keys = "t^", biasColumns = "t^";
  SequencePatterns() = default;
  SequencePatterns(int64_t s, int64_t t, StringRef mark) {
    int64_t shards = std::gcd(s, t);
    queries = shards == s ? ("r" + mark).str() : ("(r" + mark + " s^)").str();
    keys = shards == t ? ("r" + mark).str() : ("(r" + mark + " t^)").str();
    biasColumns = "T^"; // a bias has all columns
  }
};

/// Returns the patterns for heads. If there are as many key heads as query heads, they share one
/// letter. With fewer, query heads are key heads times a group, split by the key heads. A single
/// key head cannot be split, so query heads are split alone. `summed` marks what the gradients of
/// k, v and bias sum over. The elements of a shard are numbered for dropout: with a key, dimensions
/// are not split within blocks; in localized form (`first`), a split one is the number of shards
/// times a shard's size, as in dropout's rule. Heads that differ (`perHead`) are not split within blocks either.
AttentionPatterns attentionPatterns(Type q, Type k, const AttentionOptionals &optionals,
                                    bool summed, AttentionForm form) {
  Type bias = optionals.bias;
  int64_t heads = fullShape(q)[2], keyHeads = fullShape(k)[2];
  std::string mark = summed ? "+" : "";
  ArrayRef<int64_t> biasShape = bias ? fullShape(bias) : ArrayRef<int64_t>();
  auto biasHas = [&](unsigned dim) { return bias && biasShape[dim] != 1; };
  par::Layout layout = par::Layout::of(q);
  bool splitBatch = optionals.first && !layout.splits[0].empty(),
       splitHeads = optionals.first && !layout.splits[2].empty();
  std::string batchMark = (bias && !biasHas(0)) || form.rowSums ? mark : "";
  std::string headMark = keyHeads == 1 || (bias && !biasHas(1)) ? mark : "";
  auto spell = [](bool shards, StringRef shard, StringRef letter, StringRef mark, StringRef more) {
    std::string letters = shards ? (shard + mark + " ").str() : "";
    letters += (letter + mark + more).str();
    return shards || !more.empty() ? "(" + letters + ")" : letters;
  };
  std::string b = spell(splitBatch, "B", "b", batchMark, "");
  std::string keys = spell(splitHeads, "H", "h", headMark, ""), queryHeads = keys;
  if (keyHeads == 1)
    keys = "1";
  else if (keyHeads != heads)
    queryHeads = spell(splitHeads, "H", "h", headMark, " g^");
  SequencePatterns sequence;
  if (form.ring)
    sequence = SequencePatterns(fullShape(q)[1], fullShape(k)[1],
                                form.step && layout.splits[1].empty() ? StringRef("^")
                                : bias && !biasHas(2)                 ? StringRef(mark)
                                                                      : StringRef());
  const std::string &s = sequence.queries, &t = sequence.keys;
  AttentionPatterns patterns{b + " " + s + " " + queryHeads + " d^",
                             b + " " + t + " " + keys + " d^",
                             b + " " + t + " " + keys + " e^",
                             b + " " + s + " " + queryHeads + " e^",
                             b + " " + queryHeads + " " + s,
                             "",
                             optionals.firstKeys ? ", " + b + " " + s : "",
                             optionals.firstHead ? (splitHeads ? ", H" : ", @h") : "",
                             optionals.key ? ", , " : "",
                             ""};
  if (form.rowSums)
    patterns.rowSums = ", " + queryHeads + " d^, " + keys + " d^, " + keys + " e^";
  if (optionals.first)
    patterns.numbers += std::string(", ") + (splitBatch ? "B " : "") + (splitHeads ? "H" : "");
  else // every rule has such a pattern
    for (StringRef letter : {"b", "h"})
      if (size_t at = patterns.lse.find(letter);
          at != std::string::npos && (optionals.key || (form.perHead && letter == "h")))
        patterns.lse.replace(at + 1, patterns.lse.substr(at + 1, 1) == "+" ? 1 : 0, "|");
  if (bias)
    patterns.bias = ", " + (biasHas(0) ? b : "1") + " " + (biasHas(1) ? queryHeads : "1") + " " +
                    (biasHas(2) ? s : "1") + " " + (biasHas(3) ? sequence.biasColumns : "1");
  return patterns;
}

std::string attentionRule(TypeRange operands, AttentionForm form) {
  AttentionOptionals optionals(operands, 3);
  auto p = attentionPatterns(operands[0], operands[1], optionals, false, form);
  return p.q + ", " + p.k + ", " + p.v + p.optionals() + " -> " + p.out + ", " + p.lse;
}

std::string attentionGradRule(TypeRange operands, AttentionForm form) {
  AttentionOptionals optionals(operands, 6);
  auto p = attentionPatterns(operands[0], operands[1], optionals, true, form);
  return p.q + ", " + p.k + ", " + p.v + ", " + p.out + ", " + p.lse + ", ~" + p.out +
         p.optionals() + " -> " + p.q + ", " + p.k + ", " + p.v + p.bias + p.rowSums;
}

/// The optional operands of a step, which its operands' ranks alone do not tell.
template <typename Op> AttentionOptionals optionalsOfStep(Op op) {
  AttentionOptionals optionals({}, 0);
  auto typeOf = [](Value value) { return value ? value.getType() : Type(); };
  optionals.bias = typeOf(op.getBias());
  optionals.firstKeys = typeOf(op.getFirstKeys());
  optionals.firstHead = typeOf(op.getFirstHead());
  optionals.key = typeOf(op.getKey());
  optionals.first = typeOf(op.getFirst());
  return optionals;
}

template <typename Op> bool hasPatternsPerHead(Op op) {
  return op.getBlocksAttr() && op.getBlocksAttr().isPerHead();
}
template <typename Op> AttentionForm formOf(Op op) {
  return {hasPatternsPerHead(op), op.getRing().has_value()};
}

AttentionForm formOf(AttentionGradOp op) {
  return {hasPatternsPerHead(op), op.getRing().has_value(), /*step=*/false, op.getSums()};
}

/// When an op is built: of its properties.
template <typename Op> AttentionForm formOf(OpaqueProperties properties) {
  auto *known = properties.as<typename Op::Properties *>();
  return {/*perHead=*/false, known && known->ring};
}
AttentionForm formOfGradient(OpaqueProperties properties) {
  auto *known = properties.as<AttentionGradOp::Properties *>();
  return {/*perHead=*/false, known && known->ring, /*step=*/false, known && known->sums};
}

bool isTensorOfRank(Value value, int64_t rank) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == rank;
}

/// Are these a bias, first keys, the first head, key and micro-batch of dropout, and where its shard begins?
bool areOptionals(ValueRange operands) {
  bool keyed = false;
  for (Value operand : operands) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    bool isNumber = type && type.getRank() == 0;
    keyed |= isNumber;
    if (!type || !(isNumber || (type.getRank() <= 2 || (!keyed && type.getRank() == 4))))
      return false;
  }
  return true;
}
} // namespace

std::optional<std::pair<StringRef, int64_t>> AttentionOp::dealtOut() {
  return {{"heads", fullShape(getQ().getType())[2]}};
}

std::string AttentionOp::getShardRule() {
  return attentionRule((*this)->getOperandTypes(), formOf(*this));
}
std::string AttentionGradOp::getShardRule() {
  return attentionGradRule((*this)->getOperandTypes(), formOf(*this));
}

std::string AttentionStepOp::getShardRule() {
  auto p = attentionPatterns(getQ().getType(), getK().getType(), optionalsOfStep(*this), false,
                             {hasPatternsPerHead(*this), /*ring=*/true, /*step=*/true});
  std::string before = getOutBefore() ? ", " + p.out + ", " + p.lse : "";
  return p.q + ", " + p.k + ", " + p.v + before + p.optionals() + ", @r*, @r* -> " + p.out + ", " +
         p.lse;
}

std::string AttentionStepGradOp::getShardRule() {
  auto p = attentionPatterns(getQ().getType(), getK().getType(), optionalsOfStep(*this), true,
                             {hasPatternsPerHead(*this), /*ring=*/true, /*step=*/true});
  std::string before = getDqBefore() ? ", " + p.q : "";
  return p.q + ", " + p.k + ", " + p.v + ", " + p.out + ", " + p.lse + ", ~" + p.out + before +
         p.optionals() + ", @r*, @r* -> " + p.q + ", " + p.k + ", " + p.v +
         (getDbias() ? p.bias : "");
}

/// A rule of a ring has one letter for both sequences, of the size of their greatest common divisor: that many times
/// more points are computed than its letters have.
static double pointsPerLetters(RankedTensorType q, RankedTensorType k) {
  return static_cast<double>(std::gcd(fullShape(q)[1], fullShape(k)[1]));
}

template <typename Op> static double computedShare(Op op) {
  auto blocks = op.getBlocksAttr();
  double share = blocks ? blocks.density(fullShape(op.getQ().getType())[1]) : 1;
  return op.getRing() ? share * pointsPerLetters(op.getQ().getType(), op.getK().getType()) : share;
}
double AttentionOp::getComputedShare() { return computedShare(*this); }
double AttentionGradOp::getComputedShare() { return computedShare(*this); }

/// Of the keys of one rank.
template <typename Op> static double computedShareOfStep(Op op) {
  RankedTensorType q = op.getQ().getType(), k = op.getK().getType();
  int64_t own = k.getDimSize(1), full = fullShape(k)[1];
  double share = pointsPerLetters(q, k) * double(own) / double(full);
  if (auto blocks = op.getBlocksAttr(); blocks && own)
    share *= blocks.densityOfStep({full, full / own, op.getFirstKey().getType().getDimSize(0)},
                                  static_cast<int64_t>(*op.getBehind()));
  return share;
}
double AttentionStepOp::getComputedShare() { return computedShareOfStep(*this); }
double AttentionStepGradOp::getComputedShare() { return computedShareOfStep(*this); }

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                            ValueRange operands, DictionaryAttr,
                                            OpaqueProperties properties, RegionRange,
                                            SmallVectorImpl<Type> &inferred) {
  if (operands.size() < 3 || !areOptionals(operands.drop_front(3)) ||
      !llvm::all_of(operands.take_front(3), [](Value each) { return isTensorOfRank(each, 4); }))
    return emitOptionalError(
        loc, "tx.attention works on tensors of four dimensions, and first keys of two");
  Type element = getElementTypeOrSelf(operands[0]);
  return par::inferFromRule(attentionRule(operands.getTypes(), formOf<AttentionOp>(properties)),
                            operands, {element, statisticElement(operands[0])}, loc, inferred);
}
bool AttentionOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange actual) {
  return par::sameValues(inferred, actual);
}

LogicalResult AttentionGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                                ValueRange operands, DictionaryAttr,
                                                OpaqueProperties properties, RegionRange,
                                                SmallVectorImpl<Type> &inferred) {
  if (operands.size() < 6 || !areOptionals(operands.drop_front(6)) ||
      !llvm::all_of(llvm::enumerate(operands.take_front(6)), [](auto operand) {
        return isTensorOfRank(operand.value(), operand.index() == 4 ? 3 : 4);
      }))
    return emitOptionalError(
        loc, "tx.attention_grad works on tensors of four dimensions, and first keys of two");
  SmallVector<Type> elements(7, getElementTypeOrSelf(operands[0]));
  if (Type bias = AttentionOptionals(operands.getTypes(), 6).bias)
    elements[3] = getElementTypeOrSelf(bias); // the bias has its own type
  return par::inferFromRule(attentionGradRule(operands.getTypes(), formOfGradient(properties)),
                            operands, elements, loc, inferred);
}
bool AttentionGradOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange actual) {
  return par::sameValues(inferred, actual);
}
