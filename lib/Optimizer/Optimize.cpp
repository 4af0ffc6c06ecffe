//===- Optimize.cpp - adds the optimizer's arithmetic and states ------------------------------===//
//
// All updates come after the backward pass, in the order of the parameters. States are read where
// they are used, and @init writes their initial values. A gradient must be complete: the same on
// every rank that holds the parameter's shard.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Interfaces/Floats.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/Tensors.h"
#include "lib/Optimizer/Groups.h"
#include "lib/Optimizer/Warmup.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Optimizer/Passes.h"
#include "runtime/include/partita_rt/exact_steps.h"
#include "runtime/include/partita_rt/state_names.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

namespace partita {
#define GEN_PASS_DEF_OPTIMIZEPASS
#include "partita/Optimizer/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using amp::AmpDialect;

namespace {

struct Optimize : partita::impl::OptimizePassBase<Optimize> {
  using OptimizePassBase::OptimizePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!(momentum >= 0 && momentum < 1)) {
      module.emitError() << "momentum: expected a number in [0, 1)";
      return signalPassFailure();
    }
    if (!(weightDecay >= 0 && std::isfinite(weightDecay))) {
      module.emitError() << "weight-decay=" << weightDecay.getValue()
                         << ", expected a number from 0 on";
      return signalPassFailure();
    }
    if (!(clip >= 0 && std::isfinite(clip))) {
      module.emitError() << "clip=" << clip.getValue()
                         << ", expected the largest norm, or 0 for any";
      return signalPassFailure();
    }
    std::optional<RegisteredOperationName> found = findOptimizer();
    if (!found) {
      module.emitError() << "optimizer '" << kind << "' is unknown; known: "
                         << llvm::join(llvm::map_range(train::optimizers(),
                                                       [](auto &each) { return each.name; }),
                                       ", ");
      return signalPassFailure();
    }
    FailureOr<optimizer::Groups> parsed = optimizer::Groups::parse(module, groups);
    if (failed(parsed) || failed(settleHyperparameters(*found)))
      return signalPassFailure();
    SmallVector<train::UpdateOp> wanted;
    module.walk([&](train::UpdateOp update) { wanted.push_back(update); });
    if (failed(checkGradients(wanted)) || failed(parsed->checkUse(module)))
      return signalPassFailure();
    SymbolTable symbols(module);
    for (auto parameter : module.getOps<train::ParameterOp>())
      parameterNames.insert(parameter.getModelName());
    findInitialWrites(symbols);
    if (failed(findScale(wanted)))
      return signalPassFailure();
    Operation *last = nullptr;
    updates += wanted.size();
    for (train::UpdateOp update : wanted) {
      last = build(update, *found, symbols, *parsed);
      update.erase();
    }
    updateScale(last);
    warnOfFolded();
  }

private:
  std::optional<RegisteredOperationName> findOptimizer() {
    auto found = train::findOptimizer(&getContext(), kind);
    if (!found || momentum == 0)
      return found;
    auto *optimizer = found->getInterface<train::OptimizerInterface>();
    if (optimizer->getWithMomentum().empty())
      return found;
    kind = optimizer->getWithMomentum().str();
    return train::findOptimizer(&getContext(), kind);
  }

