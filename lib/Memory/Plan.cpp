//===- Plan.cpp - assigns memory to every tensor of a function --------------------------------===//
//
// Walks over the ops once, in program order. The memory of each value follows from its op's kernel
// (KernelInterface) and from the uses of the value:
//
//   1. A read uses the parameter's own memory, an argument the runtime's.
//   2. A view op (reshape, slice, ...) costs nothing if all users of its result, through further
//      views, accept the strides; otherwise it copies into memory of its own.
//   3. An operand of a concatenation is computed into its place in the result, decided before the
//      walk.
//   4. A result takes the place of an operand that dies at the op, if the kernel allows it. An
//      update that is written back takes the parameter's own place if no one reads the old value
//      later.
//   5. A result that is written to a parameter or state that the function never reads (@init) is
//      computed there.
//   6. The caller of @forward owns its results: an input, a parameter, or a view of one that is
//      returned is copied into memory of its own.
//   7. Everything else gets a storage of its own, which lives until the last use of a value in it.
//
// A storage from outside that is used within a loop lives to the loop's end. Loops are in
// Loops.cpp.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "lib/Memory/Planner.h"

using namespace mlir;
using namespace partita;
using namespace partita::memory;
using rt::KernelInterface;
using rt::Space;
using rt::View;

FailureOr<FunctionPlan> Planner::run() {
  number(function.getBody().front());
  findPersistentLives();
  for (BlockArgument argument : function.getArguments())
    place(argument, newStorage(Space::Input, argument, 0, argument.getArgNumber()),
          View::dense(tensorType(argument).getShape()));
  function.walk<WalkOrder::PreOrder>([&](Operation *op) { assignSlices(op); });
  if (failed(planBlock(function.getBody().front())))
    return failure();
  markGradients(function, plan);
  return std::move(plan);
}

//===----------------------------------------------------------------------------------------------===//
// Lives
//===----------------------------------------------------------------------------------------------===//

void Planner::number(Block &block) {
  for (Operation &op : block) {
    plan.number[&op] = counter++;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        number(inner);
    ends[&op] = counter - 1;
  }
}

Operation *Planner::endOf(Operation *op) {
  if (op->getNumResults() == 0 || tensorType(op->getResult(0)))
    return op;
  Value token = behindRegion(op->getResult(0));
  return token.hasOneUse() ? *token.getUsers().begin() : op;
}

int Planner::lastUse(Value value) {
  Operation *definer = value.getDefiningOp();
  int last = definer ? plan.number[definer] : 0;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto loop = dyn_cast<train::AccumulateOp>(user->getParentOp());
        loop && isa<train::YieldOp>(user))
      if (OpResult behind = loop.getHandingOut(use))
        last = std::max(last, lastUse(behind));
    if (auto loop = orderedLoopOf(user); loop && isa<pipe::SendOp>(user))
      last = std::max(last, ends[loop]); // awaited before the pass runs again
    user = endOf(user);
    Operation *ancestor = value.getParentBlock()->findAncestorOpInBlock(*user);
    bool inLoop = ancestor && ancestor != user;
    last = std::max(last, inLoop ? ends[ancestor] : plan.number[user]);
  }
  return last;
}

int Planner::newStorage(Space space, Value holder, int64_t bytes, int64_t offset) {
  Storage storage;
  storage.space = space;
  storage.bytes = bytes;
  storage.offset = offset;
  storage.holder = holder;
  storage.first = storage.last = now;
  plan.storages.push_back(storage);
  return static_cast<int>(plan.storages.size()) - 1;
}

void Planner::place(Value value, int storage, View view) {
  plan.places[value] = {storage, std::move(view)};
  plan.storages[storage].values.push_back(value);
  plan.storages[storage].last = std::max(plan.storages[storage].last, lastUse(value));
}

void Planner::placeNew(Value value, Space space) {
  place(value, newStorage(space, value, bytesOf(tensorType(value))),
        View::dense(tensorType(value).getShape()));
}

void Planner::findPersistentLives() {
  function.walk([&](train::ReadOp read) {
    int &last = persistentLast[read.getSymbol()];
    last = std::max(last, lastUse(read.getResult()));
  });
}

//===----------------------------------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------------------------------===//

LogicalResult Planner::planBlock(Block &block) {
  for (Operation &op : block) {
    now = plan.number[&op];
    if (failed(planOp(&op)))
      return failure();
  }
  return success();
}

