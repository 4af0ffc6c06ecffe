//===- Plan.cpp - which memory every tensor of a function uses --------------------------------===//
//
// One walk over the ops in program order. What each value's memory is follows from what the op says
// of its kernel (KernelInterface) and from who uses the value:
//
//   1. A read stands in the parameter's own memory, an argument in the runtime's.
//   2. A view op (reshape, slice, ...) costs nothing when all users of its result, through further
//      views, take the strides; otherwise it copies into memory of its own.
//   3. An operand of a concatenation is computed into its place in the result, decided before the
//      walk.
//   4. A result takes the place of an operand that dies at the op, where the kernel allows it; an
//      update that is written back takes the parameter's own place when no one reads the old value
//      later.
//   5. A result that is written to a parameter or state that the function never reads (@init) is
//      computed there.
//   6. A result of @forward is the host's: an input, a parameter or a view of one that is returned
//      is copied into memory of its own.
//   7. Everything else gets a storage of its own. Its life ends with the last user of a value in
//   it.
//
// A storage from outside that is used within a loop lives to the loop's end.
//
//===------------------------------------------------------------------------------------------===//

#include "partita/Memory/Plan.h"
#include "dialects/Rt/Names.h"
#include "dialects/Train/Train.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace partita;
using namespace partita::memory;
using rt::KernelInterface;
using rt::Space;
using rt::View;

namespace {

RankedTensorType tensorType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

int64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() * rt::elementBytes(type.getElementType());
}

class Planner {
public:
  Planner(func::FuncOp function, const llvm::StringMap<Persistent> &persistent)
      : function(function), persistent(persistent) {}

  FailureOr<FunctionPlan> run() {
    number(function.getBody().front());
    findPersistentLives();
    for (BlockArgument argument : function.getArguments())
      place(argument, newStorage(Space::Input, argument, 0, argument.getArgNumber()),
            View::dense(tensorType(argument).getShape()));
    function.walk<WalkOrder::PreOrder>([&](Operation *op) { assignPieces(op); });
    if (failed(planBlock(function.getBody().front())))
      return failure();
    markGradients(function, plan);
    return std::move(plan);
  }

private:
  //===- Lives

  void number(Block &block) {
    for (Operation &op : block) {
      plan.number[&op] = counter++;
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          number(inner);
      ends[&op] = counter - 1;
    }
  }

  /// When the last user has read the value. A user inside a loop that the value is from outside of
  /// may read it again, until the loop ends.
  int lastUse(Value value) {
    Operation *definer = value.getDefiningOp();
    int last = definer ? plan.number[definer] : 0;
    for (Operation *user : value.getUsers()) {
      Operation *ancestor = value.getParentBlock()->findAncestorOpInBlock(*user);
      last = std::max(last, ancestor == user ? plan.number[user] : ends[ancestor]);
    }
    return last;
  }

  int newStorage(Space space, Value holder, int64_t bytes, int64_t offset = 0) {
    Storage storage;
    storage.space = space;
    storage.bytes = bytes;
    storage.offset = offset;
    storage.holder = holder;
    storage.first = storage.last = now;
    plan.storages.push_back(storage);
    return static_cast<int>(plan.storages.size()) - 1;
  }

  void place(Value value, int storage, View view) {
    plan.places[value] = {storage, std::move(view)};
    plan.storages[storage].values.push_back(value);
    plan.storages[storage].last = std::max(plan.storages[storage].last, lastUse(value));
  }

  void placeNew(Value value) {
    place(value, newStorage(Space::Arena, value, bytesOf(tensorType(value))),
          View::dense(tensorType(value).getShape()));
  }

  void findPersistentLives() {
    function.walk([&](train::ReadOp read) {
      int &last = persistentLast[read.getSymbol()];
      last = std::max(last, lastUse(read.getResult()));
    });
  }

  //===- Views

