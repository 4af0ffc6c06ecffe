//===- CheckStreams.cpp - checks that accesses from two streams are ordered -------------------===//
//
// A started op runs concurrently with the computation, on the stream of its communicator or of its
// direction of copies. Two edges order it: it begins after everything before the start has
// completed, and everything after the wait begins once it has completed. The check walks a planned
// function once and keeps the pending ops with the bytes they read and write. An access in between
// that touches these bytes is a race, whichever pass placed the start, the wait or the memory. The
// check does not rely on the planner: it knows places, not lifetimes. Passes of a loop with an
// order are walked in the order in which they end: an op started in a pass's last slot is pending
// in the rest of that pass and in passes that end later. Messages that they send are checked after
// the loop, slot by slot (SentMessages.h). What a pass starts in every slot is waited for in it.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "lib/Overlap/SentMessages.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Overlap/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace partita {
#define GEN_PASS_DEF_CHECKSTREAMSPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::overlap;
using rt::RtDialect;

namespace {

class FunctionCheck {
public:
  LogicalResult run(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments())
      if (auto at = function.getArgAttrOfType<rt::AtAttr>(argument.getArgNumber(), RtDialect::kAt))
        places[argument] = at;
    return checkBlock(function.getBody().front());
  }

private:
  LogicalResult checkBlock(Block &block) {
    for (Operation &op : block)
      if (failed(checkOp(&op)))
        return failure();
    return success();
  }

  LogicalResult checkOp(Operation *op) {
    notePlaces(op);
    if (AsyncStartInterface start = startOf(op)) {
      flights.erase(start);
      return checkAccesses(op, copiedBy(op, start), Attribute());
    }
    Accesses accesses = accessesOf(op);
    Attribute stream = streamOf(op);
    if (failed(checkAccesses(op, accesses, stream)))
      return failure();
    auto loop = dyn_cast<train::AccumulateOp>(op);
    if (failed(loop && loop.getOrder() ? checkOrder(loop) : checkRegions(op)))
      return failure();
    if (stream)
      flights.insert({op, {op, stream, std::move(accesses)}});
    return success();
  }

  /// Checks accesses against what is in flight, and records them to check against what the
  /// surrounding loop sends.
  LogicalResult checkAccesses(Operation *op, const Accesses &accesses, Attribute stream) {
    for (auto &[start, flight] : flights)
      if (stream != flight.stream && failed(checkPair(op, accesses, flight)))
        return failure();
    if (sent)
      sent->add(op, accesses);
    return success();
  }

  LogicalResult checkOrder(train::AccumulateOp loop) {
    std::optional<SentMessages> outer = std::move(sent);
    sent.emplace(loop);
    LogicalResult checked = failure(failed(checkRegions(loop)) || failed(sent->check()));
    sent = std::move(outer);
    return checked;
  }

  LogicalResult checkRegions(Operation *op) {
    for (Region *region : regionsOf(op))
      for (Block &block : *region) {
        for (BlockArgument argument : block.getArguments())
          noteArgument(argument);
        if (failed(checkBlock(block)) || failed(checkOpen(block)))
          return failure();
      }
    return success();
  }

  /// Refuses what has started in a region and is still running at its end, unless the region hands
  /// it out: a loop does so with what a pass's last slot starts. Of any other slot nobody waits.
  static bool isHandedOut(AsyncStartInterface start) {
    return behindRegion(start.getToken()) != start.getToken() &&
           start->hasAttr(train::TrainDialect::kLast);
  }
  LogicalResult checkOpen(Block &block) {
    for (auto &[op, flight] : flights)
      if (op->getBlock() == &block && !isHandedOut(cast<AsyncStartInterface>(op)))
        return op->emitOpError()
               << "is still running when its pass ends: only what a pass starts in its last slot ("
               << train::TrainDialect::kLast << ") can be waited for after the loop";
    return success();
  }

  /// Returns a loop's regions in the order in which they end, if it has an order: a pass reads only
  /// what ends before it does.
  static SmallVector<Region *> regionsOf(Operation *op) {
    auto loop = dyn_cast<train::AccumulateOp>(op);
    if (!loop || !loop.getOrder())
      return llvm::map_to_vector(op->getRegions(), [](Region &region) { return &region; });
    return llvm::map_to_vector(loop.getPassesByEnd(),
                               [&](unsigned pass) { return &loop->getRegion(pass); });
  }

