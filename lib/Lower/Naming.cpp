//===- Naming.cpp - what a value is called in the program -------------------------------------===//

#include "partita/Lower/Naming.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/FusedLookup.h"
#include "dialects/Tx/FusedMatmul.h"
#include "dialects/Zero/Zero.h"
#include "lib/Lower/TensorRoles.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

/// "a.b" of "a.b.c"; "" of "c".
static StringRef parentOf(StringRef name) {
  return name.contains('.') ? name.rsplit('.').first : "";
}

/// The op if it gathers, or begins to; else null.
static CollectiveInterface gatherOf(Operation *op) {
  auto collective = dyn_cast<CollectiveInterface>(op);
  return collective && collective.getCollectiveKind() == CollectiveKind::AllGather
             ? collective
             : CollectiveInterface();
}

/// The parameter that a value is, full or sharded, in whichever memory; "" where it is none.
static StringRef parameterOf(Value value) {
  while (Operation *definer = value.getDefiningOp()) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (auto read = dyn_cast<train::ReadOp>(definer))
      return read.getSymbol();
    if (isa<tx::BroadcastOp, tx::ReshapeOp, tx::TransposeOp>(definer))
      value = definer->getOperand(0);
    else if (auto gather = gatherOf(definer); gather && gather.getSourceOf(number))
      value = gather.getSourceOf(number);
    else if (offload::directionOf(definer) == offload::Direction::ToDevice)
      value = definer->getOperand(0);
    else if (auto wait = dyn_cast<AsyncWaitInterface>(definer))
      value = wait.getFilledBy(number);
    else
      return "";
  }
  return "";
}

Naming::Naming(func::FuncOp function) {
  llvm::StringMap<unsigned> firsts;
  unsigned count = 0;
  for (auto parameter : function->getParentOfType<ModuleOp>().getOps<train::ParameterOp>()) {
    ++count;
    if (parameter.getSymName().contains('.'))
      ++firsts[parameter.getSymName().split('.').first];
  }
  for (auto &entry : firsts)
    if (count > 1 && entry.second * 10 >= count * 9)
      prefix = entry.first().str() + ".";
  nameGradients(function);
  findSharedTables(function);
  findModules(function);
  roles = TensorRoles::find(function, {[this](Operation *op) { return moduleOf(op); },
                                       [](Value value) { return ::parameterOf(value); },
                                       [this](Operation *op) { return !labelOf(op).empty(); },
                                       [this](Value value) { return of(value); }});
}

StringRef Naming::shorten(StringRef name) const {
  name.consume_front(prefix);
  return name;
}

StringRef Naming::parameterOf(Operation *op) const {
  for (Value operand : op->getOperands())
    if (StringRef parameter = ::parameterOf(operand); !parameter.empty())
      return parameter;
  return "";
}

//===------------------------------------------------------------------------------------------===//
// Gradients: from the updates back through what reduces and adds them up
//===------------------------------------------------------------------------------------------===//

void Naming::nameGradients(func::FuncOp function) {
  function.walk([&](Operation *op) {
    if (!isa<train::OptimizerInterface>(op))
      return;
    if (FlatSymbolRefAttr parameter = train::updatedParameter(op))
      nameGradient(op->getOperand(1), (shorten(parameter.getValue()) + ".grad").str());
  });
  nameLoss(function);
}

/// The first result of a training or evaluation step, and what it is before ranks add it up.
void Naming::nameLoss(func::FuncOp function) {
  if (!train::is(function, train::EntryPoint::TrainStep) &&
      !train::is(function, train::EntryPoint::EvalStep))
    return;
  Operation *terminator = function.front().getTerminator();
  Value loss = terminator->getNumOperands() > 0 ? terminator->getOperand(0) : Value();
  while (loss && isa<RankedTensorType>(loss.getType()) && loss.getDefiningOp()) {
    named.try_emplace(loss, "loss");
    Operation *definer = loss.getDefiningOp();
    unsigned number = cast<OpResult>(loss).getResultNumber();
    auto collective = dyn_cast<CollectiveInterface>(definer);
    if (auto wait = dyn_cast<AsyncWaitInterface>(definer))
      loss = wait.getFilledBy(number);
    else
      loss = collective ? collective.getSourceOf(number) : Value();
  }
}

