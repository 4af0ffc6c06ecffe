//===- CollectivesToEmitC.cpp - collectives and copies as EmitC -------------------------------===//
//
// Buckets are aggregates, so every call is text. What begins one declares the variable to wait for,
// unless a layer's function had it declared (rt.pending).
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Emit/EmitC/RtToEmitC.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

template <typename Op>
void Converter::collective(Op op, StringRef callee, const std::string &before, StringRef last) {
  std::string line =
      before + callee.str() + "(rank.group(" + axisName(op.getAxis()) + "), {{";
  for (auto [i, count] : llvm::enumerate(op.getCounts()))
    line += (i ? ", {{{}, " : "{{{}, ") + std::to_string(count) + "}";
  line += "}, " + textOf(op, "reason") + last.str() + ");";
  verbatim(op.getLoc(), line, mapped(op.getBuffers()));
}

/// ", blocks, whole" of a transfer, as far as they are not what they usually are.
static std::string usuallyLeftOut(int64_t blocks, int64_t whole) {
  if (whole)
    return ", " + std::to_string(blocks) + ", " + std::to_string(whole);
  return blocks == 1 ? "" : ", " + std::to_string(blocks);
}

/// callee(communicator, {{from, to, count of the part[, blocks]}}, why);
template <typename Op> void Converter::move(Op op, StringRef callee) {
  bool starts = !op.getPending().empty(), ahead = starts && std::is_same_v<Op, rt::AllGatherOp>;
  std::string line = starts ? begins(op, "Pending") : "";
  line += callee.str() + (starts ? "Start" : "") + (ahead ? "(rank.gathers(" : "(rank.group(") +
          axisName(op.getAxis()) + "), {{";
  SmallVector<Value> operands;
  for (auto [i, from, to] : llvm::enumerate(op.getFrom(), op.getTo())) {
    line += (i ? ", {{{}, {}, " : "{{{}, {}, ") + std::to_string(op.getCounts()[i]) +
            usuallyLeftOut(op.getBlocks()[i], op.getWholes()[i]) + "}";
    operands.append({mapped(from), mapped(to)});
  }
  verbatim(op.getLoc(), line + "}, " + textOf(op, "reason") + ");", operands);
}

void Converter::emit(rt::AllReduceOp op) { collective(op, "allReduce", ""); }
void Converter::emit(rt::AllReduceMaxOp op) { collective(op, "allReduce", "", ", Reduce::Max"); }
void Converter::emit(AllReduceStartOp op) {
  collective(op, "allReduceStart", begins(op, "Pending"));
}
void Converter::emit(rt::AllGatherOp op) { move(op, "allGather"); }
void Converter::emit(rt::ReduceScatterOp op) { move(op, "reduceScatter"); }

void Converter::emit(TakePartOp op) {
  std::string whole = op.getWholes()[0] ? ", " + std::to_string(op.getWholes()[0]) : "";
  std::string line = llvm::formatv("takePart(rank.group({0}), {{}, {{}, {1}, {2}{3});",
                                   axisName(op.getAxis()), op.getCounts()[0], op.getBlocks()[0], whole);
  kernel(op.getLoc(), line, {mapped(op.getFrom()[0]), mapped(op.getTo()[0])});
}

void Converter::emit(TransferOp op) {
  bool starts = !op.getPending().empty();
  verbatim(op.getLoc(),
           (starts ? begins(op, "HostCopy") : "") + (op.getToHost() ? "toHost" : "toDevice") +
               (starts ? "Start" : "") + "(rank, {}, {}, " + std::to_string(op.getBytes()) + ");",
           {mapped(op.getTo()), mapped(op.getFrom())});
}
