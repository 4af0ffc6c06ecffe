//===- CompressMomenta.cpp - sums of momenta, with a bit per element -------------------------===//
//
// What 1-bit Adam, 1-bit LAMB and 0/1 Adam communicate. The updates keep their arithmetic: in the steps whose
// sums are not exact, they are given the new momentum as their gradient.
//
//===----------------------------------------------------------------------------------------------===//

#include "partita/Optimizer/CompressMomenta.h"
#include "dialects/Amp/Amp.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/OneBit.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/States.h"
#include "dialects/Train/Tensors.h"
#include "dialects/Tx/Tx.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Parameters.h"
#include "partita/Optimizer/Passes.h"
#include "runtime/include/partita_rt/one_bit_shapes.h"
#include "runtime/include/partita_rt/state_names.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

namespace partita {
#define GEN_PASS_DEF_COMPRESSMOMENTAPASS
#include "partita/Optimizer/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// An update, the sum over ranks that its gradient is, and the states that the sum's compression needs.
struct Compressed {
  train::OptimizerInterface update;
  par::AllReduceOp sum;
  Value momentum;
  RankedTensorType worker, server; ///< types of the errors
  std::string workerName, serverName;
  Value term() const { return par::AllReduceOp(sum).getValues()[0]; }
};

/// The axis over which momenta are summed: that of ranks which have all states in full.
constexpr StringLiteral kAxis = par::axisThatSplits(par::Splits::Batch);

struct CompressMomenta : partita::impl::CompressMomentaPassBase<CompressMomenta> {
  using CompressMomentaPassBase::CompressMomentaPassBase;

  void runOnOperation() override {
    mesh = par::MeshAttr::of(getOperation());
    SmallVector<train::OptimizerInterface> updates;
    getOperation().walk([&](train::OptimizerInterface update) {
      if (!update.getSummedState().empty())
        updates.push_back(update);
    });
    if (updates.empty())
      return;
    if (!mesh ||
        llvm::none_of(mesh.getAxes(), [&](StringAttr axis) { return splitsBatch(axis); })) {
      // No rank has a gradient of its own samples; several ranks may go on with the states.
      if (failed(keepClip(updates.front(), /*sumsMomenta=*/false)))
        signalPassFailure();
      return;
    }
    SmallVector<Compressed> wanted;
    if (failed(checkProgram(updates.front())) || failed(collectAll(updates, wanted)))
      return signalPassFailure();
    compressed += wanted.size();
    makeErrors(wanted);
    if (failed(gatherOperands(wanted)))
      return signalPassFailure();
    if (failed(keepClip(wanted.front().update, /*sumsMomenta=*/true)))
      return signalPassFailure();
    for (auto &[holders, ofStage] : byStage(wanted))
      rewrite(ofStage);
  }

private:
  static InFlightDiagnostic refuse(train::OptimizerInterface update) {
    return update->emitError() << optimizer::overSeveralRanks(update->getName().stripDialect());
  }

  bool splitsBatch(StringAttr axis) const {
    return mesh.sizeOf(axis) > 1 && par::splits(axis, par::Splits::Batch);
  }

  /// Fails if the errors that compression leaves have no place to stay.
  LogicalResult checkProgram(train::OptimizerInterface first) {
    optimizer::SumsPlan plan;
    plan.stage = stage;
    for (StringAttr axis : mesh.getAxes())
      if (splitsBatch(axis))
        plan.batchAxes.push_back({axis, mesh.sizeOf(axis)});
    plan.scalesLoss = getOperation()->hasAttr(amp::AmpDialect::kScaled);
    plan.keepsStatesOnHost = llvm::is_contained(offload, "optimizer");
    if (std::optional<optimizer::SumsRefusal> refusal = optimizer::refusalOfSums(plan))
      return refuse(first) << refusal->reason;
    return success();
  }

