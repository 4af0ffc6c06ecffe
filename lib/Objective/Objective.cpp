//===- Objective.cpp - makes @train_step and @eval_step from @forward -------------------------===//
//
// 1. The inputs get their roles (Inputs.h). What is predicted is added as an input, unless the
//    model computes its loss itself. Warns about a model that sees what it should predict.
// 2. @train_step counts the labels of all micro-batches that count, and accumulates the model's
//    loss over the micro-batches.
// 3. @eval_step does the same over one batch, without gradients.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Train/Roles.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Objective/CausalAttention.h"
#include "lib/Objective/Freeze.h"
#include "lib/Objective/Inputs.h"
#include "lib/Objective/LossOutput.h"
#include "lib/Objective/TokenScores.h"
#include "mlir/IR/IRMapping.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Objective/Passes.h"

namespace partita {
#define GEN_PASS_DEF_OBJECTIVEPASS
#include "partita/Objective/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using train::TrainDialect;

namespace {

/// PyTorch's default.
constexpr int64_t kDefaultIgnoreIndex = -100;

/// What a kind of objective compares the model's output with.
struct Kind {
  StringLiteral name;
  enum Loss { CrossEntropy, BinaryCrossEntropy, SquaredError, InGraph } loss;
  StringLiteral role; ///< of what is predicted, or ""
  /// Returns true if there are labels, some of which may not count.
  bool hasLabels() const { return loss == CrossEntropy || loss == BinaryCrossEntropy; }
};

constexpr Kind kKinds[] = {
    {"causal", Kind::CrossEntropy, "labels"},
    {"masked", Kind::CrossEntropy, "targets"},
    {"classification", Kind::CrossEntropy, "targets"},
    {"binary", Kind::BinaryCrossEntropy, "targets"},
    {"mse", Kind::SquaredError, "targets"},
    {"output", Kind::InGraph, ""},
};

struct Objective : partita::impl::ObjectivePassBase<Objective> {
  using ObjectivePassBase::ObjectivePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(expectUnpartitionedForward(*this, module)))
      return signalPassFailure();
    for (auto made : {train::EntryPoint::TrainStep, train::EntryPoint::EvalStep})
      if (Operation *step = train::lookup(module, made)) {
        step->emitError() << "objective makes the entry point '" << train::nameOf(made)
                          << "', which the module has already";
        return signalPassFailure();
      }
    forward = train::lookup<func::FuncOp>(module, train::EntryPoint::Forward);
    if (!forward || forward.isExternal()) {
      module.emitError() << "the module has no entry point '"
                         << train::nameOf(train::EntryPoint::Forward) << "' with a body to train"
                         << train::hintFor(module, train::EntryPoint::Forward);
      return signalPassFailure();
    }
    if (accumulate < 1) {
      module.emitError() << "accumulate is " << accumulate.getValue() << ", expected at least 1";
      return signalPassFailure();
    }
    auto [name, wanted] = StringRef(kind).split(':');
    if (failed(objective::chooseTrained(module, freeze, trainable)) ||
        failed(objective::checkTied(module, tie)) ||
        failed(objective::assignRoles(forward, inputs)))
      return signalPassFailure();
    objective::markBatches(forward);
    sumMeans();
    auto tell = [&](const Twine &text) {
      module->setAttr(TrainDialect::kObjective, StringAttr::get(&getContext(), text));
    };
    if (name == "none" && !wanted.empty()) {
      module.emitError() << "objective 'none' takes no output, here '" << wanted
                         << "': the program computes all of them";
      return signalPassFailure();
    }
    if (name == "none")
      return tell("none, the program infers");
    for (auto made : {train::EntryPoint::TrainStep, train::EntryPoint::EvalStep})
      if (failed(train::expectFreeName(module, made)))
        return signalPassFailure();
    if (failed(objective::checkSomethingTrains(module)) || failed(checkTakesData()) ||
        failed(findKind(module, name)) || failed(findOutput(wanted)) || failed(findLabels()) ||
        failed(checkIgnoreIndex(module)))
      return signalPassFailure();
    warnOfOpenAttention();
    warnOfTokenScores();
    tell(chosen->name + " of '" + outputName(output) + "'" +
         (reason.empty() ? "" : " (auto: " + reason + ")"));
    buildStep(module, train::EntryPoint::TrainStep);
    buildStep(module, train::EntryPoint::EvalStep);
    steps += 2;
  }

private:
  /// Replaces means over the batch, which cannot be split along with it, by sums divided by the
  /// full count.
  void sumMeans() {
    SmallVector<tx::ReduceMeanOp> found;
    forward.walk([&](tx::ReduceMeanOp mean) {
      if (llvm::is_contained(mean.getDims(), 0))
        found.push_back(mean);
    });
    means += found.size();
    for (tx::ReduceMeanOp mean : found) {
      OpBuilder builder(mean);
      double count = double(cast<RankedTensorType>(mean.getX().getType()).getNumElements()) /
                     double(mean.getType().getNumElements());
      Value sum = tx::ReduceSumOp::create(builder, mean.getLoc(), mean.getType(), mean.getX(),
                                          mean.getDims());
      Value share = tx::createSplat(builder, mean.getLoc(), mean.getType(), 1 / count);
      mean.replaceAllUsesWith(
          tx::MulOp::create(builder, mean.getLoc(), ValueRange{sum, share})->getResult(0));
      mean.erase();
    }
  }

