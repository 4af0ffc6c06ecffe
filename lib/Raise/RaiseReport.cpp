//===- RaiseReport.cpp - see partita/Raise/Report.h -------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "partita/Raise/Passes.h"
#include "partita/Raise/Report.h"

using namespace mlir;
using namespace partita;

namespace {

/// The remarks of the raising passes, sorted.
struct Remarks {
  std::map<std::string, unsigned> raised;                    // by op
  std::vector<std::pair<std::string, std::string>> problems; // node, what is in the way

  void add(Diagnostic &remark) {
    std::string text = remark.str();
    StringRef op = text;
    if (op.consume_front("raised to ")) {
      ++raised[op.str()];
      return;
    }
    auto name = remark.getLocation()->findInstanceOf<NameLoc>();
    problems.emplace_back(name ? name.getName().str() : "", text);
  }

  void print(llvm::raw_ostream &os) const {
    os << "raised:";
    for (auto [i, entry] : llvm::enumerate(raised))
      os << (i ? ", " : " ") << entry.second << " " << entry.first;
    os << (raised.empty() ? " nothing\n" : "\n");
    for (const auto &[node, problem] : problems) {
      os << "  '";
      llvm::printEscapedString(node, os);
      os << "': " << problem << "\n";
    }
  }
};

} // namespace

LogicalResult partita::reportRaising(ModuleOp module, llvm::raw_ostream &os) {
  OwningOpRef<ModuleOp> copy = module.clone();
  Remarks remarks;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Remark)
      return failure();
    remarks.add(diagnostic);
    return success();
  });
  PassManager manager(module.getContext());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(createRaiseLayerNorm({/*remarks=*/true}));
  functions.addPass(createRaiseGelu({/*remarks=*/true}));
  functions.addPass(createRaiseAttention({/*remarks=*/true}));
  if (failed(manager.run(*copy)))
    return failure();
  remarks.print(os);
  return success();
}
