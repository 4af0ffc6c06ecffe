//===- ParOps.cpp - conjugates and collectives ------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Par/Reasons.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

#include "dialects/Par/ParInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Par/ParOps.cpp.inc"

const AxisRow *partita::par::findAxis(StringRef name) {
  const auto *row = llvm::find_if(kAxes, [&](const AxisRow &each) { return each.name == name; });
  return row == std::end(kAxes) ? nullptr : row;
}

int64_t partita::par::ranksOver(Operation *op, StringAttr axis) {
  return MeshAttr::of(op).sizeOf(axis.getValue());
}

bool partita::par::splits(StringRef axis, Splits what) {
  const AxisRow *row = findAxis(axis);
  return row && row->splits == what;
}

bool partita::par::splitsTensors(StringRef axis) {
  return findAxis(axis) && !splits(axis, Splits::Program);
}

std::string partita::par::tensorAxisNames() {
  SmallVector<StringRef> names;
  for (const AxisRow &row : kAxes)
    if (splitsTensors(row.name))
      names.push_back(row.name);
  return llvm::join(names, ", ");
}

LogicalResult partita::par::verifyAxis(Operation *op, StringAttr axis) {
  MeshAttr mesh = MeshAttr::of(op);
  if (mesh.getAxes().empty() || mesh.hasAxis(axis))
    return success();
  return op->emitOpError() << "is over " << axis << ", which the mesh " << mesh << " does not have";
}

/// Checks that `to` is the type of `value` with `axis` changed from one placement to another.
static LogicalResult verifyChange(Operation *op, Value value, Type to, StringAttr axis, Kind before,
                                  Kind after) {
  Type from = value.getType();
  Layout layout = Layout::of(from);
  bool cotangents = true;
  if (auto function = op->getParentOfType<FunctionOpInterface>())
    cotangents = !function->hasAttr(ParDialect::kNoCotangents);
  if (failed(verifyAxis(op, axis)))
    return failure();
  if (layout.kind(axis) != before) {
    InFlightDiagnostic error = op->emitOpError();
    error << "over " << axis << " expects a value that is " << toString(before) << ", it is "
          << toString(layout.kind(axis)) << ": " << from;
    attachReasons(error, "it", axis, traceReasons(value, axis));
    return error;
  }
  layout.set(axis, after);
  if (!cotangents)
    layout = layout.valueOnly();
  if (to == withLayout(from, layout) || (!cotangents && Layout::of(to).valueOnly() == layout))
    return success();
  return op->emitOpError() << "over " << axis << " yields " << withLayout(from, layout) << ", not "
                           << to;
}

LogicalResult FOp::verify() {
  return verifyChange(*this, getValue(), getResult().getType(), getAxisAttr(), Kind::Invariant,
                      Kind::Replicated);
}

LogicalResult GOp::verify() {
  return verifyChange(*this, getValue(), getResult().getType(), getAxisAttr(), Kind::Partial,
                      Kind::Invariant);
}

LogicalResult MaxOp::verify() {
  return verifyChange(*this, getValue(), getResult().getType(), getAxisAttr(), Kind::Max,
                      Kind::Invariant);
}

LogicalResult AllReduceMaxOp::verify() {
  return verifyChange(*this, getValue(), getResult().getType(), getAxisAttr(), Kind::Max,
                      Kind::Invariant);
}

LogicalResult FirstIndexOp::verify() {
  Layout layout = Layout::of(getType());
  int64_t blocks = layout.splits[0].empty() ? 1 : layout.splits[0].front().blocks.count;
  bool isAlone = layout.splits[0].size() == 1; // of several axes each splits the one block
  if (cast<RankedTensorType>(getType()).getDimSize(0) != blocks || layout.splits[0].empty() ||
      (blocks != 1 && (!isAlone || int64_t(getSize()) % layout.shape[0] != 0)) ||
      !shardSize(getSize(), layout.shape[0]))
    return emitOpError()
           << "expects one element per block of a rank of the axes that split a dimension of "
           << getSize() << ", its type is " << getType();
  if (int64_t ranks = layout.shape[0] / blocks;
      getBehind() != 0 && (!isAlone || int64_t(getBehind()) >= ranks))
    return emitOpError() << "is that of the rank " << getBehind() << " places before, of " << ranks
                         << " ranks along one axis";
  return success();
}

/// Checks that a shift moves shards, to other shards of the same type.
static LogicalResult verifyShift(Operation *op, ValueRange values, ValueRange results,
                                 StringAttr axis) {
  if (failed(verifyAxis(op, axis)))
    return failure();
  if (values.size() != results.size() || values.empty())
    return op->emitOpError() << "needs one result per value, and at least one; it has "
                             << values.size() << " values and " << results.size() << " results";
  for (auto [value, result] : llvm::zip(values, results)) {
    if (value.getType() != result.getType())
      return op->emitOpError() << "over " << axis << " yields " << value.getType() << ", not "
                               << result.getType();
    if (Layout::of(value.getType()).kind(axis) != Kind::Sharded)
      return op->emitOpError() << "over " << axis << " expects shards, found " << value.getType();
  }
  return success();
}