  /// Sets hyperparameters from the options, and the optimizer's defaults for the others.
  LogicalResult settleHyperparameters(RegisteredOperationName name) {
    auto *optimizer = name.getInterface<train::OptimizerInterface>();
    usesNorms = llvm::is_contained(optimizer->getScalarNames(), "ratio");
    freezesRatios = optimizer->freezesRatio();
    if (!optimizer->getSummedState().empty())
      lastExact = optimizer->getExactNames().front();
    for (train::Hyperparameter each : optimizer->getHyperparameters())
      hyper[each.name] = each.usual;
    auto set = [&](StringRef option, StringRef which, double value) -> LogicalResult {
      if (!hyper.count(which))
        return getOperation().emitError()
               << option << ": optimizer '" << kind << "' has no " << which;
      hyper[which] = value;
      return success();
    };
    if (!betas.empty() && (betas.size() != 2 || llvm::any_of(betas, [](double beta) {
                             return !(beta >= 0 && beta < 1);
                           })))
      return getOperation().emitError() << "betas: expected two numbers in [0, 1)";
    if (!betas.empty() && (failed(set("betas", train::OptimizerInterface::kBeta1, betas[0])) ||
                           failed(set("betas", train::OptimizerInterface::kBeta2, betas[1]))))
      return failure();
    double number;
    if (!epsilon.empty()) {
      if (StringRef(epsilon).getAsDouble(number) || !(number >= 0))
        return getOperation().emitError()
               << "epsilon: '" << epsilon << "', expected a number of at least 0";
      if (failed(set("epsilon", "epsilon", number)))
        return failure();
    }
    if (momentum != 0 && failed(set("momentum", "momentum", momentum)))
      return failure();
    if (nesterov && failed(set("nesterov", "nesterov", 1)))
      return failure();
    if ((freezeStep > 0 && failed(set("freeze-step", "freeze", double(freezeStep)))) ||
        (varFreezeStep > 0 &&
         failed(set("var-freeze-step", "var_freeze", double(varFreezeStep)))) ||
        (varUpdateScaler > 0 &&
         failed(set("var-update-scaler", "var_update_scaler", double(varUpdateScaler)))))
      return failure();
    if (!lambBounds.empty()) {
      if (lambBounds.size() != 2 || !(lambBounds[0] >= 0 && lambBounds[0] <= lambBounds[1]))
        return getOperation().emitError() << "lamb-bounds: expected two numbers, 0 <= MIN <= MAX";
      if (!usesNorms)
        return getOperation().emitError()
               << "lamb-bounds: optimizer '" << kind << "' has no trust ratio";
      bounds[0] = lambBounds[0];
      bounds[1] = lambBounds[1];
    }
    if (biasCorrection && noBiasCorrection)
      return getOperation().emitError() << "bias-correction: no-bias-correction is given too";
    if ((biasCorrection && failed(set("bias-correction", "bias_correction", 1))) ||
        (noBiasCorrection && failed(set("no-bias-correction", "bias_correction", 0))))
      return failure();
    if (!optimizer->getSummedState().empty())
      warnOfWarmup(*optimizer);
    return settleFrozenRatios();
  }

  /// Of an optimizer whose variance is frozen at last. A trust ratio makes up for a variance that is too small.
  template <typename Optimizer> void warnOfWarmup(Optimizer &optimizer) {
    SmallVector<StringRef> names = optimizer.getExactNames();
    bool freezesAtOnce = names.size() == 1; // and not ever more rarely
    partita_rt::ExactSteps exact = {int64_t(hyper[names[0]]),
                                    freezesAtOnce ? 0 : int64_t(hyper[names[1]])};
    bool corrects = freezesRatios || !freezesAtOnce || hyper["bias_correction"] != 0;
    optimizer::warnOfVariance(getOperation(), double(exact.count()),
                              hyper[optimizer.getDecayNames()[1]], corrects);
  }

