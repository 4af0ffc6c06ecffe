//===- ProgramTables.cpp - what the program's tables say of inputs, outputs and updates -------===//

#include "lib/Lower/ProgramTables.h"
#include "dialects/Par/Placement.h"
#include "dialects/Rt/Names.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Transfers.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

class Collector {
public:
  Collector(ModuleOp module, ModuleLowering &shared)
      : module(module), shared(shared), b(module.getContext()) {}

  FailureOr<ProgramTables> run() {
    module.walk([&](Operation *op) { findVocabulary(op); });
    for (StringRef name : {"train_step", "eval_step", "forward"})
      if (auto function = module.lookupSymbol<func::FuncOp>(name))
        if (failed(collectInputs(function)))
          return failure();
    if (auto forward = module.lookupSymbol<func::FuncOp>("forward"))
      collectOutputs(forward);
    collectUpdate();
    collectReasons();
    collectTransfers();
    return std::move(tables);
  }

private:
  /// The argument of a function that a value is a view, a piece or a micro-batch of, perhaps with
  /// what is known put to its ends (labels moved by one).
  static BlockArgument sourceOf(Value value) {
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

  /// Tokens index the table's rows, labels the logits' last dimension or a classifier's rows.
  void findVocabulary(Operation *op) {
    Value tokens;
    int64_t size = 0;
    if (auto embedding = dyn_cast<tx::EmbeddingOp>(op)) {
      tokens = embedding.getIds();
      size = par::wholeType(embedding.getTable().getType()).getDimSize(0);
    } else if (isa<tx::CrossEntropyOp, tx::TokenLossOp>(op)) {
      tokens = op->getOperand(1);
      size = par::wholeType(op->getOperand(0).getType()).getShape().back();
    } else if (isa<tx::ClassifierLossOp, tx::ClassifierLossGradOp>(op)) {
      tokens = op->getOperand(2);
      size = par::wholeType(op->getOperand(1).getType()).getDimSize(0);
    } else {
      return;
    }
    if (BlockArgument argument = sourceOf(tokens)) {
      int64_t &known = vocabulary[argument];
      known = known ? std::min(known, size) : size;
      if (auto ignored = op->getAttrOfType<IntegerAttr>("ignore_index"))
        filler[argument] = ignored.getInt();
    }
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
               << " has no " << train::TrainDialect::kRole << "; nobody knows how to fill it";
      auto type = cast<RankedTensorType>(argument.getType());
      if (function.getName() == "train_step") {
        accumulate = type.getDimSize(0);
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
      tables.inputs.push_back(b.getDictionaryAttr(
          {b.getNamedAttr("name", b.getStringAttr(name)),
           b.getNamedAttr("role", b.getStringAttr(role)),
           b.getNamedAttr("type", TypeAttr::get(type)),
           b.getNamedAttr("batched", b.getBoolAttr(batched)),
           b.getNamedAttr("filler", b.getI64IntegerAttr(declared ? declared.getInt()
                                                                 : filler.lookup(argument))),
           b.getNamedAttr("vocabulary", b.getI64IntegerAttr(vocabulary.lookup(argument)))}));
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
      tables.outputs.push_back(b.getDictionaryAttr(
          {b.getNamedAttr("name", name ? name : b.getStringAttr("output" + std::to_string(i))),
           b.getNamedAttr("type", TypeAttr::get(result.getType())),
           b.getNamedAttr("offset", b.getI64IntegerAttr(at.getOffset()))}));
    }
  }

  void collectUpdate() {
    NamedAttrList hyper;
    if (shared.learningRate)
      hyper.set("learningRate", b.getF64FloatAttr(*shared.learningRate));
    for (auto &[field, value] : shared.hyper)
      hyper.set(field, b.getF64FloatAttr(value));
    tables.entries.set("hyper", hyper.getDictionary(b.getContext()));
    StringRef optimizer = "none";
    SmallVector<Attribute> undecayed;
    module.walk([&](train::OptimizerInterface update) {
      optimizer = update->getName().stripDialect();
      FlatSymbolRefAttr parameter = train::updatedParameter(update);
      if (parameter && update.getHyper("decay") == 0)
        undecayed.push_back(parameter);
    });
    tables.entries.set("schedule", b.getStringAttr(shared.schedule));
    tables.entries.set("optimizer", b.getStringAttr(optimizer));
    tables.entries.set("undecayed", b.getArrayAttr(undecayed));
    tables.entries.set("accumulate", b.getI64IntegerAttr(accumulate));
  }

  void collectTransfers() {
    auto step = module.lookupSymbol<func::FuncOp>("train_step");
    if (!step)
      return;
    analysis::Transfers transfers = analysis::Transfers::of(step);
    tables.entries.set("to_host", b.getI64IntegerAttr(transfers.toHost));
    tables.entries.set("to_device", b.getI64IntegerAttr(transfers.toDevice));
  }

  /// As JSON text, which the manifest takes over as it is.
  void collectReasons() {
    SmallVector<Attribute> records;
    for (const analysis::Collective &collective : analysis::collectivesOf(module))
      records.push_back(
          b.getStringAttr(llvm::formatv("{0}", llvm::json::Value(collective.toJson())).str()));
    tables.entries.set("explained", b.getArrayAttr(records));
  }

  ModuleOp module;
  ModuleLowering &shared;
  Builder b;
  ProgramTables tables;
  int64_t accumulate = 1;
  llvm::DenseMap<Value, int64_t> vocabulary, filler;
  llvm::StringMap<int64_t> indexOf;
};

/// The runtime's name of what an op has all ranks do together; none for other ops.
std::optional<StringRef> collectiveKind(Operation *op) {
  if (isa<rt::AllReduceOp, rt::AllReduceMaxOp, rt::AllReduceStartOp>(op))
    return StringRef("all_reduce");
  if (isa<rt::AllGatherOp>(op))
    return StringRef("all_gather");
  if (isa<rt::ReduceScatterOp>(op))
    return StringRef("reduce_scatter");
  return {};
}

/// Bytes by the runtime's convention (comm.h): buckets, or the whole of which ranks have parts, all
/// of one element type.
int64_t wireBytes(Operation *op) {
  int64_t elements = 0;
  if (auto counts = op->getAttrOfType<DenseI64ArrayAttr>("counts"))
    for (int64_t count : counts.asArrayRef())
      elements += count;
  auto moved = [&](auto move) {
    elements = 0;
    for (auto [blocks, count] : llvm::zip(move.getBlocks(), move.getCounts()))
      elements += par::MeshAttr::of(op).sizeOf(move.getAxis()) * blocks * count;
  };
  if (auto gather = dyn_cast<rt::AllGatherOp>(op))
    moved(gather);
  if (auto scatter = dyn_cast<rt::ReduceScatterOp>(op))
    moved(scatter);
  auto buffer = cast<BufferType>(op->getOperand(0).getType());
  return elements * elementBytes(buffer.getElement());
}

/// How often an op runs in one call of its function.
int64_t timesOf(Operation *op) {
  int64_t times = 1;
  for (auto loop = op->getParentOfType<rt::ForOp>(); loop;
       loop = loop->getParentOfType<rt::ForOp>())
    times *= loop.getCount();
  return times;
}

/// What one rank issues in one call of a function: an entry per kind, axis and reason, in order of
/// first use.
void takeCensus(func::FuncOp function, Builder &b, SmallVector<Attribute> &entries) {
  SmallVector<Census> census;
  function.walk([&](Operation *op) {
    std::optional<StringRef> kind = collectiveKind(op);
    if (!kind)
      return;
    int64_t bytes = wireBytes(op), times = timesOf(op);
    StringRef axis = op->getAttrOfType<StringAttr>("axis").getValue();
    StringRef reason = op->getAttrOfType<StringAttr>("reason").getValue();
    Census *entry = llvm::find_if(
        census, [&](Census &e) { return e.kind == *kind && e.axis == axis && e.reason == reason; });
    if (entry == census.end())
      entry = &census.emplace_back(Census{kind->str(), axis.str(), reason.str(), {}, 0, 0});
    entry->calls += times;
    entry->bytes += times * bytes;
    for (Value buffer : op->getOperands())
      entry->tensors.push_back(b.getStringAttr(rawName(buffer.getLoc())));
  });
  for (const Census &entry : census)
    entries.push_back(
        b.getDictionaryAttr({b.getNamedAttr("function", function.getNameAttr()),
                             b.getNamedAttr("kind", b.getStringAttr(entry.kind)),
                             b.getNamedAttr("axis", b.getStringAttr(entry.axis)),
                             b.getNamedAttr("reason", b.getStringAttr(entry.reason)),
                             b.getNamedAttr("tensors", b.getArrayAttr(entry.tensors)),
                             b.getNamedAttr("calls", b.getI64IntegerAttr(entry.calls)),
                             b.getNamedAttr("bytes", b.getI64IntegerAttr(entry.bytes))}));
}

/// The axes over which gathers begin ahead of their use: such axes have a communicator more.
ArrayAttr axesOfGathersAhead(ModuleOp module) {
  llvm::SetVector<Attribute> axes;
  module.walk([&](rt::AllGatherOp gather) {
    if (!gather.getPending().empty())
      axes.insert(gather.getAxisAttr());
  });
  return ArrayAttr::get(module.getContext(), axes.getArrayRef());
}

} // namespace

FailureOr<ProgramTables> rt::collectTables(ModuleOp module, ModuleLowering &shared) {
  return Collector(module, shared).run();
}

DictionaryAttr ProgramTables::asAttribute(ModuleOp module) {
  Builder b(module.getContext());
  entries.set("inputs", b.getArrayAttr(inputs));
  entries.set("outputs", b.getArrayAttr(outputs));
  SmallVector<Attribute> collectives;
  for (auto function : module.getOps<func::FuncOp>())
    takeCensus(function, b, collectives);
  entries.set("collectives", b.getArrayAttr(collectives));
  entries.set("gathers_ahead", axesOfGathersAhead(module));
  return entries.getDictionary(module.getContext());
}
