//===- ImportCommand.cpp - partita import
//---------------------------------------------------------===//

#include "partita/Import/Import.h"
#include "partita/Raise/Report.h"
#include "tools/partita/Session.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;

int partita::tool::importMain(Arguments arguments) {
  std::string model, output;
  std::vector<std::string> dims;
  bool report = false;
  OptionSet options("import", "MODEL.onnx [--dim NAME=SIZE]... [-o MODEL.mlir]",
                    "Turns an ONNX file into a module of tx: static shapes, shape arithmetic "
                    "computed, parameters as symbols that name their place in the file.");
  options.positional("MODEL.onnx", model, "the model");
  options.group("Shapes");
  options.list("dim", "NAME=SIZE", dims,
               "binds a dimension, by its name in the file or as INPUT.AXIS (input_ids.0)");
  options.group("Output");
  options.text("o", "FILE", output, "where the module goes [-: the standard output]");
  options.flag(
      "report", report,
      "says what the file holds (inputs, tensors, operators) and, with its dimensions bound, which "
      "composites are recognized and which nearly are and why not; on the standard output; the "
      "module is written only where -o asks for it");
  if (std::optional<int> done = options.parse(arguments))
    return *done;
  Session session("import");
  if (report && failed(reportOnnx(model, &session.context(), llvm::outs())))
    return 1;
  if (report && dims.empty() && output.empty())
    return 0;
  if (isMlirFile(model))
    return session.fail(model + " is a module already: give it to partita compile");
  OwningOpRef<ModuleOp> module = session.load(model, dims);
  if (!module)
    return 1;
  OwningOpRef<ModuleOp> raised = report ? OwningOpRef<ModuleOp>(module->clone()) : nullptr;
  if (report && failed(reportRaising(*raised, llvm::outs())))
    return 1;
  if (report && output.empty())
    return 0;
  std::string problem = writeAtomically(output.empty() ? "-" : output, [&](llvm::raw_ostream &os) {
    module->print(os, OpPrintingFlags().enableDebugInfo());
    os << '\n';
  });
  return problem.empty() ? 0 : session.fail(problem);
}
