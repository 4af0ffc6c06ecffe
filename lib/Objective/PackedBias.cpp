//===- PackedBias.cpp - see PackedBias.h ------------------------------------------------------===//

#include "lib/Objective/PackedBias.h"
#include "dialects/Train/Train.h"
#include "partita/Interp/Random.h"
#include "partita/Support/HiddenScores.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace partita;

namespace {

/// Elements that are evaluated.
constexpr int64_t mostElements = int64_t(1) << 20;

class PackedBias {
public:
  PackedBias(Value bias, int64_t sequence, raise::IndexEvaluator evaluator)
      : bias(bias), shape(cast<RankedTensorType>(bias.getType()).getShape()), sequence(sequence),
        evaluator(std::move(evaluator)) {
    assumeParameters();
  }
  std::string problem(bool causal);

private:
  using Elements = std::vector<double>;
  void assumeParameters();
  std::optional<Elements> row(int64_t b, int64_t h, int64_t i);
  std::string compare(const Elements &packed, const Elements &alone, int64_t first,
                      int64_t i) const;

  Value bias;
  ArrayRef<int64_t> shape;
  int64_t sequence;
  raise::IndexEvaluator evaluator;
};

} // namespace

/// Whatever parameters the bias is made of must not matter, hence arbitrary ones.
void PackedBias::assumeParameters() {
  SmallVector<Value> pending{bias};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second)
      continue;
    if (isa<train::ReadOp>(op)) {
      uint64_t key = interp::randomKey(1, std::to_string(seen.size()));
      evaluator.assume(value, [key](int64_t i) { return interp::standardNormal(key, i); });
    }
    pending.append(op->operand_begin(), op->operand_end());
  }
}

/// The biases of query i and all keys.
std::optional<PackedBias::Elements> PackedBias::row(int64_t b, int64_t h, int64_t i) {
  auto at = [&](int64_t index, unsigned dim) { return shape[dim] == 1 ? 0 : index; };
  std::optional<raise::Row> found = evaluator.row(bias, {at(b, 0), at(h, 1), at(i, 2)});
  if (!found)
    return std::nullopt;
  return found->size() == 1 ? Elements(sequence, found->front()) : found->elements();
}

/// Query i of a row whose document begins at `first`, beside query i - first of the document alone.
std::string PackedBias::compare(const Elements &packed, const Elements &alone, int64_t first,
                                int64_t i) const {
  for (int64_t j = first; j <= i; ++j) {
    double here = packed[j], there = alone[j - first];
    if ((here < kHiddenBelow) && (there < kHiddenBelow))
      continue;
    here -= packed[i];
    there -= alone[i - first];
    double size = std::max({1.0, std::abs(packed[j]), std::abs(packed[i])});
    if (!(std::abs(here - there) <= 1e-5 * size))
      return llvm::formatv(
          "its bias depends on more than the distance of query and key: on that of "
          "query {0} and key {1} otherwise than on that of {2} and {3}",
          i, j, i - first, j - first);
  }
  return "";
}

std::string PackedBias::problem(bool causal) {
  int64_t planes = (shape[0] > 1 ? 2 : 1) * shape[1],
          rows = std::max<int64_t>(2, mostElements / (planes * sequence * 4)),
          step = std::max<int64_t>(1, sequence / rows);
  for (int64_t b = 0; b < shape[0]; b += std::max<int64_t>(1, shape[0] - 1))
    for (int64_t h = 0; h < shape[1]; ++h)
      for (int64_t i = sequence - 1; i >= 0; i -= step) {
        std::optional<Elements> packed = row(b, h, i);
        if (!packed)
          return "its bias is made by an op that is not understood" +
                 (evaluator.obstacle ? ", " + evaluator.obstacle->getName().getStringRef().str()
                                     : std::string());
        for (int64_t j = i + 1; j < sequence && !causal; ++j)
          if (!((*packed)[j] < kHiddenBelow))
            return llvm::formatv("it is not causal: query {0} sees key {1}", i, j);
        for (int64_t first : {int64_t(1), i / 2, i}) {
          if (first < 1 || first > i)
            continue;
          std::optional<Elements> alone = row(b, h, i - first);
          std::string problem = alone ? compare(*packed, *alone, first, i) : "";
          if (!problem.empty())
            return problem;
        }
      }
  return "";
}

std::string objective::problemOfPackedBias(Value bias, int64_t sequence, bool causal,
                                           raise::IndexEvaluator evaluator) {
  return PackedBias(bias, sequence, std::move(evaluator)).problem(causal);
}
