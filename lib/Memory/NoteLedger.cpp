//===- NoteLedger.cpp - the purpose of each buffer in a plan ----------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Rt/Names.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
#include "mlir/IR/Builders.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Memory/Plan.h"

using namespace mlir;
using namespace partita;
using namespace partita::memory;

/// Returns the op that a buffer comes from: that of its value or, for a sum of micro-batches, that
/// of the part.
static Operation *makerOf(const Storage &storage) {
  if (storage.scratchOf)
    return storage.scratchOf;
  Operation *op = storage.holder.getDefiningOp();
  if (auto loop = dyn_cast_or_null<train::AccumulateOp>(op)) {
    unsigned number = cast<OpResult>(storage.holder).getResultNumber();
    return loop.getPart(number).get().getDefiningOp();
  }
  return op;
}

/// The operand that a result comes from, of a collective or a copy from the host; null for a token.
static Value sourceIn(Operation *op, unsigned result) {
  if (auto collective = dyn_cast<CollectiveInterface>(op))
    return collective.getSourceOf(result);
  int64_t tokens = int64_t(op->getNumResults()) - op->getNumOperands(),
          number = int64_t(result) - tokens;
  return number < 0 || number >= op->getNumOperands() ? Value() : op->getOperand(number);
}

/// Returns the name of a bucket's member: its parameter, or what made the operand.
static std::string nameInBucket(OpResult result) {
  Operation *op = result.getDefiningOp();
  if (!isa<CollectiveInterface>(op) && offload::directionOf(op) != offload::Direction::ToDevice)
    return {};
  Value operand = sourceIn(op, result.getResultNumber());
  if (!operand)
    return {};
  if (FlatSymbolRefAttr parameter = train::parameterReadBy(operand))
    return parameter.getValue().str();
  Operation *definer = op->getNumOperands() > 1 ? operand.getDefiningOp() : nullptr;
  return definer ? rt::readableName(definer) : "";
}

/// Names an op's result, a loop's argument, or a function's argument (an input's name).
static std::string readableName(Value value) {
  if (Operation *definer = value.getDefiningOp())
    return rt::readableName(definer);
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto name = function ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                               train::TrainDialect::kName)
                       : StringAttr();
  StringRef text = name ? name.getValue() : provenance::nameIn(argument.getLoc());
  return text.empty() ? "value" : text.str();
}

static std::string nameOf(const Storage &storage) {
  if (auto result = dyn_cast_or_null<OpResult>(storage.scratchOf ? Value() : storage.holder))
    if (std::string name = nameInBucket(result); !name.empty())
      return name;
  Operation *maker = makerOf(storage);
  std::string name = maker ? rt::readableName(maker) : readableName(storage.holder);
  if (storage.scratchOf)
    return name + " (workspace)";
  return storage.holder.getDefiningOp<train::AccumulateOp>() ? name + " (sum of micro-batches)"
                                                             : name;
}

/// Returns true for gathers of flat shards: of parameters, and of what a recomputed layer keeps.
static bool gathersShards(Operation *op) {
  auto collective = dyn_cast<CollectiveInterface>(op);
  return collective && isa<zero::ZeroDialect>(op->getDialect()) &&
         collective.getCollectiveKind() == zero::GatherOp::kKind;
}

/// Returns the layer of the op, or of the parameters that it gathers.
static int64_t placeOf(Operation *op) {
  if (!op)
    return analysis::Elsewhere;
  SmallVector<par::CauseAttr> causes = par::causesOf(op);
  if (gathersShards(op) && !causes.empty())
    return causes.front().getLayer();
  train::LayerAttr layer = train::LayerAttr::of(op);
  return layer ? layer.getNumber() : int64_t(analysis::Elsewhere);
}

static bool isBackward(Operation *op) { return op && provenance::isBackward(op); }

//===----------------------------------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------------------------------===//

namespace {

/// Marks gradients: what an update takes, and what this is added up from over ranks, micro-batches,
/// and uses of the parameter.
class Gradients {
public:
  explicit Gradients(FunctionPlan &plan) : plan(plan) {}

  void mark(Value value) {
    auto found = plan.places.find(value);
    if (found == plan.places.end() || found->second.storage < 0 || !seen.insert(value).second)
      return;
    Storage &storage = plan.storages[found->second.storage];
    if (storage.kind == Kind::Activation)
      storage.kind = Kind::Gradient;
    Operation *op = value.getDefiningOp();
    if (auto loop = dyn_cast_or_null<train::AccumulateOp>(op)) {
      Value inside = handedOut(value);
      return mark(inside != value ? inside
                                  : loop.getPart(cast<OpResult>(value).getResultNumber()).get());
    }
    if (isa_and_nonnull<par::ParDialect, zero::ZeroDialect>(op ? op->getDialect() : nullptr))
      return markExchanged(op, cast<OpResult>(value).getResultNumber());
    if (isa_and_nonnull<tx::AddOp>(op) && isBackward(op))
      for (Value part : op->getOperands())
        mark(part);
  }

private:
  /// Marks a collective's operand, or for a wait its start's.
  void markExchanged(Operation *op, unsigned number) {
    if (auto sum = dyn_cast<zero::SumChunksOp>(op))
      if (Value summed = sum.getSummed(number))
        mark(summed);
    if (auto wait = dyn_cast<AsyncWaitInterface>(op)) {
      AsyncStartInterface start = wait.getStart();
      if (start && !start.worksInOperands())
        mark(wait.getFilledBy(number));
      op = start.getOperation();
    } else if (isa<AsyncStartInterface>(op)) {
      --number; // its first result is the token
    }
    if (op && number < op->getNumOperands())
      mark(op->getOperand(number));
  }

