//===- Interpreter.cpp - executes tensor programs on virtual ranks ----------------------------===//

#include "partita/Interp/Interpreter.h"
#include "dialects/Interfaces/Floats.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Rounding.h"
#include "dialects/Tx/Tx.h"
#include "lib/Interp/Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

//===------------------------------------------------------------------------------------------===//
// Interpreter
//===------------------------------------------------------------------------------------------===//

Interpreter::Interpreter(ModuleOp module, Options options)
    : options(options), theModule(module), theMesh(par::MeshAttr::of(module)) {
  for (auto state : module.getOps<train::StateOp>()) {
    if (state.isMaster()) // starts as its parameter does
      continue;
    Tensor value = *initialValue(state, {});
    store[state.getSymName().str()] = {
        state.getType(),
        RankTensors(theMesh.rankCount(), std::make_shared<Tensor>(std::move(value)))};
  }
}

LogicalResult Interpreter::setParameter(StringRef name, const Tensor &value) {
  Operation *symbol = SymbolTable::lookupSymbolIn(theModule, name);
  Type type;
  if (auto parameter = dyn_cast_or_null<train::ParameterOp>(symbol))
    type = parameter.getType();
  else if (auto state = dyn_cast_or_null<train::StateOp>(symbol))
    type = state.getType();
  else
    return theModule.emitError() << "has no parameter or state '" << name << "'";
  auto shards =
      cut(value, type, theMesh, 0, [&](const Twine &text) { symbol->emitError() << text; });
  if (failed(shards))
    return failure();
  store[name.str()] = {type, *shards};
  return success();
}

FailureOr<Tensor> Interpreter::parameter(StringRef name) {
  auto found = store.find(name.str());
  if (found == store.end())
    return theModule.emitError() << "parameter '" << name << "' has no value";
  return assemble(found->second.shards, found->second.type, theMesh, [&](const Twine &text) {
    theModule.emitError() << "the value of '" << name << "' " << text;
  });
}

FailureOr<SmallVector<Tensor>> Interpreter::call(StringRef name, ArrayRef<Tensor> inputs) {
  auto function = theModule.lookupSymbol<func::FuncOp>(name);
  if (!function || !function.getBody().hasOneBlock())
    return theModule.emitError() << "has no function '" << name << "' with a body of one block";
  if (function.getNumArguments() != inputs.size())
    return function.emitError() << "takes " << function.getNumArguments() << " arguments, "
                                << inputs.size() << " are given";
  SmallVector<RankTensors> arguments;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (!isa<RankedTensorType>(type))
      return function.emitError() << "argument " << i << " is not a tensor: " << type;
    auto shards = cut(inputs[i], type, theMesh, i + 1, [&, i = i](const Twine &text) {
      function.emitError() << "argument " << i << ": " << text;
    });
    if (failed(shards))
      return failure();
    arguments.push_back(std::move(*shards));
  }
  written.clear();
  theGradients.clear();
  theUpdates.clear();
  Execution execution(*this);
  execution.memory = PlacedMemory::create(theModule);
  auto results = execution.run(function.getBody().front(), arguments);
  if (failed(results))
    return failure();
  for (auto &[symbol, stored] : written)
    store[symbol] = std::move(stored);
  SmallVector<Tensor> fullTensors;
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    auto full = assemble((*results)[i], type, theMesh, [&, i = i](const Twine &text) {
      function.emitError() << "result " << i << " " << text;
    });
    if (failed(full))
      return failure();
    fullTensors.push_back(std::move(*full));
  }
  return fullTensors;
}

//===------------------------------------------------------------------------------------------===//
// Execution
//===------------------------------------------------------------------------------------------===//

const KernelTable &KernelTable::get() {
  static const KernelTable table = [] {
    KernelTable result;
    addStructureKernels(result);
    addMatmulKernels(result);
    addRowKernels(result);
    addAttentionKernels(result);
    addAttentionStepKernels(result);
    addRotaryKernels(result);
    addEmbeddingKernels(result);
    addDropoutKernels(result);
    addTrainKernels(result);
    addUpdateKernels(result);
    addLossScaleKernels(result);
    addFp8Kernels(result);
    addBlockwiseKernels(result);
    addChunkKernels(result);
    addParKernels(result);
    addZeroKernels(result);
    addOffloadKernels(result);
    addPipeKernels(result);
    return result;
  }();
  return table;
}

