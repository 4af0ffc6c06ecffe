//===- Spans.cpp --------------------------------------------------------------------------------===//

#include "partita/Stages/Spans.h"
#include "dialects/Train/Train.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;
using namespace partita;
using namespace partita::stages;

void stages::noteSpans(ModuleOp module, ArrayRef<Span> spans) {
  Builder b(module.getContext());
  auto rows = llvm::map_to_vector(spans, [&](const Span &span) -> Attribute {
    SmallVector<int64_t> costs(span.costs.each.begin(), span.costs.each.end());
    return train::SpanAttr::get(b.getContext(), span.first, span.last,
                                b.getDenseI64ArrayAttr(costs), span.splits);
  });
  if (!rows.empty())
    module->setAttr(train::TrainDialect::kSpans, b.getArrayAttr(rows));
}

std::vector<Span> stages::notedSpans(ModuleOp module) {
  std::vector<Span> spans;
  if (auto noted = module->getAttrOfType<ArrayAttr>(train::TrainDialect::kSpans))
    for (auto row : noted.getAsRange<train::SpanAttr>()) {
      Span &span = spans.emplace_back(Span{row.getFirst(), row.getLast(), {}, row.getSplits()});
      llvm::copy(row.getCosts().asArrayRef(), span.costs.each.begin());
    }
  return spans;
}

static void add(SlotCosts &sum, const SlotCosts &costs, double sign = 1) {
  for (auto [total, each] : llvm::zip(sum.each, costs.each))
    total += sign * each;
}

/// Makes sums of costs by layer: entry i is the sum of those before i.
static void accumulate(std::vector<SlotCosts> &costs) {
  SlotCosts sum{};
  for (SlotCosts &each : costs) {
    SlotCosts own = each;
    each = sum;
    add(sum, own);
  }
  costs.push_back(sum);
}

RangeCosts::RangeCosts(ArrayRef<Span> spans) {
  int64_t layers = 0;
  for (const Span &span : spans)
    layers = std::max(layers, span.last + 1);
  for (std::array<Sums, 2> *all : {&single, &joined})
    for (Sums &sums : *all)
      sums.assign(layers, SlotCosts{});
  for (const Span &span : spans) {
    splits |= span.splits;
    (span.first == span.last ? single : joined)[span.splits][span.first] = span.costs;
  }
  for (std::array<Sums, 2> *all : {&single, &joined})
    for (Sums &sums : *all)
      accumulate(sums);
}

SlotCosts RangeCosts::of(int64_t range, int64_t begin, int64_t end) const {
  const Sums &one = single[splits && range > 0], &two = joined[splits && range > 0];
  bool isOne = end - begin == 1;
  SlotCosts costs = isOne ? one[end] : two[end - 1];
  add(costs, isOne ? one[begin] : two[begin], -1);
  if (!isOne) { // the layers between the ends are in two spans each
    add(costs, one[end - 1], -1);
    add(costs, one[begin + 1]);
  }
  if (splits && range == 0) // without a cotangent to send, all of the backward pass is for weights
    std::swap(costs.each[static_cast<size_t>(PassKind::Backward)],
              costs.each[static_cast<size_t>(PassKind::Weights)]);
  return costs;
}

double RangeCosts::sumOf(int64_t range, int64_t begin, int64_t end) const {
  SlotCosts costs = of(range, begin, end);
  return std::accumulate(costs.each.begin(), costs.each.end(), 0.);
}
