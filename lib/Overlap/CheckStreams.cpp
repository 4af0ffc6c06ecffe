//===- CheckStreams.cpp - is every pair of accesses from two streams ordered? -----------------===//
//
// A started op runs beside the computation, on the stream of its communicator or of its direction of
// copies. Two edges order it: it begins when everything before the start is complete, and everything
// behind the wait begins when it is complete. The check walks a planned function once and keeps the
// pending ops with the bytes they read and write; an access in between that touches these bytes is a
// race, whichever pass placed the start, the wait or the memory. It does not rely on the planner: it
// knows no lifetimes, only places. Passes of a loop with an order are walked in the order in which they
// end: what begins in a pass's last slot is pending in the rest of it and in those that run later.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Overlap/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace partita {
#define GEN_PASS_DEF_CHECKSTREAMSPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using rt::RtDialect;

namespace {

/// Bytes of one memory space: equal runs, a dimension at a time, as the place's strides say.
struct Access {
  rt::Space space = rt::Space::None;
  int64_t begin = 0, end = 0; ///< around all of it
  rt::View view;
  int64_t width = 1; ///< bytes of an element
};

struct Accesses {
  SmallVector<Access, 4> reads, writes;
};

/// The runs of an access, consecutive elements joined: [begin, end) in bytes, ascending if the
/// strides are.
SmallVector<std::pair<int64_t, int64_t>> runsOf(const Access &access) {
  SmallVector<std::pair<int64_t, int64_t>> runs = {{access.begin, access.begin + access.width}};
  for (auto [size, stride] :
       llvm::reverse(llvm::zip_equal(access.view.shape, access.view.strides))) {
    int64_t step = stride * access.width;
    if (size == 1 || step == 0)
      continue;
    if (runs.size() == 1 && runs[0].second - runs[0].first == step) {
      runs[0].second = runs[0].first + size * step;
      continue;
    }
    SmallVector<std::pair<int64_t, int64_t>> all;
    for (int64_t i = 0; i < size; ++i)
      for (auto [begin, end] : runs)
        all.push_back({begin + i * step, end + i * step});
    runs = std::move(all);
  }
  llvm::sort(runs);
  return runs;
}

/// The first byte that both touch; none where they touch none in common.
std::optional<int64_t> overlap(const Access &a, const Access &b) {
  if (a.space != b.space || a.end <= b.begin || b.end <= a.begin)
    return std::nullopt;
  auto left = runsOf(a), right = runsOf(b);
  for (auto i = left.begin(), j = right.begin(); i != left.end() && j != right.end();) {
    if (i->second <= j->first)
      ++i;
    else if (j->second <= i->first)
      ++j;
    else
      return std::max(i->first, j->first);
  }
  return std::nullopt;
}

/// What is under way.
struct Flight {
  Operation *start;
  Attribute stream;
  Accesses accesses;
};

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
    if (Operation *start = startOf(op)) {
      flights.erase(start);
      return success();
    }
    Accesses accesses = accessesOf(op);
    Attribute stream = streamOf(op);
    if (failed(checkPairs(op, accesses, stream)))
      return failure();
    for (Region *region : regionsOf(op))
      for (Block &block : *region) {
        for (BlockArgument argument : block.getArguments())
          noteArgument(argument);
        if (failed(checkBlock(block)))
          return failure();
      }
    if (stream)
      flights.insert({op, {op, stream, std::move(accesses)}});
    auto loop = dyn_cast<train::AccumulateOp>(op);
    return loop ? checkPairs(op, addedUpBy(loop), stream) : success();
  }

  LogicalResult checkPairs(Operation *op, const Accesses &accesses, Attribute stream) {
    for (auto &[start, flight] : flights)
      if (stream != flight.stream && failed(checkPair(op, accesses, flight)))
        return failure();
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

  /// Sums that a loop adds up behind its passes, also beside what began in one of them.
  Accesses addedUpBy(train::AccumulateOp loop) {
    Accesses accesses;
    for (OpResult sum : loop.getSums())
      if (!loop.getSoFar(sum.getResultNumber()))
        add(accesses.writes, places.lookup(sum), sum.getType());
    return accesses;
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
  static Operation *startOf(Operation *op) {
    auto wait = dyn_cast<AsyncWaitInterface>(op);
    return wait ? wait.getStart().getOperation() : nullptr;
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
    Access access;
    access.space = at.getSpace();
    access.width = rt::elementBytes(tensor.getElementType());
    access.view = rt::View::dense(tensor.getShape());
    if (at.getStrides().size() == access.view.strides.size())
      access.view.strides.assign(at.getStrides().begin(), at.getStrides().end());
    access.begin = at.getOffset();
    int64_t last = 0;
    for (auto [size, stride] : llvm::zip_equal(access.view.shape, access.view.strides))
      last += (size - 1) * stride;
    access.end = access.begin + (last + 1) * access.width;
    list.push_back(std::move(access));
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
    if (auto write = dyn_cast<train::WriteOp>(op))
      addSymbol(write, accesses);
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

  //===- Races

  static LogicalResult race(Operation *op, const char *does, const Flight &flight,
                            const char *meanwhile, int64_t byte, rt::Space space) {
    InFlightDiagnostic error = op->emitError();
    error << does << " byte " << byte << " of the " << rt::toString(space) << ", which '"
          << flight.start->getName().getStringRef() << "' on the stream " << flight.stream
          << meanwhile << "; nothing orders the two";
    error.attachNote(flight.start->getLoc()) << "it begins here, and its wait stands behind";
    return failure();
  }

  static LogicalResult checkPair(Operation *op, const Accesses &accesses, const Flight &flight) {
    for (const Access &write : accesses.writes) {
      for (const Access &other : flight.accesses.writes)
        if (auto byte = overlap(write, other))
          return race(op, "writes", flight, " writes as well", *byte, write.space);
      for (const Access &other : flight.accesses.reads)
        if (auto byte = overlap(write, other))
          return race(op, "writes", flight, " still reads", *byte, write.space);
    }
    for (const Access &read : accesses.reads)
      for (const Access &other : flight.accesses.writes)
        if (auto byte = overlap(read, other))
          return race(op, "reads", flight, " still writes", *byte, read.space);
    return success();
  }

  llvm::DenseMap<Value, rt::AtAttr> places;
  llvm::DenseMap<Value, Type> batches; ///< of micro-batches
  llvm::MapVector<Operation *, Flight> flights;
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
