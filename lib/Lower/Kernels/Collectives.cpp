//===- Collectives.cpp - sums over ranks, shards and full values ------------------------------===//
//
// A collective works in the memory that `plan-memory` chose, its operands' own wherever nobody else
// looks at it; where it is another, the operand is copied first.
//
//===------------------------------------------------------------------------------------------===//

#include "partita/Analysis/Collectives.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "lib/Lower/Kernels/Wait.h"
#include "partita/Analysis/Communicators.h"
#include "partita/Lower/Lowering.h"
#include "runtime/include/partita_rt/shards.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

FailureOr<int64_t> rt::axisOf(Operation *op, StringRef axis) {
  auto mesh = par::MeshAttr::of(op);
  for (auto [i, name] : llvm::enumerate(mesh.getAxes()))
    if (name.getValue() == axis)
      return pipe::axisNumber(op, static_cast<int64_t>(i));
  return op->emitOpError() << "is over axis '" << axis << "', which the mesh " << mesh
                           << " does not have";
}

FailureOr<std::string> rt::communicatorOf(Operation *op) {
  auto collective = cast<CollectiveInterface>(op);
  if (failed(axisOf(op, collective.getAxisAttr())))
    return failure();
  return analysis::communicatorOf(collective);
}

LogicalResult rt::lowerWait(Operation *op, Lowering &l) {
  auto wait = cast<AsyncWaitInterface>(op);
  AsyncStartInterface start = wait.getStart();
  std::string pending = l.pendingOf(start);
  if (isa<offload::CopyInterface>(start.getOperation()))
    l.create<TransferWaitOp>(pending);
  else
    l.create<rt::WaitOp>(pending);
  if (start.worksInOperands())
    return success();
  for (auto [filled, result] : llvm::zip_equal(wait.getFilled(), op->getResults()))
    if (!l.samePlace(filled, result))
      l.copy(l.buffer(result), l.view(result), filled);
  return success();
}