LogicalResult interp::complete(Execution &execution, AsyncWaitInterface wait,
                               ArrayRef<RankTensors> in, MutableArrayRef<RankTensors> out) {
  AsyncStartInterface start = wait.getStart(); // there is one, by the wait's verifier
  ArrayRef<RankTensors> filled = in.drop_front();
  if (!start.worksInOperands()) {
    llvm::copy(filled, out.begin());
    return success();
  }
  const KernelTable &table = KernelTable::get();
  auto kernel = table.completions.find(start->getName().getStringRef());
  if (kernel == table.completions.end())
    return start->emitError() << "the interpreter does not know what '" << start->getName()
                              << "' makes of its operands";
  return kernel->second(execution, start, filled, out);
}

Stored *Execution::find(StringRef symbol) {
  auto found = interpreter.store.find(symbol.str());
  return found == interpreter.store.end() ? nullptr : &found->second;
}

LogicalResult Execution::recordGradient(Operation *op, StringRef parameter, Value gradient) {
  auto full = assemble(values.lookup(gradient), gradient.getType(), mesh(), [&](const Twine &text) {
    op->emitError() << "the gradient of '" << parameter << "' " << text;
  });
  if (failed(full))
    return failure();
  interpreter.theGradients[parameter.str()] = std::move(*full);
  return success();
}

void Execution::recordUpdate(Operation *op, StringRef parameter, ArrayRef<RankTensors> operands) {
  if (rankCount() != 1)
    return;
  Interpreter::Update &update = interpreter.theUpdates[parameter.str()];
  update = {op, {}};
  for (const RankTensors &operand : operands)
    update.operands.push_back(operand.front());
}

Operation *partita::interp::lastUse(Block &block, Value value) {
  Operation *last = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *here = block.findAncestorOpInBlock(*user);
    if (here && (!last || last->isBeforeInBlock(here)))
      last = here;
  }
  return last;
}

/// Of what a pass's last slot yields: may a collective that has begun work in its memory? So it does where the value
/// is handed out, or a sum that nobody wants after the loop.
static bool isOnItsWay(OpOperand &yielded) {
  auto loop = dyn_cast<train::AccumulateOp>(yielded.getOwner()->getParentOp());
  if (!loop)
    return false;
  std::optional<unsigned> sum = loop.getSumOf(yielded);
  return loop.getHandingOut(yielded) ||
         (sum && loop.getSoFar(*sum) && loop.getSums()[*sum].use_empty());
}

FailureOr<SmallVector<RankTensors>> Execution::run(Block &block, ArrayRef<RankTensors> arguments) {
  for (auto [argument, value] : llvm::zip(block.getArguments(), arguments))
    values[argument] = value;
  // A value that this block defines goes with the last op (of this block) that uses it.
  llvm::DenseMap<Operation *, SmallVector<Value, 2>> lastUses;
  auto note = [&](Value value) {
    if (Operation *last = lastUse(block, value))
      lastUses[last].push_back(value);
  };
  for (Value argument : block.getArguments())
    note(argument);
  for (Operation &op : block)
    for (Value result : op.getResults())
      note(result);

  for (Operation &op : block.without_terminator()) {
    bool runs = inLastSlot || !op.hasAttr(train::TrainDialect::kLast);
    if (runs && failed(run(&op)))
      return failure();
    for (Value dead : lastUses.lookup(&op))
      values.erase(dead);
    for (Value result : op.getResults())
      if (result.use_empty())
        values.erase(result);
  }
  SmallVector<RankTensors> results;
  Operation *terminator = block.getTerminator();
  SmallVector<const Tensor *> ofRank0;
  for (OpOperand &operand : terminator->getOpOperands()) {
    results.push_back(values.lookup(operand.get()));
    bool isThere = !results.back().empty(); // no token, nor what another slot makes
    ofRank0.push_back(isThere ? results.back().front().get() : nullptr);
    if (isThere && memory && !(inLastSlot && isOnItsWay(operand)) &&
        failed(memory->check(terminator, operand.get(), *ofRank0.back())))
      return failure();
  }
  if (memory && failed(memory->putReturned(terminator, ofRank0)))
    return failure();
  return results;
}