  /// Finds the sums that are compressed: those of the parameters that `exact` does not name.
  LogicalResult collectAll(ArrayRef<train::OptimizerInterface> updates,
                           SmallVectorImpl<Compressed> &wanted) {
    auto kept = analysis::parametersNamed(getOperation(), exact, "keep-exact");
    if (failed(kept))
      return failure();
    SymbolTable symbols(getOperation());
    SmallVector<Compressed> named; // would be compressed, but for their names
    llvm::DenseSet<Operation *> parameters;
    for (train::OptimizerInterface update : updates) {
      FlatSymbolRefAttr name = train::updatedParameter(update);
      auto parameter = name ? symbols.lookup<train::ParameterOp>(name.getValue()) : nullptr;
      bool isKept = parameter && kept->contains(parameter);
      size_t before = named.size();
      if (failed(collect(update, isKept ? named : wanted)))
        return failure();
      if (named.size() > before)
        parameters.insert(parameter);
    }
    if (failed(analysis::checkNamed(
            getOperation(), exact, "keep-exact",
            [&](train::ParameterOp each) { return parameters.contains(each); },
            "would be exact without it: compressed are sums over dp that bits make smaller")))
      return failure();
    if (wanted.empty())
      return refuse(updates.front()) << "has no sum of a gradient over dp that bits make smaller"
                                     << (exact.empty() ? "" : " and that --keep-exact leaves")
                                     << "; use adamw or lamb, or a mesh without dp";
    return success();
  }

  /// Adds an update whose gradient is a sum over dp; one that every rank has by itself is left.
  LogicalResult collect(train::OptimizerInterface update, SmallVectorImpl<Compressed> &wanted) {
    Type type = update.getUpdatedValue().getType();
    if (!getElementTypeOrSelf(type).isF32())
      return refuse(update) << "compresses float32, and updates " << type;
    FailureOr<par::AllReduceOp> found = dataSum(update);
    if (failed(found))
      return failure();
    par::AllReduceOp sum = *found;
    if (!sum)
      return success();
    if (!sums.insert(sum).second)
      return refuse(update) << "sums the gradient of each parameter by itself, and here two "
                               "parameters have the same";
    auto momentum = update.getStateNamed(update.getSummedState()).getDefiningOp<train::ReadOp>();
    if (sum.getValues().size() != 1 || !momentum || !train::stateReadBy(momentum) ||
        momentum->getBlock() != update->getBlock() || sum->getBlock() != update->getBlock())
      return refuse(update) << "needs a sum and a momentum for each parameter, in its own function";
    if (!isWorthIt(sum))
      return success();
    Type term = inSingle(sum.getValues()[0].getType());
    RankedTensorType worker = par::OneBitAllReduceOp::workerType(term, sum.getAxisAttr(), mesh),
                     server = par::OneBitAllReduceOp::serverType(term, sum.getAxisAttr(), mesh);
    if (!worker || !server)
      return refuse(update) << "takes parameters that no rank has a shard of; the gradient here is "
                            << term << "; use --mesh dp=N alone";
    wanted.push_back({update, sum, momentum, worker, server, "", ""});
    return success();
  }

  /// The sum over dp that an update's gradient is. Sums over several axes may be taken in any order, so others are moved before it.
  /// Null if there is none; fails if there is one that cannot come last.
  static FailureOr<par::AllReduceOp> dataSum(train::OptimizerInterface update) {
    SmallVector<par::AllReduceOp> behind; // the last one first
    par::AllReduceOp sum;
    bool movable = true;
    for (Value value = update.getUpdatingGradient(); Operation *op = value.getDefiningOp();) {
      sum = dyn_cast<par::AllReduceOp>(op);
      bool isSum = sum && sum.getValues().size() == 1;
      if (sum && sum.getAxis() == kAxis) {
        movable &= behind.empty() || (isSum && sum->hasOneUse());
        break;
      }
      movable &= isSum && (behind.empty() || sum->hasOneUse());
      if (sum)
        behind.push_back(sum);
      Value only = sum ? sum.getValues()[cast<OpResult>(value).getResultNumber()] : operandOf(op);
      sum = nullptr;
      if (!only)
        break;
      value = only;
    }
    if (!sum)
      return sum;
    if (!movable)
      return refuse(update) << "sums a gradient over dp last, in full; here its sum over dp has "
                               "other uses or is changed before the update";
    for (par::AllReduceOp other : llvm::reverse(behind))
      sum = swapped(sum, other);
    return sum;
  }

