//===- Placed.cpp - where the results of pipe ops are -------------------------------------------===//

#include "dialects/Pipe/Pipe.h"

using namespace mlir;
using namespace partita;
using namespace partita::pipe;

StringRef pipe::positionNoun(const Positions &layout) {
  return layout.chunks > 1 ? "position" : "stage";
}

Holders pipe::onStages(const Holders &holders, const Positions &layout) {
  if (holders.isEverywhere())
    return holders;
  Holders stages{{}, false};
  for (int64_t position = 0; position < layout.count(); ++position)
    if (holders.has(position))
      stages.positions.set(layout.stageOf(position));
  stages.partial = holders.partial && !stages.isOne();
  return stages;
}

static StringRef nounOf(Operation *op) {
  return positionNoun(positionsOf(op).value_or(Positions()));
}

static std::string at(Operation *op, int64_t position) {
  return (nounOf(op) + " " + Twine(position)).str();
}

/// Sets why an op cannot have its operand.
static std::nullopt_t refuse(Operation *op, const Holders &from, std::string &problem,
                             const Twine &what) {
  problem = ("expects " + what + ", but it is " +
             (from.partial || from.isEverywhere() ? "" : "complete ") + from.text(nounOf(op)))
                .str();
  return std::nullopt;
}

std::optional<Holders> MoveOp::placeResults(ArrayRef<Holders> operands, std::string &problem) {
  const Holders &from = operands[0];
  if (!from.has(getChannel().getFrom()) || from.partial)
    return refuse(*this, from, problem, "a value on " + at(*this, getChannel().getFrom()));
  return Holders::only(getChannel().getTo());
}

std::optional<Holders> PinOp::placeResults(ArrayRef<Holders> operands, std::string &problem) {
  if (!operands[0].has(getPosition()) || operands[0].partial)
    return refuse(*this, operands[0], problem, "a value on " + at(*this, getPosition()));
  return Holders::only(getPosition());
}

SmallVector<Value> PinOp::cutTo(OpBuilder &, const StageShare &stage) {
  return {stage.copyOf(getValue())};
}

std::optional<Holders> ShareOp::placeResults(ArrayRef<Holders> operands, std::string &problem) {
  Holders own = Holders::on(getStages());
  if (operands[0].partial || operands[0].positions != own.positions)
    return refuse(*this, operands[0], problem, "a value " + own.text(nounOf(*this)));
  return own;
}

SmallVector<Value> ShareOp::cutTo(OpBuilder &, const StageShare &stage) {
  return {stage.copyOf(getValue())};
}

int64_t SumOp::getRankCount() {
  std::optional<Positions> layout = positionsOf(*this);
  return layout
             ? static_cast<int64_t>(onStages(Holders::on(getStages()), *layout).positions.count())
             : static_cast<int64_t>(getStages().size());
}

std::optional<Holders> SumOp::placeResults(ArrayRef<Holders> operands, std::string &problem) {
  const Holders &from = operands[0];
  Holders own = Holders::on(getStages());
  if ((!from.partial && !from.isOne()) || !from.isWithin(own))
    return refuse(*this, from, problem, "a partial sum " + own.text(nounOf(*this)));
  bool isAll =
      static_cast<int64_t>(getStages().size()) == positionsOf(*this).value_or(Positions()).count();
  return isAll ? Holders() : own; // a state without a parameter may take it
}

std::optional<Holders> CopiesOp::placeResults(ArrayRef<Holders> operands, std::string &problem) {
  Holders all{{}, false};
  for (auto [copy, position] : llvm::zip(operands, getStages())) {
    if (!copy.has(position) || copy.partial)
      return refuse(*this, copy, problem, "a value on " + at(*this, position));
    all.positions.set(position);
  }
  // Each stage has one copy, which its other positions share.
  Positions layout = positionsOf(*this).value_or(Positions());
  bool isOnAll = onStages(all, layout).positions.count() == static_cast<size_t>(layout.stages);
  return isOnAll ? Holders() : all;
}

SmallVector<Value> CopiesOp::cutTo(OpBuilder &, const StageShare &stage) {
  for (Value copy : getValues())
    if (stage.has(copy))
      return {stage.copyOf(copy)};
  return {};
}
