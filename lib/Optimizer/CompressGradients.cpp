//===- CompressGradients.cpp - sums of momenta, with a bit per element -------------------------===//
//
// What 1-bit Adam communicates. The updates keep their arithmetic: from the step after the warm-up
// on, what takes the gradient's place is the new momentum.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/OneBit.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Target.h"
#include "dialects/Train/Tensors.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Optimizer/Passes.h"
#include "runtime/include/partita_rt/state_names.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

namespace partita {
#define GEN_PASS_DEF_COMPRESSGRADIENTSPASS
#include "partita/Optimizer/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// An update, and the sum over ranks that its gradient is.
struct Compressed {
  train::OneBitAdamOp update;
  par::AllReduceOp sum;
  train::ReadOp momentum;
};

struct CompressGradients : partita::impl::CompressGradientsPassBase<CompressGradients> {
  using CompressGradientsPassBase::CompressGradientsPassBase;

  void runOnOperation() override {
    SmallVector<train::OneBitAdamOp> updates;
    getOperation().walk([&](train::OneBitAdamOp update) { updates.push_back(update); });
    SmallVector<Compressed> wanted;
    for (train::OneBitAdamOp update : updates)
      if (failed(collect(update, wanted)))
        return signalPassFailure();
    if (wanted.empty())
      return;
    for (auto parameter : getOperation().getOps<train::ParameterOp>())
      parameterNames.insert(parameter.getModelName());
    compressed += wanted.size();
    if (failed(rewrite(wanted)))
      signalPassFailure();
  }

private:
  /// Adds an update whose gradient is a sum over ranks; one that every rank has by itself is left. Fails where the sum
  /// is not all that the update depends on, or errors have no place to stay.
  LogicalResult collect(train::OneBitAdamOp update, SmallVectorImpl<Compressed> &wanted) {
    auto sum = update.getGradient().getDefiningOp<par::AllReduceOp>();
    auto refuse = [&](const Twine &what) {
      return update.emitError() << "onebit-adam over several ranks " << what;
    };
    par::MeshAttr mesh = par::MeshAttr::of(getOperation());
    auto splitsBatch = [&](StringAttr axis) {
      return mesh.sizeOf(axis) > 1 && par::splits(axis, par::Splits::Batch);
    };
    if (!mesh || llvm::none_of(mesh.getAxes(), splitsBatch))
      return success(); // no rank has a gradient of its own samples
    for (StringAttr axis : mesh.getAxes())
      if (splitsBatch(axis) && axis != "dp")
        return refuse("compresses momenta that every rank has in full, and " + axis.getValue() +
                      " shards them; use --mesh dp=N");
    if (rt::Target::of(getOperation()).queuesWork())
      return refuse("has no kernels for GPUs that pack signs into bits; use --target cpu");
    if (getOperation()->hasAttr(pipe::PipeDialect::kStages))
      return refuse("takes no pipeline stages; use --mesh dp=N alone");
    if (stage != 0)
      return refuse("compresses momenta that every rank has in full; use --zero-stage 0, not " +
                    Twine(stage));
    if (!getElementTypeOrSelf(update.getValue().getType()).isF32() || update.getRounded())
      return refuse("compresses float32; use --precision float32");
    if (update.getGradientScale())
      return refuse("compresses what each rank has before the sum, of which no norm is known; "
                    "leave out --clip and --loss-scale");
    if (!sum) // a gradient without a term of any rank's own
      return success();
    sum = withDataLast(sum);
    if (sum.getAxis() != "dp")
      return success();
    Type term = sum.getValues()[0].getType();
    auto momentum = update.getStateValues()[0].getDefiningOp<train::ReadOp>();
    if (sum.getValues().size() != 1 || !momentum || !train::stateReadBy(momentum) ||
        momentum->getBlock() != update->getBlock() || sum->getBlock() != update->getBlock())
      return refuse("needs a sum and a momentum for each parameter, in its own function");
    if (cast<RankedTensorType>(term).getRank() == 0) // a bit and a scale are all of one element
      return success();
    if (!par::OneBitAllReduceOp::workerType(term, sum.getAxisAttr(), mesh))
      return refuse("takes parameters that no rank has a shard of; the gradient here is " +
                    llvm::formatv("{0}", term).str() + "; use --mesh dp=N alone");
    wanted.push_back({update, sum, momentum});
    return success();
  }

  /// Sums over several axes may be taken in any order: moves that over dp behind one over another axis. Returns the last one.
  static par::AllReduceOp withDataLast(par::AllReduceOp last) {
    auto first = last.getValues()[0].getDefiningOp<par::AllReduceOp>();
    if (last.getAxis() == "dp" || !first || first.getAxis() != "dp" || !first->hasOneUse() ||
        first.getValues().size() != 1 || last.getValues().size() != 1)
      return last;
    par::Layout layout = par::Layout::of(first.getValues()[0].getType());
    layout.set(last.getAxisAttr(), par::Kind::Invariant);
    OpBuilder builder(last);
    auto inner = par::AllReduceOp::create(
        builder, last.getLoc(), TypeRange(par::withLayout(first.getValues()[0].getType(), layout)),
        first.getValues(), last.getAxisAttr(), last.getReasonAttr());
    auto outer =
        par::AllReduceOp::create(builder, first.getLoc(), last.getResultTypes(), inner.getResults(),
                                 first.getAxisAttr(), first.getReasonAttr());
    last.replaceAllUsesWith(outer.getResults());
    last.erase();
    first.erase();
    return withDataLast(outer);
  }

