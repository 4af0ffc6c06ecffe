//===- Report.cpp - what an ONNX file holds ---------------------------------------------------===//

#include "lib/Import/File/Node.h"
#include "lib/Import/Importer.h"
#include "lib/Import/Weights/Buffers.h"
#include "lib/Import/Weights/InitializerUses.h"
#include "lib/Import/Weights/SharedWeights.h"
#include "lib/Import/Weights/WeightNotes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace partita {

using namespace importer;

namespace {

std::string dimText(const onnx::TensorShapeProto::Dimension &dim) {
  if (dim.has_dim_value())
    return std::to_string(dim.dim_value());
  return dim.dim_param().empty() ? "?" : quoted(dim.dim_param());
}

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// Counts tensors by place, and collects the errors of invalid ones.
void addTensors(ModelFile &file, const llvm::StringSet<> &buffers, MLIRContext *context,
                OnnxReport &report) {
  ScopedDiagnosticHandler collect(context, [&](Diagnostic &diagnostic) {
    if (std::string text = diagnostic.str(); !llvm::is_contained(report.missing, text))
      report.wrongTensors.push_back(text);
    return success();
  });
  const onnx::GraphProto &graph = file.model().graph();
  InitializerUses uses(graph);
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    auto tensorError = [&] { return file.tensorError(tensor.name()); };
    FailureOr<TensorData> data = file.locate(tensor, tensorError);
    if (failed(data))
      continue;
    bool isRead = uses.isRead(tensor.name()) && !buffers.contains(tensor.name());
    if (isRead && data->isParameter() && failed(file.checkParameter(*data, tensorError)))
      continue;
    OnnxReport::Tensors &sum = data->place == TensorData::inModel    ? report.stored
                               : data->place == TensorData::external ? report.external
                                                                     : report.declared;
    ++sum.tensors;
    sum.elements += data->count;
    sum.bytes += data->count * byteSize(data->type);
  }
}

using OperatorCounts = std::map<std::pair<std::string, std::string>, int64_t>;

/// The nodes and those of their branches.
void countOperators(const Nodes &nodes, OperatorCounts &counts) {
  for (const onnx::NodeProto &node : nodes) {
    ++counts[{canonicalDomain(node.domain()).str(), node.op_type()}];
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        countOperators(attribute.g().node(), counts);
  }
}

/// Casts to 16 bits. What they cast is not known before the import.
void addCasts(const Nodes &nodes, OnnxReport &report) {
  for (const onnx::NodeProto &node : nodes)
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        addCasts(attribute.g().node(), report);
      std::optional<DType> type = dtypeFromOnnx(attribute.i());
      if (node.op_type() == "Cast" && attribute.name() == "to" && type && is16Bit(*type))
        report.casts.push_back({nodeName(node).str(), dtypeName(*type)});
    }
}

void addOperators(const onnx::ModelProto &model, const llvm::StringMap<int64_t> &opsets,
                  OnnxReport &report) {
  OperatorCounts counts;
  countOperators(model.graph().node(), counts);
  for (const onnx::FunctionProto &function : model.functions())
    countOperators(function.node(), counts);
  addCasts(model.graph().node(), report);
  for (const onnx::FunctionProto &function : model.functions())
    addCasts(function.node(), report);
  for (const auto &[op, count] : counts) {
    const std::string &domain = op.first, &type = op.second;
    bool known = findOp(domain, type, opsets.lookup(domain)) ||
                 llvm::any_of(model.functions(), [&](const onnx::FunctionProto &function) {
                   return function.name() == type && canonicalDomain(function.domain()) == domain;
                 });
    report.operators.push_back({domain, type, count, known});
  }
  llvm::sort(report.operators, [](const auto &a, const auto &b) {
    return std::tie(b.count, a.domain, a.type) < std::tie(a.count, b.domain, b.type);
  });
}

std::string unquoted(llvm::StringRef text) {
  return llvm::StringRef(quoted(text.str())).drop_front().drop_back().str();
}

} // namespace

FailureOr<OnnxReport> reportOnnx(llvm::StringRef path, const ImportOptions &options,
                                 MLIRContext *context) {
  auto file = ModelFile::open(path, context);
  if (failed(file))
    return failure();
  const onnx::ModelProto &model = (*file)->model();
  OnnxReport report;
  report.producer = model.producer_name();
  report.producerVersion = model.producer_version();
  report.irVersion = model.ir_version();
  report.nodes = model.graph().node_size();
  report.functions = model.functions_size();
  llvm::StringMap<int64_t> opsets;
  for (const onnx::OperatorSetIdProto &opset : model.opset_import()) {
    opsets[canonicalDomain(opset.domain())] = opset.version();
    report.opsets.push_back({canonicalDomain(opset.domain()).str(), opset.version()});
  }
  for (const onnx::DeviceConfigurationProto &configuration : model.configuration())
    report.configurations.push_back({configuration.name(), configuration.num_devices()});
  for (const onnx::ValueInfoProto *input : realInputs(model.graph())) {
    const onnx::TypeProto::Tensor &type = input->type().tensor_type();
    report.inputs.push_back({input->name(), std::string(dtypeName(type.elem_type())), {}});
    for (const auto &dim : type.shape().dim())
      report.inputs.back().dims.push_back(dimText(dim));
  }
  for (const onnx::ValueInfoProto &output : model.graph().output())
    report.outputs.push_back(output.name());
  addOperators(model, opsets, report);
  report.missing = listMissing(model, context);
  if (std::string problem = opsetProblem("", opsets.lookup("")); !problem.empty())
    report.missing.insert(report.missing.begin(), problem);
  Weights weights(**file, options);
  addTensors(**file, weights.bufferNames(), context, report);
  ScopedDiagnosticHandler collect(context, [&](Diagnostic &diagnostic) {
    report.wrongTensors.push_back(diagnostic.str()); // an option that names no tensor, for example
    return success();
  });
  bool isDecided = succeeded(weights.decide());
  for (const SharedWeight &each : findShared(**file, weights.bufferNames())) {
    bool isTrained =
        isDecided && weights.isParameter(each.name) && !weights.isUnreadConstant(each.name);
    report.shared.push_back({each.name, each.uses, isTrained && each.mergedNumber});
  }
  if (isDecided)
    for (const WeightNote &each : weights.notes())
      if (!each.isReported)
        report.guessed.push_back(each.text);
  return report;
}

