//===- Stages.cpp - what pipeline stages must agree on ----------------------------------------===//
//
// Passes and people change stages one by one. This file compares the facts that other stages rely
// on: the ranks of a stage, the number of stages, the messages of each channel and the order of the
// passes that send them, and the places of parameters that several have. It also refuses an option
// that no stage can use. Sums are compared whenever the program is verified
// (dialects/Pipe/Sums.h).
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Verify/Stages.h"
#include "dialects/Par/Par.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/IdleOptions.h"
#include "partita/Analysis/Transfers.h"
#include "partita/Stages/Schedule.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace partita;

namespace {

/// The ops of one function that use a channel: those that send, in the stage where it begins, and
/// those that receive.
struct Messages {
  SmallVector<Operation *> sent, received;
};
using ByChannel = llvm::MapVector<std::pair<StringAttr, pipe::ChannelAttr>, Messages>;

} // namespace

static ByChannel findMessages(ArrayRef<ModuleOp> stages) {
  ByChannel messages;
  for (ModuleOp stage : stages)
    for (auto function : stage.getOps<func::FuncOp>())
      function.walk([&, name = function.getSymNameAttr()](Operation *op) {
        if (auto send = dyn_cast<pipe::SendOp>(op))
          messages[{name, send.getChannel()}].sent.push_back(op);
        else if (auto receive = dyn_cast<pipe::RecvOp>(op))
          messages[{name, receive.getChannel()}].received.push_back(op);
      });
  return messages;
}

static Type typeOf(Operation *op) {
  return isa<pipe::SendOp>(op) ? op->getOperand(0).getType() : op->getResult(0).getType();
}

/// Returns the number of values of each type in one call of the function.
static llvm::MapVector<Type, int64_t> count(ArrayRef<Operation *> ops) {
  llvm::MapVector<Type, int64_t> counts;
  for (Operation *op : ops)
    counts[typeOf(op)] += analysis::timesOf(op);
  return counts;
}

static std::string text(const llvm::MapVector<Type, int64_t> &counts) {
  std::string result;
  llvm::raw_string_ostream os(result);
  for (auto [type, times] : counts)
    os << (result.empty() ? "" : " and ") << times << (times == 1 ? " value of " : " values of ")
       << type;
  return result.empty() ? "nothing" : result;
}

/// Returns whether the stages agree: values arrive in the order in which they were sent. One stage
/// may have taken its last micro-batch out of the loop and the other not: then only the number of
/// values of each type is known without running them.
static bool areReceived(const Messages &messages) {
  llvm::MapVector<Type, int64_t> sent = count(messages.sent), received = count(messages.received);
  if (sent.size() != received.size() ||
      llvm::any_of(sent, [&](auto &each) { return received.lookup(each.first) != each.second; }))
    return false;
  auto runAlike = [](auto pair) {
    auto [a, b] = pair;
    return analysis::timesOf(a) == analysis::timesOf(b);
  };
  auto areAlike = [](auto pair) {
    auto [a, b] = pair;
    return typeOf(a) == typeOf(b);
  };
  auto pairs = llvm::zip(messages.sent, messages.received);
  return messages.sent.size() != messages.received.size() || !llvm::all_of(pairs, runAlike) ||
         llvm::all_of(pairs, areAlike);
}

static LogicalResult checkMessages(ArrayRef<ModuleOp> stages, StringRef after) {
  for (auto &[key, messages] : findMessages(stages)) {
    if (areReceived(messages))
      continue;
    auto [function, channel] = key;
    Operation *op = messages.sent.empty() ? messages.received.front() : messages.sent.front();
    InFlightDiagnostic error =
        op->emitOpError() << "over " << channel << ": stage " << channel.getFrom() << " sends "
                          << text(count(messages.sent)) << " in a call of @" << function.getValue()
                          << ", and stage " << channel.getTo() << " receives "
                          << text(count(messages.received)) << " after phase '" << after << "'";
    if (!messages.sent.empty() && !messages.received.empty())
      error.attachNote(messages.received.front()->getLoc()) << "received here";
    return error;
  }
  return success();
}

/// The program's mesh and cuts, which say what ranks there are and which layers each has, are
/// repeated on each stage.
static LogicalResult checkLayout(ModuleOp program, ArrayRef<ModuleOp> stages, StringRef after) {
  for (auto [number, each] : llvm::enumerate(stages)) {
    ModuleOp stage = each;
    if (pipe::stageOf(stage) != int64_t(number) ||
        pipe::stageCount(stage) != int64_t(stages.size()))
      return stage.emitOpError() << "is stage " << *pipe::stageOf(stage) << " of "
                                 << pipe::stageCount(stage).value_or(0) << ", expected stage "
                                 << number << " of " << stages.size() << " after phase '" << after
                                 << "'";
    for (StringRef name :
         {par::ParDialect::kMesh, pipe::PipeDialect::kAxis, pipe::PipeDialect::kCuts}) {
      auto said = [&](Attribute value) {
        std::string text = "no " + name.str();
        if (value)
          llvm::raw_string_ostream(text = name.str() + " ") << value;
        return text;
      };
      if (Attribute own = stage->getAttr(name), its = program->getAttr(name); own != its)
        return stage.emitOpError()
               << "is stage " << number << " and has " << said(own) << ", but the program has "
               << said(its) << " after phase '" << after << "'";
    }
  }
  return success();
}

