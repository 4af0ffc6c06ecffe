//===- Ledger.cpp - what memory is used for, and where the most of it is ----------------------===//

#include "dialects/Rt/Names.h"
#include "dialects/Train/Train.h"
#include "mlir/IR/Builders.h"
#include "partita/Memory/Plan.h"

using namespace mlir;
using namespace partita;
using namespace partita::memory;

StringRef memory::toString(Use use) {
  static constexpr StringLiteral names[kUses] = {"activations", "gradients", "communication",
                                                 "workspace"};
  return names[static_cast<unsigned>(use)];
}

static StringRef kindOf(Use use) {
  static constexpr StringLiteral names[kUses] = {"activation", "gradient", "communication",
                                                 "workspace"};
  return names[static_cast<unsigned>(use)];
}

static std::string nameOf(const Storage &storage) {
  if (storage.scratchOf)
    return rt::readableName(storage.scratchOf->getLoc(), storage.scratchOf) + " (workspace)";
  Operation *op = storage.holder.getDefiningOp();
  if (auto loop = dyn_cast_or_null<train::AccumulateOp>(op)) {
    auto result = cast<OpResult>(storage.holder);
    Value part = loop.getBody().front().getTerminator()->getOperand(result.getResultNumber());
    return rt::readableName(part.getLoc(), part.getDefiningOp()) + " (sum of micro-batches)";
  }
  return rt::readableName(storage.holder.getLoc(), op);
}

/// The op number at which the living storages' sizes add up to the most, and that sum.
static std::pair<int, int64_t> findPeak(const FunctionPlan &plan) {
  std::vector<int64_t> change(plan.number.size() * 2 + 4, 0);
  for (const Storage &storage : plan.storages)
    if (storage.space == rt::Space::Arena) {
      change[storage.first] += align(storage.bytes);
      change[storage.last + 1] -= align(storage.bytes);
    }
  int at = 0;
  int64_t live = 0, peak = 0;
  for (auto [i, delta] : llvm::enumerate(change)) {
    live += delta;
    if (live > peak) {
      peak = live;
      at = static_cast<int>(i);
    }
  }
  return {at, peak};
}

void memory::markGradients(func::FuncOp function, FunctionPlan &plan) {
  auto mark = [&](Value value) {
    if (auto found = plan.places.find(value);
        found != plan.places.end() && found->second.storage >= 0)
      plan.storages[found->second.storage].use = Use::Gradient;
  };
  function.walk([&](Operation *op) {
    if (auto adamw = dyn_cast<train::AdamWOp>(op))
      mark(adamw.getGradient());
    else if (auto sgd = dyn_cast<train::SgdOp>(op))
      mark(sgd.getGradient());
    else if (auto loop = dyn_cast<train::AccumulateOp>(op))
      for (Value sum : loop.getSums())
        mark(sum);
  });
}

DictionaryAttr memory::ledgerOf(func::FuncOp function, const FunctionPlan &plan) {
  auto [at, peak] = findPeak(plan);
  int64_t sums[kUses] = {};
  SmallVector<const Storage *> alive;
  for (const Storage &storage : plan.storages)
    if (storage.space == rt::Space::Arena && storage.first <= at && at <= storage.last) {
      sums[static_cast<unsigned>(storage.use)] += align(storage.bytes);
      alive.push_back(&storage);
    }
  llvm::sort(alive, [](const Storage *a, const Storage *b) {
    return std::make_pair(-a->bytes, a) < std::make_pair(-b->bytes, b);
  });
  Operation *peakOp = nullptr;
  for (auto [op, number] : plan.number)
    if (number == at)
      peakOp = op;
  Builder b(function.getContext());
  SmallVector<Attribute> holders;
  for (const Storage *storage : ArrayRef(alive).take_front(10))
    holders.push_back(b.getArrayAttr(
        {b.getStringAttr(nameOf(*storage)), b.getI64IntegerAttr(align(storage->bytes))}));
  SmallVector<Attribute> buffers;
  for (const Storage &storage : plan.storages)
    if (storage.space == rt::Space::Arena)
      buffers.push_back(
          b.getDictionaryAttr({b.getNamedAttr("name", b.getStringAttr(nameOf(storage))),
                               b.getNamedAttr("kind", b.getStringAttr(kindOf(storage.use))),
                               b.getNamedAttr("bytes", b.getI64IntegerAttr(storage.bytes)),
                               b.getNamedAttr("offset", b.getI64IntegerAttr(storage.offset)),
                               b.getNamedAttr("begin", b.getI64IntegerAttr(storage.first)),
                               b.getNamedAttr("end", b.getI64IntegerAttr(storage.last))}));
  NamedAttrList entries;
  entries.set("buffers", b.getArrayAttr(buffers));
  entries.set("arena", b.getI64IntegerAttr(plan.arenaBytes));
  entries.set("peak", b.getI64IntegerAttr(peak));
  entries.set("at", b.getStringAttr(peakOp ? rt::readableName(peakOp->getLoc(), peakOp) : ""));
  for (unsigned use = 0; use < kUses; ++use)
    entries.set(toString(static_cast<Use>(use)), b.getI64IntegerAttr(sums[use]));
  entries.set("holders", b.getArrayAttr(holders));
  return entries.getDictionary(function.getContext());
}