/// Of an addition the sum over earlier micro-batches; null if it has none.
static Value earlierMicroBatches(tx::AddOp add) {
  for (Value term : add->getOperands())
    if (term.getDefiningOp<train::AccumulateOp>())
      return term;
  return {};
}

/// The term of an addition that a reduce-scatter, or a sum of chunks, has made: this micro-batch's gradient.
static Value reducedOf(tx::AddOp add) {
  for (Value term : add->getOperands())
    if (Operation *op = term.getDefiningOp()) {
      if (isa<zero::SumChunksOp>(op))
        return term;
      auto wait = dyn_cast<AsyncWaitInterface>(op);
      if (isa_and_nonnull<zero::ReduceScatterOp, zero::ReduceScatterStartOp>(
              wait ? wait.getStart().getOperation() : op))
        return term;
    }
  return {};
}

void Naming::nameGradient(Value gradient, std::string name) {
  SmallVector<Value>
      chain; // from the reduced gradient, which may be a rank's shard, to what a pass computes
  while (gradient && named.try_emplace(gradient, name).second) {
    chain.push_back(gradient);
    Operation *definer = gradient.getDefiningOp();
    if (!definer)
      return;
    unsigned number = cast<OpResult>(gradient).getResultNumber();
    auto collective = dyn_cast<CollectiveInterface>(definer);
    auto chunks = dyn_cast<zero::SumChunksOp>(definer);
    if (chunks || (collective && collective.getCollectiveKind() == CollectiveKind::ReduceScatter))
      for (Value shard : chain)
        named[shard] = name + ".shard";
    if (collective && collective.getRow().reduces && collective.getSourceOf(number))
      gradient = collective.getSourceOf(number);
    else if (chunks)
      gradient = chunks.getSummed(number);
    else if (auto wait = dyn_cast<AsyncWaitInterface>(definer))
      gradient = wait.getFilledBy(number);
    else if (isa<tx::ReshapeOp>(definer))
      gradient = definer->getOperand(0);
    else if (auto fused = dyn_cast<tx::FusedMatmulOp>(definer))
      gradient = tx::FusedMatmul::of(fused).addedTo(number);
    else if (auto lookup = dyn_cast<tx::FusedLookupOp>(definer))
      gradient = tx::FusedLookup::of(lookup).gradientSoFar();
    else if (auto add = dyn_cast<tx::AddOp>(definer)) {
      gradient = earlierMicroBatches(add);
      if (Value own = reducedOf(add))
        nameGradient(own, name);
    } else if (Value inside = handedOut(gradient); inside != gradient)
      gradient = inside;
    else if (auto loop = dyn_cast<train::AccumulateOp>(definer))
      gradient = loop.getPart(number).get();
    else
      return;
  }
}

//===------------------------------------------------------------------------------------------===//
// Modules
//===------------------------------------------------------------------------------------------===//

/// The parameter, also of a state.
static StringRef ownerOf(train::InitialValueOp initial) {
  Operation *symbol = SymbolTable::lookupNearestSymbolFrom(initial, initial.getSymbolAttr());
  auto state = dyn_cast_or_null<train::StateOp>(symbol);
  return state && state.getOf() ? *state.getOf() : initial.getSymbol();
}

static bool isLookup(Operation *op) {
  auto fused = dyn_cast<tx::FusedLookupOp>(op);
  return isa<tx::EmbeddingOp>(op) || (fused && !tx::FusedLookup::of(fused).isGradient());
}

/// Tables of lookups that other ops of the forward pass read too.
void Naming::findSharedTables(func::FuncOp function) {
  llvm::StringSet<> lookups, others;
  function.walk([&](Operation *op) {
    if (isa<tx::TxDialect>(op->getDialect()) && !provenance::isBackward(op))
      if (StringRef parameter = parameterOf(op); !parameter.empty())
        (isLookup(op) ? lookups : others).insert(parameter);
  });
  for (auto &entry : lookups)
    if (others.contains(entry.first()))
      sharedTables.insert(entry.first());
}

bool Naming::isSharedLookup(Operation *op) const {
  return isLookup(op) && sharedTables.contains(parameterOf(op));
}