  /// A saved value stays where the forward pass put it; a micro-batch is somewhere in its batch.
  void noteArgument(BlockArgument argument) {
    Value source = train::forwardOf(argument);
    auto loop = dyn_cast<train::AccumulateOp>(argument.getOwner()->getParentOp());
    if (auto micro = dyn_cast<BlockArgument>(source); micro && loop)
      if (Value batch = loop.getBatchOf(micro); batch && places.contains(batch)) {
        places[argument] = places.lookup(batch);
        batches[argument] = batch.getType();
        return;
      }
    if (source != argument && places.contains(source))
      places[argument] = places.lookup(source);
  }

  /// Returns the type of the tensor at a value's place.
  Type placedType(Value value) const {
    Type batch = batches.lookup(value);
    return batch ? batch : value.getType();
  }

  /// Returns the start that a wait completes.
  static AsyncStartInterface startOf(Operation *op) {
    auto wait = dyn_cast<AsyncWaitInterface>(op);
    return wait ? wait.getStart() : AsyncStartInterface();
  }

  /// Returns null for ops on the stream of the computation.
  static Attribute streamOf(Operation *op) {
    auto start = dyn_cast<AsyncStartInterface>(op);
    return start ? start.getStream() : Attribute();
  }

  //===- Accesses

  /// Returns true if the op's buffers are the places of its operands, in which it works, rather
  /// than of its results.
  static bool worksInOperands(Operation *op) {
    auto start = dyn_cast<AsyncStartInterface>(op);
    return isa<func::ReturnOp>(op) || (start && start.worksInOperands());
  }

  void notePlaces(Operation *op) {
    auto buffers = op->getAttrOfType<ArrayAttr>(RtDialect::kBuffers);
    if (!buffers || worksInOperands(op))
      return;
    unsigned number = 0;
    for (OpResult result : op->getResults())
      if (isa<RankedTensorType>(result.getType()) && number < buffers.size())
        places[result] = dyn_cast<rt::AtAttr>(buffers[number++]);
    if (auto loop = dyn_cast<train::AccumulateOp>(op))
      for (OpResult sum : loop.getSums())
        if (BlockArgument soFar = loop.getSoFar(sum.getResultNumber()))
          places[soFar] = places.lookup(sum);
  }

