//===- Training.cpp - kernels of the dialect train, and calls ---------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Par/Placement.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Interp/Blockwise.h"
#include "lib/Interp/Exchange.h"
#include "lib/Interp/Execution.h"
#include "partita/Interp/Random.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

using RankInputs = ArrayRef<RankTensors>;
using RankOutputs = MutableArrayRef<RankTensors>;

//===------------------------------------------------------------------------------------------===//
// Symbols
//===------------------------------------------------------------------------------------------===//

/// As it is stored, when the program reads what it wrote; through the full value otherwise.
static LogicalResult readStored(Execution &execution, train::ReadOp op, RankOutputs out) {
  Stored *stored = execution.find(op.getSymbol());
  if (!stored)
    return op.emitError() << "reads " << op.getSymbolAttr() << ", which has no value";
  auto error = [&](const Twine &text) {
    op.emitError() << "the value of " << op.getSymbolAttr() << " " << text;
  };
  if (par::Layout::of(stored->type).valueOnly() == par::Layout::of(op.getType()).valueOnly()) {
    out[0] = stored->shards;
    return success();
  }
  auto full = assemble(stored->shards, stored->type, execution.mesh(), error);
  if (failed(full))
    return failure();
  auto shards = cut(*full, op.getType(), execution.mesh(), 0, error);
  if (failed(shards))
    return failure();
  out[0] = std::move(*shards);
  return success();
}

static LogicalResult read(Execution &execution, train::ReadOp op, RankInputs, RankOutputs out) {
  if (failed(readStored(execution, op, out)))
    return failure();
  if (op.getInt8Block())
    out[0] = roundedInBlocks(out[0], static_cast<int64_t>(*op.getInt8Block()));
  return success();
}

static LogicalResult firstValue(Execution &execution, train::InitialValueOp op, RankInputs,
                                RankOutputs out) {
  Operation *symbol = SymbolTable::lookupNearestSymbolFrom(op, op.getSymbolAttr());
  auto full = interp::initialValue(symbol, execution.interpreter.options.initialValues);
  if (failed(full))
    return failure();
  auto shards = cut(*full, op.getType(), execution.mesh(), 0,
                    [&](const Twine &text) { op.emitError() << text; });
  if (failed(shards))
    return failure();
  out[0] = std::move(*shards);
  return success();
}

static LogicalResult write(Execution &execution, train::WriteOp op, RankInputs in, RankOutputs) {
  execution.write(op.getSymbol(), {op.getValue().getType(), in[0]});
  return execution.memory ? execution.memory->write(op, op.getSymbol(), *in[0].front()) : success();
}

//===------------------------------------------------------------------------------------------===//
// The step
//===------------------------------------------------------------------------------------------===//

static LogicalResult tokenCount(train::TokenCountOp op, Inputs in, Outputs out) {
  for (int64_t i = 0; i < in[0]->size(); ++i)
    out[0].reals[0] +=
        in[0]->number(i) != static_cast<double>(static_cast<int64_t>(op.getIgnoreIndex()));
  return success();
}

/// What every rank holds of micro-batch `i`.
static RankTensors microBatch(const RankTensors &batches, RankedTensorType type, int64_t i) {
  SmallVector<RankTensors, 1> result(1);
  (void)onDistinctRanks({batches}, result, batches.size(),
                        [&](Inputs in, SmallVectorImpl<Tensor> &out) {
                          Tensor &one = out.emplace_back(type);
                          for (int64_t e = 0; e < one.size(); ++e)
                            one.copyElement(e, *in[0], i * one.size() + e);
                          return success();
                        });
  return result.front();
}

static RankTensors sumOf(const RankTensors &a, const RankTensors &b) {
  SmallVector<RankTensors, 1> result(1);
  (void)onDistinctRanks({a, b}, result, a.size(), [&](Inputs in, SmallVectorImpl<Tensor> &out) {
    out.push_back(*in[0]);
    out.back().add(*in[1]);
    return success();
  });
  return result.front();
}

/// In planned memory the sums stand where they are added up, from before the first micro-batch on;
/// those that the region makes it has written there, or they are copied. One that nobody wants after the
/// loop is, where its pass has ended, what the pass's last slot has made of it.
static LogicalResult keepSums(Execution &execution, train::AccumulateOp op, RankOutputs before,
                              RankOutputs after, const llvm::BitVector &ended) {
  for (auto [i, sum] : llvm::enumerate(op.getSums())) {
    Region &region = *op.getPart(i).getOwner()->getParentRegion();
    if (op.getSoFar(i) && sum.use_empty() && ended[op.numberOf(region)])
      continue;
    Tensor zero(cast<RankedTensorType>(sum.getType()));
    if (!before.empty() && !op.getSoFar(i) &&
        failed(execution.memory->check(op, sum, before[i].empty() ? zero : *before[i].front())))
      return failure();
    if (failed(execution.memory->put(cast<OpResult>(sum),
                                     after[i].empty() ? zero : *after[i].front())))
      return failure();
    if (BlockArgument soFar = op.getSoFar(i))
      execution.memory->putWhere(soFar, sum);
  }
  return success();
}