  /// The tensor that an op without regions makes its only result of, if there is just one.
  static Value operandOf(Operation *op) {
    bool isPlain = op->getNumOperands() == 1 && op->getNumResults() == 1 &&
                   op->getNumRegions() == 0 && !isa<CollectiveInterface>(op);
    return isPlain ? op->getOperand(0) : Value();
  }

  /// Takes a sum over dp after the one that takes its result. Returns the new sum over dp.
  static par::AllReduceOp swapped(par::AllReduceOp data, par::AllReduceOp behind) {
    par::Layout layout = par::Layout::of(data.getValues()[0].getType());
    layout.set(behind.getAxisAttr(), par::Kind::Invariant);
    OpBuilder builder(behind);
    auto inner = par::AllReduceOp::create(
        builder, behind.getLoc(), TypeRange(par::withLayout(data.getValues()[0].getType(), layout)),
        data.getValues(), behind.getAxisAttr(), behind.getReasonAttr());
    auto outer =
        par::AllReduceOp::create(builder, data.getLoc(), behind.getResultTypes(),
                                 inner.getResults(), data.getAxisAttr(), data.getReasonAttr());
    behind.replaceAllUsesWith(outer.getResults());
    behind.erase();
    data.erase();
    return outer;
  }

  /// Are the blocks of a phase fewer bytes than the exact sum's values? A few elements are not worth a scale for each rank.
  bool isWorthIt(par::AllReduceOp sum) const {
    auto term = cast<RankedTensorType>(sum.getValues()[0].getType());
    int64_t ranks = mesh.sizeOf(sum.getAxisAttr());
    // Padding has no bit, and is left out where it is the end of a shard.
    return par::OneBitAllReduceOp::paddingOf(term, mesh) &&
           ranks * partita_rt::oneBitBytes(term.getNumElements(), ranks) < bytesOf(TypeRange(term));
  }

  /// The type of what is compressed: float32, whatever gradients are computed in, because errors are what is left of
  /// a value, to be added to the next one.
  static RankedTensorType inSingle(Type type) {
    return cast<RankedTensorType>(type).clone(Float32Type::get(type.getContext()));
  }

  //===-- States

  /// Creates the states of what compression leaves out; each begins with zeros.
  void makeErrors(MutableArrayRef<Compressed> wanted) {
    SymbolTable symbols(getOperation());
    for (auto parameter : getOperation().getOps<train::ParameterOp>())
      parameterNames.insert(parameter.getModelName());
    if (auto init = train::lookup<func::FuncOp>(getOperation(), train::EntryPoint::Init))
      init.walk([&](train::WriteOp write) { initialWrites[write.getSymbol()].push_back(write); });
    for (Compressed &each : wanted) {
      each.workerName = makeState(each, partita_rt::kWorkerError, each.worker, symbols);
      each.serverName = makeState(each, partita_rt::kServerError, each.server, symbols);
    }
  }

  /// Creates a state, and its initial value behind the momentum's. Returns its name.
  std::string makeState(const Compressed &of, StringRef kind, RankedTensorType type,
                        SymbolTable &symbols) {
    train::StateOp momentum = train::stateReadBy(of.momentum);
    auto parameter = symbols.lookup<train::ParameterOp>(*momentum.getOf());
    std::string name = partita_rt::stateName(
        parameter.getModelName().str(), kind.str(),
        [&](const std::string &other) { return parameterNames.contains(other); });
    OpBuilder builder(momentum);
    builder.setInsertionPointAfter(momentum);
    auto state =
        train::StateOp::create(builder, parameter.getLoc(), name, par::fullType(type), APFloat(0.0),
                               momentum.getOfAttr(), builder.getStringAttr(kind));
    symbols.insert(state);
    for (train::WriteOp write : initialWrites.lookup(momentum.getSymName())) {
      builder.setInsertionPointAfter(write);
      auto zeros = train::InitialValueOp::create(builder, write.getLoc(), type,
                                                 FlatSymbolRefAttr::get(state.getSymNameAttr()));
      train::WriteOp::create(builder, write.getLoc(), state.getSymName(), zeros);
    }
    return state.getSymName().str();
  }

  //===-- The sum

