//===- TxRules.cpp - rules that depend on attributes or types ---------------------------------===//
//
// All of them, and nothing else: the ops of TxStructure.td, cast, attention and dropout. Each
// writes the text that the other ops of the table state in ODS.
//
//===------------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Tx/Rounding.h"
#include "dialects/Tx/Tx.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

namespace {

ArrayRef<int64_t> wholeShape(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (auto placement = dyn_cast_or_null<par::PlacementAttr>(tensor.getEncoding()))
    return placement.getShape();
  return tensor.getShape();
}

/// Fresh letters for the dimensions of one rule.
class Letters {
public:
  std::string next() {
    unsigned i = used++;
    return std::string(1, i < 26 ? static_cast<char>('a' + i) : static_cast<char>('A' + i % 26));
  }

private:
  unsigned used = 0;
};

std::string join(ArrayRef<std::string> dims) { return llvm::join(dims, " "); }

/// The dimensions of a slice: `whole` is cut into `part`. One taken in full keeps its letter; one
/// whose part is several neighbours is a part of it, and split where the full one is split within
/// it; else there are two letters that are never split.
std::pair<std::string, std::string> cutRule(Type whole, Type part, Type result,
                                            ArrayRef<int64_t> offsets, ArrayRef<int64_t> strides) {
  Letters letters;
  SmallVector<std::string> wholeDims, partDims;
  for (auto [size, piece, offset, stride, resultWhole, resultLocal] :
       llvm::zip(wholeShape(whole), wholeShape(part), offsets, strides, wholeShape(result),
                 cast<RankedTensorType>(result).getShape())) {
    std::string a = letters.next();
    if (size == piece && offset == 0 && stride == 1) {
      wholeDims.push_back(a);
      partDims.push_back(a);
      continue;
    }
    std::string b = letters.next();
    // Offsets are those of a rank's shard as soon as the result is one.
    int64_t first = resultLocal > 0 ? offset * (resultWhole / resultLocal) : -1;
    bool isPart = stride == 1 && piece > 1 && first >= 0 && first + piece <= size;
    wholeDims.push_back(isPart ? (b + "[" + Twine(first) + "/" + Twine(size) + "]").str()
                               : a + "^");
    partDims.push_back(isPart ? b : b + "^");
  }
  return {join(wholeDims), join(partDims)};
}

std::string reduceRule(Type type, ArrayRef<int64_t> dims, StringRef linear, StringRef mark) {
  Letters letters;
  SmallVector<std::string> operand, result;
  for (int64_t i = 0, rank = cast<RankedTensorType>(type).getRank(); i < rank; ++i) {
    bool reduced = llvm::is_contained(dims, i);
    operand.push_back(letters.next() + (reduced ? mark.str() : ""));
    if (!reduced)
      result.push_back(operand.back());
  }
  return linear.str() + join(operand) + " -> " + join(result);
}

} // namespace

std::string ConstantOp::getShardRule() {
  Letters letters;
  SmallVector<std::string> dims;
  for (int64_t i = 0; i < getType().getRank(); ++i)
    dims.push_back(letters.next() + (getValue().isSplat() ? "" : "|"));
  return "-> " + join(dims);
}

std::string IotaOp::getShardRule() { return "-> n^"; }

std::string CastOp::getShardRule() {
  bool isLinear = isa<FloatType>(getType().getElementType()) && !(*this)->hasAttr(kRounds);
  return isLinear ? "~* -> *" : "* -> *";
}

std::string TransposeOp::getShardRule() {
  Letters letters;
  SmallVector<std::string> operand, result;
  for (int64_t i = 0; i < getType().getRank(); ++i)
    operand.push_back(letters.next());
  for (int64_t p : getPermutation())
    result.push_back(operand[p]);
  return "~" + join(operand) + " -> " + join(result);
}

