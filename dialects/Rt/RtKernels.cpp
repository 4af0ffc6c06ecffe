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

#define GET_OP_CLASSES
#include "dialects/Rt/RtKernels.cpp.inc"

/// Returns the kernel's scalars; each `{}` in them is one of the pointers.
static SmallVector<CallArgument> scalarsOf(UpdateOp op) {
  SmallVector<CallArgument> arguments;
  ValueRange pointers = op.getPointers();
  for (StringRef text : op.getScalars().getAsValueRange<StringAttr>()) {
    size_t used = text.count("{}");
    arguments.emplace_back(text.str(), SmallVector<Value>(pointers.take_front(used)));
    pointers = pointers.drop_front(used);
  }
  return arguments;
}

/// The part of a scalar's text that says where a tile begins.
static constexpr StringLiteral kFromTile = " + double(from)";

/// Adds the scalars that a tile's update passes on: their text and values or, if the update is
/// queued, numbers copied when it was queued, since their places may hold other numbers by the time
/// it runs.
static void addTileScalars(UpdateOp op, bool queued, CallArgument &body) {
  for (auto [i, scalar] : llvm::enumerate(scalarsOf(op))) {
    if (!queued) {
      body.text += ", " + scalar.text;
      body.values.append(scalar.values);
      continue;
    }
    bool fromTile = StringRef(scalar.text).ends_with(kFromTile);
    body.text += ", s[" + std::to_string(i) + "]" + (fromTile ? kFromTile.str() : "");
  }
}

/// Returns {rate, t, 0.9}: the scalars' numbers when the update is queued.
static CallArgument tileScalars(UpdateOp op) {
  CallArgument list("{{");
  for (const CallArgument &scalar : scalarsOf(op)) {
    StringRef text = scalar.text;
    text.consume_back(kFromTile);
    list.text += (list.text.size() > 2 ? ", " : "") + text.str();
    list.values.append(scalar.values);
  }
  list.text += "}";
  return list;
}

/// Returns the arguments of kernel(p, m, v, g, n, scalars...), or of updateOnHost(rank, home, p, g,
/// n, staging, tile, [&](float *p, const float *g, int64_t from, int64_t n) { kernel(p, m + from, v
/// + from, g, n, scalars...); }). For a master, which is on the host, `rounded` takes the home's
/// place and comes after the states. If work is queued, the scalars come before the function, which
/// receives their numbers.
SmallVector<CallArgument> UpdateOp::getCallArguments(const Target &target) {
  OperandRange values = getValues(), states = values.drop_front().drop_back(getRounds() ? 2 : 1);
  if (!getTile()) {
    SmallVector<CallArgument> arguments(values.begin(), values.end());
    arguments.push_back(static_cast<int64_t>(getN()));
    arguments.append(scalarsOf(*this));
    return arguments;
  }
  bool queued = target.queuesWork();
  Value rounded = getRounds() ? values.drop_back().back() : Value();
  auto pointerTo = [](Value value) {
    return cppName(cast<BufferType>(value.getType()).getElement()).str() + " *";
  };
  CallArgument body((queued ? "[=](float *p, " : "[&](float *p, ") +
                    (rounded ? pointerTo(rounded) + "rounded, " : "") + "const " +
                    pointerTo(values.back()) + "g, int64_t from, int64_t n" +
                    (queued ? ", const double *s" : "") + ") {{ " + getKernel().str() +
                    (queued ? "_on_host(p" : "(p"));
  for (Value state : states) {
    body.text += ", {} + from";
    body.values.push_back(state);
  }
  body.text += rounded ? ", rounded, g, n" : ", g, n";
  addTileScalars(*this, queued, body);
  body.text += "); }";
  // Joins the rank with what follows: an argument that is only the rank would omit the stream
  // (Converter::convertCall).
  SmallVector<CallArgument> arguments;
  if (rounded)
    arguments.push_back(CallArgument("rank, {}", values.front()));
  else
    arguments.append({"rank, " + argument::home(getParameterOnHost()).text, values.front()});
  if (rounded)
    arguments.push_back(rounded);
  arguments.append(
      {values.back(), static_cast<int64_t>(getN()), getStaging(), static_cast<int64_t>(getTile())});
  if (queued)
    arguments.push_back(tileScalars(*this));
  arguments.push_back(std::move(body));
  return arguments;
}

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

/// A kernel that sums squares has partial sums.
int64_t UpdateOp::getScratchBytes() {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<UpdateKernelOp>(*this, getKernelAttr());
  auto squares = kernel ? kernel.getSquaresAttr() : ArrayAttr();
  auto largest = squares ? kernel.getLargestAttr() : ArrayAttr();
  size_t count = squares ? squares.size() + (largest ? largest.size() : 0) : 0;
  return partita_rt::cuda::updateSquaresScratch(getN(), static_cast<int64_t>(count));
}