  bool takesView(OpOperand &use, const View &view) {
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

  bool usersTake(Value value, const View &view) {
    return llvm::all_of(value.getUses(), [&](OpOperand &use) { return takesView(use, view); });
  }

  static bool isViewOp(KernelInterface kernel) {
    Operation *op = kernel;
    if (op->getNumOperands() != 1 || op->getNumResults() != 1)
      return false;
    return kernel.viewOfOperand(View::dense(tensorType(op->getOperand(0)).getShape())).has_value();
  }

  /// Makes the result a view of the operand's memory, if all who use it can read it so.
  bool planView(KernelInterface kernel) {
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

  //===- Concatenations

  /// Gives operands of `op` that can be computed into its result their places there.
  void assignPieces(Operation *op) {
    auto kernel = dyn_cast<KernelInterface>(op);
    if (!kernel || op->getNumResults() != 1 || !tensorType(op->getResult(0)))
      return;
    Value result = op->getResult(0);
    View whole = View::dense(tensorType(result).getShape());
    int storage = -1;
    for (OpOperand &operand : op->getOpOperands()) {
      std::optional<View> piece = kernel.pieceOfResult(operand.getOperandNumber(), whole);
      if (!piece)
        continue;
      Value source = operand.get();
      std::optional<View> view = traceToProducer(source, *piece, op);
      if (!view || pieces.count(source))
        continue;
      if (storage < 0) {
        now = plan.number[op];
        storage = newStorage(Space::Arena, result, bytesOf(tensorType(result)));
        pieces[result] = {storage, whole};
      }
      pieces[source] = {storage, *view};
      plan.storages[storage].first =
          std::min(plan.storages[storage].first, plan.number[source.getDefiningOp()]);
    }
  }

  /// Walks up from an operand through views that it alone uses to the op that computes it; `source`
  /// becomes that op's result, the view what the piece is in its shape. None when it cannot be
  /// computed there.
  std::optional<View> traceToProducer(Value &source, View view, Operation *user) {
    while (true) {
      auto kernel = source.getDefiningOp<KernelInterface>();
      if (!kernel || source.getParentBlock() != user->getBlock() || !source.hasOneUse())
        return std::nullopt;
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
      view = *inverse;
    }
  }

  //===- In place

  /// Do all values in the storage die at the op?
  bool dies(int storage, Operation *op) { return plan.storages[storage].last <= plan.number[op]; }

  /// Does another operand of `op` see the same memory in another way, or one that the kernel reads
  /// after it has begun to write?
  bool seenOtherwise(Operation *op, const Place &place, ArrayRef<unsigned> overwritable) {
    return llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
      auto found = plan.places.find(operand.get());
      return found != plan.places.end() && found->second.storage == place.storage &&
             (!(found->second.view == place.view) ||
              !llvm::is_contained(overwritable, operand.getOperandNumber()));
    });
  }

  bool isWrittenBack(Value result, StringRef symbol) {
    return llvm::any_of(result.getUsers(), [&](Operation *user) {
      auto write = dyn_cast<train::WriteOp>(user);
      return write && write.getSymbol() == symbol;
    });
  }

