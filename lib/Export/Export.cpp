//===- Export.cpp - writes trained weights back into the ONNX file ----------------------------===//
//
// 1. Walk the file. Everything up to the graph's initializers is copied unchanged; each initializer
//    is read (name, type, shape, where its values are).
// 2. Decide for each initializer: unchanged; a parameter with new values in place; or, if the
//    values are external (or the model would exceed 2 GB), a range of the new data file.
// 3. The graph's length is the sum of its parts; write tag and length, then the parts in order.
//
// Field numbers: ModelProto.graph 7; GraphProto.initializer 5; TensorProto dims 1, data_type 2,
// name 8, raw_data 9, external_data 13 (key 1, value 2), data_location 14 (1: external).
//
//===------------------------------------------------------------------------------------------------===//

#include "partita/Export/Export.h"
#include "lib/Export/FileTensor.h"
#include "lib/Export/SplitTensors.h"
#include "lib/Export/StoredValues.h"
#include "lib/Export/Wire.h"
#include "partita/Export/DevicePlan.h"
#include "partita/Import/ExternalData.h"
#include "partita/Import/ModelFile.h"
#include "partita/Import/TableCopies.h"
#include "partita/Support/WriteFile.h"
#include "runtime/include/partita_rt/state_names.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include <climits>
#include <deque>
#include <unistd.h>

using namespace llvm;
using namespace partita;

namespace {

constexpr uint64_t kAlignment = 64;       // of a tensor in the data file: readers map it
constexpr uint64_t kMostInline = INT_MAX; // a protobuf message has fewer than 2 GB
constexpr uint64_t kPlanVersion = 11;     // the first IR version of ONNX with sharding annotations

/// Part of the graph: bytes of the old file, or an initializer.
struct Chunk {
  StringRef copied;
  int tensor = -1;
};

class Exporter {
public:
  explicit Exporter(const ExportRequest &request) : request(request) {}
  std::string run();

private:
  std::string readGraph(StringRef message);
  std::string readModelField(const wire::Field &field);
  std::string readNode(StringRef message, Chunk &chunk);
  void copyValue(StringRef message);
  std::string addSplit();
  bool isSplitOff(StringRef name) const;
  StringRef keep(std::string bytes) { return rewritten.emplace_back(std::move(bytes)); }
  std::string assign();
  std::string assignTo(FileTensor &tensor, const std::string &parameter, const ExportTensor &part);
  std::string assignTableCopies();
  std::string place();
  std::string messageOf(const FileTensor &tensor) const;
  std::string writeData();
  std::string writeModel();
  std::string copyExternal(const FileTensor &tensor, raw_ostream &os);
  std::string dataName() const { return sys::path::filename(request.output).str() + ".data"; }

  const ExportRequest &request;
  std::unique_ptr<MemoryBuffer> model;
  std::unique_ptr<WeightFile> weights;
  std::vector<Chunk> before, graph, after; // `graph` is the content of field 7
  std::vector<FileTensor> tensors;
  std::deque<std::string> rewritten; // nodes and fields of the model with annotations
  std::optional<SplitTensors> split; // for trained weights; otherwise values and tensors stay
  int nodes = 0;                     // read so far
  bool hasGraph = false, anyToFile = false;
};

} // namespace

std::string Exporter::readGraph(StringRef message) {
  return wire::walk(message, [&](const wire::Field &field) {
    Chunk chunk{field.encoded};
    if (field.number == 5 && field.isBytes) {
      FileTensor &tensor = tensors.emplace_back();
      if (std::string problem = tensor.read(field.content); !problem.empty())
        return problem;
      chunk.tensor = tensors.size() - 1;
    }
    std::string problem;
    if (field.number == 1 && field.isBytes)
      problem = readNode(field.content, chunk);
    if (!problem.empty())
      return problem;
    graph.push_back(chunk);
    if (field.number == 13 && field.isBytes)
      copyValue(field.content);
    return std::string();
  });
}

/// Reads a node, which may get annotations and new names of its inputs.
std::string Exporter::readNode(StringRef message, Chunk &chunk) {
  std::string rewired, annotated, problem;
  bool changed = weights && split->rewire(nodes, message, rewired);
  if (changed)
    message = keep(std::move(rewired));
  ++nodes;
  if (request.plan && request.plan->annotate(message, annotated, problem)) {
    message = keep(std::move(annotated));
    changed = true;
  }
  if (changed) {
    std::string encoded;
    wire::putBytes(encoded, 1, message);
    chunk.copied = keep(std::move(encoded));
  }
  return problem;
}

