//===- WidenHalves.cpp - a model stored in 16 bits computes in 32
//------------------------------===//
//
// Every tensor of f16 or bf16 becomes one of f32, in place: types of values, arguments, parameters
// and constants. Casts between what are now equal types fold away. What a file stores stays noted
// in a parameter's `initial`; the runtime converts it when it is read.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Objective/Passes.h"

namespace partita {
#define GEN_PASS_DEF_WIDENHALVESPASS
#include "partita/Objective/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

bool isHalf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isF16() || element.isBF16();
}

Type widened(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isHalf(tensor))
    return type;
  return RankedTensorType::get(tensor.getShape(), Float32Type::get(type.getContext()),
                               tensor.getEncoding());
}

TypedAttr widened(TypedAttr value) {
  auto dense = dyn_cast<DenseFPElementsAttr>(value);
  if (!dense || !isHalf(dense.getType()))
    return value;
  return dense.mapValues(Float32Type::get(value.getContext()), [](const APFloat &number) {
    APFloat wide = number;
    bool losesInfo = false;
    wide.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &losesInfo);
    return wide.bitcastToAPInt();
  });
}

struct WidenHalves : partita::impl::WidenHalvesPassBase<WidenHalves> {
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      for (Value result : op->getResults())
        widen(result);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            widen(argument);
      if (auto constant = dyn_cast<tx::ConstantOp>(op))
        constant.setValueAttr(cast<ElementsAttr>(widened(TypedAttr(constant.getValue()))));
      if (auto parameter = dyn_cast<train::ParameterOp>(op))
        parameter.setType(cast<RankedTensorType>(widened(parameter.getType())));
      if (auto function = dyn_cast<func::FuncOp>(op)) {
        auto map = [](ArrayRef<Type> types) {
          return llvm::map_to_vector(types, [](Type type) { return widened(type); });
        };
        function.setFunctionType(FunctionType::get(&getContext(), map(function.getArgumentTypes()),
                                                   map(function.getResultTypes())));
      }
    });
  }

private:
  void widen(Value value) {
    Type wide = widened(value.getType());
    values += wide != value.getType();
    value.setType(wide);
  }
};

} // namespace