/// What a sum that the region makes is before the first micro-batch.
static RankTensors zeros(Execution &execution, Type type) {
  auto zero = std::make_shared<Tensor>(cast<RankedTensorType>(type));
  return RankTensors(execution.rankCount(), zero);
}

/// The passes of micro-batches: what they are given, save, and add to the sums.
class Passes {
public:
  Passes(Execution &execution, train::AccumulateOp op, RankInputs in, RankOutputs out)
      : execution(execution), op(op), in(in), out(out), saved(op.getCount()), done(op.getCount()),
        ended(op->getNumRegions()) {}

  LogicalResult run() {
    if (execution.memory && failed(keepSums(execution, op, {}, out, ended)))
      return failure();
    MutableArrayRef<Region> regions = op->getRegions();
    if (std::optional<train::OrderAttr> order = op.getOrder()) {
      for (auto [time, slot] : llvm::enumerate(order->getSlots())) {
        Region &region = regions[*op.findPass(slot.pass())];
        execution.inLastSlot = time == op.getLastSlot(op.numberOf(region));
        if (failed(awaitSent(region)) || failed(pass(region, slot.microBatch)))
          return failure();
      }
      execution.inLastSlot = false;
      return success(
          llvm::all_of(regions, [&](Region &each) { return succeeded(awaitSent(each)); }));
    }
    for (int64_t i = 0; i < op.getCount(); ++i)
      for (Region &region : regions)
        if (failed(pass(region, i)))
          return failure();
    return success();
  }

private:
  LogicalResult pass(Region &region, int64_t i) {
    Block &block = region.front();
    unsigned number = op.numberOf(region);
    place(i, number);
    SmallVector<RankTensors> arguments, before(out);
    for (auto [argument, batches] : llvm::zip(block.getArguments(), in))
      arguments.push_back(microBatch(batches, cast<RankedTensorType>(argument.getType()), i));
    saved[i].resize(op->getNumRegions());
    for (unsigned earlier = 0; earlier < number; ++earlier) {
      saved[i][earlier].resize(op.getSaved(earlier).size()); // one that has not run is not read
      llvm::append_range(arguments, saved[i][earlier]);
    }
    for (BlockArgument argument : block.getArguments().drop_front(arguments.size())) {
      const RankTensors &sum = out[cast<OpResult>(op.getSumOf(argument)).getResultNumber()];
      arguments.push_back(sum.empty() ? zeros(execution, argument.getType()) : sum);
    }
    auto yielded = execution.run(block, arguments);
    if (failed(yielded))
      return failure();
    saved[i][number].clear();
    auto yield = cast<train::YieldOp>(block.getTerminator());
    for (auto [part, operand] : llvm::zip(*yielded, yield->getOpOperands())) {
      std::optional<unsigned> added = op.getSumOf(operand);
      if (OpResult behind = op.getHandingOut(operand)) {
        if (execution.inLastSlot)
          out[behind.getResultNumber()] = part;
        continue;
      }
      if (!added) {
        saved[i][number].push_back(part);
        continue;
      }
      RankTensors &sum = out[*added];
      sum = sum.empty() || op.getSoFar(*added) ? part : sumOf(sum, part);
    }
    if (++done[i] == op->getNumRegions())
      saved[i].clear();
    ended[number] = ended[number] || execution.inLastSlot;
    return execution.memory ? keepSums(execution, op, before, out, ended) : success();
  }

  /// In planned memory: the blocks of the micro-batch, and the saved values in them.
  void place(int64_t i, unsigned pass) {
    auto inFlight = op->getAttrOfType<rt::InFlightAttr>(rt::RtDialect::kInFlight);
    if (!execution.memory || !inFlight)
      return;
    execution.memory->setInFlight(inFlight, i);
    SmallVector<Value> all = op.getAllSaved();
    for (unsigned number = 0, count = op.countSavedBefore(pass); number < count; ++number)
      execution.memory->putWhere(op.getSavedArgument(number, pass), all[number]);
  }

  /// What the region has sent the last time is received, or other stages wait for this one in vain.
  LogicalResult awaitSent(Region &region) {
    WalkResult result = region.walk([&](pipe::SendOp send) -> WalkResult {
      Exchange *exchange = execution.interpreter.exchange;
      return exchange ? exchange->awaitSent(send) : success();
    });
    return failure(result.wasInterrupted());
  }