  static Value numberOf(train::OptimizerInterface update) { return update.getScalarNamed("t"); }
  static APFloat betaOf(train::OptimizerInterface update) {
    return APFloat(update.getSummedDecay());
  }

  /// Finds the place of the sum, where all gradients are there and none is used (by a norm or an update), and moves before it what it needs.
  LogicalResult gatherOperands(ArrayRef<Compressed> wanted) {
    train::OptimizerInterface first = wanted.front().update;
    place = first;
    for (Compressed each : wanted) {
      if (each.update->getBlock() != first->getBlock() ||
          !(each.update.getExactSteps() == first.getExactSteps()))
        return refuse(each.update) << "sums all momenta at once: their updates are in one "
                                      "function, and exact in the same steps";
      for (Operation *user : each.sum->getUsers())
        if (user->getBlock() == place->getBlock() && user->isBeforeInBlock(place))
          place = user;
    }
    for (const Compressed &each : wanted) {
      each.momentum.getDefiningOp()->moveBefore(place);
      Operation *number = numberOf(each.update).getDefiningOp(),
                *term = each.term().getDefiningOp();
      if (number && !number->isBeforeInBlock(place))
        number->moveBefore(place);
      if (term && term->getBlock() == place->getBlock() && !term->isBeforeInBlock(place))
        return refuse(each.update) << "needs all gradients before the first update";
    }
    return success();
  }

  /// Sums of parameters that the same pipeline stages have; without stages, all.
  llvm::MapVector<Attribute, SmallVector<Compressed>> byStage(ArrayRef<Compressed> wanted) {
    SymbolTable symbols(getOperation());
    llvm::MapVector<Attribute, SmallVector<Compressed>> result;
    for (const Compressed &each : wanted) {
      Operation *parameter = symbols.lookup(*train::stateReadBy(each.momentum).getOf());
      result[parameter->getAttr(pipe::PipeDialect::kHolders)].push_back(each);
    }
    return result;
  }

  /// One sum for these tensors, so that a step exchanges bits once.
  void rewrite(ArrayRef<Compressed> wanted) {
    OpBuilder builder(place);
    train::OptimizerInterface any = wanted.front().update;
    Value t = numberOf(any);
    partita_rt::ExactSteps exact = any.getExactSteps();
    SmallVector<Value> values, workers, servers;
    SmallVector<Type> sums;
    SmallVector<Location> places;
    for (Compressed each : wanted) {
      Location loc = each.sum.getLoc();
      Value term = each.term();
      if (RankedTensorType type = inSingle(term.getType()); term.getType() != type)
        term = tx::CastOp::create(builder, provenance::backward(loc), type, term);
      values.push_back(par::OneBitTermOp::create(builder, loc, term.getType(), term, each.momentum,
                                                 t, typicalClip, kAxis, betaOf(each.update),
                                                 exact));
      workers.push_back(train::ReadOp::create(builder, loc, each.worker, each.workerName));
      servers.push_back(train::ReadOp::create(builder, loc, each.server, each.serverName));
      sums.push_back(inSingle(each.sum.getResults()[0].getType()));
      places.push_back(loc);
    }
    llvm::append_range(sums, ValueRange(workers).getTypes());
    llvm::append_range(sums, ValueRange(servers).getTypes());
    values.append(workers);
    values.append(servers);
    auto made =
        par::OneBitAllReduceOp::create(builder, FusedLoc::get(&getContext(), places), sums, values,
                                       t, kAxis, exact, builder.getStringAttr("momentum"));
    size_t count = wanted.size();
    for (auto [number, each] : llvm::enumerate(wanted)) {
      train::OptimizerInterface update = each.update;
      par::AllReduceOp sum = each.sum;
      sum.getResults()[0].replaceAllUsesWith(made.getResults()[number]);
      noteCompression(update);
      if (typicalClip)
        scaleSum(update);
      builder.setInsertionPointAfter(update);
      train::WriteOp::create(builder, update.getLoc(), each.workerName,
                             made.getResults()[count + number]);
      train::WriteOp::create(builder, update.getLoc(), each.serverName,
                             made.getResults()[2 * count + number]);
      if (stage == 1)
        keepMomentum(update, each.momentum, made.getResults()[number], t, exact);
      sum->erase();
    }
  }

