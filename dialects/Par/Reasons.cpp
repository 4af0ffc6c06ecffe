//===- Reasons.cpp - explains how a value got its placement -----------------------------------===//

#include "dialects/Par/Reasons.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

std::string partita::par::shardProblem(RankedTensorType type, MeshAttr mesh) {
  std::string problem;
  llvm::raw_string_ostream os(problem);
  Layout layout = Layout::of(type);
  llvm::SetVector<StringAttr> axes;
  layout.axes(axes);
  for (StringAttr axis : axes)
    if (!mesh.hasAxis(axis.getValue())) {
      os << "placement over " << axis << ", an axis that the mesh " << mesh << " lacks";
      return problem;
    }
  FailureOr<RankedTensorType> local =
      layout.localType(type.getElementType(), mesh, [&](const Twine &error) { os << error; });
  if (succeeded(local) && *local != type)
    os << "one rank's shard is '" << *local << "', the type says '" << type << "'";
  return problem;
}

namespace {

/// The longest trace: a program that does not verify may have cycles.
constexpr size_t kMostSteps = 1 << 12;

class Trace {
public:
  explicit Trace(StringAttr axis) : axis(axis) {}

  SmallVector<ReasonStep> from(Value value) {
    while (value && steps.size() < kMostSteps && seen.insert(value.getAsOpaquePointer()).second)
      value = step(value, kindOf(value));
    return std::move(steps);
  }

  SmallVector<ReasonStep> from(OpResult result, Kind kind) {
    Value next = step(result, kind);
    SmallVector<ReasonStep> first = std::move(steps);
    steps.clear();
    first.append(from(next));
    return first;
  }

private:
  Kind kindOf(Value value) const { return Layout::of(value.getType()).kind(axis); }

  /// Records how the value is placed. Returns the value to continue with, if any.
  Value step(Value value, Kind kind) {
    int operand = std::exchange(nextOperand, -1);
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argumentStep(argument, kind, operand);
    Operation *op = value.getDefiningOp();
    if (op->getNumRegions() != 0 && !isa<ShardInterface>(op))
      return yielded(op, cast<OpResult>(value).getResultNumber());
    if (op->getDialect() && isa<ParDialect>(op->getDialect()) && op->getNumOperands() > 0)
      return parStep(op, value, kind, operand);
    if (isa<ShardInterface>(op))
      return ruleStep(op, cast<OpResult>(value), kind, operand);
    std::string how = llvm::formatv("'{0}'", op->getName().getStringRef()).str();
    for (NamedAttribute attribute : op->getAttrs())
      if (auto symbol = dyn_cast<SymbolRefAttr>(attribute.getValue()))
        how += (" of '" + symbol.getLeafReference().getValue() + "'").str();
    add(value, op, kind, operand, -1, how + " gives it so");
    return {};
  }

  Value argumentStep(BlockArgument argument, Kind kind, int operand) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (!parent)
      return {};
    unsigned index = argument.getArgNumber();
    if (!isa<FunctionOpInterface>(parent)) {
      nextOperand = operand;
      return index < parent->getNumOperands() ? parent->getOperand(index) : Value();
    }
    add(argument, nullptr, kind, operand, -1,
        llvm::formatv("it is argument {0} of @{1}", index,
                      cast<FunctionOpInterface>(parent).getName())
            .str());
    return {};
  }

  static Value yielded(Operation *op, unsigned index) {
    Region &region = op->getRegion(0);
    if (region.empty() || region.front().empty() ||
        !region.front().back().hasTrait<OpTrait::IsTerminator>())
      return {};
    Operation *end = &region.front().back();
    return index < end->getNumOperands() ? end->getOperand(index) : Value();
  }

  /// Describes what an op over an axis does to the placement over it.
  static StringRef verbOf(Operation *op) {
    if (isa<MaxOp, AllReduceMaxOp>(op))
      return "completes the maximum";
    if (auto collective = dyn_cast<CollectiveInterface>(op))
      return collective.getRow().does;
    return isa<FOp>(op)        ? "lets every rank go on with work of its own"
           : isa<NarrowOp>(op) ? "leaves each rank its shard"
           : isa<GOp>(op)      ? partita_rt::rowOf(CollectiveKind::AllReduce).does
                               : "makes it so";
  }

  /// A conjugate or collective over this axis made the placement; over another axis it did not.
  Value parStep(Operation *op, Value value, Kind kind, int operand) {
    auto wait = dyn_cast<AsyncWaitInterface>(op);
    Operation *collective = wait ? wait.getStart().getOperation() : op;
    auto over = collective ? collective->getAttrOfType<StringAttr>("axis") : nullptr;
    if (over == axis) {
      add(value, op, kind, operand, -1,
          llvm::formatv("'{0}' {1}", op->getName().getStringRef(), verbOf(collective)).str());
      return {};
    }
    unsigned index = cast<OpResult>(value).getResultNumber() + (wait ? 1 : 0);
    nextOperand = operand;
    return index < op->getNumOperands() ? op->getOperand(index) : Value();
  }