  Execution &execution;
  train::AccumulateOp op;
  RankInputs in;
  RankOutputs out;
  std::vector<SmallVector<SmallVector<RankTensors>>> saved; // by micro-batch and pass
  std::vector<unsigned> done;                               // passes of each micro-batch
  llvm::BitVector ended;                                    // the passes that run no more
};

static LogicalResult accumulate(Execution &execution, train::AccumulateOp op, RankInputs in,
                                RankOutputs out) {
  return Passes(execution, op, in, out).run();
}

template <typename Fusion>
static LogicalResult fusion(Execution &execution, Fusion op, RankInputs in, RankOutputs out) {
  auto results =
      execution.run(op.getBody().front(), SmallVector<RankTensors>(in.begin(), in.end()));
  if (failed(results))
    return failure();
  llvm::move(*results, out.begin());
  return success();
}

static LogicalResult minimize(Execution &, train::MinimizeOp, RankInputs, RankOutputs) {
  return success();
}

static LogicalResult update(Execution &execution, train::UpdateOp op, RankInputs, RankOutputs) {
  return execution.recordGradient(op, op.getParameter(), op.getGradient());
}

static LogicalResult barrier(Execution &, train::BarrierOp, RankInputs in, RankOutputs out) {
  out[0] = in[0];
  return success();
}

/// A number that the host sets, the same on all ranks.
template <typename Op> static RankTensors control(Execution &execution, Op op, double number) {
  Tensor value(cast<RankedTensorType>(op.getType()));
  for (int64_t i = 0; i < value.size(); ++i)
    value.setNumber(i, number);
  return RankTensors(execution.rankCount(), std::make_shared<Tensor>(std::move(value)));
}

static LogicalResult learningRate(Execution &execution, train::LearningRateOp op, RankInputs,
                                  RankOutputs out) {
  out[0] = control(execution, op, execution.interpreter.options.learningRate);
  return success();
}

static LogicalResult stepNumber(Execution &execution, train::StepNumberOp op, RankInputs,
                                RankOutputs out) {
  auto number = static_cast<double>(execution.interpreter.options.stepNumber);
  if (Stored *skipped = execution.find(amp::AmpDialect::kSkipped))
    number -= skipped->shards.front()->number(0);
  out[0] = control(execution, op, number);
  return success();
}

static LogicalResult keyOfStep(Execution &execution, train::RandomKeyOp op, RankInputs,
                               RankOutputs out) {
  const Options &options = execution.interpreter.options;
  Tensor value(cast<RankedTensorType>(op.getType()));
  value.ints[0] = static_cast<int64_t>(stepKey(options.seed, options.stepNumber));
  out[0] = RankTensors(execution.rankCount(), std::make_shared<Tensor>(std::move(value)));
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Calls
//===------------------------------------------------------------------------------------------===//

static LogicalResult call(Execution &execution, func::CallOp op, RankInputs in, RankOutputs out) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, op.getCalleeAttr());
  if (!callee || !callee.getBody().hasOneBlock())
    return op.emitError() << "calls '" << op.getCallee() << "', which has no body of one block";
  if (execution.depth == 100)
    return op.emitError() << "calls '" << op.getCallee() << "' more than 100 calls deep";
  Execution frame(execution.interpreter, execution.depth + 1);
  auto results = frame.run(callee.getBody().front(), in);
  if (failed(results))
    return failure();
  for (auto [result, value] : llvm::zip(out, *results))
    result = std::move(value);
  return success();
}

void partita::interp::addTrainKernels(KernelTable &table) {
  table.addRanks<train::ReadOp>(read);
  table.addRanks<train::InitialValueOp>(firstValue);
  table.addRanks<train::WriteOp>(write);
  table.add<train::TokenCountOp>(tokenCount);
  table.addRanks<train::AccumulateOp>(accumulate);
  table.addRanks<tx::FusionOp>(fusion<tx::FusionOp>);
  table.addRanks<tx::FusedMatmulOp>(fusion<tx::FusedMatmulOp>);
  table.addRanks<tx::FusedLookupOp>(fusion<tx::FusedLookupOp>);
  table.addRanks<train::MinimizeOp>(minimize);
  table.addRanks<train::UpdateOp>(update);
  table.addRanks<train::BarrierOp>(barrier);
  table.addRanks<train::LearningRateOp>(learningRate);
  table.addRanks<train::StepNumberOp>(stepNumber);
  table.addRanks<train::RandomKeyOp>(keyOfStep);
  table.addRanks<func::CallOp>(call);
}