namespace {

/// Integers are summed like floats; truth values have no sum.
LogicalResult checkSummed(Operation *op, Type element) {
  if (element.isInteger(1))
    return op->emitOpError() << "adds up numbers, not " << element;
  return success();
}

template <typename Call> LogicalResult lowerSum(Operation *op, Lowering &l, StringRef pending) {
  FailureOr<std::string> communicator = rt::communicatorOf(op);
  if (failed(communicator))
    return failure();
  SmallVector<int64_t> counts;
  for (Value operand : op->getOperands()) {
    if (failed(checkSummed(op, l.type(operand).getElementType())))
      return failure();
    counts.push_back(l.elements(operand));
  }
  SmallVector<Value> buffers = l.summed();
  l.create<Call>(buffers, counts, *communicator, analysis::nameOf(op), pending);
  return success();
}

struct AllReduce : KernelInterface::ExternalModel<AllReduce, par::AllReduceOp> {
  bool overwritesOperand(Operation *, unsigned) const { return true; }
  StringRef resultName(Operation *, unsigned) const { return "sum"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerSum<rt::AllReduceOp>(op, l, "");
  }
};

struct AllReduceMax : KernelInterface::ExternalModel<AllReduceMax, par::AllReduceMaxOp> {
  bool overwritesOperand(Operation *, unsigned) const { return true; }
  StringRef resultName(Operation *, unsigned) const { return "max"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerSum<rt::AllReduceMaxOp>(op, l, "");
  }
};

/// From memory to other memory: nothing of an operand is overwritten. Op: a CollectiveInterface with
/// one operand, getValue(), and one result, behind the token if it is a start, whose
/// getInterleaving() is the layout of both.
template <typename Op, typename Call>
struct Move : KernelInterface::ExternalModel<Move<Op, Call>, Op> {
  StringRef resultName(Operation *op, unsigned) const {
    return cast<CollectiveInterface>(op).getRow().to == partita_rt::Extent::Full ? "full" : "shard";
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto move = cast<Op>(op);
    FailureOr<std::string> communicator = rt::communicatorOf(op);
    if (failed(communicator))
      return failure();
    if (cast<CollectiveInterface>(op).getRow().reduces &&
        failed(checkSummed(op, l.type(move.getValue()).getElementType())))
      return failure();
    auto [blocks, count] = move.getInterleaving();
    std::string pending = isa<AsyncStartInterface>(op) ? l.pendingOf(op) : "";
    l.create<Call>(ValueRange(l.operand(0)), ValueRange(l.result(op->getNumResults() - 1)),
                   ArrayRef(blocks), ArrayRef(count), ArrayRef<int64_t>(0), *communicator,
                   analysis::nameOf(op), pending);
    return success();
  }
};

struct Narrow : KernelInterface::ExternalModel<Narrow, par::NarrowOp> {
  StringRef resultName(Operation *, unsigned) const { return "part"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto narrow = cast<par::NarrowOp>(op);
    if (failed(axisOf(op, narrow.getAxis())))
      return failure();
    auto [blocks, count] = narrow.getInterleaving();
    l.create<TakePartOp>(l.operand(0), l.result(0), blocks, count, /*whole=*/0, narrow.getAxis(),
                         par::ranksOver(op, narrow.getAxisAttr()), narrow.getMirrored());
    return success();
  }
};

struct Widen : KernelInterface::ExternalModel<Widen, par::WidenOp> {
  StringRef resultName(Operation *, unsigned) const { return "full"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto widen = cast<par::WidenOp>(op);
    if (failed(axisOf(op, widen.getAxis())))
      return failure();
    auto [blocks, count] = widen.getInterleaving();
    l.create<PutPartOp>(l.operand(0), l.result(0), blocks, count, widen.getAxis(),
                        par::ranksOver(op, widen.getAxisAttr()), widen.getMirrored());
    return success();
  }
};

/// Both sides of an exchange are [blocks][ranks][count], one block for each index of the dimensions before the
/// outer one of the two, and each run of that one. The side that is split along the outer dimension has that dimension before the ranks' parts
/// of the inner one: it is packed before the exchange, or unpacked behind it.
struct AllToAll : KernelInterface::ExternalModel<AllToAll, par::AllToAllOp> {
  StringRef resultName(Operation *, unsigned) const { return "exchanged"; }
  int64_t workspaceElements(Operation *op) const { // of floats
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    return llvm::divideCeil(type.getNumElements() * elementBytes(type.getElementType()), 4);
  }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto exchange = cast<par::AllToAllOp>(op);
    FailureOr<std::string> communicator = rt::communicatorOf(op);
    if (failed(communicator))
      return failure();
    bool packs = exchange.getFrom() < exchange.getTo();
    int64_t outer = std::min(exchange.getFrom(), exchange.getTo()),
            inner = std::max(exchange.getFrom(), exchange.getTo());
    int64_t ranks = par::ranksOver(op, exchange.getAxisAttr());
    // [blocks, own outer, between, ranks, own inner, behind]: the side that is split along the outer one.
    RankedTensorType split = l.type(packs ? exchange.getValue() : exchange.getResult());
    ArrayRef<int64_t> shape = split.getShape();
    auto product = [](ArrayRef<int64_t> sizes) { return ShapedType::getNumElements(sizes); };
    int64_t runs = exchange.getRuns(), blocks = product(shape.take_front(outer)) * runs,
            rows = product(shape.slice(outer, inner - outer)) / runs,
            width = product(shape.drop_front(inner)) / ranks;
    int64_t bytes = elementBytes(split.getElementType());
    Value packed = l.pointer(op->getAttrOfType<AtAttr>(RtDialect::kWorkspace),
                             split.getElementType(), split.getNumElements(), "packed");
    SmallVector<int64_t> sizes{blocks, ranks, rows, width};
    SmallVector<int64_t> dense{ranks * rows * width, rows * width, width, 1},
        apart{ranks * rows * width, width, ranks * width, 1};
    if (packs)
      l.create<CopyOp>(packed, l.operand(0), dense, apart, sizes, bytes);
    Value from = packs ? packed : l.operand(0), to = packs ? l.result(0) : packed;
    l.create<rt::AllToAllOp>(ValueRange(from), ValueRange(to), ArrayRef(blocks),
                             ArrayRef<int64_t>(rows * width), ArrayRef<int64_t>(0), *communicator,
                             analysis::nameOf(op), "");
    if (!packs)
      l.create<CopyOp>(l.result(0), packed, apart, dense, sizes, bytes);
    return success();
  }
};

