//===- Initializers.cpp - parameters and constants of the file
//---------------------------------===//
//
// An initializer becomes a parameter (floats) or a known tensor (the rest, and buffers) when a node
// first uses it.
//
//===----------------------------------------------------------------------------------------===//

#include "Buffers.h"
#include "FoldedWeights.h"
#include "Importer.h"
#include "SharedWeights.h"
#include "SingleBiases.h"
#include "TiedWeights.h"
#include "dialects/Tx/Tx.h"
#include "runtime/include/partita_rt/fingerprint.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace partita::importer {

LogicalResult Importer::importInitializers(const onnx::GraphProto &graph, Scope &scope) {
  llvm::StringSet<> buffers = findBuffers(graph, file), biases = findSingleBiases(graph);
  for (const onnx::TensorProto &proto : graph.initializer()) {
    auto tensorError = [&] {
      InFlightDiagnostic diagnostic = error();
      diagnostic << "tensor " << quoted(proto.name()) << ": ";
      return diagnostic;
    };
    FailureOr<TensorData> data = failure();
    if (proto.name().empty())
      error() << "an initializer has no name";
    else if (scope.values.contains(proto.name()))
      tensorError() << "the name is defined twice";
    else
      data = file.locate(proto, tensorError);
    if (failed(data) && !options.keepGoing)
      return failure();
    if (failed(data)) {
      broken = true;
      scope.values.try_emplace(proto.name(), createLost());
      continue;
    }
    Tensor &tensor = tensors.emplace_back();
    tensor.type = data->type;
    tensor.shape = data->shape;
    tensor.initializer = &proto;
    bool isTrained = data->isParameter() || (isFloat(data->type) && biases.contains(proto.name()));
    tensor.isBuffer = !isTrained || buffers.contains(proto.name());
    initializerData[&proto] = *data;
    scope.values[proto.name()] = &tensor;
  }
  return success();
}

void Importer::tieWeights(Scope &scope) {
  for (const WeightCopy &copy : findCopies(file)) {
    Tensor *tensor = scope.values.lookup(copy.name), *table = scope.values.lookup(copy.table);
    if (!tensor || !table)
      continue; // one that is wrong in another way
    tensor->copyOf = table;
    tensor->copyTransposed = copy.transposed;
  }
}

void Importer::warnOfMerged() {
  std::vector<SharedWeight> shared = findShared(file);
  llvm::erase_if(shared, [](const SharedWeight &each) { return !each.mergedValue; });
  if (shared.empty())
    return;
  std::string rest = shared.size() > 1 ? ", as " + std::to_string(shared.size() - 1) +
                                             " more are (--report lists them)"
                                       : "";
  std::string number;
  llvm::raw_string_ostream(number) << llvm::format("%g", *shared[0].mergedValue);
  emitWarning(file.location())
      << "tensor " << quoted(shared[0].name) << ", all " << number << ", is read by "
      << shared[0].uses << " nodes" << rest
      << ": exporters merge equal tensors, so what were several parameters is trained as one; "
         "export the model with different values in all of its tensors, and give its own by --init";
}

void Importer::warnOfFolded() {
  for (const std::string &sentence : describeFolded(file))
    emitWarning(file.location()) << sentence;
}

/// Symbols of the functions that the module has or will have.
static bool isFunctionName(llvm::StringRef symbol) {
  return llvm::is_contained({"forward", "init", "train_step", "eval_step"}, symbol);
}

LogicalResult Importer::loadInitializer(Tensor &tensor) {
  if (!tensor.initializer || tensor.host || tensor.value)
    return success();
  const onnx::TensorProto &proto = *tensor.initializer;
  const TensorData &data = initializerData[&proto];
  auto tensorError = [&] {
    InFlightDiagnostic diagnostic = error();
    diagnostic << "tensor " << quoted(proto.name()) << ": ";
    return diagnostic;
  };
  if (tensor.copyOf) {
    if (failed(loadInitializer(*tensor.copyOf)))
      return failure();
    tensor.value = tensor.copyOf->value;
    if (tensor.copyTransposed)
      tensor.value = tx::TransposeOp::create(
          builder, NameLoc::get(builder.getStringAttr(proto.name()), file.location()),
          RankedTensorType::get(tensor.shape, mlirType(tensor.type, context())), tensor.value,
          llvm::ArrayRef<int64_t>{1, 0});
    return success();
  }
  if (tensor.isBuffer) {
    FailureOr<HostTensor> host = file.read(data, tensorError);
    if (failed(host))
      return failure();
    tensor.host = *host;
    return success();
  }
  if (failed(file.checkParameter(data, tensorError)))
    return failure();
  std::string modelName = symbolName(proto.name()), symbol = modelName;
  if (isFunctionName(symbol))
    symbol += ".parameter";
  if (!parameters.try_emplace(symbol).second)
    return tensorError() << "a parameter cannot have this name, it is taken";
  Location loc = NameLoc::get(builder.getStringAttr(proto.name()), file.location());
  auto type = RankedTensorType::get(data.shape, mlirType(data.type, context()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(forward);
  auto parameter = train::ParameterOp::create(builder, loc, symbol, type, {}, {}, false);
  parameters[symbol] = parameter;
  if (symbol != modelName)
    parameter->setAttr(train::TrainDialect::kName, builder.getStringAttr(modelName));
  if (data.place != TensorData::declared) {
    // Relative to the model's folder, so that model and program can move together.
    llvm::StringRef name = data.place == TensorData::external
                               ? llvm::StringRef(data.location)
                               : llvm::sys::path::filename(data.file);
    parameter.setInitialAttr(train::InitialAttr::get(
        context(), builder.getStringAttr(name), data.offset, data.length, type.getElementType(),
        /*varints=*/!data.isRaw()));
    if (failed(noteFile(name, data, tensorError)))
      return failure();
  }
  if (lastRead)
    builder.setInsertionPointAfter(lastRead);
  else
    builder.setInsertionPointToStart(&forward.getBody().front());
  auto read = train::ReadOp::create(builder, loc, type, symbol);
  lastRead = read;
  tensor.value = read.getResult();
  return success();
}

LogicalResult Importer::noteFile(llvm::StringRef name, const TensorData &data,
                                 ModelFile::EmitError emitError) {
  if (!notedFiles.insert(name).second)
    return success();
  FailureOr<Mapping> mapping = file.map(data, emitError);
  if (failed(mapping))
    return failure();
  uint64_t fingerprint = partita_rt::fingerprint(
      reinterpret_cast<const unsigned char *>(mapping->data.get()),
      static_cast<int64_t>(mapping->size), partita_rt::kModelFingerprintBytes);
  noted.push_back(builder.getDictionaryAttr(
      {builder.getNamedAttr("file", builder.getStringAttr(name)),
       builder.getNamedAttr("bytes", builder.getI64IntegerAttr(mapping->size)),
       builder.getNamedAttr("fingerprint", builder.getI64IntegerAttr(fingerprint))}));
  return success();
}

} // namespace partita::importer
