//===- ExportCommand.cpp - partita export -----------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "mlir/AsmParser/AsmParser.h"
#include "partita/Export/DevicePlan.h"
#include "partita/Export/Export.h"
#include "runtime/include/partita_rt/checkpoint_folder.h"
#include "tools/partita/Program.h"
#include "tools/partita/Session.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace partita;
using namespace partita::tool;

/// Returns the file of a folder's newest checkpoint, as the runtime chooses it, or the name of the one
/// that is missing. Any other path is the file itself.
static std::string weightsFile(StringRef checkpoint) {
  if (!sys::fs::is_directory(checkpoint))
    return checkpoint.str();
  std::string newest = partita_rt::newestEntry(checkpoint.str());
  std::string file = partita_rt::fileIn(newest);
  return file.empty() ? newest + "/" + partita_rt::kUnshardedName : file;
}

/// Calls `visit` with each of the manifest's parameters and its name.
static std::string
forEachParameter(const json::Object &manifest,
                 llvm::function_ref<std::string(StringRef, const json::Object &)> visit) {
  const json::Array *parameters = manifest.getArray("parameters");
  if (!parameters)
    return "manifest.json: has no array 'parameters'";
  for (const json::Value &value : *parameters) {
    const json::Object *parameter = value.getAsObject();
    std::optional<StringRef> name = parameter ? parameter->getString("name") : std::nullopt;
    if (!name)
      return "manifest.json: a parameter has no name";
    if (std::string problem = visit(*name, *parameter); !problem.empty())
      return problem;
  }
  return {};
}

/// Reads the tensors of the model that hold a parameter; none if the manifest does not list them.
static std::string readTensors(const json::Object &parameter, std::vector<ExportTensor> &tensors) {
  const json::Array *entries = parameter.getArray("tensors");
  for (const json::Value &value : entries ? *entries : json::Array()) {
    const json::Object *entry = value.getAsObject();
    std::optional<StringRef> name = entry ? entry->getString("name") : std::nullopt;
    if (!name)
      return "manifest.json: a tensor of a parameter has no name";
    ExportTensor tensor{name->str(), entry->getBoolean("transposed").value_or(false),
                        entry->getBoolean("reshaped").value_or(false)};
    if (const json::Array *slice = entry->getArray("slice")) {
      SmallVector<int64_t> numbers;
      for (const json::Value &number : *slice)
        numbers.push_back(number.getAsInteger().value_or(-1));
      if (numbers.size() != 3 || llvm::any_of(numbers, [](int64_t n) { return n < 0; }))
        return ("manifest.json: tensor '" + *name + "' has a slice that is not three numbers")
            .str();
      tensor.dim = numbers[0], tensor.begin = numbers[1], tensor.size = numbers[2];
    }
    tensors.push_back(std::move(tensor));
  }
  return {};
}

/// Adds the parameter's layout to the plan for each of its tensors that has the parameter's
/// dimensions.
static void addToPlan(DevicePlan &plan, const ExportParameter &parameter,
                      const par::Layout &layout) {
  if (parameter.tensors.empty())
    return plan.add(parameter.name, layout);
  for (const ExportTensor &tensor : parameter.tensors) {
    if (tensor.dim >= 0 || tensor.reshaped || (tensor.transposed && layout.splits.size() != 2))
      continue; // a slice does not have the parameter's layout
    par::Layout own = layout;
    if (tensor.transposed) {
      std::swap(own.shape[0], own.shape[1]);
      std::swap(own.splits[0], own.splits[1]);
    }
    plan.add(tensor.name, own);
  }
}

static par::MeshAttr readMesh(const json::Object &manifest, mlir::MLIRContext *context) {
  SmallVector<mlir::StringAttr> axes;
  SmallVector<int64_t> sizes;
  if (const json::Array *mesh = manifest.getArray("mesh"))
    for (const json::Value &value : *mesh)
      if (const json::Object *axis = value.getAsObject()) {
        axes.push_back(mlir::StringAttr::get(context, axis->getString("axis").value_or("")));
        sizes.push_back(axis->getInteger("size").value_or(0));
      }
  return par::MeshAttr::getChecked([&] { return mlir::emitError(mlir::UnknownLoc::get(context)); },
                                   context, ArrayRef<mlir::StringAttr>(axes),
                                   ArrayRef<int64_t>(sizes));
}

/// Reads a parameter's placement in the program; none if the manifest's text is not a placement.
static std::optional<par::Layout> readLayout(const json::Object &parameter,
                                             mlir::MLIRContext *context) {
  StringRef text = parameter.getString("placement").value_or("");
  SmallVector<int64_t> shape;
  if (const json::Array *sizes = parameter.getArray("shape"))
    for (const json::Value &size : *sizes)
      shape.push_back(size.getAsInteger().value_or(0));
  if (text == "invariant")
    return par::Layout(shape);
  auto placement = dyn_cast_if_present<par::PlacementAttr>(mlir::parseAttribute(text, context));
  if (!placement)
    return std::nullopt;
  return par::Layout::of(placement);
}