  FunctionPlan &plan;
  llvm::DenseSet<Value> seen;
};

} // namespace

/// Returns true for a copy on the device of a parameter that is on the host.
static bool isFetchedParameter(Operation *op) {
  return offload::directionOf(op) == offload::Direction::ToDevice &&
         op->getOperand(0).getDefiningOp<train::ReadOp>();
}

/// Marks parameters that are gathered from flat shards, or fetched from the host.
static void markGathered(func::FuncOp function, FunctionPlan &plan) {
  function.walk([&](Operation *op) {
    bool gathers = gathersShards(op) && !par::hasRole(op, par::Role::Parameter) && // gradients
                   !op->getOperand(0).getDefiningOp<train::BarrierOp>(); // shards of an activation
    if (!gathers && !isFetchedParameter(op))
      return;
    for (Value full : op->getResults())
      if (auto found = plan.places.find(full);
          found != plan.places.end() && found->second.storage >= 0)
        plan.storages[found->second.storage].kind =
            gathers && !par::hasRole(op, par::Role::Update) &&
                    zero::isSecondaryCopy(full.getType(),
                                          cast<CollectiveInterface>(op).getAxisAttr())
                ? Kind::Secondary
                : Kind::Gathered;
  });
}

void memory::markGradients(func::FuncOp function, FunctionPlan &plan) {
  markGathered(function, plan);
  Gradients gradients(plan);
  function.walk([&](Operation *op) {
    if (auto update = dyn_cast<train::OptimizerInterface>(op))
      gradients.mark(update.getUpdatingGradient());
  });
  // A sum made in the backward pass is a gradient, too, however it is used after the loop.
  function.walk([&](train::AccumulateOp loop) {
    for (OpResult sum : loop.getSums())
      if (isBackward(loop.getPart(sum.getResultNumber()).get().getDefiningOp()))
        gradients.mark(sum);
  });
}

//===----------------------------------------------------------------------------------------------===//
// The entry of a function
//===----------------------------------------------------------------------------------------------===//

/// Finds the first op at which the live buffers add up to the most.
static void findPeak(Ledger &ledger) {
  for (auto [op, sums] : llvm::enumerate(ledger.live()))
    if (total(sums) > ledger.peak)
      ledger.peak = total(sums), ledger.at.op = static_cast<int64_t>(op);
}

static Ledger ledgerOfPlan(const FunctionPlan &plan, rt::Space space) {
  Ledger ledger;
  ledger.arena = space == rt::Space::Pinned ? plan.pinnedBytes : plan.arenaBytes;
  ledger.ops = static_cast<int64_t>(plan.number.size());
  auto add = [&](const Storage &storage, const std::string &name, int64_t offset, int first,
                 int last) {
    Operation *maker = makerOf(storage);
    ledger.buffers.push_back({name, storage.kind, storage.bytes, offset, first, last,
                              placeOf(maker), isBackward(maker)});
  };
  const InFlight &inFlight = plan.inFlight;
  for (const Storage &storage : plan.storages)
    if (storage.space == space)
      add(storage, nameOf(storage), storage.offset, storage.first, storage.last);
    else if (storage.space == rt::Space::InFlight && inFlight.rings[storage.ring].space == space) {
      const InFlight::Ring &ring = inFlight.rings[storage.ring];
      for (int64_t block = 0; block < ring.blocks; ++block)
        add(storage,
            nameOf(storage) + " (in flight, " + std::to_string(block + 1) + " of " +
                std::to_string(ring.blocks) + ")",
            ring.offset + block * ring.bytes + storage.offset - ring.start, inFlight.first,
            inFlight.last);
    }
  findPeak(ledger);
  for (auto [op, number] : plan.number)
    if (number == ledger.at.op)
      ledger.at = {number, provenance::nameOf(op).str(), op->getName().getStringRef().str(),
                   placeOf(op), isBackward(op)};
  return ledger;
}

static rt::LedgerAttr ledgerOf(func::FuncOp function, const FunctionPlan &plan, rt::Space space) {
  MLIRContext *context = function.getContext();
  Ledger ledger = ledgerOfPlan(plan, space);
  SmallVector<Attribute> buffers;
  for (const Buffer &buffer : ledger.buffers)
    buffers.push_back(rt::BufferAttr::get(context, buffer.name, buffer.kind, buffer.bytes,
                                          buffer.offset, buffer.begin, buffer.end, buffer.place,
                                          buffer.backward));
  const Ledger::Moment &at = ledger.at;
  return rt::LedgerAttr::get(context, analysis::functionName(function), space == rt::Space::Pinned,
                             ledger.arena, ledger.peak, ledger.ops, at.op, at.name, at.node,
                             at.place, at.backward,
                             buffers.empty() ? ArrayAttr() : ArrayAttr::get(context, buffers));
}

SmallVector<rt::LedgerAttr> memory::ledgersOf(func::FuncOp function, const FunctionPlan &plan) {
  SmallVector<rt::LedgerAttr> ledgers{ledgerOf(function, plan, rt::Space::Arena)};
  if (plan.pinnedBytes > 0)
    ledgers.push_back(ledgerOf(function, plan, rt::Space::Pinned));
  return ledgers;
}