LogicalResult ShiftOp::verify() {
  return verifyShift(*this, getValues(), getResults(), getAxisAttr());
}
LogicalResult ShiftStartOp::verify() {
  return verifyShift(*this, getValues(), getResults(), getAxisAttr());
}

Operation *ShiftOp::buildStart(OpBuilder &builder) {
  SmallVector<Type> types{builder.getI64Type()};
  llvm::append_range(types, getResultTypes());
  return ShiftStartOp::create(builder, getLoc(), types, getValues(), getAxisAttr(), getBackAttr(),
                              getReasonAttr());
}

Operation *ShiftOp::buildWait(OpBuilder &builder, AsyncStartInterface start) {
  return buildWaitFor<WaitOp>(builder, *this, start);
}

/// The cotangents go the other way.
static_assert(partita_rt::rowOf(ShiftOp::kKind).conjugate == ShiftOp::kKind);
SmallVector<Value> ShiftOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  SmallVector<Value> flowing(cotangents.size()), shifted;
  for (Value cotangent : cotangents)
    if (cotangent)
      shifted.push_back(cotangent);
  if (shifted.empty())
    return flowing;
  auto back = ShiftOp::create(builder, getLoc(), ValueRange(shifted).getTypes(), shifted,
                              getAxisAttr(), getBack() ? UnitAttr() : builder.getUnitAttr(),
                              builder.getStringAttr("gradient"));
  unsigned next = 0;
  for (auto [result, cotangent] : llvm::zip(flowing, cotangents))
    if (cotangent)
      result = back.getResult(next++);
  return flowing;
}

SmallVector<std::pair<StringAttr, int64_t>> FirstElementOp::strides() {
  SmallVector<std::pair<StringAttr, int64_t>> result;
  MeshAttr mesh = MeshAttr::of(*this);
  auto shard = cast<RankedTensorType>(getOf());
  Layout layout = Layout::of(shard);
  int64_t inner = 1; // elements of the full value per step along the dimension
  for (int64_t dim = shard.getRank() - 1; dim >= 0; --dim) {
    int64_t step = inner * shard.getDimSize(dim);
    for (const AxisSplit &split : llvm::reverse(layout.splits[dim])) { // innermost axis first
      result.emplace_back(split.axis, step);
      step *= mesh.sizeOf(split.axis);
    }
    inner *= layout.shape[dim];
  }
  return result;
}

static LogicalResult verifyReduced(Operation *op, ValueRange values, ValueRange results,
                                   StringAttr axis) {
  if (values.size() != results.size() || values.empty())
    return op->emitOpError() << "needs one result per value, and at least one; it has "
                             << values.size() << " values and " << results.size() << " results";
  for (auto [value, result] : llvm::zip(values, results))
    if (failed(verifyChange(op, value, result.getType(), axis, Kind::Partial, Kind::Invariant)))
      return failure();
  return success();
}

LogicalResult AllReduceOp::verify() {
  return verifyReduced(*this, getValues(), getResults(), getAxisAttr());
}

Operation *AllReduceOp::buildStart(OpBuilder &builder) {
  return AllReduceStartOp::create(builder, getLoc(), builder.getI64Type(), getValues(),
                                  getAxisAttr(), getReasonAttr());
}

Operation *AllReduceOp::buildWait(OpBuilder &builder, AsyncStartInterface start) {
  return buildWaitFor<WaitOp>(builder, *this, start);
}

LogicalResult WaitOp::verify() {
  Operation *start = AsyncWaitInterface(*this).getStart(); // verifyWait has found it
  auto collective = dyn_cast<CollectiveInterface>(start);
  if (!collective)
    return emitOpError() << "completes a collective, not '" << start->getName().getStringRef()
                         << "'; a copy between device and host has offload.wait";
  if (cast<AsyncStartInterface>(start).worksInOperands() && collective.getRow().reduces)
    return verifyReduced(*this, getValues(), getResults(), collective.getAxisAttr());
  for (auto [number, filled, result] : llvm::enumerate(getValues().getTypes(), getResultTypes()))
    if (filled != result)
      return emitOpError() << "result " << number << " is " << result
                           << ", but what its start fills is " << filled;
  return success();
}

SmallVector<Value> FOp::buildGradient(OpBuilder &builder, ValueRange cotangents) {
  Layout layout = Layout::of(cotangents[0].getType());
  layout.set(getAxisAttr(), Kind::Invariant);
  Type type = withLayout(cotangents[0].getType(), layout);
  auto reduce = AllReduceOp::create(builder, getLoc(), type, cotangents[0], getAxisAttr(),
                                    builder.getStringAttr("gradient"));
  return {reduce.getResult(0)};
}

SmallVector<Value> GOp::buildGradient(OpBuilder &, ValueRange cotangents) {
  return {cotangents[0]};
}

/// No gradient flows through a max that the result does not depend on.
SmallVector<Value> MaxOp::buildGradient(OpBuilder &, ValueRange) { return {Value()}; }
