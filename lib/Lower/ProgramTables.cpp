//===- ProgramTables.cpp - what the program's tables say of inputs, outputs and updates -------===//

#include "lib/Lower/ProgramTables.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "dialects/Train/Roles.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "partita/Analysis/Communicators.h"
#include "partita/Analysis/Messages.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

class Collector {
public:
  Collector(ModuleOp module, ModuleLowering &shared)
      : module(module), shared(shared), b(module.getContext()) {}

  FailureOr<ProgramTables> run() {
    module.walk([&](LookupInterface lookup) { findVocabulary(lookup); });
    for (auto entry :
         {train::EntryPoint::TrainStep, train::EntryPoint::EvalStep, train::EntryPoint::Forward})
      if (auto function = train::lookup<func::FuncOp>(module, entry))
        if (failed(collectInputs(function)))
          return failure();
    if (auto forward = train::lookup<func::FuncOp>(module, train::EntryPoint::Forward))
      collectOutputs(forward);
    collectUpdate();
    collectCollectives();
    if (auto step = train::lookup<func::FuncOp>(module, train::EntryPoint::TrainStep))
      tables.transfers = analysis::Transfers::of(step);
    return std::move(tables);
  }

private:
  /// The argument of a function that a value is a view, a shard or a micro-batch of, perhaps with
  /// what is known put to its ends (labels moved by one).
  static BlockArgument sourceOf(Value value) {
    value = train::forwardOf(value);
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<train::AccumulateOp>(argument.getOwner()->getParentOp());
      Value batch = loop ? loop.getBatchOf(argument) : Value();
      return batch ? sourceOf(batch) : loop ? BlockArgument() : argument;
    }
    Operation *op = value.getDefiningOp();
    if (isa<tx::ReshapeOp, tx::SliceOp, tx::CastOp, par::NarrowOp>(op))
      return sourceOf(op->getOperand(0));
    BlockArgument source;
    if (isa<tx::ConcatOp>(op))
      for (Value part : op->getOperands())
        if (BlockArgument found = sourceOf(part))
          source = found;
    return source;
  }

  /// Of several lookups the smallest decides: every one must find what it looks up.
  void findVocabulary(LookupInterface lookup) {
    BlockArgument argument = sourceOf(lookup.getIndices());
    if (!argument)
      return;
    int64_t size = par::fullType(lookup.getIndexed().getType()).getDimSize(lookup.getIndexedDim());
    int64_t &known = vocabulary[argument];
    known = known ? std::min(known, size) : size;
    if (std::optional<int64_t> ignored = lookup.getIgnoredIndex())
      filler[argument] = *ignored;
  }

  static StringRef roleOf(func::FuncOp function, unsigned i) {
    auto role = function.getArgAttrOfType<StringAttr>(i, train::TrainDialect::kRole);
    return role ? role.getValue() : StringRef();
  }

  static StringRef nameOf(func::FuncOp function, unsigned i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, train::TrainDialect::kName);
    return name ? name.getValue() : StringRef();
  }

  LogicalResult collectInputs(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments()) {
      unsigned i = argument.getArgNumber();
      StringRef role = roleOf(function, i);
      if (role.empty())
        return function.emitError()
               << "argument " << i << " '" << nameOf(function, i) << "' of @" << function.getName()
               << " has no " << train::TrainDialect::kRole << ", so nothing says how to fill it";
      if (!train::findRole(role))
        return function.emitError()
               << "argument " << i << " '" << nameOf(function, i) << "' of @" << function.getName()
               << " still has the " << train::TrainDialect::kRole << " of the import, '" << role
               << "'; run the objective first";
      auto type = cast<RankedTensorType>(argument.getType());
      if (train::is(function, train::EntryPoint::TrainStep)) {
        tables.accumulate = type.getDimSize(0);
        type = train::AccumulateOp::microBatchType(type);
      }
      if (type.getRank() > kMaxDims)
        return function.emitError() << "argument " << i << " '" << nameOf(function, i) << "' of @"
                                    << function.getName() << " has " << type.getRank()
                                    << " dimensions, a program's inputs at most " << kMaxDims;
      StringRef name = nameOf(function, i).empty() ? role : nameOf(function, i);
      auto [found, isNew] = indexOf.try_emplace(name, tables.inputs.size());
      shared.inputIndex[argument] = found->second;
      if (!isNew)
        continue;
      auto declared = function.getArgAttrOfType<IntegerAttr>(i, train::TrainDialect::kFiller);
      bool batched = bool(function.getArgAttr(i, train::TrainDialect::kBatch));
      tables.inputs.push_back(InputAttr::get(b.getContext(), name, role, type, batched,
                                             declared ? declared.getInt() : filler.lookup(argument),
                                             vocabulary.lookup(argument)));
    }
    return success();
  }

  void collectOutputs(func::FuncOp forward) {
    auto end = cast<func::ReturnOp>(forward.getBody().front().getTerminator());
    auto places = end->getAttrOfType<ArrayAttr>(RtDialect::kBuffers);
    if (!places)
      return; // reported by the return's lowering
    for (auto [i, result] : llvm::enumerate(end.getOperands())) {
      auto at = cast<AtAttr>(places[i]);
      auto name = forward.getResultAttrOfType<StringAttr>(i, train::TrainDialect::kName);
      auto number = forward.getResultAttrOfType<IntegerAttr>(i, pipe::PipeDialect::kResult);
      tables.outputs.push_back(OutputAttr::get(
          b.getContext(),
          name ? name.str() : "output" + std::to_string(number ? number.getInt() : int64_t(i)),
          cast<RankedTensorType>(result.getType()), at.getOffset()));
    }
  }

  void collectUpdate() {
    if (shared.learningRate)
      tables.hyper.set("learningRate", b.getF64FloatAttr(*shared.learningRate));
    for (auto &[field, value] : shared.hyper)
      tables.hyper.set(field, b.getF64FloatAttr(value));
    module.walk([&](train::OptimizerInterface update) {
      tables.optimizer = update->getName().stripDialect();
      FlatSymbolRefAttr parameter = train::updatedParameter(update);
      if (parameter && update.getHyper("decay") == 0)
        tables.undecayed.push_back(parameter);
    });
  }

  /// While ops are of tensors.
  void collectCollectives() {
    std::vector<analysis::Collective> collectives = analysis::collectivesOf(module);
    tables.census = analysis::censusRows(collectives);
    for (const analysis::Collective &collective : collectives)
      tables.collectives.push_back(collective.toAttr(b.getContext()));
    for (const analysis::Message &message : analysis::Message::of(module))
      tables.messages.push_back(message.toAttr(b.getContext()));
    tables.communicators = shared.communicators = analysis::communicatorsOf(module);
    tables.channels = analysis::channelsOf(module);
  }

  ModuleOp module;
  ModuleLowering &shared;
  Builder b;
  ProgramTables tables;
  llvm::DenseMap<Value, int64_t> vocabulary, filler;
  llvm::StringMap<int64_t> indexOf;
};

