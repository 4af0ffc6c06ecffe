//===- ImportCommand.cpp - partita import -----------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "partita/Analysis/Flops.h"
#include "partita/Import/Import.h"
#include "partita/Objective/Report.h"
#include "partita/Raise/Report.h"
#include "tools/partita/PlanOptions.h"
#include "tools/partita/Session.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;

/// Max lines of parameters in the text; --json has them all.
constexpr size_t maxLines = 64;

/// Prints parameters, layers once: names that differ only in numbers between dots share a line,
/// with a * for each number, as --freeze accepts it.
static void printParameters(ModuleOp module, llvm::raw_ostream &os) {
  llvm::MapVector<std::pair<StringAttr, Type>, int64_t> lines;
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    llvm::SmallVector<llvm::StringRef> parts;
    parameter.getModelName().split(parts, '.');
    for (llvm::StringRef &part : parts)
      if (!part.empty() && llvm::all_of(part, llvm::isDigit))
        part = "*";
    ++lines[{StringAttr::get(module.getContext(), llvm::join(parts, ".")), parameter.getType()}];
  }
  for (const auto &[line, count] : llvm::ArrayRef(lines.getArrayRef()).take_front(maxLines)) {
    os << "parameter '";
    llvm::printEscapedString(line.first.getValue(), os);
    os << "': ";
    llvm::interleave(cast<RankedTensorType>(line.second).getShape(), os, "x");
    os << (count > 1 ? ", " + std::to_string(count) + " times\n" : "\n");
  }
  if (lines.size() > maxLines)
    os << "parameters: " << lines.size() - maxLines << " more names (--json lists all)\n";
}

/// Describes the imported program's parameters, FLOPs and recognized composites, and the loss that
/// training would minimize.
static llvm::json::Object describeImport(ModuleOp module, const RaiseReport &raising,
                                         const ObjectiveReport &objective,
                                         llvm::raw_ostream *text) {
  int64_t parameters = 0, elements = 0;
  llvm::json::Array list;
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    ++parameters;
    auto type = cast<RankedTensorType>(parameter.getType());
    elements += type.getNumElements();
    list.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(parameter.getModelName())},
                                      {"shape", llvm::json::Array(type.getShape())}});
  }
  Flops flops = countFlops(module);
  if (text) {
    *text << "parameters: " << parameters << ", " << elements << " elements\n";
    printParameters(module, *text);
    *text << "FLOPs of a forward pass: " << llvm::format("%.4g", flops.matmuls) << " in matmuls, "
          << llvm::format("%.4g", flops.elementwise) << " elsewhere\n";
    raising.print(*text);
    objective.print(*text);
  }
  llvm::json::Object json = raising.toJson();
  json["training"] = objective.toJson();
  json["parameters"] = parameters;
  json["parameter_list"] = std::move(list);
  json["elements"] = elements;
  json["flops"] =
      llvm::json::Object{{"matmuls", flops.matmuls}, {"elementwise", flops.elementwise}};
  return json;
}

