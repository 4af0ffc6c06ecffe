//===- ObjectiveReport.cpp - see partita/Objective/Report.h -----------------------------------===//

#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "partita/Import/Passes.h"
#include "partita/Objective/Passes.h"
#include "partita/Objective/Report.h"

using namespace mlir;
using namespace partita;

void ObjectiveReport::print(llvm::raw_ostream &os) const {
  for (const auto &[name, role] : roles) {
    os << "input '";
    llvm::printEscapedString(name, os);
    os << "' is " << role << "\n";
  }
  os << "objective: " << (problem.empty() ? objective : "none fits: " + problem) << "\n";
  if (!warning.empty())
    os << "  warning: " << warning << "\n";
}

llvm::json::Object ObjectiveReport::toJson() const {
  llvm::json::Object inputs;
  for (const auto &[name, role] : roles)
    inputs[llvm::json::fixUTF8(name)] = role;
  return llvm::json::Object{{"objective", llvm::json::fixUTF8(objective)},
                            {"problem", llvm::json::fixUTF8(problem)},
                            {"warning", llvm::json::fixUTF8(warning)},
                            {"inputs", std::move(inputs)}};
}

ObjectiveReport partita::reportObjective(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  ObjectiveReport report;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    if (report.problem.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      report.problem = diagnostic.str();
    if (report.warning.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Warning) {
      auto name = diagnostic.getLocation()->findInstanceOf<NameLoc>();
      report.warning =
          (name ? "'" + name.getName().str() + "': " : std::string()) + diagnostic.str();
    }
    return success();
  });
  PassManager manager(module.getContext());
  manager.addPass(createSinglePrecisionPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createObjectivePass());
  if (succeeded(manager.run(*copy)))
    if (auto text = (*copy)->getAttrOfType<StringAttr>(train::TrainDialect::kObjective))
      report.objective = text.str();
  auto forward = train::lookup<func::FuncOp>(*copy, train::EntryPoint::Forward);
  for (unsigned i = 0; forward && i < forward.getNumArguments(); ++i) {
    auto name = forward.getArgAttrOfType<StringAttr>(i, train::TrainDialect::kName);
    auto role = forward.getArgAttrOfType<StringAttr>(i, train::TrainDialect::kRole);
    if (name && role)
      report.roles.emplace_back(name.str(), role.str());
  }
  return report;
}
