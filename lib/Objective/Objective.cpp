//===- Objective.cpp - @train_step and @eval_step out of @forward
//------------------------------------===//
//
// 1. The inputs: one integer input [batch, sequence] carries the tokens; its labels have the same
//    shape and are the next tokens (the data loader shifts them).
// 2. The logits: the first result [batch, sequence, vocabulary].
// 3. @train_step: count the labels of all micro-batches; accumulate the model's loss over them.
// 4. @eval_step: the same over one batch, without a gradient.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "partita/Objective/Passes.h"
#include "llvm/Support/GlobPattern.h"

namespace partita {
#define GEN_PASS_DEF_OBJECTIVEPASS
#include "partita/Objective/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

struct Objective : partita::impl::ObjectivePassBase<Objective> {
  using ObjectivePassBase::ObjectivePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward || forward.isExternal()) {
      module.emitError() << "the module has no function @forward with a body to train";
      return signalPassFailure();
    }
    if (kind != "auto" && kind != "none") {
      module.emitError() << "objective '" << kind << "' is unknown; known: auto, none";
      return signalPassFailure();
    }
    if (kind == "none")
      return markBatches();
    if (accumulate < 1) {
      module.emitError() << "accumulate is " << accumulate.getValue() << ", expected at least 1";
      return signalPassFailure();
    }
    if (failed(freezeParameters(module)) || failed(findTokens()) || failed(findLogits()))
      return signalPassFailure();
    buildStep(module, "train_step", /*training=*/true);
    buildStep(module, "eval_step", /*training=*/false);
  }