/// Reports the contents of the file and, if `wantsImport` or all its dimensions are known, imports
/// it to `module` and reports that. With `json` the report is one object, in which `blocked` lists
/// the reasons if there is no module.
static int report(Session &session, const std::string &model, const std::vector<std::string> &dims,
                  const Plan &plan, bool json, bool wantsImport, OwningOpRef<ModuleOp> &module) {
  session.tellAllErrors();
  std::vector<std::string> errors;
  ScopedDiagnosticHandler catcher(&session.context(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure();
    errors.push_back(diagnostic.str());
    return success(json); // with JSON, errors are only in the object
  });
  FailureOr<OnnxReport> file = reportOnnx(model, weightOptions(plan), &session.context());
  llvm::json::Object object;
  if (succeeded(file) && !json)
    file->print(llvm::outs());
  if (succeeded(file))
    object["file"] = file->toJson();
  if (succeeded(file) && (wantsImport || file->isStatic()) &&
      (module = session.load(model, dims, plan))) {
    session.tellForwardGuesses(*module);
    FailureOr<RaiseReport> raising = reportRaising(*module);
    if (succeeded(raising))
      object["program"] = describeImport(*module, *raising, reportObjective(*module),
                                         json ? nullptr : &llvm::outs());
  }
  std::vector<std::string> missing = succeeded(file) ? file->missing : std::vector<std::string>();
  llvm::erase(errors, llvm::join(missing, "; ")); // these are listed item by item
  if (succeeded(file))
    missing.insert(missing.end(), file->wrongTensors.begin(), file->wrongTensors.end());
  bool complete = errors.empty() && missing.empty() && !session.hasFailed();
  llvm::erase_if(errors,
                 [&](const std::string &each) { return llvm::is_contained(missing, each); });
  if (!json && succeeded(file))
    for (const std::string &each : errors)
      llvm::outs() << "missing: " << each << "\n";
  if (!json && !missing.empty() && !session.hasFailed())
    return session.fail(model + ": cannot be imported, the report says what is missing");
  if (!json)
    return complete ? 0 : 1;
  errors.insert(errors.begin(), missing.begin(), missing.end());
  object["blocked"] = llvm::json::Array(
      llvm::map_range(errors, [](const std::string &each) { return llvm::json::fixUTF8(each); }));
  llvm::outs() << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object)));
  return complete ? 0 : 1;
}

int partita::tool::importMain(Arguments arguments) {
  std::string model, output;
  std::vector<std::string> dims;
  Plan plan; // for import: the options that decide which tensors are parameters
  bool wantsReport = false, json = false, warningsAsErrors = false;
  OptionSet options("import", "MODEL.onnx [--dim NAME=SIZE]... [-o MODEL.mlir]",
                    "Turns an ONNX file into a module of tx: static shapes, shape arithmetic "
                    "computed, parameters as symbols that name their place in the file.");
  options.positional("MODEL.onnx", model, "the model");
  options.group("Shapes");
  options.list("dim", "NAME=SIZE", dims,
               "binds a dimension, by its name in the file or as INPUT.AXIS (input_ids.0)");
  options.group("Weights");
  for (StringRef name : {"trainable", "freeze", "tie"})
    declarePlanOption(options, *findPlanOption(name), plan);
  options.group("Output");
  options.text("o", "FILE", output, "where the module goes [-: the standard output]");
  options.flag(
      "report", wantsReport,
      "prints what the file holds (inputs, tensors, operators) and everything that prevents its "
      "import; with its dimensions bound or fixed also parameters, FLOPs, which composites are "
      "recognized and which nearly are and why not, the roles of inputs and the loss; the module is "
      "written only with -o");
  options.flag("json", json, "the report as one JSON object, with what blocks the import");
  declareWarningsAsErrors(options, warningsAsErrors);
  if (std::optional<int> done = options.parse(arguments))
    return *done;
  if (warningsAsErrors && wantsReport)
    return fail("import",
                "--warnings-as-errors: has no effect with --report, which lists warnings");
  if (json && !wantsReport)
    return fail("import", "--json: has no effect without --report");
  Session session("import");
  if (warningsAsErrors)
    session.refuseWarnings();
  if (std::string problem = checkNotInput(output, model); !problem.empty())
    return session.fail(problem);
  if (isMlirFile(model) && !wantsReport)
    return session.fail(model + " is a module already: give it to partita compile");
  OwningOpRef<ModuleOp> module;
  if (wantsReport) {
    int code = report(session, model, dims, plan, json, !dims.empty() || !output.empty(), module);
    if (code != 0 || output.empty())
      return code;
  } else {
    module = session.load(model, dims, plan);
  }
  if (!module)
    return 1;
  if (!wantsReport) // a report lists them
    session.tellGuesses(*module, plan);
  if (session.hasFailed())
    return 1;
  if (std::string problem = checkNotModel(output, *module); !problem.empty())
    return session.fail(problem);
  std::string problem = writeOutput(output.empty() ? "-" : output, [&](llvm::raw_ostream &os) {
    module->print(os, OpPrintingFlags().enableDebugInfo());
    os << '\n';
  });
  return problem.empty() ? 0 : session.fail(problem);
}