std::string BroadcastOp::getShardRule() {
  Letters letters;
  ArrayRef<int64_t> from = wholeShape(getX().getType()), to = wholeShape(getType());
  SmallVector<std::string> operand, result;
  size_t added = to.size() - from.size();
  for (size_t i = 0; i < to.size(); ++i) {
    result.push_back(letters.next());
    if (i >= added)
      operand.push_back(from[i - added] == 1 && to[i] != 1 ? "1" : result.back());
  }
  return "~" + join(operand) + " -> " + join(result);
}

/// The products of the first one, two, ... sizes of a group.
static SmallVector<int64_t> boundariesOf(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> products;
  for (int64_t size : sizes)
    products.push_back(size * (products.empty() ? 1 : products.back()));
  return products;
}

/// A group's dimensions, of which those of `bounds` begin new letters: each is the letters up to
/// its own boundary. Ones are nobody's.
static void spellGroup(ArrayRef<int64_t> sizes, ArrayRef<int64_t> bounds,
                       ArrayRef<std::string> names, SmallVectorImpl<std::string> &out) {
  size_t next = 0;
  for (auto [size, end] : llvm::zip(sizes, boundariesOf(sizes))) {
    SmallVector<std::string> letters;
    while (size != 1 && next < bounds.size() && bounds[next] <= end)
      letters.push_back(names[next++]);
    out.push_back(size == 1 ? "1" : letters.size() == 1 ? letters[0] : "(" + join(letters) + ")");
  }
}

/// Both shapes fall into the smallest groups of equal products. Within one, the dimensions of
/// either side end where a letter does, and are written as their letters, any of which splits: `a
/// (b c) -> (a b) c`; unless no sizes of letters fit both (4x6 to 6x4).
std::string ReshapeOp::getShardRule() {
  ArrayRef<int64_t> from = wholeShape(getX().getType()), to = wholeShape(getType());
  Letters letters;
  SmallVector<std::string> operand, result;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    if (i < from.size() && from[i] == 1) {
      operand.push_back("1"), ++i;
      continue;
    }
    if (j < to.size() && to[j] == 1) {
      result.push_back("1"), ++j;
      continue;
    }
    if (i == from.size() || j == to.size())
      break; // zero elements, or shapes that do not verify
    size_t firstI = i, firstJ = j;
    int64_t left = from[i++], right = to[j++];
    while (left != right && (left < right ? i < from.size() : j < to.size()))
      left < right ? left *= from[i++] : right *= to[j++];
    ArrayRef<int64_t> left1 = from.slice(firstI, i - firstI), right1 = to.slice(firstJ, j - firstJ);
    SmallVector<int64_t> bounds = boundariesOf(left1);
    llvm::append_range(bounds, boundariesOf(right1));
    llvm::sort(bounds);
    bounds.erase(llvm::unique(bounds), bounds.end());
    bool fit = left == right && left > 0;
    for (size_t k = 0; k + 1 < bounds.size(); ++k)
      fit = fit && bounds[k + 1] % bounds[k] == 0;
    if (fit) {
      SmallVector<std::string> names;
      for (size_t k = 0; k < bounds.size(); ++k)
        names.push_back(letters.next());
      spellGroup(left1, bounds, names, operand);
      spellGroup(right1, bounds, names, result);
      continue;
    }
    for (size_t k = 0; k < left1.size(); ++k)
      operand.push_back(letters.next() + "^");
    for (size_t k = 0; k < right1.size(); ++k)
      result.push_back(letters.next() + "^");
  }
  return "~" + join(operand) + " -> " + join(result);
}

std::string SliceOp::getShardRule() {
  auto [whole, part] = cutRule(getX().getType(), getType(), getType(), getOffsets(), getStrides());
  return "~" + whole + " -> " + part;
}

std::string PadOp::getShardRule() {
  auto [whole, part] = cutRule(getType(), getX().getType(), getType(), getOffsets(), getStrides());
  return "~" + part + " -> " + whole;
}

