//===- VerifyPhase.cpp - verify-phase -----------------------------------------------------------===//
//
// A table has a row for each phase, which says what holds after it: the dialects that are new, the
// ops that are gone, the faults that no op may have. A row adds to those above it: dialects stay,
// removed ops stay away, and faults stay faults.
//
// In a program of pipeline stages, each a module, a row holds for every stage.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Par/Reasons.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
#include "lib/Verify/Functions.h"
#include "lib/Verify/Stages.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/Verifier.h"
#include "partita/Analysis/StageMap.h"
#include "partita/Verify/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

namespace partita {
#define GEN_PASS_DEF_VERIFYPHASEPASS
#include "partita/Verify/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

using Predicate = bool (*)(Operation *);

/// A fault that no op may have after a phase, the message that follows the op's name, and advice.
struct Fault {
  Predicate isIn = nullptr;
  StringLiteral says = "";
  StringLiteral advice = "";
};

/// Provenance is derived from locations after each pass (partita/Phases/Provenance.h).
constexpr StringLiteral kGiveLocation =
    "; a pass gives each new op the location of the op that it replaces; in IR edited by hand, "
    "write the attribute";

struct Contract {
  StringLiteral phase;
  Predicate isKnown; ///< its dialect may be present from now on
  Predicate isGone;  ///< must not be present from now on
  Fault faults[3] = {};
  Predicate isNew = nullptr; ///< of a known dialect, but created by this phase and none before
  bool makesSteps = false;   ///< from now on, the steps of training are functions
  bool placesShards = false; ///< from now on, shards are those of placements on the mesh
};

template <typename... Dialects> bool isOf(Operation *op) {
  return isa_and_nonnull<Dialects...>(op->getDialect());
}
template <typename... Ops> bool isOneOf(Operation *op) { return isa<Ops...>(op); }

/// Does it compute values that live in memory? Values inside a kernel live in registers.
bool isStep(Operation *op) {
  return op->getNumResults() > 0 &&
         isa_and_nonnull<func::FuncOp, train::AccumulateOp>(op->getParentOp());
}

/// Is it part of the model's computation, or communication for it? A constant that several ops
/// share has no provenance, because upstream's folders drop its location.
bool hasProvenance(Operation *op) { return isStep(op) && !op->hasTrait<OpTrait::ConstantLike>(); }

/// An op that is built from ops of layers belongs to a layer, too.
bool lacksLayer(Operation *op) {
  return hasProvenance(op) && !train::LayerAttr::of(op) &&
         llvm::any_of(op->getOperands(), [](Value operand) {
           Operation *definer = operand.getDefiningOp();
           return definer && train::LayerAttr::of(definer);
         });
}

/// `note-flops` has recorded the work of marked layers, but no mark is left.
bool lostLayers(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  Operation *program = function;
  while (program && !program->hasAttr(train::TrainDialect::kWork))
    program = program->getParentOp();
  if (!program)
    return false;
  bool isStepped = false;
  WalkResult found = function.walk([&](Operation *each) {
    isStepped |= hasProvenance(each);
    return train::LayerAttr::of(each) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return isStepped && !found.wasInterrupted();
}

bool hasLayerCount(Operation *op, bool isZero) {
  return op
      ->walk([&](Operation *each) {
        train::LayerAttr layer = train::LayerAttr::of(each);
        bool isFound = layer && (layer.getCount() == 0) == isZero;
        return isFound ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// All ops agree on whether the model has layers, in @init as well.
bool contradictsLayers(Operation *op) {
  return isa<func::FuncOp>(op) && hasLayerCount(op, /*isZero=*/true) &&
         hasLayerCount(op->getParentOfType<ModuleOp>(), /*isZero=*/false);
}

bool lacksAxis(Operation *op) {
  return isa<ModuleOp>(op) &&
         (op->hasAttr(pipe::PipeDialect::kStages) || op->hasAttr(pipe::PipeDialect::kStage)) &&
         !op->hasAttr(pipe::PipeDialect::kAxis);
}

bool lacksCuts(Operation *op) {
  return op->hasAttr(pipe::PipeDialect::kStages) && !op->hasAttr(pipe::PipeDialect::kCuts);
}

/// Ops that amplify errors or add up many numbers have results in 32 bits. Gradients have the types
/// of the values that they belong to.
bool roundsTooEarly(Operation *op) {
  auto precision = dyn_cast<PrecisionInterface>(op);
  return precision && precision.getPrecision() >= Precision::High && isStep(op) &&
         !computesGradients(op) && llvm::any_of(op->getResultTypes(), [](Type type) {
           auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
           return element && element.getWidth() < 32;
         });
}

bool isAnnotated(Operation *op) { return op->hasAttr(train::TrainDialect::kShardings); }

/// A norm's terms are summed over every axis that splits something, so no letter of a rule is the
/// cause. They alone are float64.
bool isOfNorm(Operation *op) { return getElementTypeOrSelf(op->getOperand(0).getType()).isF64(); }

/// Every op that partitioning inserts, and every op derived from one, names its causes.
bool lacksCauses(Operation *op) {
  return isa<CollectiveInterface, par::ReshardInterface, par::FOp, par::GOp, par::MaxOp>(op) &&
         par::causesOf(op).empty() && !isOfNorm(op);
}

/// The model computes with full parameters; shards are for updates.
bool computesWithShards(Operation *op) {
  return isOf<tx::TxDialect>(op) && llvm::any_of(op->getOperands(), [](Value operand) {
           return operand.getDefiningOp<train::ReadOp>() &&
                  !par::Layout::of(operand.getType()).flat.empty();
         });
}

bool isOfBackwardRegion(Operation *op) {
  auto loop = dyn_cast_or_null<train::AccumulateOp>(op->getParentOp());
  return loop && loop.hasBackward() &&
         loop.getPasses()[op->getParentRegion()->getRegionNumber()].kind !=
             train::PassKind::Forward;
}

/// Returns the op that computes a value, or the value that this is a shard of; within a loop, if
/// one adds it up or hands it out. Null if it comes from outside.
Operation *sourceOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto shard = dyn_cast_or_null<zero::ShardOp>(op))
    return sourceOf(shard.getValue());
  if (auto loop = dyn_cast_or_null<train::AccumulateOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    return sourceOf(number < loop.getSums().size() ? loop.getPart(number).get() : handedOut(value));
  }
  return op;
}

/// Differentiation marks all ops of the backward regions. After these regions, and once they are
/// joined with forward regions, ops that compute with values of the backward pass still belong to
/// it. Updates do not; their ops are of other dialects.
bool lacksDirection(Operation *op) {
  if (!hasProvenance(op) || computesGradients(op))
    return false;
  auto isBackward = [](Value operand) {
    Operation *source = sourceOf(operand);
    bool isMessage = isa_and_nonnull<pipe::MoveOp, pipe::RecvOp>(source); // perhaps of the loss
    return source && !isMessage && provenance::isBackward(source);
  };
  return isOfBackwardRegion(op) || ((isOf<tx::TxDialect>(op) || isa<CollectiveInterface>(op)) &&
                                    llvm::any_of(op->getOperands(), isBackward));
}

/// A gradient that is zero, because the loss does not depend on the parameter, is a constant.
bool updatesByForwardPass(Operation *op) {
  auto update = dyn_cast<train::OptimizerInterface>(op);
  Operation *source = update ? sourceOf(update.getUpdatingGradient()) : nullptr;
  return source && !computesGradients(source) && !source->hasTrait<OpTrait::ConstantLike>();
}

bool isUnscheduled(Operation *op) {
  auto loop = dyn_cast<train::AccumulateOp>(op);
  return loop && loop.isUnscheduled();
}

/// A kernel reduces contiguous memory.
bool reducesApart(Operation *op) {
  auto isApart = [](auto reduction) {
    SmallVector<int64_t> dims(reduction.getDims());
    llvm::sort(dims);
    ArrayRef<int64_t> shape = reduction.getX().getType().getShape();
    for (int64_t dim = dims.empty() ? 0 : dims.front(); dim < (dims.empty() ? 0 : dims.back());
         ++dim)
      if (shape[dim] != 1 && !llvm::is_contained(dims, dim))
        return true;
    return false;
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<tx::ReduceSumOp, tx::ReduceMeanOp, tx::ReduceMaxOp>(isApart)
      .Default(false);
}

/// A reduce-scatter adds up what it moves: one that rounds becomes an exchange.
bool sumsInBlocks(Operation *op) {
  auto scatter = dyn_cast<zero::ReduceScatterOp>(op);
  return scatter && scatter.getInt4Block();
}

bool lacksMemory(Operation *op) { return isStep(op) && !op->hasAttr(rt::RtDialect::kBuffers); }

const Contract kContracts[] = {
    // par, because a module written by hand may place collectives itself
    {"import",
     isOf<BuiltinDialect, func::FuncDialect, train::TrainDialect, tx::TxDialect, par::ParDialect>,
     nullptr},
    // Nothing to check: a spelling that no pattern knows stays, and a file may have the composites
    // itself.
    {"raise", nullptr, nullptr},
    {"objective",
     nullptr,
     nullptr,
     {{lacksLayer, "has no train.layer", kGiveLocation},
      {lostLayers, "has no op with train.layer, although train.work records the work of layers"},
      {contradictsLayers, "has a train.layer of 0 layers, although the model has layers"}},
     /*isNew=*/nullptr,
     /*makesSteps=*/true},
    {"precision",
     nullptr,
     nullptr,
     {{roundsTooEarly, "rounds a result to 16 bits that stays in 32"}}},
    {"stages",
     isOf<pipe::PipeDialect>,
     nullptr,
     {{lacksAxis, "is of pipeline stages but has no pipe.axis"},
      {lacksCuts, "is of pipeline stages but has no pipe.cuts"}}},
    {"partition",
     nullptr,
     nullptr,
     {{lacksCauses, "has no par.causes", kGiveLocation}, {isAnnotated, "has train.shardings"}},
     /*isNew=*/nullptr,
     /*makesSteps=*/false,
     /*placesShards=*/true},
    {"parameters",
     isOf<zero::ZeroDialect>,
     nullptr,
     {{computesWithShards, "computes with shards of a parameter that no gather has made full"}}},
    {"differentiate",
     isOf<amp::AmpDialect>,
     isOneOf<par::FOp, par::GOp, par::MaxOp, train::MinimizeOp>,
     {{lacksDirection, "is of the backward pass but has no train.backward", kGiveLocation}}},
    {"optimize",
     nullptr,
     isOneOf<train::UpdateOp>,
     {{updatesByForwardPass, "takes a gradient from an op without train.backward", kGiveLocation}},
     isOneOf<train::OptimizerInterface>},
    {"states", nullptr, [](Operation *op) { return op->hasTrait<train::OfFullTensors>(); }},
    {"offload", isOf<offload::OffloadDialect>, nullptr},
    {"cut", nullptr, isOneOf<pipe::MoveOp, pipe::ShareOp, pipe::PinOp, pipe::CopiesOp>},
    {"schedule",
     nullptr,
     nullptr,
     {{isUnscheduled, "has a backward region of its own, and no order"}}},
    {"fuse",
     nullptr,
     nullptr,
     {{reducesApart, "reduces dimensions that are not adjacent"}},
     isOneOf<tx::FusionOp, tx::FusedMatmulOp, tx::FusedLookupOp, tx::MatMulBiasOp,
             tx::MatMulNTBiasOp, tx::ScaledMatMulBiasOp, tx::ScaledMatMulNTBiasOp,
             tx::ClassifierLossOp, tx::ClassifierLossGradOp, tx::RotaryOp>},
    {"overlap",
     nullptr,
     nullptr,
     {{sumsInBlocks, "sums blocks of 4 bits, which no exchange of them stands for",
       "; run zero-quantize-scatters"}},
     isOneOf<AsyncStartInterface, AsyncWaitInterface, par::PollOp>},
    {"memory",
     nullptr,
     nullptr,
     {{lacksMemory, "has no memory (rt.buffers)",
       "; run plan-memory again after a pass that makes ops"}}},
    // check-streams changes nothing, and has checked all that holds afterwards.
    {"sync", nullptr, nullptr},
};

/// May it be left after the last phase? EmitC may, and the declarations of parameters and states.
bool isEmitted(Operation *op) {
  return isOf<BuiltinDialect, emitc::EmitCDialect>(op) ||
         isOneOf<train::ParameterOp, train::StateOp>(op);
}

struct VerifyPhase : partita::impl::VerifyPhasePassBase<VerifyPhase> {
  using VerifyPhasePassBase::VerifyPhasePassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();               // so that ops are not verified again
    if (failed(mlir::verify(getOperation()))) // the driver runs a phase's passes without
      return signalPassFailure();
    const Contract *last = llvm::find_if(
        kContracts, [&](const Contract &contract) { return contract.phase == after.getValue(); });
    if (last == std::end(kContracts) && after != "lower") {
      getOperation().emitError() << "verify-phase: there is no phase '" << after << "'";
      return signalPassFailure();
    }
    if (last != std::end(kContracts))
      contracts = ArrayRef(std::begin(kContracts), last + 1);
    auto isPast = [&](bool Contract::*fact) {
      return llvm::any_of(contracts, [&](const Contract &each) { return each.*fact; });
    };
    hasObjective = isPast(&Contract::makesSteps);
    placesShards = isPast(&Contract::placesShards);
    WalkResult result = getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      auto module = dyn_cast<ModuleOp>(op);
      bool isWrong = (module && failed(enter(module))) ||
                     failed(contracts.empty() ? checkEmitted(op) : check(op));
      return isWrong ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted() || failed(checkPlacement(getOperation(), after)) ||
        failed(checkStagesAgree(getOperation(), after)))
      signalPassFailure();
  }

private:
  LogicalResult enter(ModuleOp module) {
    mesh = par::MeshAttr::of(module);
    fitting.clear();
    if (module->hasAttr(pipe::PipeDialect::kStages))
      for (auto function : module.getOps<func::FuncOp>())
        if (!function.isDeclaration() && failed(StageMap::of(function)))
          return failure();
    return success(succeeded(checkEntryPoints(module)) &&
                   (!hasObjective || (succeeded(checkCalled(module, after)) &&
                                      succeeded(checkBatches(module, after)))));
  }

  /// Is every rank's shard that of the value's placement on the mesh?
  LogicalResult checkShards(Operation *op) {
    SmallVector<Type> types(op->getResultTypes());
    for (Region &region : op->getRegions())
      llvm::append_range(types, region.getArgumentTypes());
    for (Type type : types) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.getEncoding() || !fitting.insert(type).second)
        continue;
      if (std::string problem = par::shardProblem(tensor, mesh); !problem.empty())
        return op->emitOpError() << "does not fit the mesh " << mesh << " after phase '" << after
                                 << "': " << problem;
    }
    return success();
  }

  LogicalResult check(Operation *op) {
    auto any = [&](Predicate Contract::*holds) {
      return llvm::any_of(contracts, [&](const Contract &contract) {
        return contract.*holds && (contract.*holds)(op);
      });
    };
    if (any(&Contract::isGone))
      return op->emitOpError() << "is left after phase '" << after << "'";
    if (!any(&Contract::isKnown))
      return op->emitOpError() << "is of a dialect that phase '" << after << "' does not know";
    for (const Contract &later : ArrayRef(kContracts).drop_front(contracts.size()))
      if (later.isNew && later.isNew(op))
        return op->emitOpError() << "is present after phase '" << after << "', but phase '"
                                 << later.phase
                                 << "' creates it; run a pass of your own that creates it after "
                                    "that phase";
    for (const Contract &contract : contracts)
      for (const Fault &fault : contract.faults)
        if (fault.isIn && fault.isIn(op))
          return op->emitOpError()
                 << fault.says << " after phase '" << after << "'" << fault.advice;
    return placesShards ? checkShards(op) : success();
  }

  LogicalResult checkEmitted(Operation *op) const {
    return isEmitted(op) ? success() : op->emitOpError() << "is left after phase 'lower'";
  }

  ArrayRef<Contract> contracts; ///< up to that of the phase; none after the last phase
  bool hasObjective = false;    ///< from objective on
  bool placesShards = false;    ///< from partition on
  par::MeshAttr mesh;           ///< of the current module
  llvm::DenseSet<Type> fitting; ///< tensor types that fit it
};

} // namespace