  /// Reads what 1-bit LAMB's ratios have besides LAMB's.
  LogicalResult settleFrozenRatios() {
    auto refuse = [&](StringRef option, const Twine &why) {
      return getOperation().emitError() << option << ": " << why;
    };
    auto read = [&](StringRef option, StringRef text, double &number,
                    double most) -> LogicalResult {
      if (!text.empty() && (text.getAsDouble(number) || !(number >= 0 && number <= most)))
        return refuse(option, "'" + text + "', expected a number from 0 to " + Twine(int(most)));
      if (!text.empty() && !freezesRatios)
        return refuse(option, "optimizer '" + kind + "' freezes no ratio");
      return success();
    };
    if (failed(read("coeff-beta", coeffBeta, keptOfMean, 1)) ||
        failed(read("factor-threshold", factorThreshold, threshold, 1)))
      return failure();
    if (!factorBounds.empty() &&
        (factorBounds.size() != 2 || !(factorBounds[0] > 0 && factorBounds[0] <= factorBounds[1])))
      return refuse("factor-bounds", "expected two numbers, 0 < MIN <= MAX");
    if (!factorBounds.empty() && !freezesRatios)
      return refuse("factor-bounds", "optimizer '" + kind + "' freezes no ratio");
    for (auto [number, bound] : llvm::enumerate(factorBounds))
      ofFactor[number] = bound;
    if (keptOfMean == 1)
      return refuse("coeff-beta", "1 keeps the mean of ratios at 0; expected less");
    if (freezesRatios)
      optimizer::warnOfRatios(getOperation(), hyper[lastExact], keptOfMean);
    return success();
  }

  LogicalResult checkGradients(ArrayRef<train::UpdateOp> updates) {
    for (train::UpdateOp update : updates) {
      par::Layout value = par::Layout::of(update.getValue().getType()).valueOnly();
      if (!(par::Layout::of(update.getGradient().getType()) == value))
        return update.emitError() << "the gradient of " << update.getParameterAttr() << " is "
                                  << update.getGradient().getType() << ", the parameter "
                                  << update.getValue().getType();
    }
    return success();
  }

  /// Returns a location for ops that belong to no tensor and no layer.
  static Location oncePerStep(Operation *update) {
    Location loc = UnknownLoc::get(update->getContext());
    train::LayerAttr layer = train::LayerAttr::of(update);
    return layer
               ? provenance::with(loc, provenance::kLayer,
                                  train::LayerAttr::get(update->getContext(),
                                                        train::LayerAttr::kOnce, layer.getCount()))
               : loc;
  }

  static Type scalar(OpBuilder &builder) { return RankedTensorType::get({}, builder.getF32Type()); }

  /// Creates the factor of all gradients, after the last of them; nothing if there is neither
  /// clipping nor scaling.
  LogicalResult findScale(MutableArrayRef<train::UpdateOp> updates) {
    scaling = getOperation()->getAttrOfType<DictionaryAttr>(AmpDialect::kScaled);
    if ((clip == 0 && !scaling) || updates.empty())
      return success();
    train::UpdateOp last = updates.back();
    for (train::UpdateOp update : updates) {
      if (update->getBlock() != last->getBlock())
        return update.emitError() << "updates in several blocks have no norm in common";
      if (last->isBeforeInBlock(update))
        last = update;
    }
    SmallVector<Value> gradients;
    SmallVector<Attribute> parameters;
    for (train::UpdateOp update : updates) {
      gradients.push_back(update.getGradient());
      parameters.push_back(update.getParameterAttr());
      if (update != last)
        update->moveBefore(last);
    }
    OpBuilder builder(updates.front());
    Location loc = oncePerStep(last);
    Value norm = train::GlobalNormOp::create(builder, loc, scalar(builder), gradients,
                                             builder.getArrayAttr(parameters));
    if (scaling)
      lossScale = train::ReadOp::create(builder, loc, scalar(builder), AmpDialect::kScale);
    if (scaling)
      norm = amp::UnscaleOp::create(builder, loc, scalar(builder), norm, lossScale);
    scale = train::ClipOp::create(builder, loc, scalar(builder), norm, APFloat(double(clip)));
    if (!scaling)
      return success();
    scale = amp::UnscaleOp::create(builder, loc, scalar(builder), scale, lossScale);
    applies = amp::AllFiniteOp::create(builder, loc, scalar(builder), norm);
    return success();
  }