std::string ConcatOp::getShardRule() {
  Letters letters;
  SmallVector<std::string> common, patterns;
  for (int64_t i = 0; i < getType().getRank(); ++i)
    common.push_back(letters.next());
  auto sizeOf = [&](Value input) {
    return cast<RankedTensorType>(input.getType()).getDimSize(getDim());
  };
  if (llvm::all_of(getInputs(),
                   [&](Value input) { return sizeOf(input) == sizeOf(getInputs()[0]); })) {
    // Equal operands are the blocks of the result, and split alike.
    common[getDim()] = "y";
    patterns.assign(getInputs().size(), "~~" + join(common));
    common[getDim()] = "(z^ y)";
    return llvm::join(patterns, ", ") + " -> " + join(common);
  }
  for (size_t k = 0; k < getInputs().size(); ++k) {
    // The operands' sizes differ: each one's dimension is a letter of its own, never split.
    common[getDim()] = std::string(1, static_cast<char>(k < 26 ? 'A' + k : 'Z')) + "^";
    patterns.push_back("~~" + join(common));
  }
  common[getDim()] = "z^";
  return llvm::join(patterns, ", ") + " -> " + join(common);
}

/// The rank's own part of what is repeated follows from where its shard begins.
static std::string repeatRule(int64_t rank, int64_t dim, StringRef few, StringRef many,
                              bool isSum) {
  Letters letters;
  SmallVector<std::string> x, result;
  for (int64_t i = 0; i < rank; ++i) {
    x.push_back(i == dim ? (isSum ? many.str() + "+" : few.str() + "^") : letters.next());
    result.push_back(i == dim ? (isSum ? few.str() + "^" : many.str()) : x.back());
  }
  return "~" + join(x) + ", @" + many.str() + " -> " + join(result);
}

std::string RepeatOp::getShardRule() {
  return repeatRule(getType().getRank(), getDim(), "y", "z", false);
}
std::string RepeatSumOp::getShardRule() {
  return repeatRule(getType().getRank(), getDim(), "y", "z", true);
}

std::string ReduceSumOp::getShardRule() {
  return reduceRule(getX().getType(), getDims(), "~", "+");
}
std::string ReduceMeanOp::getShardRule() {
  return reduceRule(getX().getType(), getDims(), "~", "^");
}
std::string ReduceMaxOp::getShardRule() { return reduceRule(getX().getType(), getDims(), "", ">"); }

/// `results` by name: forward "o" and the gradients of q, k, v and bias.
namespace {
struct AttentionPatterns {
  std::string q, k, v, out, lse, bias;
};

/// Heads: with as many key heads as query heads one letter; with fewer, query heads are key heads
/// times a group, split by the key heads; with one key head, whose letter nobody could split, they
/// are split by themselves. `summed` marks what the gradients of k, v and bias sum over.
AttentionPatterns attentionPatterns(Type q, Type k, Type bias, bool summed) {
  int64_t heads = wholeShape(q)[2], keyHeads = wholeShape(k)[2];
  std::string mark = summed ? "+" : "";
  ArrayRef<int64_t> biasShape = bias ? wholeShape(bias) : ArrayRef<int64_t>();
  auto biasHas = [&](unsigned dim) { return bias && biasShape[dim] != 1; };
  std::string b = "b", h = "h", queryHeads, keys;
  if (bias && !biasHas(0))
    b += mark;
  if (keyHeads == heads) {
    queryHeads = keys = h + (bias && !biasHas(1) ? mark : "");
  } else if (keyHeads == 1) {
    queryHeads = h + mark;
    keys = "1";
  } else {
    keys = h + (bias && !biasHas(1) ? mark : "");
    queryHeads = "(" + keys + " g^)";
  }
  AttentionPatterns patterns{b + " s^ " + queryHeads + " d^", b + " t^ " + keys + " d^",
                             b + " t^ " + keys + " e^",       b + " s^ " + queryHeads + " e^",
                             b + " " + queryHeads + " s^",    ""};
  if (bias)
    patterns.bias = (biasHas(0) ? b : "1") + " " + (biasHas(1) ? queryHeads : "1") + " " +
                    (biasHas(2) ? "s^" : "1") + " " + (biasHas(3) ? "t^" : "1");
  return patterns;
}

std::string attentionRule(TypeRange operands) {
  auto p = attentionPatterns(operands[0], operands[1], operands.size() > 3 ? operands[3] : Type(),
                             false);
  std::string bias = p.bias.empty() ? "" : ", " + p.bias;
  return p.q + ", " + p.k + ", " + p.v + bias + " -> " + p.out + ", " + p.lse;
}

std::string attentionGradRule(TypeRange operands) {
  auto p =
      attentionPatterns(operands[0], operands[1], operands.size() > 6 ? operands[6] : Type(), true);
  std::string bias = p.bias.empty() ? "" : ", " + p.bias;
  return p.q + ", " + p.k + ", " + p.v + ", " + p.out + ", " + p.lse + ", ~" + p.out + bias +
         " -> " + p.q + ", " + p.k + ", " + p.v + bias;
}

bool isTensorOfRank(Value value, int64_t rank) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == rank;
}
} // namespace

