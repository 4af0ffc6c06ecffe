//===- SinglePrecision.cpp - single-precision -------------------------------------------------===//
//
// Every tensor of f16, bf16 or f64 becomes one of f32, in place: types of values, arguments,
// parameters and constants. Casts between what are now equal types fold away. What a file stores
// stays noted in a parameter's `initial`; the runtime converts it when it is read.
//
// What a model of 32 bits rounds to 16 and widens again, x.half().float(), stays rounded: its gradient is
// rounded by the same casts. Of a model of 16 bits every op would round.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Floats.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Rounding.h"
#include "dialects/Tx/Tx.h"
#include "lib/Import/Roundings.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Import/Passes.h"

namespace partita {
#define GEN_PASS_DEF_SINGLEPRECISIONPASS
#include "partita/Import/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

bool changes(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isShortFloat(element) || element.isF64();
}

Type inSingle(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !changes(tensor))
    return type;
  return RankedTensorType::get(tensor.getShape(), Float32Type::get(type.getContext()),
                               tensor.getEncoding());
}

/// The nearest single; a finite number stays finite (the lowest double, as masks have it, becomes
/// the lowest float).
APFloat inSingle(APFloat number) {
  bool losesInfo = false, finite = number.isFinite();
  number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &losesInfo);
  return finite && number.isInfinity()
             ? APFloat::getLargest(APFloat::IEEEsingle(), number.isNegative())
             : number;
}

ElementsAttr inSingle(ElementsAttr value) {
  auto dense = dyn_cast<DenseFPElementsAttr>(value);
  if (!dense || !changes(dense.getType()))
    return value;
  return dense.mapValues(Float32Type::get(value.getContext()),
                         [](const APFloat &number) { return inSingle(number).bitcastToAPInt(); });
}

struct SinglePrecision : partita::impl::SinglePrecisionPassBase<SinglePrecision> {
  void runOnOperation() override {
    if (failed(expectForward(*this, getOperation())))
      return signalPassFailure();
    SmallVector<std::pair<tx::CastOp, Type>> roundings;
    for (tx::CastOp cast : importer::Roundings(getOperation()).kept)
      roundings.push_back({cast, cast.getType()});
    getOperation().walk([&](Operation *op) {
      for (Value result : op->getResults())
        convert(result);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            convert(argument);
      if (auto constant = dyn_cast<tx::ConstantOp>(op))
        constant.setValueAttr(inSingle(constant.getValue()));
      if (auto parameter = dyn_cast<train::ParameterOp>(op))
        parameter.setType(cast<RankedTensorType>(inSingle(parameter.getType())));
      if (auto function = dyn_cast<func::FuncOp>(op)) {
        auto map = [](ArrayRef<Type> types) {
          return llvm::map_to_vector(types, [](Type type) { return inSingle(type); });
        };
        function.setFunctionType(FunctionType::get(&getContext(), map(function.getArgumentTypes()),
                                                   map(function.getResultTypes())));
      }
    });
    for (auto [cast, type] : roundings)
      keepRounding(cast, type);
  }

private:
  void keepRounding(tx::CastOp cast, Type type) {
    OpBuilder builder(cast);
    if (!isa<FloatType>(getElementTypeOrSelf(cast.getX().getType()))) // as PyTorch rounds integers
      cast.getXMutable().assign(
          tx::CastOp::create(builder, cast.getLoc(), cast.getType(), cast.getX()));
    builder.setInsertionPointAfter(cast);
    auto widened = tx::CastOp::create(builder, cast.getLoc(), cast.getType(), cast.getResult());
    cast.getResult().replaceAllUsesExcept(widened.getResult(), widened);
    cast.getResult().setType(llvm::cast<RankedTensorType>(type));
    for (tx::CastOp each : {cast, widened})
      each->setAttr(tx::kRounds, builder.getUnitAttr());
    ++this->roundings;
  }

  void convert(Value value) {
    Type single = inSingle(value.getType());
    values += single != value.getType();
    value.setType(single);
  }
};

} // namespace