/// par.shift or its start: every tensor to a neighbour's memory.
template <typename Op> struct Shift : KernelInterface::ExternalModel<Shift<Op>, Op> {
  StringRef resultName(Operation *, unsigned) const { return "shifted"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    FailureOr<std::string> communicator = rt::communicatorOf(op);
    if (failed(communicator))
      return failure();
    SmallVector<Value> from, to;
    SmallVector<int64_t> counts;
    unsigned first = op->getNumResults() - op->getNumOperands(); // a start has a token
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      from.push_back(l.operand(i));
      to.push_back(l.result(first + i));
      counts.push_back(l.elements(op->getOperand(i)));
    }
    SmallVector<int64_t> blocks(counts.size(), 1), full(counts.size(), 0);
    l.create<rt::ShiftOp>(from, to, blocks, counts, full, *communicator, analysis::nameOf(op),
                          isa<AsyncStartInterface>(op) ? l.pendingOf(op) : "",
                          cast<Op>(op).getBack());
    return success();
  }
};

/// The coordinates of a rank are the host's: the index is written once, where it is first needed.
struct FirstIndex : KernelInterface::ExternalModel<FirstIndex, par::FirstIndexOp> {
  StringRef resultName(Operation *, unsigned) const { return "first"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto mesh = par::MeshAttr::of(op);
    par::Layout layout = par::Layout::of(op->getResult(0).getType());
    SmallVector<int64_t> axes, sizes;
    for (const par::AxisSplit &split : layout.splits[0]) {
      FailureOr<int64_t> axis = axisOf(op, split.axis);
      if (failed(axis))
        return failure();
      axes.push_back(*axis);
      sizes.push_back(mesh.sizeOf(split.axis.getValue()));
    }
    l.create<rt::FirstIndexOp>(
        l.result(0), axes, sizes,
        partita_rt::shardSize(int64_t(cast<par::FirstIndexOp>(op).getSize()), layout.shape[0]),
        cast<par::FirstIndexOp>(op).getBehind(), layout.splits[0].front().blocks.count);
    return success();
  }
};

struct AllReduceStart : KernelInterface::ExternalModel<AllReduceStart, par::AllReduceStartOp> {
  bool overwritesOperand(Operation *, unsigned) const { return true; }
  StringRef resultName(Operation *, unsigned) const { return "sum"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    return lowerSum<rt::AllReduceOp>(op, l, l.pendingOf(op));
  }
};

struct Poll : KernelInterface::ExternalModel<Poll, par::PollOp> {
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto poll = cast<par::PollOp>(op);
    if (failed(axisOf(op, poll.getAxis())))
      return failure();
    SmallVector<Attribute> ahead, others; // what begins ahead of its use is waited for soonest
    for (CommunicatorAttr row : l.shared.communicators)
      if (row.getStreams() && llvm::is_contained(row.getAxes().getValue(), poll.getAxisAttr()))
        (row.isAhead() ? ahead : others).push_back(l.builder.getStringAttr(row.getName()));
    ahead.append(others);
    if (!ahead.empty())
      l.create<rt::PollOp>(l.builder.getArrayAttr(ahead), poll.getBytes());
    return success();
  }
};

} // namespace

void rt::attachCollectives(MLIRContext *context) {
  par::AllReduceOp::attachInterface<AllReduce>(*context);
  par::AllReduceMaxOp::attachInterface<AllReduceMax>(*context);
  par::AllGatherOp::attachInterface<Move<par::AllGatherOp, rt::AllGatherOp>>(*context);
  par::ReduceScatterOp::attachInterface<Move<par::ReduceScatterOp, rt::ReduceScatterOp>>(*context);
  par::AllGatherStartOp::attachInterface<Move<par::AllGatherStartOp, rt::AllGatherOp>>(*context);
  par::ReduceScatterStartOp::attachInterface<Move<par::ReduceScatterStartOp, rt::ReduceScatterOp>>(
      *context);
  par::NarrowOp::attachInterface<Narrow>(*context);
  par::WidenOp::attachInterface<Widen>(*context);
  par::AllToAllOp::attachInterface<AllToAll>(*context);
  par::ShiftOp::attachInterface<Shift<par::ShiftOp>>(*context);
  par::ShiftStartOp::attachInterface<Shift<par::ShiftStartOp>>(*context);
  par::FirstIndexOp::attachInterface<FirstIndex>(*context);
  par::AllReduceStartOp::attachInterface<AllReduceStart>(*context);
  par::WaitOp::attachInterface<WaitModel<par::WaitOp>>(*context);
  par::PollOp::attachInterface<Poll>(*context);
}
