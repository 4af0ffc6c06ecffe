//===- CollectivesToEmitC.cpp - converts collectives and copies to EmitC ----------------------===//
//
// Buckets are aggregates, so every call is text. A start declares the variable to wait for, unless
// it is declared already (rt.pending).
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Emit/EmitC/Converter.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

/// Returns the arguments ", blocks, full" of a transfer, without trailing defaults.
static std::string usuallyLeftOut(int64_t blocks, int64_t full) {
  if (full)
    return ", " + std::to_string(blocks) + ", " + std::to_string(full);
  return blocks == 1 ? "" : ", " + std::to_string(blocks);
}

/// Emits call(communicator, {{buffer, count}}, why), or for transfers call(communicator, {{from,
/// to, count of the part[, blocks]}}, why).
void Converter::convertExchange(ExchangeInterface op) {
  const partita_rt::CollectiveRow &row = op.getRow();
  bool starts = op.isStart();
  std::string line = starts ? begins(op, "Pending") : "";
  line += std::string(row.call) + (starts ? "Start" : "") + "(rank.group(" +
          communicatorName(op.getCommunicatorAttr()) + "), {{";
  SmallVector<Value> operands;
  for (auto [i, from, to] : llvm::enumerate(op.getSources(), op.getTargets())) {
    line += i ? ", {{{}, " : "{{{}, ";
    operands.push_back(mapped(from));
    if (!row.inPlace) {
      line += "{}, ";
      operands.push_back(mapped(to));
    }
    line +=
        std::to_string(op.getCounts()[i]) + usuallyLeftOut(op.blocksOf(i), op.fullSizeOf(i)) + "}";
  }
  line += "}, " + textOf(op, "reason");
  if (!op.getVariant().empty())
    line += ", " + op.getVariant().str();
  verbatim(op->getLoc(), line + ");", operands);
}

void Converter::emit(TakePartOp op) {
  std::string full = op.getFullSize() ? ", " + std::to_string(op.getFullSize()) : "";
  std::string line =
      llvm::formatv("takeShard({{{{rank.coordinates[{0}], {1}{5}}, {{}, {{}, {2}, {3}{4});",
                    axisName(op.getAxis()), op.getRanks(), op.getCount(), op.getBlocks(), full,
                    op.getMirrored() ? ", /*mirrored=*/true" : "");
  kernel(op.getLoc(), line, {mapped(op.getFrom()), mapped(op.getTo())});
}

void Converter::emit(PutPartOp op) {
  std::string line = llvm::formatv(
      "putShard({{{{rank.coordinates[{0}], {1}{4}}, {{}, {{}, {2}, {3});", axisName(op.getAxis()),
      op.getRanks(), op.getCount(), op.getBlocks(), op.getMirrored() ? ", /*mirrored=*/true" : "");
  kernel(op.getLoc(), line, {mapped(op.getFrom()), mapped(op.getTo())});
}

/// Emits send(rank, channel, {{buffer, count}}, why), in a pass with the number of the micro-batch.
template <typename Op> void Converter::message(Op op, StringRef function) {
  SmallVector<Value> operands = {mapped(op.getBuffer())};
  if (op.getMicro())
    operands.push_back(mapped(op.getMicro()));
  verbatim(op.getLoc(),
           function.str() + "(rank, " + channelName(op.getChannel()) + ", {{{{{}, " +
               std::to_string(op.getCount()) + "}}, " + textOf(op, "reason") +
               (op.getMicro() ? ", {});" : ");"),
           operands);
}
void Converter::emit(SendOp op) { message(op, op.getMicro() ? "sendLater" : "send"); }
void Converter::emit(ReceiveOp op) { message(op, "receive"); }

void Converter::emit(TransferOp op) {
  bool starts = !op.getPending().empty();
  verbatim(op.getLoc(),
           (starts ? begins(op, "HostCopy") : "") + (op.getToHost() ? "toHost" : "toDevice") +
               (starts ? "Start" : "") + "(rank, {}, {}, " + std::to_string(op.getBytes()) + ");",
           {mapped(op.getTo()), mapped(op.getFrom())});
}