  /// Updates the loss scale at the end of the step.
  void updateScale(Operation *lastUpdate) {
    if (!applies)
      return;
    OpBuilder builder(lastUpdate);
    builder.setInsertionPointAfter(lastUpdate);
    Location loc = oncePerStep(lastUpdate);
    auto count = RankedTensorType::get({}, builder.getI64Type());
    StringRef names[] = {AmpDialect::kScale, AmpDialect::kSteps, AmpDialect::kLastOverflow,
                         AmpDialect::kHysteresis, AmpDialect::kSkipped};
    OperationState op(loc, amp::UpdateScaleOp::getOperationName());
    op.addOperands(lossScale);
    op.addTypes(lossScale.getType());
    for (StringRef name : ArrayRef(names).drop_front()) {
      op.addOperands(train::ReadOp::create(builder, loc, count, name).getResult());
      op.addTypes(count);
    }
    op.addOperands(applies);
    op.addAttributes(scaling.getValue());
    Operation *made = builder.create(op);
    for (auto [name, result] : llvm::zip(names, made->getResults()))
      train::WriteOp::create(builder, loc, name, result);
  }

  /// Returns the name of a state, here and in checkpoints. It follows from the parameter's name in
  /// the model, by which readers of checkpoints find it, not from the symbol.
  std::string stateSymbol(train::ParameterOp parameter, StringRef kind) {
    return partita_rt::stateName(
        parameter.getModelName().str(), kind.str(),
        [&](const std::string &name) { return parameterNames.contains(name); });
  }

  /// Creates a state with one 32-bit element per element of the parameter, or of a given type.
  Value state(OpBuilder &builder, train::UpdateOp update, SymbolTable &symbols, StringRef name,
              Type type = {}, double initial = 0) {
    type = type ? type : inSingleAtLeast(update.getValue().getType());
    auto parameter = symbols.lookup<train::ParameterOp>(update.getParameter());
    OpBuilder outer(parameter);
    outer.setInsertionPointAfter(parameter);
    std::string symbol = stateSymbol(parameter, name);
    if (!symbols.lookup(symbol)) {
      auto op = train::StateOp::create(outer, parameter.getLoc(), symbol, par::fullType(type),
                                       APFloat(initial), update.getParameterAttr(),
                                       builder.getStringAttr(name));
      symbols.insert(op);
      writeInitialValue(op, type);
    }
    return train::ReadOp::create(builder, update.getLoc(), type, symbol);
  }

  /// Finds where @init writes each parameter. A fragment of a program has no @init.
  void findInitialWrites(SymbolTable &symbols) {
    if (auto init = train::lookup<func::FuncOp>(getOperation(), train::EntryPoint::Init))
      init.walk([&](train::WriteOp write) { initialWrites[write.getSymbol()] = write; });
  }

  /// Makes @init write a new state's initial value as well, after its parameter's.
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

  /// Creates a scalar of an update under construction, by name; a ratio is of the operands so far.
  Value control(OpBuilder &builder, const OperationState &op, StringRef name,
                train::UpdateOp update, SymbolTable &symbols) {
    if (name == "rate")
      return train::LearningRateOp::create(builder, op.location, scalar(builder));
    if (name == "t")
      return train::StepNumberOp::create(builder, op.location, scalar(builder));
    SmallVector<Value> values(op.operands.begin(),
                              op.operands.end()); // value, gradient, states, rate, t
    values.erase(values.end() - 2);
    if (scale)
      values.push_back(scale);
    NamedAttrList own;
    for (auto &[key, value] : hyper)
      own.set(key, op.attributes.get(key));
    if (!freezesRatios)
      return train::TrustRatioOp::create(builder, op.location, scalar(builder), values,
                                         own.getDictionary(&getContext()), APFloat(bounds[0]),
                                         APFloat(bounds[1]));
    StringRef names[] = {train::FrozenTrustRatioOp::kCoefficient,
                         train::FrozenTrustRatioOp::kFactor};
    Type number = scalar(builder);
    Value coefficient = state(builder, update, symbols, names[0], number),
          factor = state(builder, update, symbols, names[1], number, 1);
    auto ratio = train::FrozenTrustRatioOp::create(
        builder, op.location, TypeRange{number, number, number}, values, coefficient, factor,
        applies, own.getDictionary(&getContext()), APFloat(bounds[0]), APFloat(bounds[1]),
        APFloat(keptOfMean), APFloat(ofFactor[0]), APFloat(ofFactor[1]), APFloat(threshold));
    auto parameter = symbols.lookup<train::ParameterOp>(update.getParameter());
    Value kept[] = {ratio.getNewCoefficient(), ratio.getNewFactor()};
    for (auto [name, next] : llvm::zip(names, kept))
      train::WriteOp::create(builder, op.location, stateSymbol(parameter, name), next);
    return ratio.getRatio();
  }

