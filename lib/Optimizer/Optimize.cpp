//===- Optimize.cpp - the optimizer's arithmetic and states -----------------------------------===//
//
// All updates stand after the backward pass, in the order of the parameters; the states are read
// where they are used, and @init writes their first values. A gradient must be complete: the same
// on every rank that holds the parameter's piece.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Optimizer/Passes.h"

namespace partita {
#define GEN_PASS_DEF_OPTIMIZEPASS
#include "partita/Optimizer/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct Optimize : partita::impl::OptimizePassBase<Optimize> {
  using OptimizePassBase::OptimizePassBase;

  void runOnOperation() override {
    if (kind != "adamw" && kind != "sgd") {
      getOperation().emitError() << "optimizer '" << kind << "' is unknown; known: adamw, sgd";
      return signalPassFailure();
    }
    if (betas.empty())
      betas = {0.9, 0.999};
    if (betas.size() != 2 ||
        llvm::any_of(betas, [](double beta) { return !(beta >= 0 && beta < 1); })) {
      getOperation().emitError() << "betas: expected two numbers in [0, 1)";
      return signalPassFailure();
    }
    SmallVector<train::UpdateOp> updates;
    getOperation().walk([&](train::UpdateOp update) { updates.push_back(update); });
    SymbolTable symbols(getOperation());
    findInitialWrites(symbols);
    for (train::UpdateOp update : updates) {
      par::Layout value = par::Layout::of(update.getValue().getType()).valueOnly();
      if (!(par::Layout::of(update.getGradient().getType()) == value)) {
        update.emitError() << "the gradient of " << update.getParameterAttr() << " is "
                           << update.getGradient().getType() << ", the parameter "
                           << update.getValue().getType();
        return signalPassFailure();
      }
      if (kind == "adamw")
        adamw(update, symbols);
      else
        sgd(update);
      update.erase();
    }
  }

private:
  double decayOf(train::UpdateOp update) {
    return par::wholeType(update.getValue().getType()).getRank() >= 2 ? weightDecay : 0.0;
  }

  static Type scalar(OpBuilder &builder) { return RankedTensorType::get({}, builder.getF32Type()); }

  Value state(OpBuilder &builder, train::UpdateOp update, SymbolTable &symbols, StringRef name) {
    auto parameter = symbols.lookup<train::ParameterOp>(update.getParameter());
    OpBuilder outer(parameter);
    outer.setInsertionPointAfter(parameter);
    std::string symbol = (update.getParameter() + "." + name).str();
    if (!symbols.lookup(symbol)) {
      auto op = train::StateOp::create(outer, parameter.getLoc(), symbol,
                                       par::wholeType(update.getValue().getType()), APFloat(0.0),
                                       update.getParameterAttr(), builder.getStringAttr(name));
      symbols.insert(op);
      writeInitialValue(op, update.getValue().getType());
    }
    return train::ReadOp::create(builder, update.getLoc(), update.getValue().getType(), symbol);
  }

  /// Where @init writes each parameter. A fragment of a program has no @init.
  void findInitialWrites(SymbolTable &symbols) {
    if (auto init = symbols.lookup<func::FuncOp>(train::TrainDialect::kInit))
      init.walk([&](train::WriteOp write) { initialWrites[write.getSymbol()] = write; });
  }

  /// Lets @init write a new state's value too, behind its parameter's.
  void writeInitialValue(train::StateOp state, Type type) {
    auto found = initialWrites.find(*state.getOf());
    if (found == initialWrites.end())
      return;
    OpBuilder builder(state.getContext());
    builder.setInsertionPointAfter(found->second);
    auto value = train::InitialValueOp::create(builder, state.getLoc(), type,
                                               FlatSymbolRefAttr::get(state.getSymNameAttr()));
    found->second = train::WriteOp::create(builder, state.getLoc(), state.getSymName(), value);
  }

  void adamw(train::UpdateOp update, SymbolTable &symbols) {
    OpBuilder builder(update);
    Value m = state(builder, update, symbols, "m"), v = state(builder, update, symbols, "v");
    Type type = update.getValue().getType();
    Value rate = train::LearningRateOp::create(builder, update.getLoc(), scalar(builder));
    Value step = train::StepNumberOp::create(builder, update.getLoc(), scalar(builder));
    auto adamw = train::AdamWOp::create(builder, update.getLoc(), TypeRange{type, type, type},
                                        update.getValue(), update.getGradient(), m, v, rate, step,
                                        APFloat(betas[0]), APFloat(betas[1]), APFloat(epsilon),
                                        APFloat(decayOf(update)));
    std::string parameter = update.getParameter().str();
    train::WriteOp::create(builder, update.getLoc(), parameter, adamw.getNewValue());
    train::WriteOp::create(builder, update.getLoc(), parameter + ".m", adamw.getNewM());
    train::WriteOp::create(builder, update.getLoc(), parameter + ".v", adamw.getNewV());
  }

  void sgd(train::UpdateOp update) {
    OpBuilder builder(update);
    Value rate = train::LearningRateOp::create(builder, update.getLoc(), scalar(builder));
    auto sgd = train::SgdOp::create(builder, update.getLoc(), update.getValue().getType(),
                                    update.getValue(), update.getGradient(), rate,
                                    APFloat(decayOf(update)));
    train::WriteOp::create(builder, update.getLoc(), update.getParameter(), sgd.getNewValue());
  }

  llvm::StringMap<Operation *> initialWrites; // the last of a parameter and its states
};

} // namespace
