//===- Initializers.cpp - parameters and constants of the file --------------------------------===//
//
// An initializer becomes a parameter (floats) or a known tensor (the rest, and buffers) when a node
// first uses it.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Train/Tensors.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Import/Importer.h"
#include "lib/Import/Roundings.h"
#include "lib/Import/Weights/Buffers.h"
#include "lib/Import/Weights/SingleBiases.h"
#include "runtime/include/partita_rt/fingerprint.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace partita::importer {

LogicalResult Importer::importInitializers(const onnx::GraphProto &graph, Scope &scope) {
  bool isOuter = &graph == &file.model().graph();
  llvm::StringSet<> buffers, biases;
  if (!isOuter) { // of a branch, of which nothing more is known
    buffers = findBuffers(graph, file);
    biases = findSingleBiases(graph);
  }
  for (const onnx::TensorProto &proto : graph.initializer()) {
    auto tensorError = [&] { return file.tensorError(proto.name()); };
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
      scope.values.try_emplace(proto.name(), createUnavailable());
      continue;
    }
    Tensor &tensor = tensors.emplace_back();
    tensor.type = data->type;
    tensor.shape = data->shape;
    tensor.initializer = &proto;
    bool isTrained = data->isParameter() || (isFloat(data->type) && biases.contains(proto.name()));
    tensor.isBuffer =
        isOuter ? !weights.isParameter(proto.name()) : !isTrained || buffers.contains(proto.name());
    initializerData[&proto] = *data;
    scope.values[proto.name()] = &tensor;
  }
  return success();
}

void Importer::tieWeights(Scope &scope) {
  for (const WeightCopy &copy : weights.copies()) {
    Tensor *tensor = scope.values.lookup(copy.name), *table = scope.values.lookup(copy.table);
    if (!tensor || !table)
      continue; // one that is wrong in another way
    tensor->copyOf = table;
    tensor->copy = &copy;
  }
}

void Importer::noteGuesses() {
  auto names = [&](llvm::ArrayRef<std::string> tensors) {
    return builder.getArrayAttr(
        llvm::map_to_vector(tensors, [&](const std::string &name) -> Attribute {
          return builder.getStringAttr(symbolName(name));
        }));
  };
  llvm::SmallVector<train::NoteAttr> notes;
  if (std::string text = batch.warning(); !text.empty())
    notes.push_back(train::NoteAttr::get(context(), text, ArrayAttr(), /*of_parameters=*/false,
                                         /*of_forward=*/true));
  for (const WeightNote &note : weights.notes())
    notes.push_back(train::NoteAttr::get(context(), note.text,
                                         note.tensors.empty() ? ArrayAttr() : names(note.tensors),
                                         note.isOfParameters, note.isOfForward));
  if (std::string text = roundingWarning(*module); !text.empty())
    notes.push_back(train::NoteAttr::get(context(), text, ArrayAttr(), /*of_parameters=*/true,
                                         /*of_forward=*/true));
  train::setNotes(*module, notes);
  if (std::vector<std::string> held = weights.frozenConstants(); !held.empty())
    (*module)->setAttr(train::TrainDialect::kFrozenConstants, names(held));
}

/// Symbols of the functions that the module has or will have.
static bool isFunctionName(llvm::StringRef symbol) {
  return train::symbolizeEntryPoint(symbol).has_value();
}