  /// Returns true if weight decay applies: to weights with two or more dimensions, but not to
  /// scales of norms or biases. For a tensor that an exporter has made from parameters, the number
  /// of dimensions of these counts or, if the record leaves it open, the tensor's own.
  bool isDecayed(train::ParameterOp parameter, int64_t dimensions, bool byGroup) {
    train::StoredTensor tensor = train::tensorsOf(parameter).front();
    int64_t least = dimensions, most = dimensions;
    if (!tensor.dimensions.empty()) {
      least = tensor.dimensions[0];
      most = tensor.dimensions[1];
    }
    if (least >= 2 || most < 2)
      return least >= 2;
    if (!byGroup && weightDecay != 0)
      open.push_back(std::move(tensor));
    return dimensions >= 2;
  }

  /// Notes tensors that an exporter has made from a parameter by adding a constant (Gemma's 1 + w)
  /// or by splitting it. Their gradients are equal, but not weight decay and norms.
  void noteFolded(train::ParameterOp parameter, double decay) {
    train::StoredTensor tensor = train::tensorsOf(parameter).front();
    if (tensor.folded == train::Folded::Shifted && (decay != 0 || usesNorms))
      shifted.push_back(std::move(tensor));
    else if (tensor.folded == train::Folded::Part && usesNorms)
      parts.push_back(std::move(tensor));
  }

  void warnOfFolded() {
    if (!shifted.empty())
      warn(shifted, "parameter '" + shifted.front().origin +
                        "' plus a constant that the exporter folded in, and " +
                        (usesNorms ? std::string(kind) + " scales updates by the norm of the sum"
                                   : "weight decay pulls the sum toward zero") +
                        ", not the parameter");
    if (!open.empty())
      warn(open, (open.front().origin.empty() ? "made of several parameters"
                                              : "made of parameter '" + open.front().origin + "'") +
                     " by the exporter, perhaps in another number of dimensions, and weight decay, "
                     "which leaves out vectors, goes by its own number unless --group decides");
    if (!parts.empty())
      warn(parts, "a part of parameter '" + parts.front().origin +
                      "' that the exporter made a tensor of its own, and " + std::string(kind) +
                      " scales its updates by its own norm");
  }

  /// Warns at compile time and, as for what import had to guess, at run time.
  void warn(ArrayRef<train::StoredTensor> tensors, const std::string &what) {
    const train::StoredTensor &first = tensors.front();
    std::string others = ", one of " + std::to_string(tensors.size()) + ",";
    std::string text = "tensor '" + first.name + "'" + (tensors.size() > 1 ? others : "") + " is " +
                       what +
                       "; to train the parameter, export without constant folding "
                       "(torch.onnx.export: optimize=False)";
    getOperation().emitWarning() << text;
    SmallVector<train::NoteAttr> notes = train::notesOf(getOperation());
    notes.push_back(train::NoteAttr::get(&getContext(), text, ArrayAttr(), /*of_parameters=*/true,
                                         /*of_forward=*/false));
    train::setNotes(getOperation(), notes);
  }