bool OnnxReport::isStatic() const {
  return llvm::all_of(inputs, [](const Input &input) {
    return llvm::all_of(input.dims, [](llvm::StringRef dim) { return llvm::isDigit(dim.front()); });
  });
}

void OnnxReport::print(llvm::raw_ostream &os) const {
  os << "exporter " << quoted(producer) << " " << quoted(producerVersion) << ", ONNX IR "
     << irVersion << "\n";
  for (const auto &[domain, version] : opsets)
    os << "opset " << version << " of " << (domain.empty() ? "ai.onnx" : quoted(domain))
       << (domain.empty() ? " (known up to " + std::to_string(newestOpset) + ")\n" : "\n");
  for (const auto &[name, devices] : configurations)
    os << "device configuration " << quoted(name) << ": " << devices << " devices\n";
  for (const Input &input : inputs)
    os << "input " << quoted(input.name) << ": " << input.type << " ["
       << llvm::join(input.dims, ", ") << "]\n";
  for (const std::string &output : outputs)
    os << "output " << quoted(output) << "\n";
  auto line = [&](const Tensors &sum, const char *where) {
    if (sum.tensors)
      os << "tensors " << where << ": " << sum.tensors << ", " << sum.elements << " elements, "
         << sum.bytes << " bytes\n";
  };
  line(stored, "in the file");
  line(external, "in external data");
  line(declared, "declared without values");
  for (const Shared &each : shared)
    os << "shared " << quoted(each.name) << ": read by " << each.uses << " nodes"
       << (each.merged ? ", merged by the exporter: several parameters would be trained as one\n"
                       : "\n");
  for (const std::string &each : guessed)
    os << "warning: " << each << "\n";
  for (const char *type : {"float16", "bfloat16"}) {
    std::vector<std::string> cast;
    for (const Cast &each : casts)
      if (each.type == type)
        cast.push_back(each.node);
    if (!cast.empty())
      os << oneOf(cast, "node") << " casts to " << type
         << ": its import, with all dimensions known, warns where PyTorch rounds and a program does "
            "not\n";
  }
  os << "nodes: " << nodes << ", functions: " << functions << "\n";
  for (const Operator &each : operators) {
    os << llvm::formatv("{0,8} ", each.count) << unquoted(each.type);
    if (!each.domain.empty())
      os << " of " << quoted(each.domain);
    os << (each.supported ? "\n" : "  not supported\n");
  }
  for (const std::string &each : missing)
    os << "missing: " << each << "\n";
  for (const std::string &each : wrongTensors)
    os << "wrong: " << each << "\n";
}

llvm::json::Object OnnxReport::toJson() const {
  using namespace llvm::json;
  auto text = [](llvm::StringRef raw) { return fixUTF8(raw); };
  auto named = [&](const std::string &domain) { return domain.empty() ? "ai.onnx" : text(domain); };
  Array sets, ins, outs, ops, read, devices, warnings, casting;
  for (const Cast &each : casts)
    casting.push_back(Object{{"node", text(each.node)}, {"to", each.type}});
  for (const std::string &each : guessed)
    warnings.push_back(text(each));
  for (const auto &[name, count] : configurations)
    devices.push_back(Object{{"name", text(name)}, {"devices", count}});
  for (const auto &[domain, version] : opsets)
    sets.push_back(domain.empty()
                       ? Object{{"domain", "ai.onnx"}, {"version", version}, {"known", newestOpset}}
                       : Object{{"domain", text(domain)}, {"version", version}});
  for (const Input &input : inputs) {
    Array dims;
    for (const std::string &dim : input.dims)
      dims.push_back(text(dim));
    ins.push_back(
        Object{{"name", text(input.name)}, {"type", input.type}, {"dims", std::move(dims)}});
  }
  for (const std::string &output : outputs)
    outs.push_back(text(output));
  for (const Operator &each : operators)
    ops.push_back(Object{{"domain", named(each.domain)},
                         {"type", text(each.type)},
                         {"count", each.count},
                         {"supported", each.supported}});
  for (const Shared &each : shared)
    read.push_back(Object{{"name", text(each.name)}, {"uses", each.uses}, {"merged", each.merged}});
  auto tensors = [](const Tensors &sum) {
    return Object{{"tensors", sum.tensors}, {"elements", sum.elements}, {"bytes", sum.bytes}};
  };
  return Object{{"exporter", text(producer + " " + producerVersion)},
                {"ir_version", irVersion},
                {"opsets", std::move(sets)},
                {"device_configurations", std::move(devices)},
                {"inputs", std::move(ins)},
                {"outputs", std::move(outs)},
                {"stored", tensors(stored)},
                {"external", tensors(external)},
                {"declared", tensors(declared)},
                {"shared", std::move(read)},
                {"warnings", std::move(warnings)},
                {"nodes", nodes},
                {"functions", functions},
                {"casts", std::move(casting)},
                {"operators", std::move(ops)}};
}

} // namespace partita
