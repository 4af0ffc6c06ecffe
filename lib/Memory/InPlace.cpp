//===- InPlace.cpp - memory that several values share -----------------------------------------===//
//
// Views of an operand's memory, operands that are computed within a result, results that overwrite
// an operand or a parameter, and the memory in which collectives work.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Zero/Zero.h"
#include "lib/Memory/Planner.h"

using namespace mlir;
using namespace partita;
using namespace partita::memory;
using rt::KernelInterface;
using rt::Space;
using rt::View;

//===----------------------------------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------------------------------===//

bool Planner::takesView(OpOperand &use, const View &view) {
  if (view.isDense())
    return true;
  auto kernel = dyn_cast<KernelInterface>(use.getOwner());
  if (!kernel)
    return false;
  if (isViewOp(kernel)) {
    std::optional<View> next = kernel.viewOfOperand(view);
    return !next || usersTake(use.getOwner()->getResult(0), *next) ||
           kernel.acceptsOperand(use.getOperandNumber(), view);
  }
  return kernel.acceptsOperand(use.getOperandNumber(), view);
}

bool Planner::usersTake(Value value, const View &view) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) { return takesView(use, view); });
}

bool Planner::isViewOp(KernelInterface kernel) {
  Operation *op = kernel;
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return false;
  return kernel.viewOfOperand(View::dense(tensorType(op->getOperand(0)).getShape())).has_value();
}

bool Planner::planView(KernelInterface kernel) {
  Value operand = kernel->getOperand(0), result = kernel->getResult(0);
  Place from = plan.places[operand];
  if (from.storage < 0)
    return false;
  std::optional<View> view = kernel.viewOfOperand(from.view);
  bool inside = view && view->offset != 0 && plan.storages[from.storage].space == Space::Input;
  if (!view || inside || !usersTake(result, *view))
    return false;
  place(result, from.storage, *view);
  return true;
}

//===----------------------------------------------------------------------------------------------===//
// Concatenations
//===----------------------------------------------------------------------------------------------===//

void Planner::assignSlices(Operation *op) {
  auto kernel = dyn_cast<KernelInterface>(op);
  if (!kernel || op->getNumResults() != 1 || !tensorType(op->getResult(0)))
    return;
  Value result = op->getResult(0);
  View full = View::dense(tensorType(result).getShape());
  int storage = -1;
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<View> slice = kernel.sliceOfResult(operand.getOperandNumber(), full);
    if (!slice)
      continue;
    Value source = operand.get();
    std::optional<View> view = traceToProducer(source, *slice, op);
    if (!view || slices.count(source))
      continue;
    if (storage < 0) {
      now = plan.number[op];
      storage = newStorage(Space::Arena, result, bytesOf(tensorType(result)));
      slices[result] = {storage, full};
    }
    slices[source] = {storage, *view};
    plan.storages[storage].first =
        std::min(plan.storages[storage].first, plan.number[source.getDefiningOp()]);
  }
}

Value Planner::reducedInPlace(Value result) {
  Operation *op = result.getDefiningOp(), *start = op;
  Value operand;
  unsigned number = cast<OpResult>(result).getResultNumber();
  if (auto wait = dyn_cast<AsyncWaitInterface>(op)) {
    start = wait.getStart();
    if (cast<AsyncStartInterface>(start).worksInOperands())
      operand = wait.getFilledBy(number);
  } else if (auto kernel = dyn_cast<KernelInterface>(op);
             kernel && op->getNumOperands() > 0 && kernel.overwritesOperand(0)) {
    operand = op->getOperand(number);
  }
  bool isAlone = operand && start->getBlock() == op->getBlock() &&
                 llvm::all_of(operand.getUsers(),
                              [&](Operation *user) { return user == start || user == op; });
  return isAlone ? operand : Value();
}

std::optional<View> Planner::traceToProducer(Value &source, View view, Operation *user) {
  bool isAlone = source.hasOneUse();
  while (true) {
    auto kernel = source.getDefiningOp<KernelInterface>();
    if (!kernel || source.getParentBlock() != user->getBlock() || !isAlone)
      return std::nullopt;
    if (Value operand = reducedInPlace(source)) {
      source = operand;
      continue;
    }
    unsigned number = cast<OpResult>(source).getResultNumber();
    if (!isViewOp(kernel)) {
      if (!kernel.acceptsResult(number, view))
        return std::nullopt;
      return view;
    }
    Value operand = kernel->getOperand(0);
    std::optional<View> inverse = view.reshape(tensorType(operand).getShape());
    if (!inverse || kernel.viewOfOperand(*inverse) != view)
      return std::nullopt; // not a reshape
    source = operand;
    isAlone = source.hasOneUse();
    view = *inverse;
  }
}

//===----------------------------------------------------------------------------------------------===//
// In place
//===----------------------------------------------------------------------------------------------===//

bool Planner::dies(int storage, Operation *op) {
  return plan.storages[storage].last <= plan.number[op];
}

bool Planner::seenOtherwise(Operation *op, const Place &place, ArrayRef<unsigned> overwritable) {
  return llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
    auto found = plan.places.find(operand.get());
    return found != plan.places.end() && found->second.storage == place.storage &&
           (!(found->second.view == place.view) ||
            !llvm::is_contained(overwritable, operand.getOperandNumber()));
  });
}

bool Planner::isWrittenBack(Value result, StringRef symbol) {
  return llvm::any_of(result.getUsers(), [&](Operation *user) {
    auto write = dyn_cast<train::WriteOp>(user);
    return write && write.getSymbol() == symbol;
  });
}