/// Copies the value_info of a tensor that is split, with the record of its origin, for the tensors
/// that are split off.
void Exporter::copyValue(StringRef message) {
  if (!weights || split->tensors().empty())
    return;
  StringRef name = nameOfValue(message);
  for (const importer::MergedTensor &each : split->tensors())
    if (each.source == name && !each.record.empty()) {
      std::string encoded;
      wire::putBytes(encoded, 13, renameValue(message, each));
      graph.push_back({keep(std::move(encoded))});
    }
}

/// Adds a tensor for each that is split off, a constant with its source's values.
std::string Exporter::addSplit() {
  StringMap<int> chunks;
  for (const auto &[i, chunk] : enumerate(graph))
    if (chunk.tensor >= 0)
      chunks.try_emplace(tensors[chunk.tensor].name, i);
  for (const importer::MergedTensor &each : split->tensors()) {
    auto found = chunks.find(each.source);
    if (found == chunks.end())
      return request.model + ": has no tensor " + importer::quoted(each.source) +
             ", whose values " + importer::quoted(each.name) + " had before it was trained";
    const Chunk &source = graph[found->second];
    FileTensor tensor = tensors[source.tensor];
    tensor.name = each.name;
    tensor.kept = renameTensor(tensor.kept, each.name);
    std::string encoded;
    (void)wire::walk(source.copied, [&](const wire::Field &field) {
      wire::putBytes(encoded, 5, renameTensor(field.content, each.name));
      return std::string();
    });
    tensors.push_back(std::move(tensor));
    graph.push_back({keep(std::move(encoded)), static_cast<int>(tensors.size()) - 1});
  }
  return {};
}

static std::string sizes(ArrayRef<int64_t> shape) {
  return "[" + join(map_range(shape, [](int64_t d) { return std::to_string(d); }), ", ") + "]";
}

/// Gives a tensor the weights of its parameter. Reports missing or unfitting weights.
std::string Exporter::assignTo(FileTensor &tensor, const std::string &parameter,
                               const ExportTensor &part) {
  std::string about = request.model + ": parameter '" + parameter + "'";
  tensor.part = part;
  tensor.weights = weights->find(parameter);
  if (!tensor.weights)
    return about + " is not in " + request.weights;
  // A 16-bit program trains the master copy of its parameter.
  std::string trained = parameter;
  std::string masterName = partita_rt::masterIn(
      parameter, [&](const std::string &name) { return weights->find(name) != nullptr; });
  if (auto *master = weights->find(masterName);
      master && tensor.weights->dtype != "F32" && master->dtype == "F32") {
    tensor.weights = master;
    trained = masterName;
  }
  if (tensor.weights->dtype != "F32")
    return about + " is of type " + tensor.weights->dtype + " in " + request.weights +
           ", not F32, and there is no master of it";
  if (std::string damage = weights->damageOf(trained); !damage.empty())
    return damage;
  if (!fits(tensor.weights->shape, part, tensor.dims))
    return about + " has shape " + sizes(tensor.dims) + ", its trained value in " +
           request.weights + " has " + sizes(tensor.weights->shape);
  tensor.stored = floatType(tensor.type);
  if (!tensor.stored)
    return about + " has ONNX's element type " + std::to_string(tensor.type) +
           ", which holds no trained value";
  return {};
}

/// Returns true if import has made this tensor from another one in the file.
bool Exporter::isSplitOff(StringRef name) const {
  return any_of(split->tensors(), [&](const importer::MergedTensor &each) {
    return importer::symbolName(each.name) == name;
  });
}

