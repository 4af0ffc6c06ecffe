//===- ExpandNorms.cpp - expands norms, counting each element once ----------------------------===//
//
// Values split by the same axes share one vector of sums of squares, one per value, partial over
// these axes, and one sum over ranks per axis: there are as many collectives as ways to be split.
// Squares are float64, so those of finite gradients are finite, and sums in another grouping round
// to the same norm. A value's own sum tells every rank whether all of its elements, on all ranks,
// are finite. In a program with pipeline stages each stage has the squares of its own gradients,
// and all stages get the total.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Optimizer/Passes.h"

namespace partita {
#define GEN_PASS_DEF_EXPANDNORMSPASS
#include "partita/Optimizer/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct ExpandNorms : partita::impl::ExpandNormsPassBase<ExpandNorms> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (op->hasTrait<train::OfFullTensors>())
        ops.push_back(op);
    });
    norms += ops.size();
    for (Operation *op : ops) {
      if (auto norm = dyn_cast<train::GlobalNormOp>(op))
        expand(norm);
      else if (auto ratio = dyn_cast<train::TrustRatioOp>(op))
        expand(ratio);
      else
        expand(cast<train::FrozenTrustRatioOp>(op));
    }
  }

private:
  static void expand(train::GlobalNormOp norm) {
    llvm::MapVector<ArrayAttr, SmallVector<unsigned>> bySplit;
    OpBuilder builder(norm);
    for (auto [number, value] : llvm::enumerate(norm.getValues())) {
      SmallVector<Attribute> axes;
      llvm::append_range(axes, par::splittingAxes(value.getType()));
      bySplit[builder.getArrayAttr(axes)].push_back(number);
    }
    SmallVector<Value> squares;
    SmallVector<Attribute> parameters;
    for (const auto &[axes, numbers] : bySplit) {
      SmallVector<Value> values;
      for (unsigned number : numbers) {
        values.push_back(norm.getValues()[number]);
        if (norm.getParameters())
          parameters.push_back((*norm.getParameters())[number]);
      }
      squares.push_back(ofAllStages(builder, norm,
                                    sum(builder, norm, axes, {static_cast<int64_t>(values.size())},
                                        "norm of the gradients", [&](Type type) {
                                          return train::SquareSumOp::create(builder, norm.getLoc(),
                                                                            type, values);
                                        })));
    }
    auto made = train::NormOp::create(builder, norm.getLoc(), norm.getType(), squares,
                                      norm.getParameters() ? builder.getArrayAttr(parameters)
                                                           : ArrayAttr());
    norm.replaceAllUsesWith(made.getNorm());
    norm.erase();
  }

  static Value ofAllStages(OpBuilder &builder, train::GlobalNormOp norm, Value squares) {
    if (!norm->getParentOfType<ModuleOp>()->hasAttr(pipe::PipeDialect::kStages))
      return squares;
    return pipe::SumOp::create(builder, pipe::withRole(norm.getLoc(), par::Role::Norm),
                               squares.getType(), squares, pipe::allOf(*pipe::positionsOf(norm)),
                               builder.getStringAttr("norms of gradients"));
  }

  static void expand(train::TrustRatioOp ratio) {
    OpBuilder builder(ratio);
    SmallVector<Attribute> axes;
    llvm::append_range(axes, par::splittingAxes(ratio.getValues().front().getType()));
    StringRef kind = train::LambOp::getOperationName().split('.').second;
    Value squares =
        sum(builder, ratio, builder.getArrayAttr(axes), {2}, kTrustRatio, [&](Type type) {
          return train::DirectionSquaresOp::create(builder, ratio.getLoc(), type, Type(),
                                                   ratio.getValues(), kind, ratio.getHyper())
              .getSums();
        });
    auto made = train::RatioOp::create(builder, ratio.getLoc(), ratio.getType(), squares,
                                       ratio.getLeast(), ratio.getMost());
    ratio.replaceAllUsesWith(made.getRatio());
    ratio.erase();
  }

  /// Besides sums of squares there is a max, which axes take of their own.
  static void expand(train::FrozenTrustRatioOp ratio) {
    OpBuilder builder(ratio);
    Location loc = ratio.getLoc();
    SmallVector<Attribute> axes;
    llvm::append_range(axes, par::splittingAxes(ratio.getValues().front().getType()));
    par::Layout layout{{1}};
    for (Attribute axis : axes)
      layout.set(cast<StringAttr>(axis), par::Kind::Max);
    auto typed = [&] {
      return RankedTensorType::get({1}, builder.getF64Type(),
                                   layout.encoding(builder.getContext()));
    };
    Value largest;
    Value squares =
        sum(builder, ratio, builder.getArrayAttr(axes), {3}, kTrustRatio, [&](Type type) {
          auto made = train::DirectionSquaresOp::create(
              builder, loc, type, typed(), ratio.getValues(), ratio.kOptimizer, ratio.getHyper());
          largest = made.getLargest();
          return made.getSums();
        });
    for (Attribute axis : axes) {
      layout.clear(cast<StringAttr>(axis));
      largest = par::AllReduceMaxOp::create(builder, loc, typed(), largest, cast<StringAttr>(axis),
                                            builder.getStringAttr(kTrustRatio));
    }
    auto made = train::FrozenRatioOp::create(
        builder, loc, ratio->getResultTypes(), squares, largest, ratio.getStepNumber(),
        ratio.getCoefficient(), ratio.getFactor(), ratio.getApply(), ratio.getFreeze(),
        ratio.getLeastAttr(), ratio.getMostAttr(), ratio.getCoeffBetaAttr(),
        ratio.getFactorMinAttr(), ratio.getFactorMaxAttr(), ratio.getFactorThresholdAttr());
    ratio->replaceAllUsesWith(made->getResults());
    ratio.erase();
  }

  static constexpr StringLiteral kTrustRatio = "trust ratio";

  /// Sums up a value over the axes. `make` creates it with the given type, partial over these.
  static Value sum(OpBuilder &builder, Operation *op, ArrayAttr axes, ArrayRef<int64_t> shape,
                   StringRef reason, llvm::function_ref<Value(Type)> make) {
    par::Layout layout{shape};
    for (auto axis : axes.getAsRange<StringAttr>())
      layout.set(axis, par::Kind::Partial);
    auto typed = [&] {
      return RankedTensorType::get(shape, builder.getF64Type(),
                                   layout.encoding(builder.getContext()));
    };
    Value result = make(typed());
    for (auto axis : axes.getAsRange<StringAttr>()) {
      layout.clear(axis);
      result = par::AllReduceOp::create(builder, op->getLoc(), TypeRange(typed()), result, axis,
                                        builder.getStringAttr(reason))
                   .getResult(0);
    }
    return result;
  }
};

} // namespace
