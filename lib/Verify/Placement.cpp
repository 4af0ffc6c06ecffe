//===- Placement.cpp - what the module of all stages says of them -----------------------------===//
//
// Passes and reports take the layers of a stage from pipe.cuts and train.work, and the name of the
// schedule from train.schedule. This file compares these with the ops and their order.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Tensors.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Verify/Stages.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/StageMap.h"
#include "partita/Stages/Schedule.h"
#include <map>

using namespace mlir;
using namespace partita;
using pipe::PipeDialect;
using train::LayerAttr;
using train::TrainDialect;

/// The layers of the cuts are those whose work is recorded.
static LogicalResult checkWork(ModuleOp program, ArrayRef<int64_t> cuts, StringRef after) {
  int64_t layers = train::layersOf(program);
  if (layers > cuts.back())
    return success();
  return program.emitOpError() << "has layer " << cuts.back() << " in " << PipeDialect::kCuts
                               << ", and " << TrainDialect::kWork << " is of " << layers
                               << " layers after phase '" << after
                               << "'; note-flops records what each layer computes";
}

/// The first op of each layer is where the cuts have the layer; others follow their operands. Reads
/// are not asked: a parameter that nothing computes with is on the first stage.
static LogicalResult checkCuts(ModuleOp program, ArrayRef<int64_t> cuts, StringRef after) {
  for (auto function : program.getOps<func::FuncOp>()) {
    if (function.isDeclaration() || train::is(function, train::EntryPoint::Init))
      continue;
    FailureOr<StageMap> map = StageMap::of(function);
    if (failed(map))
      return failure();
    std::map<int64_t, std::pair<int64_t, Operation *>> first; // by layer
    function.walk([&](Operation *op) {
      LayerAttr layer = LayerAttr::of(op);
      Holders holders = map->of(op);
      bool isComputed = isa_and_nonnull<tx::TxDialect>(op->getDialect());
      if (!isComputed || !layer || layer.getNumber() < 0 || provenance::isBackward(op) ||
          !holders.isOne())
        return;
      int64_t position = 0;
      while (!holders.has(position))
        ++position;
      auto [known, isNew] = first.try_emplace(layer.getNumber(), position, op);
      if (!isNew && position < known->second.first)
        known->second = {position, op};
    });
    for (auto &[layer, at] : first) {
      auto [position, op] = at;
      int64_t expected = llvm::upper_bound(cuts, layer) - cuts.begin() - 1;
      StringRef noun = pipe::positionNoun(map->layout());
      if (position != expected)
        return op->emitOpError() << "is of layer " << layer << " and on " << noun << ' ' << position
                                 << ", but " << PipeDialect::kCuts << " [" << cuts
                                 << "] put that layer on " << noun << ' ' << expected
                                 << " after phase '" << after << "'";
    }
  }
  return success();
}

/// A schedule that is no file's has the orders that its name stands for.
static LogicalResult checkSchedule(ModuleOp program, StringRef after) {
  auto noted = program->getAttrOfType<train::ScheduleAttr>(TrainDialect::kSchedule);
  if (!noted || stages::isFile(noted.getName()))
    return success();
  stages::Schedule own = stages::fromAttribute(noted, *pipe::positionsOf(program));
  std::string problem;
  std::optional<stages::Schedule> named =
      stages::makeSchedule(noted.getName(), own.stages, own.microBatches, own.chunks, problem);
  if (!named || named->layout() != own.layout() || named->slots != own.slots)
    return program.emitOpError()
           << "has " << TrainDialect::kSchedule << " '" << noted.getName() << "'"
           << (named ? ", which has other orders; name it as a file, such as mine.json"
                     : ": " + problem)
           << " after phase '" << after << "'";
  auto spans = program->getAttrOfType<ArrayAttr>(TrainDialect::kSpans);
  if (spans && own.splitsBackward != llvm::any_of(spans.getAsRange<train::SpanAttr>(),
                                                  [](auto row) { return row.getSplits(); }))
    return program.emitOpError() << "has " << TrainDialect::kSpans << " with"
                                 << (own.splitsBackward ? "out" : "") << " splits, and "
                                 << TrainDialect::kSchedule
                                 << (own.splitsBackward ? " " : " never ")
                                 << "splits the backward pass after phase '" << after << "'";
  return success();
}

LogicalResult partita::checkPlacement(ModuleOp program, StringRef after) {
  auto cuts = program->getAttrOfType<DenseI64ArrayAttr>(PipeDialect::kCuts);
  if (!cuts || pipe::stageOf(program))
    return success();
  if (failed(checkWork(program, cuts, after)))
    return failure();
  if (!program->hasAttr(PipeDialect::kStages)) // cut: what crosses stages is checked there
    return success();
  return success(succeeded(checkCuts(program, cuts, after)) &&
                 succeeded(checkSchedule(program, after)));
}