LogicalResult Planner::planOp(Operation *op) {
  if (auto read = dyn_cast<train::ReadOp>(op))
    return planRead(read);
  if (auto write = dyn_cast<train::WriteOp>(op))
    return planWrite(write);
  if (auto loop = dyn_cast<train::AccumulateOp>(op))
    return planLoop(loop);
  if (auto end = dyn_cast<func::ReturnOp>(op)) {
    if (train::is(function, train::EntryPoint::Forward))
      planResults(end);
    return success();
  }
  if (isa<train::YieldOp>(op))
    return success();
  auto kernel = dyn_cast<KernelInterface>(op);
  if (!kernel)
    return op->emitOpError() << "has no kernel on this target, on " << op->getOperandTypes();
  if (op->getNumOperands() && kernel.overwritesOperand(0))
    planReduction(op);
  if (int64_t scratch = kernel.workspaceElements()) {
    int storage = newStorage(kernel.workspaceSpace(), {}, scratch * 4);
    plan.storages[storage].kind = Kind::Workspace;
    plan.storages[storage].scratchOf = op;
    plan.workspace[op] = storage;
  }
  if (isViewOp(kernel)) {
    if (slices.count(op->getResult(0)) == 0 && planView(kernel)) {
      ++plan.views;
      return success();
    }
    ++plan.copies;
  }
  placeResults(kernel);
  return success();
}

void Planner::placeResults(KernelInterface kernel) {
  Operation *op = kernel;
  if (plan.operandsInto.count(op) && tensorType(op->getResult(0)))
    return placeReduced(op, op->getResults());
  if (Operation *start = startOf(op))
    return placeReduced(start, op->getResults());
  llvm::SmallDenseSet<int> taken;
  for (OpResult result : op->getResults()) {
    if (!tensorType(result))
      continue;
    unsigned i = result.getResultNumber();
    if ((result.use_empty() && !kernel.needsResult(i)) || onlyLiteral(result))
      plan.places[result] = {};
    else if (auto slice = slices.find(result); slice != slices.end())
      place(result, slice->second.storage, slice->second.view);
    else if (!rt::hasOffsets(kernel.resultSpace(i)))
      place(result, newStorage(kernel.resultSpace(i), result, 0),
            View::dense(tensorType(result).getShape()));
    else if (std::optional<Place> home = homeOf(result))
      place(result, home->storage, home->view);
    else if (std::optional<Place> over = inPlace(kernel, i, taken)) {
      place(result, over->storage, over->view);
      ++plan.inPlace;
    } else
      placeNew(result, kernel.resultSpace(i));
  }
}

Operation *Planner::startOf(Operation *op) {
  if (op->getNumOperands() == 0)
    return nullptr;
  Operation *start = handedOut(op->getOperand(0)).getDefiningOp();
  return start && !tensorType(op->getOperand(0)) && plan.operandsInto.count(start) ? start
                                                                                   : nullptr;
}

bool Planner::onlyLiteral(Value value) {
  DenseElementsAttr attribute;
  if (!matchPattern(value, m_Constant(&attribute)) || !attribute.isSplat())
    return false;
  return llvm::all_of(value.getUses(), [](OpOperand &use) {
    auto kernel = dyn_cast<KernelInterface>(use.getOwner());
    return kernel && kernel.acceptsLiteral(use.getOperandNumber());
  });
}

LogicalResult Planner::planRead(train::ReadOp read) {
  auto [found, isNew] = persistentStorage.try_emplace(read.getSymbol(), -1);
  if (isNew) {
    auto where = persistent.find(read.getSymbol());
    if (where == persistent.end())
      return read.emitOpError() << "reads " << read.getSymbolAttr()
                                << ", which has no place in persistent memory";
    found->second = newStorage(where->second.space, read.getResult(), where->second.bytes,
                               where->second.offset);
    symbolOf[found->second] = read.getSymbol();
  }
  if (updated.count(read.getSymbol()) || written.count(read.getSymbol()))
    return read.emitOpError() << "reads " << read.getSymbolAttr()
                              << " after it was overwritten; move the read up";
  place(read.getResult(), found->second, View::dense(tensorType(read.getResult()).getShape()));
  return success();
}

LogicalResult Planner::planWrite(train::WriteOp write) {
  StringRef symbol = write.getSymbol();
  if (!written.insert(symbol).second)
    return write.emitOpError() << "writes " << write.getSymbolAttr()
                               << " a second time in one step";
  if (auto value = updated.find(symbol);
      value != updated.end() && value->second == write.getValue())
    return success();
  if (persistentLast.lookup(symbol) > plan.number[write])
    return write.emitOpError() << "overwrites " << write.getSymbolAttr()
                               << ", whose old value is still read below";
  return success();
}

void Planner::planResults(func::ReturnOp end) {
  SmallVector<int> &into = plan.operandsInto[end];
  for (Value result : end.getOperands()) {
    Place place = plan.places[result];
    bool own = plan.storages[place.storage].space == Space::Arena && place.view.isDense();
    into.push_back(own ? place.storage
                       : newStorage(Space::Arena, result, bytesOf(tensorType(result))));
  }
}

FailureOr<FunctionPlan> memory::planFunction(func::FuncOp function,
                                             const llvm::StringMap<Persistent> &persistent) {
  return Planner(function, persistent).run();
}