  /// The place of an operand that the result may overwrite; none if there is none.
  std::optional<Place> inPlace(KernelInterface kernel, unsigned number,
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
          bytesOf(tensorType(operand)) != bytesOf(tensorType(result)) ||
          !dies(place.storage, kernel))
        continue;
      if (storage.space == Space::Persistent) {
        StringRef symbol = symbolOf[place.storage];
        if (!isWrittenBack(result, symbol) ||
            persistentLast[symbol] > plan.number[kernel.getOperation()])
          continue;
        updated[symbol] = result;
      } else if (storage.space != Space::Arena) {
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

  /// The place of a parameter or state that the result is written to and whose old value nobody
  /// wants.
  std::optional<Place> homeOf(Value result) {
    for (Operation *user : result.getUsers()) {
      auto write = dyn_cast<train::WriteOp>(user);
      if (!write || write->getBlock() != result.getParentBlock())
        continue;
      StringRef symbol = write.getSymbol();
      auto where = persistent.find(symbol);
      if (where == persistent.end() || persistentLast.contains(symbol) ||
          !updated.try_emplace(symbol, result).second)
        continue;
      int storage =
          newStorage(Space::Persistent, result, where->second.bytes, where->second.offset);
      symbolOf[storage] = symbol;
      return Place{storage, View::dense(tensorType(result).getShape())};
    }
    return std::nullopt;
  }

  //===- Collectives

  /// May the collective that begins at `op` and ends at `end` sum up in the operand's own memory?
  /// Nobody else may look at it from the beginning on.
  bool mayReduceInPlace(Value operand, Operation *op, Operation *end,
                        llvm::SmallDenseSet<int> &taken) {
    Place place = plan.places[operand];
    const Storage &storage = plan.storages[place.storage];
    if (storage.space != Space::Arena || !place.view.isDense() ||
        !taken.insert(place.storage).second)
      return false;
    for (Value value : storage.values)
      for (Operation *user : value.getUsers()) {
        Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
        if (!ancestor ||
            (plan.number[ancestor] >= plan.number[op] && ancestor != op && ancestor != end))
          return false;
      }
    return storage.last <= plan.number[end];
  }

  /// A collective works in its operands' memory, or in copies of them.
  void planReduction(Operation *op) {
    SmallVector<int> into;
    llvm::SmallDenseSet<int> taken;
    Operation *end = op;
    if (op->getNumResults() == 1 && !tensorType(op->getResult(0)))
      for (Operation *user : op->getUsers())
        end = user;
    for (Value operand : op->getOperands()) {
      if (mayReduceInPlace(operand, op, end, taken)) {
        into.push_back(plan.places[operand].storage);
      } else {
        into.push_back(newStorage(Space::Arena, operand, bytesOf(tensorType(operand))));
        plan.storages[into.back()].use = Use::Communication;
      }
      Storage &storage = plan.storages[into.back()];
      storage.last = std::max(storage.last, plan.number[end]);
    }
    plan.operandsInto[op] = into;
  }

  /// Results of a collective: the memory that it worked in.
  void placeReduced(Operation *start, ValueRange results) {
    for (auto [result, storage] : llvm::zip(results, plan.operandsInto[start])) {
      Place from = plan.places[start->getOperand(cast<OpResult>(result).getResultNumber())];
      View view = View::dense(tensorType(result).getShape());
      if (from.storage == storage)
        view.offset = from.view.offset;
      place(result, storage, view);
    }
  }

  //===- The walk

  LogicalResult planBlock(Block &block) {
    for (Operation &op : block) {
      now = plan.number[&op];
      if (failed(planOp(&op)))
        return failure();
    }
    return success();
  }

  LogicalResult planOp(Operation *op) {
    if (auto read = dyn_cast<train::ReadOp>(op))
      return planRead(read);
    if (auto write = dyn_cast<train::WriteOp>(op))
      return planWrite(write);
    if (auto loop = dyn_cast<train::AccumulateOp>(op))
      return planLoop(loop);
    if (auto end = dyn_cast<func::ReturnOp>(op)) {
      if (function.getName() == "forward")
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
      int storage = newStorage(Space::Arena, {}, scratch * 4);
      plan.storages[storage].use = Use::Workspace;
      plan.storages[storage].scratchOf = op;
      plan.workspace[op] = storage;
    }
    if (isViewOp(kernel)) {
      if (pieces.count(op->getResult(0)) == 0 && planView(kernel)) {
        ++plan.views;
        return success();
      }
      ++plan.copies;
    }
    placeResults(kernel);
    return success();
  }

  void placeResults(KernelInterface kernel) {
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
      else if (auto piece = pieces.find(result); piece != pieces.end())
        place(result, piece->second.storage, piece->second.view);
      else if (kernel.resultSpace(i) != Space::Arena)
        place(result, newStorage(kernel.resultSpace(i), result, 0),
              View::dense(tensorType(result).getShape()));
      else if (std::optional<Place> home = homeOf(result))
        place(result, home->storage, home->view);
      else if (std::optional<Place> over = inPlace(kernel, i, taken)) {
        place(result, over->storage, over->view);
        ++plan.inPlace;
      } else
        placeNew(result);
    }
  }

