//===- TxRules.cpp - rules that depend on attributes or types ---------------------------------===//
//
// Those of the ops of TxStructure.td, cast and dropout; attention's are in TxAttentionRules.cpp. Each
// function returns the text that the other ops of the table state in ODS.
//
//===------------------------------------------------------------------------------------------------===//

#include "dialects/Tx/TxRules.h"
#include "dialects/Par/Placement.h"
#include "dialects/Tx/Rounding.h"
#include "dialects/Tx/Tx.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

namespace {

/// Creates new letters for the dimensions of one rule.
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

/// Returns the dimensions of a slice that cuts `full` into `part`. A dimension taken in full keeps
/// its letter. A contiguous range of a dimension is a part of it, and split if the full one is
/// split within it. Otherwise there are two letters that are never split.
std::pair<std::string, std::string> cutRule(Type full, Type part, Type result,
                                            ArrayRef<int64_t> offsets, ArrayRef<int64_t> strides) {
  Letters letters;
  SmallVector<std::string> fullDims, partDims;
  for (auto [size, shard, offset, stride, resultFull, resultLocal] :
       llvm::zip(fullShape(full), fullShape(part), offsets, strides, fullShape(result),
                 cast<RankedTensorType>(result).getShape())) {
    std::string a = letters.next();
    if (size == shard && offset == 0 && stride == 1) {
      fullDims.push_back(a);
      partDims.push_back(a);
      continue;
    }
    std::string b = letters.next();
    // Offsets are those of a rank's shard once the result is one.
    int64_t first = resultLocal > 0 ? offset * (resultFull / resultLocal) : -1;
    bool isPart = stride == 1 && shard > 1 && first >= 0 && first + shard <= size;
    fullDims.push_back(isPart ? (b + "[" + Twine(first) + "/" + Twine(size) + "]").str() : a + "^");
    partDims.push_back(isPart ? b : b + "^");
  }
  return {join(fullDims), join(partDims)};
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
    dims.push_back(letters.next() + (getValue().isSplat() ? "" : "|="));
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
  ArrayRef<int64_t> from = fullShape(getX().getType()), to = fullShape(getType());
  SmallVector<std::string> operand, result;
  size_t added = to.size() - from.size();
  for (size_t i = 0; i < to.size(); ++i) {
    result.push_back(letters.next());
    if (i >= added)
      operand.push_back(from[i - added] == 1 && to[i] != 1 ? "1" : result.back());
  }
  return "~" + join(operand) + " -> " + join(result);
}

/// Returns the products of the first one, two, ... sizes of a group.
static SmallVector<int64_t> boundariesOf(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> products;
  for (int64_t size : sizes)
    products.push_back(size * (products.empty() ? 1 : products.back()));
  return products;
}

/// Writes a group's dimensions; new letters begin at `bounds`. Each dimension has the letters up to
/// its own boundary; those of size one have none.
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

/// Divides both shapes into the smallest groups of equal products. Within a group, letters end
/// wherever a dimension of either side does, and each dimension is written as its letters, any of
/// which may be split: `a (b c) -> (a b) c`. If no sizes of letters fit both (4x6 to 6x4), the
/// group is never split.
std::string ReshapeOp::getShardRule() {
  ArrayRef<int64_t> from = fullShape(getX().getType()), to = fullShape(getType());
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
  auto [full, part] = cutRule(getX().getType(), getType(), getType(), getOffsets(), getStrides());
  return "~" + full + " -> " + part;
}

std::string PadOp::getShardRule() {
  auto [full, part] = cutRule(getType(), getX().getType(), getType(), getOffsets(), getStrides());
  return "~" + part + " -> " + full;
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
    // Equal operands are blocks of the result, and split alike.
    common[getDim()] = "y";
    patterns.assign(getInputs().size(), "~~" + join(common));
    common[getDim()] = "(z^ y)";
    return llvm::join(patterns, ", ") + " -> " + join(common);
  }
  for (size_t k = 0; k < getInputs().size(); ++k) {
    // The operands have different sizes, so each one's dimension is a separate letter that is never
    // split.
    common[getDim()] = std::string(1, static_cast<char>(k < 26 ? 'A' + k : 'Z')) + "^";
    patterns.push_back("~~" + join(common));
  }
  common[getDim()] = "z^";
  return llvm::join(patterns, ", ") + " -> " + join(common);
}

/// Where its shard begins determines a rank's own share of what is repeated.
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

/// In localized form, a split dimension is the number of shards times a shard's size; `first` has
/// one number per shard.
std::string DropoutOp::getShardRule() {
  Letters letters;
  std::string x, first;
  par::Layout layout = par::Layout::of(getX().getType());
  for (const auto &split : layout.splits) {
    std::string letter = letters.next();
    bool inShards = getFirst() && !split.empty();
    if (inShards)
      first += letter + " ";
    // A shard's elements are numbered from its first one.
    x += (inShards ? "(" + letter + " " + letters.next() + ")" : letter + (getKey() ? "|" : "")) +
         " ";
  }
  return "~" + x + (getKey() ? ", , " : "") + (getFirst() ? ", " + first : "") + " -> " + x;
}