/// Gives all tensors of all parameters their weights; each tensor must be in the model once.
std::string Exporter::assign() {
  StringMap<FileTensor *> byName;
  StringSet<> twice;
  for (FileTensor &tensor : tensors) {
    std::string name = importer::symbolName(tensor.name);
    if (!byName.try_emplace(name, &tensor).second)
      twice.insert(name);
  }
  bool listsTensors = false;
  for (const ExportParameter &parameter : request.parameters) {
    SmallVector<ExportTensor> parts(parameter.tensors.begin(), parameter.tensors.end());
    listsTensors |= !parts.empty();
    if (parts.empty())
      parts.push_back({parameter.name});
    for (const ExportTensor &part : parts) {
      FileTensor *tensor = byName.lookup(part.name);
      if (!tensor && !weights && isSplitOff(part.name))
        continue;
      if (!tensor)
        return request.model + ": has no initializer '" + part.name +
               "'; is it the model that the program was compiled from?";
      if (twice.contains(part.name))
        return request.model + ": parameter '" + part.name + "' is there twice";
      if (!weights)
        continue;
      std::string problem = assignTo(*tensor, parameter.name, part);
      if (!problem.empty())
        return problem;
    }
  }
  return listsTensors ? "" : assignTableCopies();
}

/// Handles a program whose manifest does not list tensors: an embedding table that the file has
/// twice is one parameter, and its copy gets the trained values, too.
std::string Exporter::assignTableCopies() {
  if (!weights)
    return {};
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string problem;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    problem = request.model + ": " + diagnostic.str();
  });
  auto file = importer::ModelFile::open(request.model, &context);
  if (mlir::failed(file))
    return problem;
  StringMap<FileTensor *> byName;
  for (FileTensor &tensor : tensors)
    byName[tensor.name] = &tensor;
  for (const importer::WeightCopy &copy : importer::findTableCopies(**file)) {
    FileTensor *table = byName.lookup(copy.table), *tensor = byName.lookup(copy.name);
    if (tensor->weights || !table->weights)
      continue;
    tensor->weights = table->weights;
    tensor->stored = table->stored;
    tensor->part = {copy.name, copy.transposed};
  }
  return {};
}

/// Decides which values go to the data file, and where.
std::string Exporter::place() {
  uint64_t total = model->getBufferSize();
  for (const FileTensor &tensor : tensors)
    if (tensor.weights && !tensor.external)
      total += tensor.bytes();
  bool tooLarge = total > kMostInline;
  uint64_t end = 0;
  for (FileTensor &tensor : tensors) {
    tensor.toFile = tensor.external || (tooLarge && tensor.weights);
    if (!tensor.toFile)
      continue;
    if (!tensor.weights && !tensor.hasLength)
      return request.model + ": external tensor '" + tensor.name + "' states no length";
    tensor.newOffset = alignTo(end, kAlignment);
    end = tensor.newOffset + tensor.bytes();
    anyToFile = true;
  }
  return {};
}

/// Returns the new TensorProto up to its raw values, which are written separately.
std::string Exporter::messageOf(const FileTensor &tensor) const {
  std::string out = tensor.kept;
  if (!tensor.toFile) {
    wire::putHeader(out, 9, tensor.bytes());
    return out;
  }
  auto entry = [&](StringRef key, StringRef value) {
    std::string pair;
    wire::putBytes(pair, 1, key);
    wire::putBytes(pair, 2, value);
    wire::putBytes(out, 13, pair);
  };
  entry("location", dataName());
  entry("offset", std::to_string(tensor.newOffset));
  entry("length", std::to_string(tensor.bytes()));
  wire::putInteger(out, 14, 1);
  return out;
}

std::string Exporter::copyExternal(const FileTensor &tensor, raw_ostream &os) {
  std::string about = request.model + ": external tensor '" + tensor.name + "': ";
  StringRef folder = sys::path::parent_path(request.model);
  importer::OpenedData data =
      importer::openExternalData(folder.empty() ? "." : folder, tensor.location);
  if (!data.error.empty())
    return about + data.error;
  scope_exit close([&] { ::close(data.descriptor); });
  if (tensor.offset > data.size || tensor.length > data.size - tensor.offset)
    return about + "its " + std::to_string(tensor.length) + " bytes at " +
           std::to_string(tensor.offset) + " pass the end of '" + tensor.location + "' (" +
           std::to_string(data.size) + " bytes)";
  std::vector<char> block(1 << 20);
  for (uint64_t done = 0; done < tensor.length;) {
    ssize_t got =
        pread(data.descriptor, block.data(), std::min<uint64_t>(block.size(), tensor.length - done),
              tensor.offset + done);
    if (got <= 0)
      return about + "'" + tensor.location + "' cannot be read";
    os.write(block.data(), got);
    done += got;
  }
  return {};
}