/// The parameter that says which module an op belongs to; of what only another op reads, such as positions, that op's. A table
/// that a lookup shares with another op, the last layer, has that op's name: "lm_head.weight".
StringRef Naming::labelOf(Operation *op) const {
  StringRef parameter = parameterOf(op);
  if (isSharedLookup(op))
    return "";
  if (parameter.empty() && op->getNumOperands() == 0 && isa<tx::TxDialect>(op->getDialect()))
    for (Operation *user : op->getUsers())
      if (StringRef read = parameterOf(user); !read.empty())
        return read;
  return parameter;
}

/// An op without a telling name belongs where the op before it does.
void Naming::findModules(func::FuncOp function) {
  std::string last;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto initial = dyn_cast<train::InitialValueOp>(op)) {
      modules[op] = shorten(parentOf(ownerOf(initial))).str();
      return;
    }
    std::string path = modulePath(provenance::nameOf(op));
    StringRef parameter = labelOf(op);
    if (op->getNumResults() == 0 || !isa<tx::TxDialect>(op->getDialect()))
      return;
    for (Value result : op->getResults())
      if (auto gradient = named.find(result); gradient != named.end() && path.empty())
        path = parentOf(parentOf(gradient->second)).str();
    if (path.empty() && isSharedLookup(op))
      path = "embedding";
    if (path.empty() && !parameter.empty())
      path = parentOf(parameter).str();
    if (!path.empty())
      last = shorten(path + ".").rtrim('.').str();
    modules[op] = last;
  });
}

std::string Naming::moduleOf(Operation *op) const { return modules.lookup(op); }

/// The op that a result is named after, of a fused op the one that computes it; of a lookup that one.
static Operation *computing(OpResult result) {
  Operation *op = result.getOwner();
  if (auto lookup = dyn_cast<tx::FusedLookupOp>(op))
    return tx::FusedLookup::of(lookup).lookup;
  if (!isa<tx::FusionOp>(op))
    return op;
  Operation *inside = op->getRegion(0)
                          .front()
                          .getTerminator()
                          ->getOperand(result.getResultNumber())
                          .getDefiningOp();
  auto cast = dyn_cast_or_null<tx::CastOp>(inside);
  Operation *exact = cast ? cast.getOperand().getDefiningOp() : nullptr;
  return exact ? exact : inside ? inside : op;
}

std::string Naming::of(Value tensor) const {
  Operation *definer = tensor.getDefiningOp();
  if (auto read = dyn_cast<train::ReadOp>(definer))
    return shorten(read.getSymbol()).str();
  if (auto initial = dyn_cast<train::InitialValueOp>(definer))
    return shorten(initial.getSymbol()).str();
  if (auto gradient = named.find(tensor); gradient != named.end())
    return gradient->second;
  if (gatherOf(definer))
    if (StringRef parameter = ::parameterOf(tensor); !parameter.empty())
      return (shorten(parameter) + ".full").str();
  if (auto role = roles.find(tensor); role != roles.end())
    return role->second;
  StringRef node = provenance::nameOf(definer);
  std::string base = moduleOf(definer);
  bool backward = provenance::isBackward(definer) && !isa<offload::CopyInterface>(definer);
  StringRef op = computing(cast<OpResult>(tensor))->getName().stripDialect();
  StringRef parameter = labelOf(definer);
  if (node.contains('/')) {
    std::string dotted;
    for (char c : node.ltrim('/'))
      dotted += c == '/' ? '.' : c;
    base = shorten(dotted).str();
  } else if (parameter.empty() || backward) {
    if (StringRef(base).rsplit('.').second != op && base != op)
      base += (base.empty() ? "" : ".") + op.str();
  } else if (!isa<KernelInterface>(definer) || parentOf(parameter).empty()) {
    base = shorten(parameter).str() + "." + op.str();
  } else if (isa<tx::FusionOp>(definer) && op != "add") {
    base += "." + op.str(); // the activation of what a bias was added to
  }
  if (auto kernel = dyn_cast<KernelInterface>(definer))
    if (StringRef suffix = kernel.resultName(cast<OpResult>(tensor).getResultNumber());
        !suffix.empty())
      base += ("." + suffix).str();
  return base;
}
