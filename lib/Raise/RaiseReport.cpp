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

static void add(RaiseReport &report, Diagnostic &remark) {
  std::string text = remark.str();
  StringRef op = text;
  if (op.consume_front("raised to ")) {
    ++report.raised[op.str()];
    return;
  }
  auto name = remark.getLocation()->findInstanceOf<NameLoc>();
  report.nearly.emplace_back(name ? name.getName().str() : "", text);
}

void RaiseReport::print(llvm::raw_ostream &os) const {
  os << "raised:";
  for (auto [i, entry] : llvm::enumerate(raised))
    os << (i ? ", " : " ") << entry.second << " " << entry.first;
  os << (raised.empty() ? " nothing\n" : "\n");
  for (const auto &[node, problem] : nearly) {
    os << "  '";
    llvm::printEscapedString(node, os);
    os << "': " << problem << "\n";
  }
}

llvm::json::Object RaiseReport::toJson() const {
  llvm::json::Object counts;
  for (const auto &[op, count] : raised)
    counts[op] = count;
  llvm::json::Array close;
  for (const auto &[node, problem] : nearly)
    close.push_back(llvm::json::Object{{"node", llvm::json::fixUTF8(node)},
                                       {"reason", llvm::json::fixUTF8(problem)}});
  return llvm::json::Object{{"raised", std::move(counts)}, {"nearly", std::move(close)}};
}

FailureOr<RaiseReport> partita::reportRaising(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  RaiseReport report;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Remark)
      return failure();
    add(report, diagnostic);
    return success();
  });
  PassManager manager(module.getContext());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(createRaiseLayerNorm({/*remarks=*/true}));
  functions.addPass(createRaiseRmsNorm({/*remarks=*/true}));
  functions.addPass(createRaiseActivation({/*remarks=*/true}));
  functions.addPass(createRaiseRotateHalf({/*remarks=*/true}));
  functions.addPass(createRaiseAttention({/*remarks=*/true}));
  functions.addPass(createRaiseDocuments({/*remarks=*/true}));
  functions.addPass(createRaiseBlocks({/*remarks=*/true}));
  if (failed(manager.run(*copy)))
    return failure();
  return report;
}
