//===- LowerOrder.cpp - loops with an order: functions of passes, and the schedule's loops ------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "lib/Lower/FunctionLowering.h"
#include "partita/Analysis/Communicators.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

LogicalResult FunctionLowering::lowerLast(Operation *op, int64_t number) {
  llvm::SaveAndRestore otherMicroBatches(hasChanges); // do not run what is made here
  LogicalResult lowered = success();
  for (Operation &made : madeBy([&] { return lowerOp(op); }, lowered))
    if (!isPointer(&made) && !isa<rt::PollOp>(made))
      made.setAttr(RtDialect::kLast, builder.getI64IntegerAttr(number));
  return lowered;
}

LogicalResult FunctionLowering::lowerOrder(train::AccumulateOp loop) {
  SmallVector<StringRef> names; // by region
  SmallVector<PendingsAttr> pendings;
  for (Region &region : loop->getRegions()) {
    FailureOr<StringRef> name = lowerPass(loop, region);
    if (failed(name))
      return failure();
    names.push_back(*name);
    pendings.push_back(pendingsOf(region, l));
  }
  l.begin(loop);
  for (PendingsAttr ofPass : pendings)
    if (ofPass)
      l.create<PendingsOp>(ofPass);
  auto repeat = [&](int64_t times, int64_t step, SmallVectorImpl<Value> &micro) {
    if (times == 1)
      return;
    auto repeated = l.create<ForOp>(times, step);
    micro.push_back(repeated.getBody().front().getArgument(0));
    builder.setInsertionPoint(repeated.getBody().front().getTerminator());
  };
  for (const train::OrderAttr::Run &run : loop.getOrder()->getRuns()) {
    OpBuilder::InsertionGuard guard(builder);
    SmallVector<Value> group;
    repeat(run.times, run.step, group);
    for (const train::OrderAttr::Part &part : run.parts) {
      OpBuilder::InsertionGuard inner(builder);
      SmallVector<Value> micro(group);
      repeat(part.times, 1, micro);
      for (train::Slot slot : part.slots)
        l.create<RunPassOp>(names[*loop.findPass(slot.pass())], slot.microBatch, micro,
                            pendings[*loop.findPass(slot.pass())]);
    }
  }
  for (Region &region : loop->getRegions())
    awaitSent(region);
  lastLayer.reset();
  return success();
}

PendingsAttr FunctionLowering::pendingsOf(Region &region, Lowering &lowering) {
  SmallVector<Operation *> starts;
  for (auto start : region.getOps<AsyncStartInterface>())
    if (start->hasAttr(train::TrainDialect::kLast))
      starts.push_back(start);
  if (starts.empty())
    return {};
  auto pendings = PendingsAttr::get(region.getContext(), lowering.uniqueName("begun"),
                                    static_cast<int64_t>(starts.size()));
  for (auto [number, start] : llvm::enumerate(starts))
    lowering.setPending(start, pendings.at(static_cast<int64_t>(number)));
  return pendings;
}

std::string FunctionLowering::nameOf(train::AccumulateOp loop, Region &region,
                                     StringRef separator) {
  std::string name = loop.getPass(loop.numberOf(region)).text(separator);
  bool joined = !loop.hasBackward() && llvm::any_of(region.front(), [](Operation &op) {
    return provenance::isBackward(&op);
  });
  return joined ? name + separator.str() + "backward" : name;
}

FailureOr<StringRef> FunctionLowering::lowerPass(train::AccumulateOp loop, Region &region) {
  auto memory = loop->getAttrOfType<InFlightAttr>(RtDialect::kInFlight);
  if (!memory)
    return loop.emitOpError() << "has no " << RtDialect::kInFlight << "; run plan-memory first";
  OpBuilder at(to);
  std::string name = (to.getName() + "_" + nameOf(loop, region, "_")).str();
  auto made =
      func::FuncOp::create(at, loop.getLoc(), name, at.getFunctionType({at.getI64Type()}, {}));
  SymbolTable::setSymbolVisibility(made, SymbolTable::Visibility::Public);
  std::optional<train::EntryPoint> entry = train::entryPointOf(from);
  made->setAttr(RtDialect::kPassOf,
                entry ? Attribute(train::EntryPointAttr::get(at.getContext(), *entry))
                      : at.getUnitAttr());
  FunctionLowering pass(l.shared, from, made);
  pass.marksLayers = true; // failures name slots on all targets
  if (PendingsAttr pendings = pendingsOf(region, pass.l))
    made->setAttr(RtDialect::kPendings, pendings);
  pass.l.begin(loop);
  Value micro = made.getArgument(0);
  pass.l.create<BeginPassOp>(micro, memory, nameOf(loop, region, " "));
  pass.awaitSent(region);
  if (failed(pass.lowerRegion(loop, region, micro)))
    return failure();
  func::ReturnOp::create(pass.builder, loop.getLoc());
  return made.getName();
}

void FunctionLowering::awaitSent(Region &region) {
  llvm::SmallSetVector<pipe::ChannelAttr, 4> channels;
  region.walk([&](pipe::SendOp send) { channels.insert(send.getChannel()); });
  for (pipe::ChannelAttr channel : channels)
    l.create<AwaitSentOp>(analysis::channelOf(channel));
}