std::string Exporter::writeData() {
  SmallString<128> path(sys::path::parent_path(request.output));
  sys::path::append(path, dataName());
  auto write = [&](raw_ostream &os) {
    uint64_t at = 0;
    for (const FileTensor &tensor : tensors) {
      if (!tensor.toFile)
        continue;
      os.write_zeros(tensor.newOffset - at);
      if (tensor.weights)
        writeValues(*tensor.weights, tensor.part, *tensor.stored, os);
      else if (std::string problem = copyExternal(tensor, os); !problem.empty())
        return problem;
      at = tensor.newOffset + tensor.bytes();
    }
    return std::string();
  };
  return writeFile(path, write, Devices::Refuse);
}

std::string Exporter::writeModel() {
  auto changes = [&](const Chunk &chunk) {
    return chunk.tensor >= 0 && (tensors[chunk.tensor].weights || tensors[chunk.tensor].toFile);
  };
  uint64_t length = 0;
  std::vector<std::string> messages(tensors.size());
  for (const Chunk &chunk : graph) {
    if (!changes(chunk)) {
      length += chunk.copied.size();
      continue;
    }
    const FileTensor &tensor = tensors[chunk.tensor];
    std::string &message = messages[chunk.tensor], fields = messageOf(tensor);
    wire::putHeader(message, 5, fields.size() + (tensor.toFile ? 0 : tensor.bytes()));
    message += fields;
    length += message.size() + (tensor.toFile ? 0 : tensor.bytes());
  }
  if (length > kMostInline)
    return request.output + ": the graph would have " + std::to_string(length) +
           " bytes, but an ONNX file has fewer than 2147483648";
  auto write = [&](raw_ostream &os) {
    for (const Chunk &chunk : before)
      os << chunk.copied;
    std::string header;
    wire::putHeader(header, 7, length);
    os << header;
    for (const Chunk &chunk : graph) {
      if (!changes(chunk)) {
        os << chunk.copied;
        continue;
      }
      os << messages[chunk.tensor];
      if (!tensors[chunk.tensor].toFile)
        writeValues(*tensors[chunk.tensor].weights, tensors[chunk.tensor].part,
                    *tensors[chunk.tensor].stored, os);
    }
    for (const Chunk &chunk : after)
      os << chunk.copied;
    return std::string();
  };
  return writeFile(request.output, write, Devices::Refuse);
}

/// Reads a field of the model. With annotations, raises the format's version to one that has them.
std::string Exporter::readModelField(const wire::Field &field) {
  if (field.number == 7 && field.isBytes) {
    hasGraph = true;
    return readGraph(field.content);
  }
  StringRef encoded = field.encoded;
  if (request.plan && field.number == 1 && !field.isBytes && field.value < kPlanVersion) {
    std::string version;
    wire::putInteger(version, 1, kPlanVersion);
    encoded = keep(std::move(version));
  }
  if (request.plan && field.number == 26 && field.isBytes) {
    StringRef name;
    std::string problem = wire::walk(field.content, [&](const wire::Field &inner) {
      name = inner.number == 1 && inner.isBytes ? inner.content : name;
      return std::string();
    });
    if (!problem.empty() || name == request.plan->name())
      return problem;
  }
  (hasGraph ? after : before).push_back({encoded});
  return {};
}

std::string Exporter::run() {
  auto buffer =
      MemoryBuffer::getFile(request.model, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return request.model + ": " + buffer.getError().message();
  model = std::move(*buffer);
  std::string problem;
  if (!request.weights.empty()) {
    weights = WeightFile::open(request.weights, problem);
    if (!weights)
      return problem;
    if (request.note)
      *request.note = weights->note().str();
  }
  split.emplace(model->getBuffer());
  problem = wire::walk(model->getBuffer(),
                       [&](const wire::Field &field) { return readModelField(field); });
  if (problem.empty() && !hasGraph)
    problem = "it has no graph";
  if (!problem.empty())
    return request.model + ": " + problem;
  if (weights)
    if (problem = addSplit(); !problem.empty())
      return problem;
  if (request.plan) {
    std::string configuration;
    wire::putBytes(configuration, 26, request.plan->describe());
    after.push_back({keep(std::move(configuration))});
  }
  for (auto step : {&Exporter::assign, &Exporter::place})
    if (problem = (this->*step)(); !problem.empty())
      return problem;
  if (anyToFile)
    if (problem = writeData(); !problem.empty())
      return problem;
  return writeModel();
}

std::string partita::exportOnnx(const ExportRequest &request) { return Exporter(request).run(); }