  /// The start that a wait belongs to.
  Operation *startOf(Operation *op) {
    if (op->getNumOperands() == 0)
      return nullptr;
    Operation *start = op->getOperand(0).getDefiningOp();
    return start && !tensorType(op->getOperand(0)) && plan.operandsInto.count(start) ? start
                                                                                     : nullptr;
  }

  /// A splat constant whose users all write it as a literal needs no memory.
  bool onlyLiteral(Value value) {
    DenseElementsAttr attribute;
    if (!matchPattern(value, m_Constant(&attribute)) || !attribute.isSplat())
      return false;
    return llvm::all_of(value.getUses(), [](OpOperand &use) {
      auto kernel = dyn_cast<KernelInterface>(use.getOwner());
      return kernel && kernel.acceptsLiteral(use.getOperandNumber());
    });
  }

  LogicalResult planRead(train::ReadOp read) {
    auto [found, isNew] = persistentStorage.try_emplace(read.getSymbol(), -1);
    if (isNew) {
      auto where = persistent.find(read.getSymbol());
      if (where == persistent.end())
        return read.emitOpError() << "reads " << read.getSymbolAttr()
                                  << ", which has no place in persistent memory";
      found->second = newStorage(Space::Persistent, read.getResult(), where->second.bytes,
                                 where->second.offset);
      symbolOf[found->second] = read.getSymbol();
    }
    if (updated.count(read.getSymbol()) || written.count(read.getSymbol()))
      return read.emitOpError() << "reads " << read.getSymbolAttr()
                                << " after it was overwritten; move the read up";
    place(read.getResult(), found->second, View::dense(tensorType(read.getResult()).getShape()));
    return success();
  }

  /// A value that was not computed in place is copied there; nobody may read the old one later.
  LogicalResult planWrite(train::WriteOp write) {
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

  /// What does not stand in the arena by itself is copied there.
  void planResults(func::ReturnOp end) {
    SmallVector<int> &into = plan.operandsInto[end];
    for (Value result : end.getOperands()) {
      Place place = plan.places[result];
      bool own = plan.storages[place.storage].space == Space::Arena && place.view.isDense();
      into.push_back(own ? place.storage
                         : newStorage(Space::Arena, result, bytesOf(tensorType(result))));
    }
  }

  LogicalResult planLoop(train::AccumulateOp loop) {
    for (auto [argument, batch] : llvm::zip(loop.getBody().getArguments(), loop.getBatches())) {
      Place from = plan.places[batch];
      place(argument, from.storage, View::dense(tensorType(argument).getShape(), from.view.offset));
      plan.storages[from.storage].last = std::max(plan.storages[from.storage].last, ends[loop]);
    }
    for (Value sum : loop.getSums()) {
      placeNew(sum);
      Storage &storage = plan.storages[plan.places[sum].storage];
      storage.last = std::max(storage.last, ends[loop]);
    }
    return planBlock(loop.getBody().front());
  }

  func::FuncOp function;
  const llvm::StringMap<Persistent> &persistent;
  FunctionPlan plan;
  int counter = 0, now = 0;
  llvm::DenseMap<Operation *, int> ends;
  llvm::DenseMap<Value, Place> pieces;
  llvm::StringMap<int> persistentStorage, persistentLast;
  llvm::DenseMap<int, StringRef> symbolOf;
  llvm::StringMap<Value> updated;
  llvm::StringSet<> written;
};

} // namespace

FailureOr<FunctionPlan> memory::planFunction(func::FuncOp function,
                                             const llvm::StringMap<Persistent> &persistent) {
  return Planner(function, persistent).run();
}
