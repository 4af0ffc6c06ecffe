//===- ModelInputs.cpp - tokens and labels for a model ----------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "partita/Interp/Random.h"
#include "partita/Interp/Verify.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

/// What an argument's integers may be.
struct TokenRange {
  int64_t count = -1;  // 0 .. count - 1; -1 when nothing limits them
  int64_t ignored = 0; // the label that does not count
};

/// The arguments of `function` that `value`, integers, comes from.
static llvm::SetVector<unsigned> sources(func::FuncOp function, Value value) {
  llvm::SetVector<Value> seen;
  llvm::SetVector<unsigned> arguments;
  seen.insert(value);
  for (size_t next = 0; next < seen.size(); ++next) {
    Value current = seen[next];
    if (Operation *op = current.getDefiningOp()) {
      for (Value operand : op->getOperands())
        if (!par::isDifferentiable(operand.getType()))
          seen.insert(operand);
      continue;
    }
    auto argument = cast<BlockArgument>(current);
    Operation *parent = argument.getOwner()->getParentOp();
    if (parent == function)
      arguments.insert(argument.getArgNumber());
    else if (auto loop = dyn_cast<train::AccumulateOp>(parent))
      if (Value batch = loop.getBatchOf(argument))
        seen.insert(batch);
  }
  return arguments;
}

static SmallVector<TokenRange> tokenRanges(func::FuncOp function) {
  SmallVector<TokenRange> ranges(function.getNumArguments());
  function.walk([&](LookupInterface lookup) {
    int64_t count = par::Layout::of(lookup.getIndexed().getType()).shape[lookup.getIndexedDim()];
    for (unsigned argument : sources(function, lookup.getIndices())) {
      TokenRange &range = ranges[argument];
      range.count = range.count < 0 ? count : std::min(range.count, count);
      range.ignored = lookup.getIgnoredIndex().value_or(range.ignored);
    }
  });
  return ranges;
}

/// The arguments whose numbers are documents' ids.
static llvm::SmallDenseSet<unsigned> documentIds(func::FuncOp function) {
  llvm::SmallDenseSet<unsigned> arguments;
  function.walk([&](tx::DocumentStartsOp op) {
    for (unsigned argument : sources(function, op.getIds()))
      arguments.insert(argument);
  });
  return arguments;
}

/// The tokens that end documents, by argument.
static llvm::SmallDenseMap<unsigned, int64_t> documentEnds(func::FuncOp function) {
  llvm::SmallDenseMap<unsigned, int64_t> ends;
  function.walk([&](tx::DocumentStartsOp op) {
    for (unsigned argument : sources(function, op.getIds()))
      if (op.getAfter())
        ends[argument] = *op.getAfter();
  });
  return ends;
}

/// A row ends several documents.
static void endDocuments(Tensor &value, int64_t token, uint64_t key) {
  for (int64_t e = 0; e < value.size(); ++e)
    if (uniform(mix64(key + 2), e) < 0.25)
      value.ints[e] = token;
}

/// Documents of one position and more: an id holds until the next one begins.
static void fillDocuments(Tensor &value, uint64_t key) {
  int64_t id = 0;
  for (int64_t e = 0; e < value.size(); ++e) {
    bool begins = e % value.dim(-1) == 0;
    id = begins ? 0 : id + (uniform(key, e) < 0.4);
    value.ints[e] = id;
  }
}

/// Of every fourth sample all labels are ignored, of every third the odd ones, of the others one in
/// ten but never the first: ranks have uneven counts, and none idles by accident.
static bool isIgnored(uint64_t key, int64_t sample, int64_t position, int64_t element) {
  if (sample % 4 == 3)
    return true;
  if (sample % 3 == 2)
    return position % 2 == 1;
  return position != 0 && uniform(mix64(key + 1), element) < 0.1;
}

/// One argument's numbers by its role; `range` is what its integers may be.
static void fill(Tensor &value, StringRef role, const TokenRange &range, uint64_t key) {
  int64_t count = range.count < 0 ? 2 : range.count, last = value.shape.empty() ? 1 : value.dim(-1);
  bool areLabels = role == "labels" || role == "targets", isMask = role == "ones";
  for (int64_t e = 0; e < value.size(); ++e) {
    double sample = uniform(key, e);
    if (role == "positions")
      value.setNumber(e, static_cast<double>(e % last));
    else if (isMask) // holes, but never at the start: a row that sees nothing has no softmax
      value.setNumber(e, e % last == 0 || sample < 0.8);
    else if (value.isReal)
      value.reals[e] = standardNormal(key, e);
    else if (areLabels && isIgnored(key, e / last, e % last, e))
      value.ints[e] = range.ignored;
    else
      value.ints[e] = static_cast<int64_t>(sample * static_cast<double>(count));
  }
}

FailureOr<SmallVector<Tensor>> partita::interp::modelInputs(func::FuncOp function, uint64_t seed) {
  SmallVector<TokenRange> ranges = tokenRanges(function);
  llvm::SmallDenseSet<unsigned> documents = documentIds(function);
  llvm::SmallDenseMap<unsigned, int64_t> ends = documentEnds(function);
  SmallVector<Tensor> inputs;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() ||
        !isa<FloatType, IntegerType>(tensor.getElementType()))
      return function.emitError() << "argument " << i << " must be a tensor of static shape, it is "
                                  << type;
    auto role = function.getArgAttrOfType<StringAttr>(i, train::TrainDialect::kRole);
    Tensor value(par::fullType(type));
    uint64_t key = randomKey(seed, role ? role.getValue().str() : std::to_string(i));
    bool free = !role || role.getValue() == "data";
    if (documents.contains(i) && free && !value.isReal && !value.shape.empty())
      fillDocuments(value, key);
    else
      fill(value, role ? role.getValue() : "", ranges[i], key);
    if (auto end = ends.find(i); end != ends.end())
      endDocuments(value, end->second, key);
    inputs.push_back(std::move(value));
  }
  return inputs;
}