/// An op that no rank needs another for.
static LogicalResult runLocal(Execution &execution, Operation *op, ArrayRef<RankTensors> operands,
                              MutableArrayRef<RankTensors> results) {
  const KernelTable &table = KernelTable::get();
  auto kernel = table.local.find(op->getName().getStringRef());
  return onDistinctRanks(operands, results, execution.rankCount(),
                         [&](Inputs in, SmallVectorImpl<Tensor> &out) {
                           for (Type type : op->getResultTypes())
                             out.emplace_back(cast<RankedTensorType>(type));
                           if (auto castOp = dyn_cast<tx::CastOp>(op))
                             return evaluateCast(castOp, execution.rounds(op), *in[0], out[0]);
                           if (kernel != table.local.end())
                             return kernel->second(op, in, out);
                           return evaluateElementwise(op, in, out);
                         });
}

bool Execution::rounds(Operation *op) const {
  auto isStored = [](Operation *user) { return isa<tx::FusedOp>(user); };
  return interpreter.options.roundCasts &&
         (!tx::isFusedKernel(op->getParentOp()) || tx::isOwnRounding(op) ||
          llvm::any_of(op->getUsers(), isStored));
}

/// What is stored in 8 or 16 bits is rounded, whatever computed it.
static void roundResult(Type type, RankTensors &tensors) {
  if (!isShortFloat(type) && !isByteFloat(type))
    return;
  auto element = cast<FloatType>(getElementTypeOrSelf(type));
  llvm::DenseMap<const Tensor *, std::shared_ptr<const Tensor>> rounded;
  for (std::shared_ptr<const Tensor> &value : tensors) {
    std::shared_ptr<const Tensor> &known = rounded[value.get()];
    if (!known) {
      auto made = std::make_shared<Tensor>(*value);
      for (double &number : made->reals)
        number = roundTo(element, number);
      known = std::move(made);
    }
    value = known;
  }
}

LogicalResult Execution::run(Operation *op) {
  const KernelTable &table = KernelTable::get();
  StringRef name = op->getName().getStringRef();
  auto kernel = table.ranks.find(name);
  bool isLocal = table.local.contains(name) || tx::isElementwise(op);
  if (kernel == table.ranks.end() && !isLocal)
    return op->emitError() << "the interpreter does not know '" << name << "'";
  auto complain = [&](const Twine &text) { op->emitError() << text; };
  for (Type type : op->getResultTypes())
    if (isa<RankedTensorType>(type) && failed(checkType(type, mesh(), complain)))
      return failure();
  SmallVector<RankTensors> operands, results(op->getNumResults());
  for (Value operand : op->getOperands())
    operands.push_back(values.lookup(operand));
  if (memory && failed(memory->checkOperands(op, [&](Value value) -> const Tensor & {
        return *values.find(value)->second.front();
      })))
    return failure();
  if (interpreter.beforeOp)
    interpreter.beforeOp(op, operands);
  if (failed(isLocal ? runLocal(*this, op, operands, results)
                     : kernel->second(*this, op, operands, results)))
    return failure();
  for (auto [result, tensors] : llvm::zip(op->getResults(), results))
    if (rounds(op))
      roundResult(result.getType(), tensors);
  if (interpreter.afterOp)
    interpreter.afterOp(op, results);
  SmallVector<const Tensor *> ofRank0;
  for (const RankTensors &tensors : results)
    ofRank0.push_back(tensors.empty() ? nullptr : tensors.front().get());
  if (memory && failed(memory->putResults(op, ofRank0)))
    return failure();
  for (auto [result, tensors] : llvm::zip(op->getResults(), results)) {
    if (isa<RankedTensorType>(result.getType()) &&
        failed(checkAgreement(tensors, result.getType(), mesh(), [&](const Twine &text) {
          op->emitError() << "the result " << text;
        })))
      return failure();
    values[result] = std::move(tensors);
  }
  return success();
}
