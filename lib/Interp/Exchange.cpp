//===- Exchange.cpp - stages that run at the same time, and their messages --------------------===//

#include "lib/Interp/Exchange.h"
#include "llvm/ADT/STLExtras.h"
#include <thread>

using namespace mlir;
using namespace partita;
using namespace partita::interp;

static std::tuple<int64_t, int64_t, int64_t> keyOf(pipe::ChannelAttr channel) {
  return {channel.getFrom(), channel.getTo(), channel.getNumber()};
}

static pipe::ChannelAttr channelAt(Operation *op) {
  if (auto send = dyn_cast<pipe::SendOp>(op))
    return send.getChannel();
  return cast<pipe::RecvOp>(op).getChannel();
}

LogicalResult Exchange::run(llvm::function_ref<LogicalResult(unsigned)> body) {
  bool failure = false;
  auto one = [&](unsigned own) {
    Lock lock(mutex);
    changed.wait(lock, [&] { return turn == own; });
    if (!stopping) {
      lock.unlock();
      bool bad = failed(body(own));
      lock.lock();
      failure |= bad;
      stopping |= bad;
    }
    stages[own].done = true;
    handOver(own);
  };
  std::vector<std::thread> threads;
  for (unsigned stage = 0; stage < stages.size(); ++stage)
    threads.emplace_back(one, stage);
  for (std::thread &thread : threads)
    thread.join();
  if (failure || stopping)
    return mlir::failure();
  for (auto &[key, channel] : channels)
    if (!channel.underWay.empty())
      return channel.underWay.front().op.emitError()
             << "is never received: " << whyNot(std::get<1>(key));
  return success();
}

bool Exchange::canGoOn(const Stage &stage) {
  if (stage.done)
    return false;
  if (!stage.waitsAt || stopping)
    return true;
  if (auto sum = dyn_cast<pipe::SumOp>(stage.waitsAt))
    return meetings[{sum.getStages().vec(), stage.message}].parts.size() == sum.getStages().size();
  const Channel &channel = channels[keyOf(channelAt(stage.waitsAt))];
  return stage.message <= (isa<pipe::SendOp>(stage.waitsAt) ? channel.received : channel.sent);
}

void Exchange::handOver(unsigned from) {
  auto next = [&] {
    for (unsigned i = 1; i <= stages.size(); ++i)
      if (unsigned stage = (from + i) % stages.size(); canGoOn(stages[stage]))
        return stage;
    return static_cast<unsigned>(stages.size());
  };
  turn = next();
  if (turn == stages.size() && llvm::any_of(stages, [](const Stage &each) { return !each.done; })) {
    reportStandstill();
    stopping = true;
    turn = next();
  }
  changed.notify_all();
}

LogicalResult Exchange::wait(Lock &lock, unsigned own, Operation *op, int64_t message) {
  stages[own].waitsAt = op;
  stages[own].message = message;
  if (!canGoOn(stages[own])) {
    handOver(own);
    changed.wait(lock, [&] { return turn == own; });
  }
  stages[own].waitsAt = nullptr;
  return failure(stopping);
}

std::string Exchange::whyNot(int64_t stage) const {
  if (stage >= static_cast<int64_t>(stages.size()))
    return "there is no stage " + std::to_string(stage);
  return stages[stage].done ? "stage " + std::to_string(stage) + " has returned" : "";
}

std::string Exchange::waitText(unsigned stage) const {
  Operation *op = stages[stage].waitsAt;
  if (auto sum = dyn_cast<pipe::SumOp>(op)) {
    const Meeting &meeting = meetings.at({sum.getStages().vec(), stages[stage].message});
    const int64_t *missing = llvm::find_if(sum.getStages(), [&](int64_t each) {
      return !meeting.parts.count(static_cast<unsigned>(each));
    });
    std::string why = whyNot(*missing);
    return "stage " + std::to_string(stage) + " waits for stage " + std::to_string(*missing) +
           " to come to sum " + std::to_string(stages[stage].message) +
           (why.empty() ? why : ", but " + why);
  }
  pipe::ChannelAttr channel = channelAt(op);
  bool sends = isa<pipe::SendOp>(op);
  int64_t other = sends ? channel.getTo() : channel.getFrom();
  std::string text = "stage " + std::to_string(stage) + " waits for stage " +
                     std::to_string(other) + " to " + (sends ? "receive" : "send") + " message " +
                     std::to_string(stages[stage].message);
  if (channel.getNumber() != 0)
    text += " of channel number " + std::to_string(channel.getNumber());
  std::string why = whyNot(other);
  return why.empty() ? text : text + ", but " + why;
}

/// An error at the first that waits, a note at every other one.
void Exchange::reportStandstill() {
  std::optional<InFlightDiagnostic> error;
  for (unsigned stage = 0; stage < stages.size(); ++stage) {
    if (stages[stage].done)
      continue;
    if (!error)
      error.emplace(stages[stage].waitsAt->emitError()
                    << "no stage can go on: " << waitText(stage));
    else
      error->attachNote(stages[stage].waitsAt->getLoc()) << waitText(stage);
  }
}

LogicalResult Exchange::send(pipe::SendOp op, RankTensors value, bool isAwaited) {
  {
    Lock lock(mutex);
    Channel &channel = channels[keyOf(op.getChannel())];
    channel.underWay.push_back({op, std::move(value)});
    ++channel.sent;
  }
  return isAwaited ? awaitSent(op) : success();
}

LogicalResult Exchange::awaitSent(pipe::SendOp op) {
  Lock lock(mutex);
  int64_t number = channels[keyOf(op.getChannel())].sent;
  return blockingSends && number > 0 ? wait(lock, op.getChannel().getFrom(), op, number)
                                     : success();
}

FailureOr<RankTensors> Exchange::receive(pipe::RecvOp op) {
  Lock lock(mutex);
  Channel &channel = channels[keyOf(op.getChannel())];
  if (failed(wait(lock, op.getChannel().getTo(), op, channel.received + 1)))
    return failure();
  ++channel.received;
  Message message = std::move(channel.underWay.front());
  channel.underWay.pop_front();
  Type sent = message.op.getValue().getType(), expected = op.getType();
  if (sent == expected)
    return std::move(message.value);
  InFlightDiagnostic error = op.emitError();
  error << "message " << channel.received << " is of type " << sent << ", not " << expected;
  error.attachNote(message.op.getLoc()) << "sent here";
  return failure();
}

FailureOr<RankTensors> Exchange::sum(pipe::SumOp op, RankTensors part) {
  Lock lock(mutex);
  auto own = static_cast<unsigned>(*pipe::stageOf(op));
  Stages list = op.getStages().vec();
  int64_t number = ++came[{list, own}];
  Meeting &meeting = meetings[{list, number}];
  meeting.parts[own] = std::move(part);
  if (failed(wait(lock, own, op, number)))
    return failure();
  for (const auto &[stage, other] : meeting.parts)
    if (other.size() != meeting.parts.begin()->second.size() ||
        other.front()->shape != meeting.parts.begin()->second.front()->shape)
      return op.emitError() << "stage " << stage << " brings another shape to sum " << number
                            << " than stage " << meeting.parts.begin()->first;
  RankTensors total;
  for (size_t rank = 0; rank < meeting.parts.begin()->second.size(); ++rank) {
    auto sum = std::make_shared<Tensor>(*meeting.parts.begin()->second[rank]);
    for (const auto &[stage, other] : llvm::drop_begin(meeting.parts))
      sum->add(*other[rank]);
    total.push_back(std::move(sum));
  }
  if (++meeting.left == list.size())
    meetings.erase({list, number});
  return total;
}