LogicalResult Importer::loadInitializer(Tensor &tensor) {
  if (!tensor.initializer || tensor.host || tensor.value)
    return success();
  const onnx::TensorProto &proto = *tensor.initializer;
  const TensorData &data = initializerData[&proto];
  auto tensorError = [&] { return file.tensorError(proto.name()); };
  if (tensor.copyOf) {
    if (failed(loadInitializer(*tensor.copyOf)))
      return failure();
    tensor.value = readCopy(tensor);
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
  return makeParameter(tensor, data);
}

/// In the tensor's own layout.
Value Importer::readParameter(const Tensor &tensor, train::ParameterOp parameter) {
  if (lastRead)
    builder.setInsertionPointAfter(lastRead);
  else
    builder.setInsertionPointToStart(&forward.getBody().front());
  auto type = cast<RankedTensorType>(parameter.getType());
  auto read = train::ReadOp::create(builder, parameter.getLoc(), type, parameter.getSymName());
  lastRead = read;
  if (type.getShape() == llvm::ArrayRef<int64_t>(tensor.shape))
    if (!train::isStoredTransposed(parameter))
      return read.getResult();
  auto own = RankedTensorType::get(tensor.shape, type.getElementType());
  Operation *result = train::isStoredTransposed(parameter)
                          ? tx::TransposeOp::create(builder, read.getLoc(), own, read,
                                                    llvm::ArrayRef<int64_t>{1, 0})
                                .getOperation()
                          : tx::ReshapeOp::create(builder, read.getLoc(), own, read).getOperation();
  lastRead = result;
  return result->getResult(0);
}

/// The slice, the transpose or another shape of what it repeats.
Value Importer::readCopy(const Tensor &tensor) {
  const WeightCopy &copy = *tensor.copy;
  Value value = tensor.copyOf->value;
  Location loc = NameLoc::get(builder.getStringAttr(tensor.initializer->name()), file.location());
  Type element = mlirType(tensor.type, context());
  if (copy.dim >= 0) {
    Shape shape(tensor.copyOf->shape), offsets(shape.size(), 0), strides(shape.size(), 1);
    shape[copy.dim] = copy.size;
    offsets[copy.dim] = copy.begin;
    value = tx::SliceOp::create(builder, loc, RankedTensorType::get(shape, element), value, offsets,
                                strides);
  }
  auto type = RankedTensorType::get(tensor.shape, element);
  if (copy.transposed)
    return tx::TransposeOp::create(builder, loc, type, value, llvm::ArrayRef<int64_t>{1, 0});
  return value.getType() == type ? value
                                 : tx::ReshapeOp::create(builder, loc, type, value).getResult();
}

ArrayAttr Importer::tensorsOf(const onnx::TensorProto &proto) {
  const OriginalParameter *original = weights.original(proto.name());
  bool isTransposed = original && original->transposed;
  const Shape own(proto.dims().begin(), proto.dims().end());
  llvm::SmallVector<train::StoredTensor> all;
  // A parameter under its own name again has no other.
  llvm::StringRef origin = original ? "" : weights.originOf(proto.name());
  all.push_back({symbolName(proto.name()),
                 isTransposed,
                 original && !isTransposed && original->shape != own,
                 {},
                 origin.empty() ? "" : symbolName(origin),
                 weights.foldedBy(proto.name()),
                 weights.originalDimensions(proto.name())});
  for (const WeightCopy &copy : weights.copies()) {
    if (copy.table != proto.name())
      continue;
    // The copy is of the tensor in the file's layout, which may be the parameter's transposed.
    train::StoredTensor &stored = all.emplace_back();
    stored.name = symbolName(copy.name);
    stored.transposed = copy.transposed != isTransposed;
    if (copy.dim >= 0)
      stored.slice = {isTransposed ? 1 - copy.dim : copy.dim, copy.begin, copy.size};
    stored.reshaped = weights.isReshaped(copy);
  }
  bool isPlain =
      all.size() == 1 && !original && origin.empty() && all.front().folded == train::Folded::No;
  return isPlain ? ArrayAttr() : train::toAttribute(all, context());
}

LogicalResult Importer::makeParameter(Tensor &tensor, const TensorData &data) {
  const onnx::TensorProto &proto = *tensor.initializer;
  auto tensorError = [&] { return file.tensorError(proto.name()); };
  const OriginalParameter *original = weights.original(proto.name());
  std::string modelName = symbolName(original ? original->name : proto.name()), symbol = modelName;
  if (isFunctionName(symbol))
    symbol += ".parameter";
  if (!parameters.try_emplace(symbol).second)
    return tensorError() << "a parameter cannot have this name, it is taken";
  Location loc = NameLoc::get(builder.getStringAttr(modelName), file.location());
  auto type = RankedTensorType::get(original ? original->shape : data.shape,
                                    mlirType(data.type, context()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(forward);
  auto parameter = train::ParameterOp::create(builder, loc, symbol, type, {}, {},
                                              weights.isUnreadConstant(proto.name()));
  parameters[symbol] = parameter;
  if (symbol != modelName)
    parameter->setAttr(train::TrainDialect::kName, builder.getStringAttr(modelName));
  if (ArrayAttr all = tensorsOf(proto))
    parameter->setAttr(train::TrainDialect::kTensors, all);
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
  tensor.value = readParameter(tensor, parameter);
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
  noted.push_back(train::FileAttr::get(context(), name, static_cast<int64_t>(mapping->size),
                                       static_cast<int64_t>(fingerprint)));
  return success();
}

} // namespace partita::importer