  /// One sum for all tensors, where the first update stands: their gradients are all there.
  LogicalResult rewrite(ArrayRef<Compressed> wanted) {
    Operation *first = wanted.front().update;
    for (const Compressed &each : wanted)
      if (each.update->isBeforeInBlock(first))
        first = each.update;
    for (const Compressed &each : wanted) {
      each.momentum->moveBefore(first);
      if (Operation *number = numberOf(each.update).getDefiningOp())
        if (!number->isBeforeInBlock(first))
          number->moveBefore(first);
    }
    for (Compressed each : wanted)
      if (Operation *term = each.sum.getValues()[0].getDefiningOp();
          term && term->getBlock() == first->getBlock() && !term->isBeforeInBlock(first))
        return each.update.emitError()
               << "onebit-adam over several ranks needs all gradients before the first update";
    build(wanted, first);
    return success();
  }

  void build(ArrayRef<Compressed> wanted, Operation *first) {
    par::MeshAttr mesh = par::MeshAttr::of(getOperation());
    OpBuilder builder(first);
    StringAttr axis = par::AllReduceOp(wanted.front().sum).getAxisAttr();
    Value t = numberOf(wanted.front().update);
    auto exact = static_cast<int64_t>(
        train::OneBitAdamOp(wanted.front().update).getFreeze().convertToDouble());
    SmallVector<Value> operands;
    SmallVector<Location> places;
    SmallVector<std::array<train::StateOp, 2>> errors;
    for (Compressed each : wanted) {
      Value term = each.sum.getValues()[0];
      operands.push_back(par::OneBitTermOp::create(builder, each.sum.getLoc(), term.getType(), term,
                                                   each.momentum, t, axis.getValue(),
                                                   each.update.getBeta1(), exact));
      places.push_back(each.sum.getLoc());
      errors.push_back({state(each, partita_rt::kWorkerError,
                              par::OneBitAllReduceOp::workerType(term.getType(), axis, mesh)),
                        state(each, partita_rt::kServerError,
                              par::OneBitAllReduceOp::serverType(term.getType(), axis, mesh))});
    }
    for (unsigned kind : {0, 1})
      for (auto [each, own] : llvm::zip_equal(wanted, errors)) {
        Type term = par::AllReduceOp(each.sum).getValues()[0].getType();
        Type type = kind == 0 ? par::OneBitAllReduceOp::workerType(term, axis, mesh)
                              : par::OneBitAllReduceOp::serverType(term, axis, mesh);
        operands.push_back(
            train::ReadOp::create(builder, each.update->getLoc(), type, own[kind].getSymName()));
      }
    SmallVector<Type> types;
    for (const Compressed &each : wanted)
      types.push_back(par::AllReduceOp(each.sum).getResults()[0].getType());
    for (Value error : ArrayRef(operands).drop_front(wanted.size()))
      types.push_back(error.getType());
    auto made = par::OneBitAllReduceOp::create(
        builder, FusedLoc::get(&getContext(), places), types, operands, t, axis.getValue(),
        static_cast<uint64_t>(exact), builder.getStringAttr("momentum"));
    for (auto [number, each, own] : llvm::enumerate(wanted, errors)) {
      train::OneBitAdamOp update = each.update;
      update.setOperand(train::OptimizerInterface::kGradient, made.getResults()[number]);
      update.setCompressed(APFloat(1.0));
      builder.setInsertionPointAfter(update);
      for (unsigned kind : {0, 1})
        train::WriteOp::create(builder, update.getLoc(), own[kind].getSymName(),
                               made.getResults()[(kind + 1) * wanted.size() + number]);
    }
    for (const Compressed &each : wanted)
      if (par::AllReduceOp sum = each.sum; sum->use_empty())
        sum->erase();
  }

  static Value numberOf(train::OneBitAdamOp update) { return update.getScalarValues()[1]; }

  /// Creates a state that begins with zeros, and its initial value behind the momentum's.
  train::StateOp state(Compressed of, StringRef kind, RankedTensorType type) {
    train::StateOp momentum = train::stateReadBy(of.momentum);
    SymbolTable symbols(getOperation());
    auto parameter = symbols.lookup<train::ParameterOp>(*momentum.getOf());
    std::string symbol = partita_rt::stateName(
        parameter.getModelName().str(), kind.str(),
        [&](const std::string &name) { return parameterNames.contains(name); });
    OpBuilder builder(momentum);
    builder.setInsertionPointAfter(momentum);
    auto made =
        train::StateOp::create(builder, parameter.getLoc(), symbol, par::fullType(type),
                               APFloat(0.0), momentum.getOfAttr(), builder.getStringAttr(kind));
    symbols.insert(made);
    auto init = train::lookup<func::FuncOp>(getOperation(), train::EntryPoint::Init);
    if (!init)
      return made;
    SmallVector<train::WriteOp> writes;
    init.walk([&](train::WriteOp write) {
      if (write.getSymbol() == momentum.getSymName())
        writes.push_back(write);
    });
    for (train::WriteOp write : writes) {
      builder.setInsertionPointAfter(write);
      auto zeros = train::InitialValueOp::create(builder, write.getLoc(), type,
                                                 FlatSymbolRefAttr::get(made.getSymNameAttr()));
      train::WriteOp::create(builder, write.getLoc(), made.getSymName(), zeros);
    }
    return made;
  }

  llvm::StringSet<> parameterNames; // in the model
};

} // namespace
