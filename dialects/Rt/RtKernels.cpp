//===- RtKernels.cpp - see RtKernels.td -------------------------------------------------------===//

#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Rt/Target.h"
#include "runtime/include/partita_rt/cuda/shapes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

/// Returns the runtime's type for a buffer's elements.
static partita_rt::DType typeOf(Value buffer) {
  Type element = cast<BufferType>(buffer.getType()).getElement();
  return element.isF16()                  ? partita_rt::DType::Float16
         : element.isBF16()               ? partita_rt::DType::BFloat16
         : element.isF64()                ? partita_rt::DType::Float64
         : isa<Float8E4M3FNType>(element) ? partita_rt::DType::Float8E4M3
         : isa<Float8E5M2Type>(element)   ? partita_rt::DType::Float8E5M2
                                          : partita_rt::DType::Float32;
}

static bool hasMemory(Value buffer) { return buffer && !buffer.getDefiningOp<NullOp>(); }

#define GET_OP_CLASSES
#include "dialects/Rt/RtKernels.cpp.inc"

/// Returns {{a, 12}, {b, 6}}.
static CallArgument withCounts(ValueRange buffers, ArrayRef<int64_t> counts) {
  std::string text = "{{";
  for (auto [i, count] : llvm::enumerate(counts))
    text += (i ? ", {{{}, " : "{{{}, ") + std::to_string(count) + "}";
  return CallArgument(text + "}", SmallVector<Value>(buffers));
}

/// Prints squareSum(sums, {{a, 12}, {b, 6}}).
SmallVector<CallArgument> SquareSumOp::getCallArguments(const Target &) {
  return {getSum(), withCounts(getValues(), getCounts())};
}

/// Prints rootOfSum(norm, {{a, 2}, {b, 1}}).
SmallVector<CallArgument> NormOp::getCallArguments(const Target &) {
  return {getNorm(), withCounts(getSquares(), getCounts())};
}

/// Prints firstNonfinite(rank, {{a, 2}, {b, 1}}, {0, 3, 2}).
SmallVector<CallArgument> FirstNonfiniteOp::getCallArguments(const Target &target) {
  return {target.reported("firstNonfinite"), withCounts(getSquares(), getCounts()),
          argument::listing(getParameters())};
}

/// Prints oneBitAllReduce(rank.group(kDp), {{x, worker, server, 12}, {y, worker1, server1, 8, oneBitValid(8, 15, rank.coordinates[1])}}, !ExactSteps{10, 0}.contains(*t), scratch, "why").
SmallVector<CallArgument> OneBitAllReduceOp::getCallArguments(const Target &target) {
  size_t count = getCounts().size();
  std::string text = "{{", why;
  for (char c : stringLiteral(getReason())) // an opening brace is written twice
    why += c == '{' ? "{{" : std::string(1, c);
  SmallVector<Value> buffers;
  CallArgument compresses = target.exactStep(getT(), getExact());
  compresses.text = "!" + compresses.text;
  for (size_t i = 0; i < count; ++i) {
    std::string elements = std::to_string(getCounts()[i]);
    text += (i ? ", {{{}, {}, {}, " : "{{{}, {}, {}, ") + elements;
    if (int64_t full = getFullSizes()[i])
      text += ", oneBitValid(" + elements + ", " + std::to_string(full) + ", rank.coordinates[" +
              std::to_string(getAxes()[i]) + "])";
    text += "}";
    buffers.append({getBuffers()[i], getBuffers()[count + i], getBuffers()[2 * count + i]});
  }
  return {"rank.group(" + communicatorName(getCommunicator()) + ")",
          CallArgument(text + "}", buffers), compresses, getScratch(), why};
}

SmallVector<CallArgument> OneBitTermOp::getCallArguments(const Target &target) {
  return {getX(),
          getTerm(),
          getMean(),
          getN(),
          getRanks(),
          target.hyper("beta1", getBetaAttr()),
          getScale() ? CallArgument(target.scalar(1), getScale()) : CallArgument("1.0f"),
          target.exactStep(getT(), getExact())};
}

SmallVector<CallArgument> OneBitMeanOp::getCallArguments(const Target &target) {
  return {getMean(),
          getSum(),
          getN(),
          target.hyper("beta1", getBetaAttr()),
          getScale() ? CallArgument(target.scalar(1), getScale()) : CallArgument("1.0f"),
          target.exactStep(getT(), getExact())};
}

/// Prints oneBitClip(sums, gradients, typical, *factor, *t, rank.hyper.beta2, {10, 0}).
SmallVector<CallArgument> OneBitClipOp::getCallArguments(const Target &target) {
  return {getOfSums(),
          getOfGradients(),
          getTypical(),
          CallArgument(target.scalar(1), getFactor()),
          CallArgument(target.scalar(1), getT()),
          target.hyper("beta2", getBetaAttr()),
          stepsText(getExact())};
}

//===------------------------------------------------------------------------------------------===//
// Scratch memory on a GPU
//===------------------------------------------------------------------------------------------===//

int64_t SquareSumOp::getScratchBytes() {
  int64_t bytes = 0;
  for (int64_t count : getCounts())
    bytes += partita_rt::cuda::squareSumScratch(count);
  return bytes;
}

int64_t OneBitAllReduceOp::getScratchBytes() {
  int64_t blocks = 0;
  for (int64_t count : getCounts())
    blocks += partita_rt::cuda::signScaleBlocks(count);
  return partita_rt::cuda::oneBitSumScratch(blocks);
}
