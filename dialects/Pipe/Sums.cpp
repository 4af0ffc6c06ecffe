//===- Sums.cpp ---------------------------------------------------------------------------------===//

#include "dialects/Pipe/Sums.h"
#include "dialects/Pipe/Pipe.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace partita;
using namespace partita::pipe;

void pipe::numberSums(func::FuncOp function) {
  int64_t number = 0;
  Builder b(function);
  function.walk([&](SumOp sum) { sum->setAttr(kSumNumber, b.getI64IntegerAttr(number++)); });
}

/// Describes a sum: "sum 3 of tensor<16xf32>". A hand-written one may lack a number.
static std::string text(SumOp sum) {
  std::string result = "sum";
  llvm::raw_string_ostream os(result);
  if (auto number = sum->getAttrOfType<IntegerAttr>(kSumNumber))
    os << ' ' << number.getInt();
  os << " of " << sum.getType();
  return result;
}

static bool isSame(SumOp a, SumOp b) {
  return a.getType() == b.getType() && a.getStages() == b.getStages() &&
         a->getAttr(kSumNumber) == b->getAttr(kSumNumber);
}

/// Returns the function's sums in which both stages take part. Runs before ops are verified: their
/// verifier reports a sum without stages or result.
static SmallVector<SumOp> sumsWith(func::FuncOp function, int64_t a, int64_t b) {
  SmallVector<SumOp> sums;
  function.walk([&](SumOp sum) {
    if (!sum.getStagesAttr() || sum->getNumResults() != 1)
      return;
    if (llvm::is_contained(sum.getStages(), a) && llvm::is_contained(sum.getStages(), b))
      sums.push_back(sum);
  });
  return sums;
}

static LogicalResult verifyPair(func::FuncOp first, func::FuncOp second, int64_t a, int64_t b) {
  SmallVector<SumOp> own = sumsWith(first, a, b), other = sumsWith(second, a, b);
  for (size_t i = 0; i < std::max(own.size(), other.size()); ++i) {
    if (i < own.size() && i < other.size() && isSame(own[i], other[i]))
      continue;
    InFlightDiagnostic error = i < own.size() ? own[i]->emitError() : other[i]->emitError();
    error << "stages " << a << " and " << b << " do not add up the same: where stage " << a
          << " has " << (i < own.size() ? text(own[i]) : "no further sum") << ", stage " << b
          << " has " << (i < other.size() ? text(other[i]) : "no further sum");
    if (i < own.size() && i < other.size())
      error.attachNote(other[i].getLoc()) << "stage " << b << "'s is here";
    return error;
  }
  return success();
}

LogicalResult pipe::verifySums(ModuleOp program) {
  for (auto each : program.getOps<ModuleOp>())
    if (each->hasAttr(PipeDialect::kStage) && !stageOf(each)) // its verifier reports the error
      return success();
  SmallVector<ModuleOp> stages = stagesOf(program);
  for (size_t i = 0; i < stages.size(); ++i)
    for (size_t k = i + 1; k < stages.size(); ++k)
      for (auto function : stages[i].getOps<func::FuncOp>())
        if (auto other = stages[k].lookupSymbol<func::FuncOp>(function.getSymNameAttr()))
          if (failed(verifyPair(function, other, *stageOf(stages[i]), *stageOf(stages[k]))))
            return failure();
  return success();
}
