//===- ExportCommand.cpp - partita export -----------------------------------------------------===//

#include "partita/Export/Export.h"
#include "tools/partita/Program.h"
#include "tools/partita/Session.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace partita;
using namespace partita::tool;

/// A checkpoint is a folder with checkpoint.safetensors; the file itself will do.
static std::string weightsFile(StringRef checkpoint) {
  if (!sys::fs::is_directory(checkpoint))
    return checkpoint.str();
  SmallString<128> path(checkpoint);
  sys::path::append(path, "checkpoint.safetensors");
  return path.str().str();
}

/// The names of the manifest's parameters.
static std::string readParameters(const json::Object &manifest, std::vector<std::string> &names) {
  const json::Array *parameters = manifest.getArray("parameters");
  if (!parameters)
    return "manifest.json: has no array 'parameters'";
  for (const json::Value &value : *parameters) {
    const json::Object *parameter = value.getAsObject();
    std::optional<StringRef> name = parameter ? parameter->getString("name") : std::nullopt;
    if (!name)
      return "manifest.json: a parameter has no name";
    names.push_back(name->str());
  }
  return {};
}

int partita::tool::exportMain(Arguments arguments) {
  std::string folder, checkpoint, model;
  ExportRequest request;
  OptionSet options(
      "export", "DIR --checkpoint CKPT -o TRAINED.onnx",
      "Writes trained weights back into the ONNX file that a program was compiled from: "
      "the same graph, the same types, new values.");
  options.positional("DIR", folder, "the folder that 'partita compile -o DIR' wrote");
  options.group("Input");
  options.text("checkpoint", "CKPT", checkpoint,
               "the checkpoint's folder, or a safetensors file with the parameters");
  options.text("model", "MODEL.onnx", model,
               "the ONNX file, when it has moved since it was compiled");
  options.group("Output");
  options.text("o", "TRAINED.onnx", request.output,
               "the file to write; external weights go to TRAINED.onnx.data");
  if (std::optional<int> done = options.parse(arguments))
    return *done;
  if (checkpoint.empty())
    return fail("export", "--checkpoint CKPT is missing: which weights?");
  if (request.output.empty())
    return fail("export", "-o TRAINED.onnx is missing: where should the model go?");
  std::string problem;
  std::optional<json::Object> manifest = readManifest(folder, problem);
  if (!manifest)
    return fail("export", problem);
  std::vector<std::string> names;
  if (problem = readParameters(*manifest, names); !problem.empty())
    return fail("export", problem);
  if (model.empty())
    model = manifest->getString("model").value_or("").str();
  if (model.empty())
    return fail("export", "manifest.json names no model; give it with --model");
  if (problem = checkNotInput(request.output, model); !problem.empty())
    return fail("export", problem);
  request.model = model;
  request.weights = weightsFile(checkpoint);
  request.parameters = names;
  if (problem = exportOnnx(request); !problem.empty())
    return fail("export", problem);
  outs() << "wrote " << request.output << ": " << names.size() << " parameters of "
         << request.weights << " in the graph of " << model << '\n';
  return 0;
}