/// The function that the census counts an op for: of a pass of micro-batches the one whose it is.
StringRef countedIn(func::FuncOp function) {
  auto full = function->getAttrOfType<train::EntryPointAttr>(RtDialect::kPassOf);
  return full ? train::nameOf(full.getValue()) : analysis::functionName(function);
}

/// The census, with the buffers that the calls of each row work on. Whatever is called and not
/// counted is an error.
FailureOr<ArrayAttr> withTensors(ArrayRef<analysis::CensusRow> rows, ModuleOp module) {
  Builder b(module.getContext());
  std::vector<SmallVector<Attribute>> tensors(rows.size());
  WalkResult walked = module.walk([&](ExchangeInterface exchange) -> WalkResult {
    StringRef function = countedIn(exchange->getParentOfType<func::FuncOp>());
    const analysis::CensusRow *row = llvm::find_if(rows, [&](const analysis::CensusRow &row) {
      return row.function == function && row.kind == exchange.getCollectiveKind() &&
             row.communicator == exchange.getCommunicatorAttr().getValue() &&
             row.name == exchange.getReasonAttr().getValue();
    });
    if (row == rows.end())
      return exchange->emitError()
             << "issues " << exchange.getRow().name << " over " << exchange.getCommunicatorAttr()
             << " for " << exchange.getReasonAttr() << ", which the census does not count";
    for (Value buffer : exchange->getOperands())
      tensors[row - rows.begin()].push_back(b.getStringAttr(provenance::nameIn(buffer.getLoc())));
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  SmallVector<Attribute> entries;
  for (auto [row, buffers] : llvm::zip(rows, tensors))
    entries.push_back(CensusAttr::get(
        b.getContext(), row.function, row.kind, row.communicator, row.name, b.getArrayAttr(buffers),
        row.calls, row.bytes, row.steps.part, analysis::exactStepsOf(row.steps, b.getContext())));
  return b.getArrayAttr(entries);
}

} // namespace

FailureOr<ProgramTables> rt::collectTables(ModuleOp module, ModuleLowering &shared) {
  return Collector(module, shared).run();
}

FailureOr<ProgramAttr> ProgramTables::asAttribute(ModuleOp module, StringRef lrSchedule) {
  FailureOr<ArrayAttr> counted = withTensors(census, module);
  if (failed(counted))
    return failure();
  Builder b(module.getContext());
  auto listOf = [&](auto &rows) {
    SmallVector<Attribute> list(rows.begin(), rows.end());
    return list.empty() ? ArrayAttr() : b.getArrayAttr(list);
  };
  auto program = ProgramAttr::getChecked(
      [&] { return module.emitError(); }, b.getContext(), b.getArrayAttr(inputs),
      b.getArrayAttr(outputs), *counted, b.getArrayAttr(collectives), b.getArrayAttr(undecayed),
      listOf(communicators), listOf(channels), b.getArrayAttr(messages),
      hyper.getDictionary(b.getContext()), optimizer, lrSchedule, accumulate, transfers.toHost,
      transfers.toDevice);
  if (!program)
    return failure();
  return program;
}