  //===- Choosing the loss

  LogicalResult findKind(ModuleOp module, StringRef name) {
    std::string known = "auto, none";
    for (const Kind &each : kKinds) {
      if (each.name == name)
        chosen = &each;
      known += ", " + each.name.str();
    }
    if (chosen || name == "auto")
      return success();
    return module.emitError() << "objective '" << name << "' is unknown; known: " << known;
  }

  static const Kind *kindNamed(StringRef name) {
    return llvm::find_if(kKinds, [&](const Kind &each) { return each.name == name; });
  }

  Value outputValue() { return forward.getBody().back().getTerminator()->getOperand(output); }
  RankedTensorType outputType() { return cast<RankedTensorType>(outputValue().getType()); }

  std::string outputName(unsigned i) {
    auto name = forward.getResultAttrOfType<StringAttr>(i, TrainDialect::kName);
    return name ? name.str() : std::to_string(i);
  }

  /// Finds the output with this name. If no name is given, this is the loss if `auto` finds one,
  /// else the first output that can be scored.
  LogicalResult findOutput(StringRef wanted) {
    if (!chosen)
      if (auto loss = objective::findLossOutput(forward);
          loss && (wanted.empty() || wanted == outputName(loss->index))) {
        chosen = kindNamed("output");
        reason = loss->reason;
        output = loss->index;
        return success();
      }
    auto results = forward.getBody().back().getTerminator()->getOperands();
    std::string known;
    for (auto [i, value] : llvm::enumerate(results)) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      bool isFloat = type && isa<FloatType>(type.getElementType()) && type.getNumElements() > 0;
      bool fits = isFloat &&
                  (chosen && chosen->loss == Kind::InGraph
                       ? type.getNumElements() == 1
                       : type.getRank() >= (chosen && chosen->loss == Kind::SquaredError ? 1 : 2));
      known += (i ? ", '" : "'") + outputName(i) + "'";
      if (wanted.empty() ? !fits : outputName(i) != wanted)
        continue;
      if (!fits)
        return forward.emitError() << "output '" << wanted << "' of type " << value.getType()
                                   << " cannot be what objective '" << kind << "' looks at";
      output = i;
      return success();
    }
    if (!wanted.empty())
      return forward.emitError() << "objective: the model has no output '" << wanted << "'; it has "
                                 << known;
    return forward.emitError() << "no result is a floating-point tensor that could be "
                               << (chosen && chosen->loss == Kind::InGraph
                                       ? "the loss, a single number"
                                       : "the logits [batch, ..., classes]");
  }

  std::optional<unsigned> argumentWith(StringRef role) {
    for (unsigned i = 0; i < forward.getNumArguments(); ++i)
      if (objective::roleOf(forward, i) == role)
        return i;
    return std::nullopt;
  }

  /// Implements `auto`: predicts the next token if the model has tokens and scores for each, one of
  /// several classes if it has one vector of scores per sample, yes or no if it has one score per
  /// token.
  void chooseKind() {
    std::optional<unsigned> tokens = argumentWith("ids"), shifted = argumentWith("shifted");
    if (tokens)
      tokenScores = objective::findTokenScores(forward, *tokens);
    if (llvm::is_contained(tokenScores, output)) {
      // Several such outputs usually select tokens, e.g. where a span begins and where it ends.
      bool alone = tokenScores.size() == 1;
      chosen = kindNamed(alone ? "binary" : "classification");
      reason = (alone ? "it has one score for each of "
                      : "it is one of several outputs with one score for each of ") +
               objective::nameOf(forward, *tokens);
    } else if (outputType().getRank() == 2) {
      chosen = kindNamed("classification");
      reason = "it has one vector of scores a sample";
    } else if (shifted || !tokens) {
      chosen = kindNamed("masked");
      reason = shifted ? "its scores are of the tokens that " +
                             objective::nameOf(forward, *shifted) + " has moved by one"
                       : "it has several vectors of scores a sample, and no input is tokens";
    } else {
      chosen = kindNamed("causal");
      reason = "it scores a token for each of " + objective::nameOf(forward, *tokens);
    }
  }

  /// Rejects a model that computes everything from constants, so that every step is the same.
  LogicalResult checkTakesData() {
    bool fixed = forward.getNumArguments() > 0;
    for (unsigned i = 0; i < forward.getNumArguments(); ++i)
      fixed &= train::isFixedRole(objective::roleOf(forward, i));
    if (!fixed)
      return success();
    return forward.emitError() << "no input takes anything from the data: all are ones, zeros or "
                                  "positions; bind one with --input NAME=ids or data";
  }

  /// Finds or adds the input for what is predicted.
  LogicalResult findLabels() {
    if (!chosen)
      chooseKind();
    if (chosen->name == "classification" && outputType().getRank() != 2)
      return forward.emitError()
             << "objective 'classification' wants one vector of scores a sample, "
                "output '"
             << outputName(output) << "' is " << outputType()
             << "; 'masked' compares a class per token";
    if (chosen->loss == Kind::InGraph)
      return success();
    RankedTensorType scores = outputType();
    Builder b(&getContext());
    if (chosen->loss == Kind::SquaredError) {
      labelType = RankedTensorType::get(scores.getShape(), b.getF32Type());
      return success();
    }
    bool isBinary = chosen->loss == Kind::BinaryCrossEntropy;
    labelType =
        RankedTensorType::get(scores.getShape().drop_back(isBinary ? 0 : 1), b.getI64Type());
    if (chosen->role != "labels")
      return success();
    std::optional<unsigned> tokens = argumentWith("ids");
    if (!tokens)
      return forward.emitError() << "no input is an integer tensor [batch, sequence] that carries "
                                    "the tokens; bind one with --input NAME=ids, or take another "
                                    "objective than '"
                                 << chosen->name << "'";
    auto ids = cast<RankedTensorType>(forward.getArgument(*tokens).getType());
    labelType = RankedTensorType::get(labelType.getShape(), ids.getElementType());
    if (ids != labelType)
      return forward.emitError() << "output '" << outputName(output) << "' of type " << scores
                                 << " does not score a next token for each of "
                                 << objective::nameOf(forward, *tokens) << ", " << ids;
    return success();
  }

  /// Only a cross-entropy that is added here ignores labels.
  LogicalResult checkIgnoreIndex(ModuleOp module) {
    if (chosen->hasLabels() || ignoreIndex == kDefaultIgnoreIndex)
      return success();
    InFlightDiagnostic diagnostic = module.emitError();
    diagnostic << "--ignore-index: has no effect with objective '" << chosen->name << "'";
    if (chosen->loss == Kind::InGraph)
      diagnostic << ": the model computes its loss itself, output '" << outputName(output)
                 << "', and which labels count";
    return diagnostic;
  }

  /// Warns about a model that sees the tokens that it should predict.
  void warnOfOpenAttention() {
    if (chosen->name != "causal")
      return;
    SmallVector<Operation *> open = objective::findOpenAttentions(forward);
    if (open.empty())
      return;
    open.front()->emitWarning()
        << "objective 'causal' predicts the token after each, but no attention of the model is "
           "causal (of "
        << open.size()
        << ", this is the first), so that it sees what it predicts; a model of masked tokens wants "
           "--objective masked, with labels in the data";
  }

  /// Warns about one score per token, which may be a yes-or-no question about each token or select
  /// one token per sample; the file does not tell which.
  void warnOfTokenScores() {
    if (!llvm::is_contained(tokenScores, output))
      return;
    InFlightDiagnostic warning = emitWarning(outputValue().getLoc());
    warning << "output '" << outputName(output) << "' has one score per token";
    if (chosen->loss == Kind::BinaryCrossEntropy)
      warning
          << ", taken as a yes-or-no question about each token (objective 'binary'); if it selects "
             "one token per sample, pass --objective classification";
    else
      warning << ", as another output has, and is trained alone, to select one token per sample "
                 "(objective 'classification'); if it asks yes or no about each token, pass "
                 "--objective binary:"
              << outputName(output);
  }

  //===- Building the steps

  /// Computes the arguments of a step: those of @forward, with a leading dimension of
  /// micro-batches, then what is predicted.
  void signature(bool training, SmallVector<Type> &types, SmallVector<DictionaryAttr> &attributes) {
    Builder b(&getContext());
    auto add = [&](RankedTensorType type, NamedAttrList list) {
      SmallVector<int64_t> shape(type.getShape());
      if (training)
        shape.insert(shape.begin(), accumulate);
      if (training && list.get(TrainDialect::kBatch))
        list.set(TrainDialect::kBatch, b.getI64IntegerAttr(1));
      types.push_back(RankedTensorType::get(shape, type.getElementType()));
      attributes.push_back(list.getDictionary(&getContext()));
    };
    bool taken = false;
    for (BlockArgument argument : forward.getArguments()) {
      NamedAttrList list(forward.getArgAttrDict(argument.getArgNumber()));
      if (!list.get(TrainDialect::kName))
        list.set(TrainDialect::kName, list.get(TrainDialect::kRole));
      taken |= list.get(TrainDialect::kName) == b.getStringAttr("labels");
      add(cast<RankedTensorType>(argument.getType()), list);
    }
    if (!labelType)
      return;
    NamedAttrList list;
    list.set(TrainDialect::kName, b.getStringAttr(taken ? "targets" : "labels"));
    list.set(TrainDialect::kRole, b.getStringAttr(chosen->role));
    list.set(TrainDialect::kBatch, b.getI64IntegerAttr(0));
    if (chosen->hasLabels())
      list.set(TrainDialect::kFiller, b.getI64IntegerAttr(ignoreIndex));
    add(labelType, list);
  }

  /// Builds a step; see ObjectivePass's description for the result.
  void buildStep(ModuleOp module, train::EntryPoint entry) {
    bool training = entry == train::EntryPoint::TrainStep;
    OpBuilder builder(module.getBodyRegion());
    builder.setInsertionPointAfter(forward);
    Location loc = forward.getLoc();
    SmallVector<Type> types;
    SmallVector<DictionaryAttr> attributes;
    signature(training, types, attributes);
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    auto function = func::FuncOp::create(builder, loc, train::nameOf(entry),
                                         builder.getFunctionType(types, {scalar, scalar}));
    train::set(function, entry);
    function.setAllArgAttrs(attributes);
    function.setResultAttr(0, TrainDialect::kName, builder.getStringAttr("loss"));
    function.setResultAttr(1, TrainDialect::kName, builder.getStringAttr("token_count"));
    Block *block = function.addEntryBlock();
    builder.setInsertionPointToStart(block);
    Location lossLoc = NameLoc::get(builder.getStringAttr("loss"));
    IRMapping mapping;
    for (auto read : forward.getOps<train::ReadOp>())
      builder.clone(*read, mapping);
    auto [count, share] = buildShare(builder, lossLoc, *block, training);
    Value loss;
    if (training) {
      auto accumulateOp =
          train::AccumulateOp::create(builder, loc, TypeRange{scalar}, block->getArguments());
      SmallVector<Type> one;
      for (Type type : types)
        one.push_back(train::AccumulateOp::microBatchType(type));
      Block *body = builder.createBlock(&accumulateOp.getBody(), {}, one,
                                        SmallVector<Location>(one.size(), loc));
      train::YieldOp::create(builder, loc, buildLoss(builder, lossLoc, mapping, *body, share));
      builder.setInsertionPointAfter(accumulateOp);
      loss = accumulateOp.getSums()[0];
      train::MinimizeOp::create(builder, lossLoc, loss);
    } else {
      loss = buildLoss(builder, lossLoc, mapping, *block, share);
    }
    func::ReturnOp::create(builder, lossLoc, ValueRange{loss, count});
  }

  /// Returns how many numbers the loss averages over, and the weight of each.
  std::pair<Value, Value> buildShare(OpBuilder &builder, Location loc, Block &block,
                                     bool training) {
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    if (chosen->hasLabels()) {
      Value count = train::TokenCountOp::create(builder, loc, scalar, block.getArguments().back(),
                                                ignoreIndex);
      return {count, tx::ReciprocalOp::create(builder, loc, ValueRange{count})->getResult(0)};
    }
    double count = training ? accumulate : 1;
    if (chosen->loss == Kind::SquaredError)
      count *= labelType.getNumElements();
    return {tx::createSplat(builder, loc, scalar, count),
            tx::createSplat(builder, loc, scalar, 1 / count)};
  }

  /// Builds the model on one micro-batch, and its share of the mean loss.
  Value buildLoss(OpBuilder &builder, Location loc, IRMapping mapping, Block &block, Value share) {
    mapping.map(forward.getArguments(), block.getArguments().take_front(forward.getNumArguments()));
    for (Operation &op : forward.getBody().front().without_terminator())
      if (!isa<train::ReadOp>(op))
        builder.clone(op, mapping);
    Value scores = mapping.lookup(outputValue());
    auto type = outputType();
    if (!type.getElementType().isF32())
      scores = tx::CastOp::create(
          builder, loc, RankedTensorType::get(type.getShape(), builder.getF32Type()), scores);
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    Value sum;
    if (chosen->loss == Kind::InGraph) {
      sum = type.getRank() == 0 ? scores
                                : tx::ReshapeOp::create(builder, loc, scalar, scores).getResult();
    } else {
      Value wanted = block.getArguments().back();
      if (chosen->loss == Kind::BinaryCrossEntropy)
        scores = againstZero(builder, loc, scores);
      Value each = chosen->loss == Kind::SquaredError ? squaredError(builder, loc, scores, wanted)
                                                      : crossEntropy(builder, loc, scores, wanted);
      auto dims = llvm::to_vector(llvm::seq<int64_t>(0, labelType.getRank()));
      sum = tx::ReduceSumOp::create(builder, loc, scalar, each, dims);
    }
    return tx::MulOp::create(builder, loc, ValueRange{sum, share})->getResult(0);
  }

  /// Binary cross-entropy of a score x is the cross-entropy of two classes with scores 0 and x:
  /// log(1 + exp(x)) - x * label.
  Value againstZero(OpBuilder &builder, Location loc, Value scores) {
    auto type = cast<RankedTensorType>(scores.getType());
    SmallVector<int64_t> one(type.getShape()), two(type.getShape());
    one.push_back(1);
    two.push_back(2);
    Value no = tx::createSplat(builder, loc, type.clone(one), 0);
    Value yes = tx::ReshapeOp::create(builder, loc, type.clone(one), scores);
    return tx::ConcatOp::create(builder, loc, type.clone(two), ValueRange{no, yes}, one.size() - 1);
  }

  Value crossEntropy(OpBuilder &builder, Location loc, Value scores, Value labels) {
    return tx::CrossEntropyOp::create(
               builder, loc, ValueRange{scores, labels},
               builder.getNamedAttr("ignore_index", builder.getI64IntegerAttr(ignoreIndex)))
        .getLoss();
  }

  Value squaredError(OpBuilder &builder, Location loc, Value scores, Value targets) {
    Value difference = tx::SubOp::create(builder, loc, ValueRange{scores, targets})->getResult(0);
    return tx::MulOp::create(builder, loc, ValueRange{difference, difference})->getResult(0);
  }

  func::FuncOp forward;
  const Kind *chosen = nullptr;
  unsigned output = 0;
  std::string reason;                ///< of the choice, unless the user made it
  SmallVector<unsigned> tokenScores; ///< outputs with one score per token, if no kind was given
  RankedTensorType labelType;        ///< of one micro-batch; null if nothing is added
};

} // namespace