  /// The ratio by which an update scales its steps, if it has one of its own.
  static train::FrozenTrustRatioOp ratioOf(train::OptimizerInterface update) {
    for (Value scalar : update.getScalarValues())
      if (auto ratio = scalar.getDefiningOp<train::FrozenTrustRatioOp>())
        return ratio;
    return {};
  }

  /// Notes on the update, and on its ratio, that the operand of the gradient is the new momentum in steps that are not exact.
  static void noteCompression(train::OptimizerInterface update) {
    Attribute one = OpBuilder(update).getF64FloatAttr(1);
    update->setAttr(update.kCompressed, one);
    if (train::FrozenTrustRatioOp ratio = ratioOf(update)) {
      NamedAttrList hyper(ratio.getHyper());
      hyper.set(update.kCompressed, one);
      ratio.setHyperAttr(hyper.getDictionary(update->getContext()));
    }
  }

  /// Computes the new momentum in full: a rank's next term needs it, and has all of the sum anyway. The update, of which ZeRO makes that of a
  /// shard, has a shard of its own.
  static void keepMomentum(train::OptimizerInterface update, Value momentum, Value sum, Value t,
                           partita_rt::ExactSteps exact) {
    OpBuilder builder(update->getContext());
    builder.setInsertionPointAfter(update);
    Value mean =
        par::OneBitMeanOp::create(builder, update.getLoc(), sum.getType(), sum, momentum, t,
                                  update.getGradientScale(), kAxis, betaOf(update), exact);
    update.getNewStateNamed(update.getSummedState()).replaceAllUsesWith(mean);
  }

  //===-- Clipping

  /// Where gradients are clipped: keeps the typical factor of the exact steps, a state, by which gradients are multiplied in all others, where nobody
  /// knows their norm (par.one_bit_clip). All updates have the same factor, also those whose gradients stay exact. One rank clips in all steps,
  /// and keeps the state for others that may go on. (With a loss scale these do not sum momenta.)
  LogicalResult keepClip(train::OptimizerInterface any, bool sumsMomenta) {
    Value factor = any.getGradientScale();
    if (!factor || getOperation()->hasAttr(amp::AmpDialect::kScaled))
      return success();
    StringRef name = par::OneBitClipOp::kState;
    if (failed(train::checkStateNames(getOperation(), name, "--clip with this optimizer",
                                      "without --clip")))
      return failure();
    Location loc = factor.getLoc();
    auto type = cast<RankedTensorType>(factor.getType());
    train::makeState(getOperation(), name, type, 1);
    OpBuilder builder(sumsMomenta ? place : any);
    Value typical = train::ReadOp::create(builder, loc, type, name);
    if (sumsMomenta)
      builder.setInsertionPointAfterValue(factor);
    auto clip =
        par::OneBitClipOp::create(builder, loc, type, type, type, factor, typical, numberOf(any),
                                  APFloat(any.getVarianceDecay()), any.getExactSteps());
    train::WriteOp::create(builder, loc, name, clip.getNewTypical());
    if (!sumsMomenta)
      return success();
    factor.replaceAllUsesExcept(clip.getOfGradients(), clip);
    typicalClip = typical;
    sumFactor = clip.getOfSums();
    return success();
  }

  /// Gives an update, and its ratio, the factor of a compressed sum.
  void scaleSum(train::OptimizerInterface update) {
    Value gradientFactor = update.getGradientScale();
    if (train::FrozenTrustRatioOp ratio = ratioOf(update))
      ratio->replaceUsesOfWith(gradientFactor, sumFactor);
    update.setGradientScale(sumFactor);
  }

  par::MeshAttr mesh;
  Operation *place = nullptr;                                    // of the sum
  Value typicalClip;                                             // null without clipping
  Value sumFactor;                                               // of compressed sums
  llvm::StringMap<SmallVector<train::WriteOp, 1>> initialWrites; // in @init, by symbol
  llvm::StringSet<> parameterNames;                              // in the model
  llvm::DenseSet<Operation *> sums;                              // of the updates so far
};

} // namespace