  /// Creates the update. Returns the last op that it makes.
  Operation *build(train::UpdateOp update, RegisteredOperationName name, SymbolTable &symbols,
                   const optimizer::Groups &byName) {
    OpBuilder builder(update);
    Location loc = update.getLoc();
    Type stored = update.getValue().getType(), type = inSingleAtLeast(stored);
    auto *optimizer = name.getInterface<train::OptimizerInterface>();
    SmallVector<StringRef> states = optimizer->getStateNames();
    OperationState op(loc, name);
    Value value = update.getValue();
    if (stored != type)
      value = state(builder, update, symbols, train::StateOp::kMaster);
    op.addOperands({value, update.getGradient()});
    for (StringRef each : states)
      op.addOperands(state(builder, update, symbols, each));
    auto parameter = symbols.lookup<train::ParameterOp>(update.getParameter());
    StringRef modelName = parameter.getModelName();
    bool decays = isDecayed(parameter, par::fullType(type).getRank(), byName.setDecay(modelName));
    optimizer::Group group = byName.of(modelName, {decays ? double(weightDecay) : 0.0, 1.0});
    for (auto &[key, value] : hyper)
      op.addAttribute(key, builder.getF64FloatAttr(key == "decay" ? group.decay : value));
    if (group.rateScale != 1)
      op.addAttribute("rate_scale", builder.getF64FloatAttr(group.rateScale));
    for (StringRef each : optimizer->getScalarNames())
      op.addOperands(control(builder, op, each, update, symbols));
    noteFolded(parameter, group.decay);
    if (scale)
      op.addOperands(scale);
    if (applies)
      op.addOperands(applies);
    op.addTypes(SmallVector<Type>(1 + states.size(), type));
    if (stored != type)
      op.addTypes(stored);
    if (stochasticRounding && getElementTypeOrSelf(stored).isBF16())
      op.addAttribute(AmpDialect::kStochastic, builder.getI64IntegerAttr(numberOf(parameter)));
    auto made = cast<train::OptimizerInterface>(builder.create(op));
    auto write = [&](StringRef kind, Value result) -> Operation * {
      return train::WriteOp::create(
          builder, loc, kind.empty() ? update.getParameter().str() : stateSymbol(parameter, kind),
          result);
    };
    Operation *last = write(stored != type ? StringRef(train::StateOp::kMaster) : StringRef(),
                            made->getResult(0));
    for (auto [number, each] : llvm::enumerate(states))
      last = write(each, made->getResult(1 + number));
    return made.getRounded() ? write("", made.getRounded()) : last;
  }

  /// Returns the parameter's number in the module.
  int64_t numberOf(train::ParameterOp parameter) {
    auto all = getOperation().getOps<train::ParameterOp>();
    return std::distance(all.begin(), llvm::find(all, parameter));
  }

  llvm::StringSet<> parameterNames;         // in the model
  std::vector<train::StoredTensor> shifted; // their values matter to their updates
  std::vector<train::StoredTensor> open;  // their parameters may have another number of dimensions
  std::vector<train::StoredTensor> parts; // their norms matter to their updates
  bool usesNorms = false;                 // the optimizer scales updates by trust ratios
  bool freezesRatios = false;             // which it stops to compute after a warm-up
  StringRef lastExact;                    // the hyperparameter that is the warm-up's last step
  std::map<StringRef, double> hyper;
  double bounds[2] = {0.01, 10}; // DeepSpeed's defaults for LAMB's ratio
  double keptOfMean = 0.9, threshold = 0.1, ofFactor[2] = {0.5, 4}; // and for 1-bit LAMB's
  DictionaryAttr scaling;                                           // of the loss, or null
  Value lossScale, applies;                   // of the loss; whether the step counts
  Value scale;                                // of all gradients, or null
  llvm::StringMap<Operation *> initialWrites; // the last one of a parameter and its states
};

} // namespace