std::optional<std::pair<StringRef, int64_t>> AttentionOp::dealtOut() {
  return {{"heads", wholeShape(getQ().getType())[2]}};
}

std::string AttentionOp::getShardRule() { return attentionRule((*this)->getOperandTypes()); }
std::string AttentionGradOp::getShardRule() {
  return attentionGradRule((*this)->getOperandTypes());
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                            ValueRange operands, DictionaryAttr, OpaqueProperties,
                                            RegionRange, SmallVectorImpl<Type> &inferred) {
  if (operands.size() < 3 || !llvm::all_of(operands, [](Value v) { return isTensorOfRank(v, 4); }))
    return emitOptionalError(loc, "tx.attention works on tensors of four dimensions");
  Type element = getElementTypeOrSelf(operands[0]);
  return par::inferFromRule(attentionRule(operands.getTypes()), operands,
                            {element, statisticElement(operands[0])}, loc, inferred);
}
bool AttentionOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange actual) {
  return par::sameValues(inferred, actual);
}

LogicalResult AttentionGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                                ValueRange operands, DictionaryAttr,
                                                OpaqueProperties, RegionRange,
                                                SmallVectorImpl<Type> &inferred) {
  if (operands.size() < 6 || !llvm::all_of(llvm::enumerate(operands), [](auto operand) {
        return isTensorOfRank(operand.value(), operand.index() == 4 ? 3 : 4);
      }))
    return emitOptionalError(loc, "tx.attention_grad works on tensors of four dimensions");
  SmallVector<Type> elements(4, getElementTypeOrSelf(operands[0]));
  if (operands.size() > 6)
    elements[3] = getElementTypeOrSelf(operands[6]); // the bias has a type of its own
  return par::inferFromRule(attentionGradRule(operands.getTypes()), operands, elements, loc,
                            inferred);
}
bool AttentionGradOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange actual) {
  return par::sameValues(inferred, actual);
}

/// Localized, a split dimension is the shards times what is in one; `first` has one number per
/// shard.
std::string DropoutOp::getShardRule() {
  Letters letters;
  std::string x, first;
  par::Layout layout = par::Layout::of(getX().getType());
  for (const auto &split : layout.splits) {
    std::string letter = letters.next();
    bool inPieces = getFirst() && !split.empty();
    if (inPieces)
      first += letter + " ";
    // A shard's elements are numbered from its first one on.
    x += (inPieces ? "(" + letter + " " + letters.next() + ")" : letter + (getKey() ? "|" : "")) +
         " ";
  }
  return "~" + x + (getKey() ? ", , " : "") + (getFirst() ? ", " + first : "") + " -> " + x;
}
