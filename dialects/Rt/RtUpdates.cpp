//===- RtUpdates.cpp - an optimizer's kernel, and its call for one tensor ---------------------===//
//
// RtTensors.cpp has the call over a table of tensors.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Rt/Target.h"
#include "runtime/include/partita_rt/cuda/shapes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

//===------------------------------------------------------------------------------------------===//
// Checks
//===------------------------------------------------------------------------------------------===//

StringRef UpdateKernelOp::getRounded() {
  if (!getRounding())
    return "";
  return *std::prev(getValues().getAsValueRange<StringAttr>().end(), 2);
}

LogicalResult UpdateKernelOp::verify() {
  size_t count = getValues().size();
  if (count != getTypes().size())
    return emitOpError() << "has " << count << " values and " << getTypes().size() << " types";
  size_t least = getRounding() ? 3 : 2;
  if (count < least)
    return emitOpError() << "has " << count << " values, expected "
                         << (getRounding() ? "a value, the same in 16 bits and a gradient"
                                           : "a value and a gradient");
  if (getSquares() && (getRounding() || getConditional()))
    return emitOpError() << "has squares: it writes nothing that it could round or leave";
  if (getLargest() && !getSquares())
    return emitOpError() << "has largest values without squares";
  auto missing = [&](StringRef scalar) {
    return !llvm::is_contained(getScalars().getAsValueRange<StringAttr>(), scalar);
  };
  if (getConditional() && missing(kApply))
    return emitOpError() << "is conditional without a scalar \"" << kApply << '"';
  if (isStochastic() && (missing(kRoundingKey) || getScalars().empty() ||
                         cast<StringAttr>(getScalars().getValue().back()) != kRoundingFirst))
    return emitOpError() << "rounds stochastically, expected the scalars \"" << kRoundingKey
                         << "\" and, last, \"" << kRoundingFirst << '"';
  return success();
}

/// Checks that the kernel exists, and takes the values' types: after those of the sums if it has
/// any.
LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<UpdateKernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "calls " << getKernelAttr() << ", which is not an update's kernel";
  if (kernel.getRounding() != getRounding())
    return emitOpError() << "and " << getKernelAttr() << " do not round alike";
  SmallVector<Type> types;
  for (Value value : getValues())
    types.push_back(cast<BufferType>(value.getType()).getElement());
  SmallVector<Type> expected((kernel.getSquares() ? 1 : 0) + (kernel.getLargest() ? 1 : 0),
                             Float64Type::get(getContext()));
  llvm::append_range(expected, kernel.getTypes().getAsValueRange<TypeAttr>());
  if (types != expected)
    return emitOpError() << "calls " << getKernelAttr() << " on values of the types (" << types
                         << "); it takes (" << expected << ')';
  if (getScalars().size() != kernel.getScalars().size())
    return emitOpError() << "has " << getScalars().size() << " scalars, " << getKernelAttr()
                         << " takes " << kernel.getScalars().size();
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Calls
//===------------------------------------------------------------------------------------------===//

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

/// Adds the scalars that a tile's update passes on: their text and values or, if the update is
/// queued, numbers copied when it was queued, since their places may hold other numbers by the time
/// it runs. Stochastic rounding's last scalar is the number of the first element, here of the tile's.
static void addTileScalars(UpdateOp op, bool queued, CallArgument &body) {
  for (auto [i, scalar] : llvm::enumerate(scalarsOf(op)))
    if (queued) {
      body.text += ", s[" + std::to_string(i) + "]";
    } else {
      body.text += ", " + scalar.text;
      body.values.append(scalar.values);
    }
  if (op.getRounding() == Rounding::Stochastic)
    body.text += " + double(from)";
}

/// Returns {rate, t, 0.9}: the scalars' numbers when the update is queued.
static CallArgument tileScalars(UpdateOp op) {
  CallArgument list("{{");
  for (const CallArgument &scalar : scalarsOf(op)) {
    list.text += (list.text.size() > 2 ? ", " : "") + scalar.text;
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
  OperandRange values = getValues(), states = values.drop_front().drop_back(getRounding() ? 2 : 1);
  if (!getTile()) {
    SmallVector<CallArgument> arguments(values.begin(), values.end());
    arguments.push_back(static_cast<int64_t>(getN()));
    arguments.append(scalarsOf(*this));
    return arguments;
  }
  bool queued = target.queuesWork();
  Value rounded = getRounding() ? values.drop_back().back() : Value();
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

/// A kernel that sums squares has partial sums.
int64_t UpdateOp::getScratchBytes() {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<UpdateKernelOp>(*this, getKernelAttr());
  auto squares = kernel ? kernel.getSquaresAttr() : ArrayAttr();
  auto largest = squares ? kernel.getLargestAttr() : ArrayAttr();
  size_t count = squares ? squares.size() + (largest ? largest.size() : 0) : 0;
  return partita_rt::cuda::updateSquaresScratch(getN(), static_cast<int64_t>(count));
}
