//===- CheckStreams.cpp - is every pair of accesses from two streams ordered? -----------------===//
//
// A started op runs beside the computation, on the stream of its communicator or of its direction of
// copies. Two edges order it: it begins when everything before the start is complete, and everything
// behind the wait begins when it is complete. The check walks a planned function once and keeps the
// pending ops with the bytes they read and write; an access in between that touches these bytes is a
// race, whichever pass placed the start, the wait or the memory. It does not rely on the planner: it
// knows no lifetimes, only places. Passes of a loop with an order are walked in the order in which they
// end: what begins in a pass's last slot is pending in the rest of it and in those that run later. What
// they send is checked behind the loop, slot by slot (SentMessages.h).
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

  /// Against what is under way; and for later against what the loop around it sends.
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
        if (failed(checkBlock(block)))
          return failure();
      }
    return success();
  }

  /// Those of a loop with an order as they end: a pass reads only what ends before it does.
  static SmallVector<Region *> regionsOf(Operation *op) {
    auto loop = dyn_cast<train::AccumulateOp>(op);
    if (!loop || !loop.getOrder())
      return llvm::map_to_vector(op->getRegions(), [](Region &region) { return &region; });
    return llvm::map_to_vector(loop.getPassesByEnd(),
                               [&](unsigned pass) { return &loop->getRegion(pass); });
  }

  /// What is saved lies where the forward pass put it, and a micro-batch somewhere in its batch.
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

  /// The tensor at a value's place.
  Type placedType(Value value) const {
    Type batch = batches.lookup(value);
    return batch ? batch : value.getType();
  }

  /// The start that a wait completes.
  static AsyncStartInterface startOf(Operation *op) {
    auto wait = dyn_cast<AsyncWaitInterface>(op);
    return wait ? wait.getStart() : AsyncStartInterface();
  }

  /// Null for what runs on the stream of the computation.
  static Attribute streamOf(Operation *op) {
    auto start = dyn_cast<AsyncStartInterface>(op);
    return start ? start.getStream() : Attribute();
  }

  //===- Accesses

  /// Are the op's buffers its operands' places, in which it works, and not its results'?
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

  /// A view of an operand touches no memory.
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

  /// A wait copies what was filled elsewhere than its result stands.
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

  /// What a pass yields and nobody touches for it: it is handed out, or is a sum that stands where the loop has it.
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

  /// The sums to which a pass adds what it yields.
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

  /// What train.write copies to; nothing where the value was computed there.
  void addSymbol(train::WriteOp write, Accesses &accesses) {
    Operation *symbol = SymbolTable::lookupNearestSymbolFrom(write, write.getSymbolAttr());
    auto at = symbol ? symbol->getAttrOfType<rt::AtAttr>(RtDialect::kAt) : rt::AtAttr();
    if (at && at != places.lookup(write.getValue()))
      add(accesses.writes, at, write.getValue().getType());
    else
      accesses.reads.clear();
  }

  llvm::DenseMap<Value, rt::AtAttr> places;
  llvm::DenseMap<Value, Type> batches; ///< of micro-batches
  llvm::MapVector<Operation *, Flight> flights;
  std::optional<SentMessages> sent; ///< within a loop with an order
};

struct CheckStreams : partita::impl::CheckStreamsPassBase<CheckStreams> {
  void runOnOperation() override {
    markAllAnalysesPreserved(); // nor are ops verified again
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