  Value ruleStep(Operation *op, OpResult result, Kind kind, int operand) {
    std::string error;
    const ShardRule *rule = ruleOf(op, error);
    SmallVector<int64_t> sizes;
    if (!rule || !letterSizes(*rule, op, sizes, error))
      return {};
    int splitter = -1, letter = letterOf(op, *rule, sizes, splitter);
    std::string name = llvm::formatv("'{0}'", op->getName().getStringRef()).str();
    std::string text = cast<ShardInterface>(op).getShardRule();
    if (letter >= 0) {
      const RuleLetter &l = rule->letters[letter];
      bool has = rule->results[result.getResultNumber()].contains(letter);
      add(result, op, kind, operand, letter,
          has ? llvm::formatv("{0} splits letter {1} of {2} (rule '{3}')", axis.getValue(), l.name,
                              name, text)
                    .str()
              : llvm::formatv("{0} splits letter {1} of {2}, {3} (rule '{4}')", axis.getValue(),
                              l.name, name,
                              l.max ? "of which it takes the max" : "which it sums over", text)
                    .str());
      return follow(op, splitter);
    }
    for (auto [i, value] : llvm::enumerate(op->getOperands()))
      if (kindOf(value) == kind && (kind == Kind::Partial || kind == Kind::Replicated)) {
        add(result, op, kind, operand, -1,
            name + (kind == Kind::Partial ? " is linear in it and leaves the sum open"
                                          : " computes it from a replicated value"));
        return follow(op, static_cast<int>(i));
      }
    add(result, op, kind, operand, -1, name + " computes it alike on every rank");
    return {};
  }

  /// Returns the letter that the axis splits. Sets `splitter` to the operand to continue with,
  /// preferring operands that no op computes (parameters).
  int letterOf(Operation *op, const ShardRule &rule, ArrayRef<int64_t> sizes, int &splitter) {
    int letter = -1;
    auto find = [&](const RulePattern &pattern, Value value) {
      Layout layout = Layout::of(value.getType());
      int dim = layout.dimOf(axis);
      if (dim < 0 || pattern.firstIndexOf >= 0)
        return false;
      auto split = splitLetter(pattern.dims[dim], layout.blocksOf(axis), sizes);
      if (!split || (letter >= 0 && letter != static_cast<int>(split->letter)))
        return false;
      letter = static_cast<int>(split->letter);
      return true;
    };
    bool chosen = false;
    for (auto [i, pattern, value] : llvm::enumerate(rule.operands, op->getOperands()))
      if (find(pattern, value) && !chosen) {
        chosen = !value.getDefiningOp() || !isa<ShardInterface>(value.getDefiningOp());
        if (chosen || splitter < 0)
          splitter = static_cast<int>(i);
      }
    for (auto [pattern, value] : llvm::zip(rule.results, op->getResults()))
      if (letter < 0)
        find(pattern, value);
    return letter;
  }

  Value follow(Operation *op, int operand) {
    nextOperand = operand;
    return operand < 0 ? Value() : op->getOperand(operand);
  }

  void add(Value value, Operation *op, Kind kind, int operand, int letter, std::string how) {
    steps.push_back({value, op, kind, Layout::of(value.getType()).dimOf(axis), operand, letter,
                     std::move(how), op ? op->getLoc() : value.getLoc()});
  }

  StringAttr axis;
  SmallVector<ReasonStep> steps;
  llvm::SmallPtrSet<const void *, 16> seen;
  int nextOperand = -1;
};

std::string placementOf(const ReasonStep &step) {
  return step.kind == Kind::Sharded && step.dim >= 0 ? llvm::formatv("sharded({0})", step.dim).str()
                                                     : toString(step.kind).str();
}

} // namespace

SmallVector<ReasonStep> partita::par::traceReasons(Value value, StringAttr axis) {
  return Trace(axis).from(value);
}

SmallVector<ReasonStep> partita::par::traceReasons(OpResult result, Kind kind, StringAttr axis) {
  return Trace(axis).from(result, kind);
}

void partita::par::attachReasons(InFlightDiagnostic &error, StringRef subject, StringAttr axis,
                                 ArrayRef<ReasonStep> steps) {
  constexpr size_t first = 2, last = 3;
  for (auto [i, step] : llvm::enumerate(steps)) {
    if (steps.size() > first + last + 1 && i >= first && i < steps.size() - last) {
      if (i == first)
        error.attachNote(step.loc)
            << "and " << steps.size() - first - last << " steps back from here";
      continue;
    }
    Diagnostic &note = error.attachNote(step.loc);
    if (i == 0)
      note << subject;
    else if (step.operand >= 0)
      note << "there operand " << step.operand;
    else
      note << "it";
    note << " is " << placementOf(step) << " over " << axis.getValue() << ": " << step.how;
  }
}

void partita::par::attachReasons(InFlightDiagnostic &error, Operation *op,
                                 const RuleProblem &problem) {
  if (!problem.axis)
    return;
  SmallVector<int, 2> operands{problem.operand};
  if (problem.against != problem.operand)
    operands.push_back(problem.against);
  for (int operand : operands)
    if (operand >= 0 && operand < static_cast<int>(op->getNumOperands()))
      attachReasons(error, llvm::formatv("operand {0}", operand).str(), problem.axis,
                    traceReasons(op->getOperand(operand), problem.axis));
}