/// The numbers of parameters and states in the program's tables, by which their initial values are
/// drawn, are those of its stages together (pipe-agree), so each stage lists what others have, too.
static LogicalResult checkLists(ArrayRef<ModuleOp> stages, StringRef after) {
  for (ModuleOp stage : stages)
    for (StringRef name : {pipe::PipeDialect::kParameters, pipe::PipeDialect::kParameterStates}) {
      auto list = stage->getAttrOfType<ArrayAttr>(name);
      for (Operation &op : *stage.getBody()) {
        auto state = dyn_cast<train::StateOp>(op);
        if (name == pipe::PipeDialect::kParameters ? !isa<train::ParameterOp>(op)
                                                   : !state || !state.getOf())
          continue;
        auto symbol = FlatSymbolRefAttr::get(SymbolTable::getSymbolName(&op));
        if (!list || !llvm::is_contained(list, symbol))
          return op.emitOpError() << symbol << " is not in " << name << " of stage "
                                  << *pipe::stageOf(stage) << " after phase '" << after << "'";
      }
    }
  ModuleOp first = stages.front();
  for (ModuleOp stage : stages.drop_front())
    for (StringRef name : {pipe::PipeDialect::kParameters, pipe::PipeDialect::kParameterStates,
                           pipe::PipeDialect::kHyper})
      if (stage->getAttr(name) != first->getAttr(name))
        return stage.emitOpError() << "is stage " << *pipe::stageOf(stage) << " and has "
                                   << (stage->hasAttr(name) ? "another " : "no ") << name
                                   << (stage->hasAttr(name) ? " than stage " : ", unlike stage ")
                                   << *pipe::stageOf(first) << " after phase '" << after << "'";
  return success();
}

/// Every symbol of the lists is of some stage: others are numbered after it.
static LogicalResult checkListed(ArrayRef<ModuleOp> stages, StringRef after) {
  for (StringRef name : {pipe::PipeDialect::kParameters, pipe::PipeDialect::kParameterStates})
    if (auto list = ModuleOp(stages.front())->getAttrOfType<ArrayAttr>(name))
      for (auto symbol : list.getAsRange<FlatSymbolRefAttr>())
        if (llvm::none_of(stages, [&](ModuleOp stage) {
              return SymbolTable::lookupSymbolIn(stage, symbol.getAttr());
            }))
          return ModuleOp(stages.front()).emitOpError()
                 << name << " lists " << symbol << ", which no stage has after phase '" << after
                 << "'";
  return success();
}

/// The program's tables have one offset for a parameter or state, whatever stages have it.
static LogicalResult checkOffsets(ArrayRef<ModuleOp> stages, StringRef after) {
  llvm::MapVector<StringAttr, Operation *> first;
  for (ModuleOp stage : stages)
    for (Operation &op : *stage.getBody()) {
      auto state = dyn_cast<train::StateOp>(op);
      if (!isa<train::ParameterOp>(op) && !(state && state.getOf()))
        continue;
      Operation *&known = first[SymbolTable::getSymbolName(&op)];
      if (!known) {
        known = &op;
        continue;
      }
      StringRef name = pipe::PipeDialect::kOffset;
      if (op.hasAttr(name) && op.getAttr(name) == known->getAttr(name))
        continue;
      InFlightDiagnostic error = op.emitOpError() << "is of several stages, which need one " << name
                                                  << " for it, after phase '" << after << "'";
      error.attachNote(known->getLoc()) << "stage " << *pipe::stageOf(known) << "'s is here";
      return error;
    }
  return success();
}

/// Together, the orders of the stages' loops are a schedule that finishes. A loop without a backward
/// region runs both passes of a micro-batch in one slot.
static LogicalResult checkOrders(ArrayRef<ModuleOp> stages, StringRef after) {
  pipe::Positions layout = pipe::positionsOf(stages.front()).value_or(pipe::Positions());
  stages::Schedule schedule{static_cast<int>(layout.stages),
                            1,
                            static_cast<int>(layout.chunks),
                            layout.isWave,
                            false,
                            {}};
  for (ModuleOp stage : stages) {
    SmallVector<train::AccumulateOp> loops;
    if (auto step = train::lookup<func::FuncOp>(stage, train::EntryPoint::TrainStep))
      step.walk([&](train::AccumulateOp loop) { loops.push_back(loop); });
    if (loops.size() != 1 || !loops[0].getOrder())
      return success();
    std::vector<stages::Slot> &slots = schedule.slots.emplace_back();
    for (const train::Slot &slot : loops[0].getOrder()->getSlots()) {
      slots.push_back(slot);
      if (!loops[0].hasBackward())
        slots.push_back({{train::PassKind::Backward, slot.chunk}, slot.microBatch});
    }
  }
  schedule.deriveFromSlots();
  if (std::string problem = stages::findProblem(schedule); !problem.empty())
    return stages.front()->getParentOfType<ModuleOp>().emitOpError()
           << "has stages whose orders do not fit together after phase '" << after
           << "': " << problem;
  return success();
}

LogicalResult partita::checkStagesAgree(ModuleOp program, StringRef after) {
  SmallVector<ModuleOp> stages = pipe::stagesOf(program);
  if (stages.front() == program) // a stage alone, or a program without stages
    return success();
  return success(succeeded(checkLayout(program, stages, after)) &&
                 succeeded(checkLists(stages, after)) && succeeded(checkListed(stages, after)) &&
                 succeeded(checkOffsets(stages, after)) && succeeded(checkOrders(stages, after)) &&
                 succeeded(checkMessages(stages, after)) &&
                 succeeded(analysis::checkIdle(program)));
}