private:
  /// Inference: the first dimension of every input runs over the samples.
  void markBatches() {
    for (BlockArgument argument : forward.getArguments())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType()); type && type.getRank() > 0)
        forward.setArgAttr(argument.getArgNumber(), train::TrainDialect::kBatch,
                           Builder(&getContext()).getI64IntegerAttr(0));
  }

  LogicalResult freezeParameters(ModuleOp module) {
    for (const std::string &pattern : freeze) {
      auto glob = llvm::GlobPattern::create(pattern);
      if (!glob)
        return module.emitError() << "freeze: '" << pattern
                                  << "' is no glob pattern: " << llvm::toString(glob.takeError());
      bool any = false;
      for (auto parameter : module.getOps<train::ParameterOp>())
        if (glob->match(parameter.getSymName())) {
          parameter.setFrozen(true);
          any = true;
        }
      if (!any)
        return module.emitError() << "freeze: no parameter matches '" << pattern << "'";
    }
    return success();
  }

  static bool isTokens(BlockArgument argument) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    return type && type.getRank() == 2 && type.getElementType().isSignlessInteger() &&
           type.getElementTypeBitWidth() >= 32;
  }

  LogicalResult findTokens() {
    Builder builder(&getContext());
    for (BlockArgument argument : forward.getArguments()) {
      unsigned i = argument.getArgNumber();
      auto role = forward.getArgAttrOfType<StringAttr>(i, train::TrainDialect::kRole);
      if (!isTokens(argument) || (role && role.getValue() != "ids"))
        continue;
      if (tokens) {
        return forward.emitError() << "inputs " << name(tokens.getArgNumber()) << " and " << name(i)
                                   << " could both carry the tokens; mark one with "
                                   << train::TrainDialect::kRole << " = \"ids\"";
      }
      tokens = argument;
    }
    if (!tokens)
      return forward.emitError()
             << "no input is an integer tensor [batch, sequence] that could carry the tokens";
    if (forward.getNumArguments() != 1)
      return forward.emitError()
             << "input " << name(tokens.getArgNumber() == 0 ? 1 : 0)
             << " is neither tokens nor labels; the objective knows models of tokens alone";
    forward.setArgAttr(tokens.getArgNumber(), train::TrainDialect::kRole,
                       builder.getStringAttr("ids"));
    forward.setArgAttr(tokens.getArgNumber(), train::TrainDialect::kBatch,
                       builder.getI64IntegerAttr(0));
    return success();
  }

  std::string name(unsigned argument) {
    if (auto given = forward.getArgAttrOfType<StringAttr>(argument, train::TrainDialect::kName))
      return "'" + given.str() + "'";
    return "number " + std::to_string(argument);
  }

  LogicalResult findLogits() {
    auto ret = cast<func::ReturnOp>(forward.getBody().back().getTerminator());
    auto ids = cast<RankedTensorType>(tokens.getType());
    for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (type && type.getRank() == 3 && isa<FloatType>(type.getElementType()) &&
          type.getShape().drop_back() == ids.getShape()) {
        logits = i;
        return success();
      }
    }
    return forward.emitError() << "no result is a floating-point tensor [" << ids.getDimSize(0)
                               << ", " << ids.getDimSize(1)
                               << ", vocabulary] that could be the logits";
  }

  /// Builds @train_step or @eval_step; see ObjectivePass's description for what comes out.
  void buildStep(ModuleOp module, StringRef symbol, bool training) {
    OpBuilder builder(module.getBodyRegion());
    builder.setInsertionPointAfter(forward);
    Location loc = forward.getLoc();
    auto ids = cast<RankedTensorType>(tokens.getType());
    SmallVector<int64_t> shape(ids.getShape());
    if (training)
      shape.insert(shape.begin(), accumulate);
    auto batch = RankedTensorType::get(shape, ids.getElementType());
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    auto function = func::FuncOp::create(builder, loc, symbol,
                                         builder.getFunctionType({batch, batch}, {scalar, scalar}));
    for (auto [i, role] : llvm::enumerate(ArrayRef<StringRef>{"ids", "labels"})) {
      Attribute given = i == 0
                            ? forward.getArgAttr(tokens.getArgNumber(), train::TrainDialect::kName)
                            : Attribute();
      function.setArgAttr(i, train::TrainDialect::kName,
                          given ? given : builder.getStringAttr(role));
      function.setArgAttr(i, train::TrainDialect::kRole, builder.getStringAttr(role));
      function.setArgAttr(i, train::TrainDialect::kBatch,
                          builder.getI64IntegerAttr(training ? 1 : 0));
    }
    function.setResultAttr(0, train::TrainDialect::kName, builder.getStringAttr("loss"));
    function.setResultAttr(1, train::TrainDialect::kName, builder.getStringAttr("token_count"));
    Block *block = function.addEntryBlock();
    builder.setInsertionPointToStart(block);
    Location lossLoc = NameLoc::get(builder.getStringAttr("loss"));
    IRMapping mapping;
    for (auto read : forward.getOps<train::ReadOp>())
      builder.clone(*read, mapping);
    Value count =
        train::TokenCountOp::create(builder, lossLoc, scalar, block->getArgument(1), ignoreIndex);
    Value share = tx::ReciprocalOp::create(builder, lossLoc, ValueRange{count})->getResult(0);
    Value loss;
    if (training) {
      auto accumulateOp =
          train::AccumulateOp::create(builder, loc, TypeRange{scalar}, block->getArguments());
      Block *body = builder.createBlock(&accumulateOp.getBody(), {}, {ids, ids}, {loc, loc});
      train::YieldOp::create(
          builder, loc,
          buildLoss(builder, lossLoc, mapping, body->getArgument(0), body->getArgument(1), share));
      builder.setInsertionPointAfter(accumulateOp);
      loss = accumulateOp.getSums()[0];
      train::MinimizeOp::create(builder, lossLoc, loss);
    } else {
      loss =
          buildLoss(builder, lossLoc, mapping, block->getArgument(0), block->getArgument(1), share);
    }
    func::ReturnOp::create(builder, loc, ValueRange{loss, count});
  }

  /// The model on one micro-batch, and its share of the mean loss.
  Value buildLoss(OpBuilder &builder, Location loc, IRMapping mapping, Value ids, Value labels,
                  Value share) {
    mapping.map(tokens, ids);
    for (Operation &op : forward.getBody().front().without_terminator())
      if (!isa<train::ReadOp>(op))
        builder.clone(op, mapping);
    Value scores = mapping.lookup(forward.getBody().back().getTerminator()->getOperand(logits));
    if (!cast<RankedTensorType>(scores.getType()).getElementType().isF32()) {
      auto type = cast<RankedTensorType>(scores.getType());
      scores = tx::CastOp::create(
          builder, loc, RankedTensorType::get(type.getShape(), builder.getF32Type()), scores);
    }
    auto entropy = tx::CrossEntropyOp::create(
        builder, loc, ValueRange{scores, labels},
        builder.getNamedAttr("ignore_index", builder.getI64IntegerAttr(ignoreIndex)));
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    Value sum =
        tx::ReduceSumOp::create(builder, loc, scalar, entropy.getLoss(), ArrayRef<int64_t>{0, 1});
    return tx::MulOp::create(builder, loc, ValueRange{sum, share})->getResult(0);
  }

  func::FuncOp forward;
  BlockArgument tokens;
  unsigned logits = 0;
};

} // namespace