  static void add(SmallVectorImpl<Access> &list, rt::AtAttr at, Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!at || !tensor || !rt::hasOffsets(at.getSpace()) || tensor.getNumElements() == 0)
      return;
    if (std::optional<Access> access = Access::at(at, tensor))
      list.push_back(std::move(*access));
  }

  /// Returns true for a view of an operand, which touches no memory.
  bool isView(Operation *op) {
    auto kernel = dyn_cast<rt::KernelInterface>(op);
    auto operand = op->getNumOperands() == 1 && !batches.contains(op->getOperand(0))
                       ? dyn_cast<RankedTensorType>(op->getOperand(0).getType())
                       : RankedTensorType();
    if (!kernel || !operand || op->getNumResults() != 1)
      return false;
    rt::AtAttr from = places.lookup(op->getOperand(0)), to = places.lookup(op->getResult(0));
    return from && to && from.getSpace() == to.getSpace() &&
           kernel.viewOfOperand(rt::viewOf(from, operand)).has_value() && [&] {
             SmallVector<Access> both;
             add(both, from, operand);
             add(both, to, op->getResult(0).getType());
             return both.size() == 2 && both[1].begin >= both[0].begin &&
                    both[1].end <= both[0].end;
           }();
  }

  Accesses accessesOf(Operation *op) {
    Accesses accesses;
    if (isView(op) || isa<train::ReadOp>(op))
      return accesses;
    for (OpOperand &operand : op->getOpOperands())
      if (!staysInPlace(operand))
        add(accesses.reads, places.lookup(operand.get()), placedType(operand.get()));
    auto buffers = op->getAttrOfType<ArrayAttr>(RtDialect::kBuffers);
    if (worksInOperands(op)) { // one per operand
      ArrayRef<Attribute> list = buffers ? buffers.getValue() : ArrayRef<Attribute>();
      for (auto [operand, at] : llvm::zip(op->getOperands(), list))
        add(accesses.writes, dyn_cast<rt::AtAttr>(at), operand.getType());
    } else {
      for (Value result : op->getResults())
        add(accesses.writes, places.lookup(result), result.getType());
    }
    addWorkspace(op, accesses);
    if (auto yield = dyn_cast<train::YieldOp>(op))
      addSums(yield, accesses);
    if (auto write = dyn_cast<train::WriteOp>(op))
      addSymbol(write, accesses);
    return accesses;
  }

  /// A wait copies a filled value to its result if they have different places.
  Accesses copiedBy(Operation *wait, AsyncStartInterface start) const {
    Accesses accesses;
    if (start.worksInOperands())
      return accesses;
    OperandRange filled = cast<AsyncWaitInterface>(wait).getFilled();
    for (auto [from, to] : llvm::zip_equal(filled, wait->getResults())) {
      if (places.lookup(from) == places.lookup(to))
        continue;
      add(accesses.reads, places.lookup(from), from.getType());
      add(accesses.writes, places.lookup(to), to.getType());
    }
    return accesses;
  }

  /// Returns true if a pass yields the value without touching it: it is handed out, or is a sum
  /// that is already in the loop's place.
  bool staysInPlace(OpOperand &yielded) const {
    auto yield = dyn_cast<train::YieldOp>(yielded.getOwner());
    if (!yield)
      return false;
    auto loop = cast<train::AccumulateOp>(yield->getParentOp());
    std::optional<unsigned> sum = loop.getSumOf(yielded);
    return loop.getHandingOut(yielded) ||
           (sum && loop.getSoFar(*sum) &&
            places.lookup(yielded.get()) == places.lookup(loop.getSums()[*sum]));
  }

  /// Adds writes of the sums to which a pass adds what it yields.
  void addSums(train::YieldOp yield, Accesses &accesses) const {
    auto loop = cast<train::AccumulateOp>(yield->getParentOp());
    for (OpOperand &yielded : yield->getOpOperands())
      if (std::optional<unsigned> number = loop.getSumOf(yielded);
          number && !staysInPlace(yielded)) {
        OpResult sum = loop.getSums()[*number];
        add(accesses.writes, places.lookup(sum), sum.getType());
      }
  }

  static void addWorkspace(Operation *op, Accesses &accesses) {
    auto workspace = op->getAttrOfType<rt::AtAttr>(RtDialect::kWorkspace);
    auto kernel = dyn_cast<rt::KernelInterface>(op);
    if (!workspace || !kernel)
      return;
    auto type =
        RankedTensorType::get({kernel.workspaceElements()}, Float32Type::get(op->getContext()));
    add(accesses.writes, workspace, type);
  }

  /// Adds what train.write copies to. If the value was computed in place, nothing is read or
  /// written.
  void addSymbol(train::WriteOp write, Accesses &accesses) {
    Operation *symbol = SymbolTable::lookupNearestSymbolFrom(write, write.getSymbolAttr());
    auto at = symbol ? symbol->getAttrOfType<rt::AtAttr>(RtDialect::kAt) : rt::AtAttr();
    if (at && at != places.lookup(write.getValue()))
      add(accesses.writes, at, write.getValue().getType());
    else
      accesses.reads.clear();
  }

  llvm::DenseMap<Value, rt::AtAttr> places;
  llvm::DenseMap<Value, Type> batches; ///< by micro-batch
  llvm::MapVector<Operation *, Flight> flights;
  std::optional<SentMessages> sent; ///< only within a loop with an order
};

struct CheckStreams : partita::impl::CheckStreamsPassBase<CheckStreams> {
  void runOnOperation() override {
    markAllAnalysesPreserved(); // ops are not verified again, either
    if (!getOperation()->hasAttr(RtDialect::kArenaBytes)) {
      getOperation().emitError() << "has no attribute '" << RtDialect::kArenaBytes
                                 << "'; run plan-memory first";
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(FunctionCheck().run(function)))
        return signalPassFailure();
  }
};

} // namespace