/// Reads the program's placements; null, and `problem` set, if the manifest lacks them.
static std::unique_ptr<DevicePlan> readPlan(const json::Object &manifest,
                                            mlir::MLIRContext *context, std::string &problem) {
  mlir::ScopedDiagnosticHandler quiet(context, [](mlir::Diagnostic &) {}); // reported below
  par::MeshAttr mesh = readMesh(manifest, context);
  problem = mesh ? "" : "manifest.json: its mesh is not valid";
  if (mesh && mesh.getAxes().empty())
    problem = "--plan: the program runs on one rank: there is nothing to say about devices";
  if (mesh && llvm::any_of(mesh.getAxes(), [&](mlir::StringAttr axis) {
        return par::splits(axis, par::Splits::Program) && mesh.sizeOf(axis.getValue()) > 1;
      }))
    problem =
        "--plan: the program has pipeline stages; an annotation of its tensors alone would put every "
        "stage on all devices";
  if (!problem.empty())
    return nullptr;
  auto plan = std::make_unique<DevicePlan>(mesh);
  problem = forEachParameter(manifest, [&](StringRef name, const json::Object &parameter) {
    std::optional<par::Layout> layout = readLayout(parameter, context);
    if (!layout)
      return ("manifest.json: parameter '" + name + "' has no placement").str();
    if (int dim = layout->unequalDim(); dim >= 0)
      return ("--plan: dimension " + std::to_string(dim) + " of parameter '" + name +
              "' is split in blocks of unequal sizes, which ONNX's annotations cannot express; they "
              "can of a program compiled with --shard '" +
              name + "=replicated'")
          .str();
    ExportParameter named{name.str(), {}};
    std::string wrong = readTensors(parameter, named.tensors);
    addToPlan(*plan, named, *layout);
    return wrong;
  });
  return problem.empty() ? std::move(plan) : nullptr;
}

/// Fails if the model or its data would overwrite an input.
static std::string checkOutputs(const ExportRequest &request, StringRef folder,
                                const json::Object &manifest) {
  for (const std::string &output : {request.output, request.output + ".data"}) {
    for (const std::string &input : {request.model, request.weights})
      if (std::string problem = checkNotInput(output, input); !problem.empty())
        return problem;
    if (std::string problem = checkNotProgram(output, folder, manifest, "-o"); !problem.empty())
      return problem;
    if (!StringRef(request.weights).ends_with(".json"))
      continue;
    std::error_code error; // shards lie beside their index
    StringRef beside = sys::path::parent_path(request.weights);
    for (sys::fs::directory_iterator it(beside.empty() ? "." : beside, error), end;
         !error && it != end; it.increment(error))
      if (StringRef(it->path()).ends_with(".safetensors"))
        if (std::string problem = checkNotInput(output, it->path()); !problem.empty())
          return problem;
  }
  return {};
}

int partita::tool::exportMain(Arguments arguments) {
  std::string folder, checkpoint, model;
  bool writesPlan = false;
  ExportRequest request;
  OptionSet options(
      "export", "DIR [--checkpoint CKPT] [--plan] -o TRAINED.onnx",
      "Writes trained weights back into the ONNX file that a program was compiled from: "
      "the same graph, the same types, new values; or how they are split over devices; or both.");
  options.positional("DIR", folder, "the folder that 'partita compile -o DIR' wrote");
  options.group("Input");
  options.text("checkpoint", "CKPT", checkpoint,
               "the checkpoint's folder, or its index, or a safetensors file with the parameters");
  options.text("model", "MODEL.onnx", model,
               "the ONNX file, when it has moved since it was compiled");
  options.group("Output");
  options.flag(
      "plan", writesPlan,
      "annotate every node that reads a parameter with how the program splits it over its "
      "ranks: ONNX's device configurations (IR version 11), which 'partita compile' reads");
  options.text("o", "TRAINED.onnx", request.output,
               "the file to write; external weights go to TRAINED.onnx.data");
  if (std::optional<int> done = options.parse(arguments))
    return *done;
  if (checkpoint.empty() && !writesPlan)
    return fail("export", "--checkpoint CKPT is missing: which weights?");
  if (request.output.empty())
    return fail("export", "-o TRAINED.onnx is missing: where should the model go?");
  std::string problem;
  std::optional<json::Object> manifest = readManifest(folder, problem);
  if (!manifest)
    return fail("export", problem);
  std::vector<ExportParameter> parameters;
  problem = forEachParameter(*manifest, [&](StringRef name, const json::Object &parameter) {
    return readTensors(parameter, parameters.emplace_back(ExportParameter{name.str(), {}}).tensors);
  });
  if (!problem.empty())
    return fail("export", problem);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<par::ParDialect>();
  std::unique_ptr<DevicePlan> plan;
  if (writesPlan && !(plan = readPlan(*manifest, &context, problem)))
    return fail("export", problem);
  if (model.empty())
    model = manifest->getString("model").value_or("").str();
  if (model.empty())
    return fail("export", "manifest.json names no model; give it with --model");
  request.model = model;
  if (!checkpoint.empty())
    request.weights = weightsFile(checkpoint);
  if (problem = checkOutputs(request, folder, *manifest); !problem.empty())
    return fail("export", problem);
  request.parameters = parameters;
  request.plan = plan.get();
  std::string note;
  request.note = &note;
  if (problem = exportOnnx(request); !problem.empty())
    return fail("export", problem);
  if (!note.empty())
    outs() << note << '\n';
  outs() << "wrote " << request.output << ": ";
  if (checkpoint.empty())
    outs() << "the graph of " << model;
  else
    outs() << parameters.size() << (parameters.size() == 1 ? " parameter of " : " parameters of ")
           << request.weights << " in the graph of " << model;
  if (plan)
    outs() << "; how tensors are split stands there as device configuration '" << plan->name()
           << "'";
  outs() << '\n';
  return 0;
}
