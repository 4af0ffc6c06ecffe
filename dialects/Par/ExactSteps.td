//===- ExactSteps.td - the steps whose sums are exact, as an attribute of ops -----------------------===//

#ifndef PARTITA_PAR_EXACT_STEPS
#define PARTITA_PAR_EXACT_STEPS

include "mlir/IR/AttrTypeBase.td"

/// A #par.exact_steps, which C++ sees as partita_rt::ExactSteps; custom<ExactSteps>($exact) prints it.
def Par_ExactSteps : Attr<CPred<"::llvm::isa<::partita::par::ExactStepsAttr>($_self)">, "the steps whose sums are exact"> {
  let storageType = "::partita::par::ExactStepsAttr";
  let returnType = "::partita_rt::ExactSteps";
  let convertFromStorage = "$_self.getSteps()";
  let constBuilderCall = "::partita::par::ExactStepsAttr::of($_builder.getContext(), $0)";
}

#endif // PARTITA_PAR_EXACT_STEPS
