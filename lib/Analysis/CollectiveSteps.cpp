//===- CollectiveSteps.cpp - parts of training that communicate alike ------------------------===//

#include "dialects/Par/Par.h"
#include "partita/Analysis/Collectives.h"

using namespace partita;
using namespace partita::analysis;

par::ExactStepsAttr partita::analysis::exactStepsOf(const Steps &steps,
                                                    mlir::MLIRContext *context) {
  return steps.part == Steps::All ? par::ExactStepsAttr()
                                  : par::ExactStepsAttr::of(context, steps.exact);
}

void partita::analysis::addSteps(const Steps &steps, llvm::json::Object &object) {
  if (steps.part == Steps::All)
    return;
  object["steps"] = steps.part == Steps::Exact ? "exact" : "others";
  object["until"] = steps.exact.until;
  if (steps.exact.doubling != 0)
    object["doubling"] = steps.exact.doubling;
}

std::vector<Steps> partita::analysis::phasesOf(llvm::ArrayRef<Collective> collectives) {
  for (const Collective &c : collectives) // one program has one optimizer
    if (c.steps.part != Steps::All)
      return {{Steps::Exact, c.steps.exact}, {Steps::Others, c.steps.exact}};
  return {Steps()};
}