std::optional<Place> Planner::inPlace(KernelInterface kernel, unsigned number,
                                      llvm::SmallDenseSet<int> &taken) {
  Value result = kernel->getResult(number);
  SmallVector<unsigned> overwritable = kernel.inPlaceOperands(number);
  for (unsigned i : overwritable) {
    Value operand = kernel->getOperand(i);
    auto found = plan.places.find(operand);
    if (found == plan.places.end() || found->second.storage < 0)
      continue;
    Place place = found->second;
    const Storage &storage = plan.storages[place.storage];
    if (taken.contains(place.storage) || !place.view.isDense() ||
        seenOtherwise(kernel, place, overwritable) ||
        bytesOf(tensorType(operand)) != bytesOf(tensorType(result)) || !dies(place.storage, kernel))
      continue;
    if (rt::isPersistent(storage.space)) {
      StringRef symbol = symbolOf[place.storage];
      if (!isWrittenBack(result, symbol) ||
          persistentLast[symbol] > plan.number[kernel.getOperation()])
        continue;
      updated[symbol] = result;
    } else if (storage.space != Space::Arena && storage.space != Space::Pinned) {
      continue;
    }
    taken.insert(place.storage);
    place.view.shape.assign(tensorType(result).getShape().begin(),
                            tensorType(result).getShape().end());
    place.view.strides = View::dense(place.view.shape).strides;
    return place;
  }
  return std::nullopt;
}

bool Planner::isFree(StringRef symbol) {
  auto read = persistentStorage.find(symbol);
  return read == persistentStorage.end()
             ? !persistentLast.contains(symbol)
             : persistentLast[symbol] < now && plan.storages[read->second].last < now;
}

/// Returns the value that takes the place of `value` once the collective that fills it completes,
/// or `value` itself if there is none.
static Value completed(Value value) {
  for (OpOperand &use : value.getUses())
    if (isa<AsyncWaitInterface>(use.getOwner()) && value.getDefiningOp<AsyncStartInterface>())
      return use.getOwner()->getResult(use.getOperandNumber() - 1);
  return value;
}

std::optional<Place> Planner::homeOf(Value result) {
  for (Operation *user : completed(result).getUsers()) {
    auto write = dyn_cast<train::WriteOp>(user);
    if (!write || write->getBlock() != result.getParentBlock())
      continue;
    StringRef symbol = write.getSymbol();
    auto where = persistent.find(symbol);
    if (where == persistent.end() || !isFree(symbol) || !updated.try_emplace(symbol, result).second)
      continue;
    auto [known, isNew] = persistentStorage.try_emplace(symbol, -1);
    if (isNew)
      known->second =
          newStorage(where->second.space, result, where->second.bytes, where->second.offset);
    symbolOf[known->second] = symbol;
    return Place{known->second, View::dense(tensorType(result).getShape())};
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------------------------------===//

bool Planner::staysInPlace(OpOperand &yielded, int storage) {
  auto yield = dyn_cast<train::YieldOp>(yielded.getOwner());
  if (!yield)
    return false;
  auto loop = cast<train::AccumulateOp>(yield->getParentOp());
  if (loop.getHandingOut(yielded))
    return true;
  std::optional<unsigned> sum = loop.getSumOf(yielded);
  BlockArgument soFar = sum ? loop.getSoFar(*sum) : BlockArgument();
  return soFar && plan.places.lookup(soFar).storage == storage && loop.getSums()[*sum].use_empty();
}

/// Returns true if two values in one storage are both contiguous and share no element.
static bool areApart(const View &a, const View &b) {
  return a.isDense() && b.isDense() &&
         (a.offset + a.elements() <= b.offset || b.offset + b.elements() <= a.offset);
}

bool Planner::mayReduceInPlace(Value operand, Operation *op, Operation *end,
                               llvm::SmallDenseSet<int> &taken) {
  Place place = plan.places[operand];
  const Storage &storage = plan.storages[place.storage];
  if (storage.space != Space::Arena || !place.view.isDense() || !taken.insert(place.storage).second)
    return false;
  // A slice of a concatenation shares its storage with the other slices, and, once it is summed,
  // with the result.
  bool isSlice = slices.contains(operand);
  for (Value value : storage.values)
    for (OpOperand &use : value.getUses()) {
      if (isSlice && areApart(plan.places[value].view, place.view))
        continue;
      Operation *user = use.getOwner();
      if (op->hasAttr(train::TrainDialect::kLast) && staysInPlace(use, place.storage))
        continue;
      // An op that has started to read the operand reads it until its wait.
      Operation *ancestor =
          op->getBlock()->findAncestorOpInBlock(user == op ? *user : *endOf(user));
      if (!ancestor ||
          (plan.number[ancestor] >= plan.number[op] && ancestor != op && ancestor != end))
        return false;
    }
  return isSlice || storage.last <= plan.number[end];
}

void Planner::planReduction(Operation *op) {
  SmallVector<int> into;
  llvm::SmallDenseSet<int> taken;
  Operation *end = endOf(op);
  for (Value operand : op->getOperands()) {
    if (mayReduceInPlace(operand, op, end, taken)) {
      into.push_back(plan.places[operand].storage);
    } else {
      into.push_back(newStorage(Space::Arena, operand, bytesOf(tensorType(operand))));
      plan.storages[into.back()].kind = Kind::Communication;
    }
    Storage &storage = plan.storages[into.back()];
    storage.last = std::max(storage.last, plan.number[end]);
  }
  plan.operandsInto[op] = into;
}

void Planner::placeReduced(Operation *start, ValueRange results) {
  for (auto [result, storage] : llvm::zip(results, plan.operandsInto[start])) {
    Place from = plan.places[start->getOperand(cast<OpResult>(result).getResultNumber())];
    View view = View::dense(tensorType(result).getShape());
    if (from.storage == storage)
      view.offset = from.view.offset;
    place(result, storage, view);
  }
}
