//===- RaiseDocuments.cpp - attention's mask of documents becomes first keys ------------------===//
//
// For every attention with a bias:
//   1. the comparison of one tensor of integers with itself is found among the ops that make the
//      bias: the ids of documents, one per position;
//   2. the bias is evaluated for ids that are all the same: it must be a causal mask, perhaps with a
//      window;
//   3. and for ids of many documents, in every query and key of small sequences, in some queries of
//      long ones: it must hide what that mask hides and other documents, and nothing else.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Raise/Layout.h"
#include "lib/Raise/NumericCheck.h"
#include "lib/Raise/Remarks.h"
#include "partita/Interp/Random.h"
#include "partita/Raise/IndexEvaluator.h"
#include "partita/Raise/Passes.h"
#include "partita/Raise/Subgraph.h"
#include "partita/Support/HiddenScores.h"
#include <numeric>

namespace partita {
#define GEN_PASS_DEF_RAISEDOCUMENTS
#include "partita/Raise/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

/// Elements of a mask that are evaluated per assignment of ids, beyond the causal mask's.
constexpr int64_t mostElements = int64_t(1) << 20;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// What a bias turned out to be.
struct DocumentMask {
  Value ids; // null: it compares none
  int64_t window = 0;
  std::string problem;
};

/// The value that `value` has the elements of, in other places or types.
Value sourceOf(Value value) {
  while (auto *op = value.getDefiningOp()) {
    if (!isa<tx::ReshapeOp, tx::BroadcastOp, tx::TransposeOp>(op) &&
        !(isa<tx::CastOp>(op) && isa<IntegerType>(typeOf(op->getOperand(0)).getElementType())))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The integers whose comparison with themselves `bias` depends on: one per position of a sequence of
/// this length.
Value findIds(Value bias, int64_t sequence) {
  SmallVector<Value> pending{bias};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (!op || !(isa<ScalarInterface, tx::CastOp, tx::ReshapeOp, tx::BroadcastOp, tx::TransposeOp,
                     tx::SliceOp>(op)))
      continue;
    if (auto equal = dyn_cast<tx::EqualOp>(op)) {
      Value ids = sourceOf(equal->getOperand(0));
      Type element = typeOf(ids).getElementType();
      if (ids == sourceOf(equal->getOperand(1)) && typeOf(ids).getRank() > 0 &&
          typeOf(ids).getShape().back() == sequence &&
          (element.isInteger(32) || element.isInteger(64)))
        return ids;
    }
    for (Value operand : op->getOperands())
      if (seen.insert(operand).second)
        pending.push_back(operand);
  }
  return {};
}

/// Evaluates a bias [b or 1, 1, s, s] for ids of [..., s].
class MaskOfDocuments {
public:
  MaskOfDocuments(Value bias, Value ids)
      : bias(bias), ids(ids), batch(typeOf(bias).getDimSize(0)),
        sequence(typeOf(bias).getShape().back()) {}

  DocumentMask read();

private:
  using Ids = std::vector<int64_t>;
  std::optional<std::vector<bool>> readRow(IndexEvaluator &evaluator, int64_t b, int64_t i);
  bool expectKeys(const std::vector<bool> &seen, int64_t first, int64_t i);
  bool seesDocuments(const Ids &numbers, int64_t rows);
  Ids randomIds(uint64_t seed, double share) const;
  void assume(IndexEvaluator &evaluator, const Ids &numbers) const {
    evaluator.assume(ids, [&](int64_t element) { return static_cast<double>(numbers[element]); });
  }

  Value bias, ids;
  int64_t batch, sequence;
  DocumentMask mask;
};

/// The keys that query i sees; nothing (`mask.problem`) if the bias is not a mask there.
std::optional<std::vector<bool>> MaskOfDocuments::readRow(IndexEvaluator &evaluator, int64_t b,
                                                          int64_t i) {
  std::optional<Row> row = evaluator.row(bias, {b, 0, i});
  if (!row) {
    mask.problem = evaluator.obstacle
                       ? ("its mask is made by " + evaluator.obstacle->getName().getStringRef() +
                          " too, beside ids of documents")
                             .str()
                       : std::string("its mask depends on an input too, beside ids of documents");
    return std::nullopt;
  }
  std::vector<bool> seen;
  for (auto [j, number] : llvm::enumerate(row->elements())) {
    if (number != 0 && !(number < kHiddenBelow)) {
      mask.problem = llvm::formatv("its bias is no mask at ({0}, {1}), where it is {2}", i, j,
                                   numberText(number));
      return std::nullopt;
    }
    seen.push_back(number == 0);
  }
  return seen;
}

/// Query i must see exactly keys [first, i].
bool MaskOfDocuments::expectKeys(const std::vector<bool> &seen, int64_t first, int64_t i) {
  for (int64_t j = 0; j < sequence; ++j)
    if (seen[j] != (j >= first && j <= i)) {
      mask.problem = llvm::formatv(
          "its mask is not causal within documents at ({0}, {1}), where the key is {2}", i, j,
          seen[j] ? "visible" : "hidden");
      return false;
    }
  return true;
}

/// Documents that begin at this share of the positions, other ones in each row of ids.
MaskOfDocuments::Ids MaskOfDocuments::randomIds(uint64_t seed, double share) const {
  Ids numbers(typeOf(ids).getNumElements());
  for (size_t i = 1; i < numbers.size(); ++i)
    numbers[i] =
        numbers[i - 1] + (interp::uniform(interp::randomKey(seed, "documents"), i) < share);
  return numbers;
}

/// With these ids, do `rows` queries, or all if there are no more, see their own documents' keys?
bool MaskOfDocuments::seesDocuments(const Ids &numbers, int64_t rows) {
  IndexEvaluator evaluator;
  assume(evaluator, numbers);
  int64_t idRows = typeOf(ids).getNumElements() / sequence,
          step = std::max<int64_t>(1, sequence / rows);
  for (int64_t b = 0; b < batch; b += std::max<int64_t>(1, batch - 1)) {
    const int64_t *of = numbers.data() + (idRows == 1 ? 0 : b) * sequence;
    for (int64_t i = 0, first = 0; i < sequence; ++i) {
      if (i > 0 && of[i] != of[i - 1])
        first = i;
      if (i % step != 0 && i + 1 != sequence)
        continue;
      std::optional<std::vector<bool>> seen = readRow(evaluator, b, i);
      if (!seen)
        return false;
      int64_t window = mask.window ? i + 1 - mask.window : 0;
      if (!expectKeys(*seen, std::max(first, window), i))
        return false;
    }
  }
  return true;
}

DocumentMask MaskOfDocuments::read() {
  int64_t idRows = typeOf(ids).getNumElements() / sequence;
  if (typeOf(bias).getDimSize(1) != 1 || typeOf(bias).getDimSize(2) != sequence ||
      (idRows != 1 && idRows != batch)) {
    mask.problem = "its mask differs between heads, or compares ids of other positions";
    return mask;
  }
  // One document: the last query sees a window, or all.
  Ids numbers(typeOf(ids).getNumElements(), 0);
  {
    IndexEvaluator evaluator;
    assume(evaluator, numbers);
    std::optional<std::vector<bool>> seen = readRow(evaluator, 0, sequence - 1);
    if (!seen)
      return mask;
    int64_t count = llvm::count(*seen, true);
    mask.window = count == sequence ? 0 : std::max<int64_t>(1, count);
  }
  if (!seesDocuments(numbers, sequence))
    return mask;
  std::iota(numbers.begin(), numbers.end(), 0);
  if (!seesDocuments(numbers, sequence))
    return mask;
  for (double share : {0.5, 0.1, 3.0 / static_cast<double>(sequence)})
    if (!seesDocuments(randomIds(/*seed=*/1, share), mostElements / sequence))
      return mask;
  mask.ids = ids;
  return mask;
}

struct RaiseDocumentsPass : partita::impl::RaiseDocumentsBase<RaiseDocumentsPass> {
  using Base::Base;
  void runOnOperation() override;
  Value firstKeysOf(Value ids, int64_t batch);

private:
  llvm::DenseMap<std::pair<Value, int64_t>, Value> starts;
};

} // namespace

/// [batch, sequence], computed once, behind the ids.
Value RaiseDocumentsPass::firstKeysOf(Value ids, int64_t batch) {
  Value &first = starts[{ids, batch}];
  if (first)
    return first;
  OpBuilder builder(ids.getContext());
  builder.setInsertionPointAfterValue(ids);
  Location loc = ids.getLoc();
  int64_t sequence = typeOf(ids).getShape().back(), rows = typeOf(ids).getNumElements() / sequence;
  first = tx::DocumentStartsOp::create(builder, loc,
                                       createReshape(builder, loc, ids, {rows, sequence}));
  if (rows != batch)
    first = tx::BroadcastOp::create(builder, loc,
                                    typeOf(first).clone(ArrayRef<int64_t>{batch, sequence}), first);
  return first;
}

void RaiseDocumentsPass::runOnOperation() {
  if (recurring)
    return;
  starts.clear();
  Report report("attention within documents", remarks, numRaised, numMissed);
  llvm::DenseMap<Value, DocumentMask> known;
  SmallVector<tx::AttentionOp> attentions;
  getOperation().walk([&](tx::AttentionOp op) { attentions.push_back(op); });
  for (tx::AttentionOp op : attentions) {
    Value bias = op.getBias();
    Value ids =
        bias && !op.getFirstKeys() ? findIds(bias, typeOf(bias).getShape().back()) : Value();
    int64_t batch = op.getQ().getType().getDimSize(0), sequence = op.getQ().getType().getDimSize(1);
    if (!ids || op.getK().getType().getDimSize(1) != sequence || op.getCausal())
      continue;
    auto [mask, isNew] = known.try_emplace(bias);
    if (isNew) {
      ++numChecks;
      mask->second = MaskOfDocuments(bias, ids).read();
    }
    if (!mask->second.problem.empty()) {
      report.reject(op.getLoc(), mask->second.problem);
      continue;
    }
    OpBuilder builder(op);
    int64_t window = mask->second.window;
    auto raised = tx::AttentionOp::create(
        builder, op.getLoc(), op.getQ(), op.getK(), op.getV(), /*bias=*/Value(),
        firstKeysOf(ids, batch), op.getFirstHead(), op.getKey(), op.getMicro(), op.getFirst(),
        op.getScaleAttr(), builder.getUnitAttr(),
        window ? builder.getI64IntegerAttr(window) : IntegerAttr(),
        /*zero_hidden=*/UnitAttr(), op.getRatioAttr(), op.getIdAttr(), op.getFullShapeAttr(),
        op.getBlocksAttr(), op.getRingAttr());
    op.replaceAllUsesWith(raised);
    op.erase();
    report.accept(raised.getLoc(), "attention within documents");
  }
  eraseDead(getOperation());
}
