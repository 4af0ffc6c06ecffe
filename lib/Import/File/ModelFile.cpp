//===- ModelFile.cpp --------------------------------------------------------------------------===//

#include "partita/Import/ModelFile.h"
#include "lib/Import/File/WireScanner.h"
#include "lib/Import/Weights/Merged/MergedTensors.h"
#include "mlir/IR/Location.h"
#include "onnx.pb.h"
#include "partita/Import/ExternalData.h"
#include "partita/Support/Quoted.h"
#include "runtime/include/partita_rt/varints.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;

namespace partita::importer {

std::string quoted(llvm::StringRef name) { return partita::quoted(name, 200); }

std::string symbolName(llvm::StringRef name) {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(name.data());
  const llvm::UTF8 *end = begin;
  if (llvm::isLegalUTF8String(&end, begin + name.size()) && !name.contains('\0'))
    return name.str();
  std::string text; // two names that differ stay two
  for (char c : name)
    text += c == '\\' ? "\\x5C" : std::string(1, c);
  return partita_rt::printable(text);
}

bool TensorData::isRaw() const {
  return payloadField == 9 || (payloadField == 4 && type == DType::f32) ||
         (payloadField == 10 && type == DType::f64);
}

/// Maps an open file; an empty one maps to nothing.
static std::optional<Mapping> mapDescriptor(int descriptor, size_t size) {
  Mapping mapping;
  mapping.size = size;
  if (size == 0)
    return mapping;
  void *data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED)
    return std::nullopt;
  mapping.data =
      std::shared_ptr<const char>(static_cast<const char *>(data),
                                  [size](const char *p) { munmap(const_cast<char *>(p), size); });
  return mapping;
}

ModelFile::ModelFile(llvm::StringRef path, MLIRContext *context)
    : modelPath(path), fileLocation(FileLineColLoc::get(context, path, 0, 0)),
      proto(std::make_unique<onnx::ModelProto>()) {}

ModelFile::~ModelFile() = default;

FailureOr<std::unique_ptr<ModelFile>> ModelFile::open(llvm::StringRef path, MLIRContext *context) {
  std::unique_ptr<ModelFile> file(new ModelFile(path, context));
  auto error = [&] { return emitError(file->fileLocation); };
  int descriptor = ::open(file->modelPath.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    error() << "cannot open the model: " << std::strerror(errno);
    return failure();
  }
  llvm::scope_exit closer([&] { close(descriptor); });
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    error() << "not a regular file";
    return failure();
  }
  std::optional<Mapping> mapping = mapDescriptor(descriptor, status.st_size);
  if (!mapping) {
    error() << "cannot map the model: " << std::strerror(errno);
    return failure();
  }
  file->mapping = *mapping;
  ScanResult scan =
      scanModel(reinterpret_cast<const uint8_t *>(mapping->data.get()), mapping->size);
  if (!scan.error.empty()) {
    error() << "not a complete ONNX file: " << scan.error;
    return failure();
  }
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const uint8_t *>(scan.skeleton.data()), scan.skeleton.size());
  if (!file->proto->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    error() << "not an ONNX file: a field does not have the type that the format gives it";
    return failure();
  }
  if (!file->proto->has_graph()) {
    error() << "not an ONNX file: it has no graph";
    return failure();
  }
  splitMerged(*file->proto);
  return file;
}

/// Bytes that the values of `count` elements take as raw data.
static uint64_t rawLength(const TensorData &data) {
  return static_cast<uint64_t>(data.count) * static_cast<uint64_t>(byteSize(data.type));
}

uint64_t ModelFile::bytes() const {
  uint64_t sum = mapping.size;
  for (const auto &external : externalSizes)
    sum = llvm::SaturatingAdd(sum, external.second);
  return sum;
}

FailureOr<TensorData> ModelFile::locate(const onnx::TensorProto &tensor, EmitError emitError) {
  TensorData data;
  std::optional<DType> type = dtypeFromOnnx(tensor.data_type());
  if (!type) {
    emitError() << "element type " << dtypeName(tensor.data_type()) << " is not supported";
    return failure();
  }
  data.type = *type;
  data.shape.assign(tensor.dims().begin(), tensor.dims().end());
  std::optional<int64_t> count = elementCount(data.shape);
  if (!count || data.shape.size() > 64) {
    emitError() << "shape " << shapeText(data.shape) << " is not possible";
    return failure();
  }
  data.count = *count;
  if (tensor.data_location() == 1)
    return failed(locateExternal(tensor, data, emitError)) ? FailureOr<TensorData>(failure())
                                                           : FailureOr<TensorData>(data);
  if (tensor.payload_size() == 0)
    return data;
  if (tensor.payload_size() > 1) {
    emitError() << "its values are stored in " << tensor.payload_size() << " fields, expected one";
    return failure();
  }
  const onnx::Payload &payload = tensor.payload(0);
  data.place = TensorData::inModel;
  data.file = modelPath;
  data.offset = payload.offset();
  data.length = payload.length();
  data.payloadField = payload.field();
  if (data.length == 0 && data.count > 0) { // an empty field says no more than a missing one
    data.place = TensorData::declared;
    return data;
  }
  if (data.isRaw() && data.length != rawLength(data)) {
    emitError() << "shape " << shapeText(data.shape) << " of " << dtypeName(data.type) << " needs "
                << rawLength(data) << " bytes, the file has " << data.length;
    return failure();
  }
  return data;
}

LogicalResult ModelFile::locateExternal(const onnx::TensorProto &tensor, TensorData &data,
                                        EmitError emitError) {
  std::string location;
  std::optional<uint64_t> offset = 0, length;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    auto number = [&](std::optional<uint64_t> &into) -> LogicalResult {
      uint64_t value;
      if (llvm::StringRef(entry.value()).getAsInteger(10, value))
        return emitError() << "external data's " << entry.key() << " is " << quoted(entry.value())
                           << ", expected a number of bytes";
      into = value;
      return success();
    };
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset" && failed(number(offset)))
      return failure();
    else if (entry.key() == "length" && failed(number(length)))
      return failure();
  }
  auto known = externalSizes.find(location);
  if (known == externalSizes.end()) {
    OpenedData opened = openExternalData(llvm::sys::path::parent_path(modelPath), location);
    if (!opened.error.empty())
      return emitError() << opened.error;
    close(opened.descriptor);
    known = externalSizes.insert({location, opened.size}).first;
  }
  uint64_t fileSize = known->second;
  data.place = TensorData::external;
  llvm::SmallString<128> plain(location);
  llvm::sys::path::remove_dots(plain); // "./data//w" is "data/w"
  data.location = std::string(plain);
  data.length = length.value_or(rawLength(data));
  data.offset = *offset;
  if (data.length != rawLength(data))
    return emitError() << "shape " << shapeText(data.shape) << " of " << dtypeName(data.type)
                       << " needs " << rawLength(data) << " bytes, its external data has "
                       << data.length;
  if (data.offset > fileSize || data.length > fileSize - data.offset)
    return emitError() << "bytes " << data.offset << " to " << data.offset << "+" << data.length
                       << " of external data " << quoted(location) << " are past its end at "
                       << fileSize;
  llvm::SmallString<128> path(llvm::sys::path::parent_path(modelPath));
  llvm::sys::path::append(path, data.location);
  data.file = std::string(path);
  return success();
}

/// Does ONNX keep numbers of this type, which are not raw, in this field of a tensor?
static LogicalResult checkField(const TensorData &data, ModelFile::EmitError emitError) {
  if ((data.payloadField == 5 && byteSize(data.type) <= 4 && data.type != DType::f32) ||
      (data.payloadField == 7 && data.type == DType::i64) ||
      (data.payloadField == 11 && (data.type == DType::u64 || data.type == DType::u32)))
    return success();
  return emitError() << "values of type " << dtypeName(data.type) << " are in field "
                     << data.payloadField << " of the tensor, which is for another type";
}

/// The numbers that a field of 32 bits may hold for an element of fewer; of a float they are its
/// bits.
static std::pair<int64_t, int64_t> rangeOf(DType type) {
  switch (type) {
  case DType::i8:
    return {INT8_MIN, INT8_MAX};
  case DType::u8:
    return {0, UINT8_MAX};
  case DType::i16:
    return {INT16_MIN, INT16_MAX};
  case DType::u16:
  case DType::f16:
  case DType::bf16:
    return {0, UINT16_MAX};
  default:
    return {INT64_MIN, INT64_MAX};
  }
}

/// Hands on the varints at `bytes`, one for each element.
static LogicalResult forVarints(const char *bytes, const TensorData &data,
                                ModelFile::EmitError emitError,
                                llvm::function_ref<void(int64_t, uint64_t)> use) {
  const auto *begin = reinterpret_cast<const unsigned char *>(bytes);
  partita_rt::VarintReader reader(begin, begin + data.length);
  int64_t index = 0;
  auto [least, most] = rangeOf(data.type);
  for (uint64_t value = 0; index < data.count && reader.next(value); ++index) {
    auto number = static_cast<int64_t>(value);
    if (number < least || number > most)
      return emitError() << "element " << index << " is " << number << ", expected "
                         << (isFloat(data.type) ? "the bits of " : "") << dtypeName(data.type)
                         << ", " << least << " to " << most;
    use(index, value);
  }
  if (index < data.count || !reader.atEnd())
    return emitError() << "shape " << shapeText(data.shape) << " needs " << data.count
                       << " values, the file has "
                       << (index < data.count ? std::to_string(index) : std::string("more"));
  return success();
}

LogicalResult ModelFile::checkParameter(const TensorData &data, EmitError emitError) {
  if (data.place == TensorData::declared || data.isRaw())
    return success();
  if (failed(checkField(data, emitError)))
    return failure();
  return forVarints(mapping.data.get() + data.offset, data, emitError, [](int64_t, uint64_t) {});
}

FailureOr<Mapping> ModelFile::map(const TensorData &data, EmitError emitError) {
  if (data.place == TensorData::inModel)
    return mapping;
  Mapping &external = externalMappings[data.location];
  if (!external.data) {
    OpenedData opened = openExternalData(llvm::sys::path::parent_path(modelPath), data.location);
    std::optional<Mapping> mapped;
    if (opened.error.empty()) {
      mapped = mapDescriptor(opened.descriptor, opened.size);
      close(opened.descriptor);
    }
    if (!mapped || data.offset + data.length > mapped->size) {
      emitError() << (opened.error.empty() ? "cannot map its external data" : opened.error);
      return failure();
    }
    external = *mapped;
  }
  return external;
}

FailureOr<HostTensor> ModelFile::read(const TensorData &data, EmitError emitError) {
  if (data.count == 0)
    return HostBuffer(data.type, data.shape).finish();
  if (data.place == TensorData::declared) {
    emitError() << "it has no values: only parameters, which are floats of more than one element, "
                   "can be declared without";
    return failure();
  }
  if (data.place == TensorData::external) {
    FailureOr<Mapping> external = map(data, emitError);
    if (failed(external))
      return failure();
    return HostTensor::view(data.type, data.shape,
                            {external->data, external->data.get() + data.offset});
  }
  std::shared_ptr<const char> bytes(mapping.data, mapping.data.get() + data.offset);
  if (data.isRaw())
    return HostTensor::view(data.type, data.shape, bytes);
  if (failed(checkField(data, emitError)))
    return failure();
  // A varint has at least one byte: no allocation before the count is plausible.
  if (static_cast<uint64_t>(data.count) > data.length) {
    emitError() << "shape " << shapeText(data.shape) << " needs " << data.count
                << " values, the file has at most " << data.length;
    return failure();
  }
  HostBuffer buffer(data.type, data.shape);
  auto put = [&](int64_t index, uint64_t value) {
    if (data.type == DType::f16 || data.type == DType::bf16) { // its bits
      uint16_t bits = static_cast<uint16_t>(value);
      buffer.putBytes(index, reinterpret_cast<const char *>(&bits));
    } else {
      buffer.putInt(index, static_cast<int64_t>(value));
    }
  };
  if (failed(forVarints(bytes.get(), data, emitError, put)))
    return failure();
  return buffer.finish();
}

std::optional<TensorData> ModelFile::tryLocate(const onnx::TensorProto &tensor) {
  ScopedDiagnosticHandler quiet(fileLocation.getContext(), [](Diagnostic &) {});
  FailureOr<TensorData> data = locate(tensor, [&] { return emitError(fileLocation); });
  return failed(data) ? std::nullopt : std::optional<TensorData>(std::move(*data));
}

std::optional<HostTensor> ModelFile::tryRead(const TensorData &data) {
  ScopedDiagnosticHandler quiet(fileLocation.getContext(), [](Diagnostic &) {});
  if (data.place == TensorData::declared)
    return std::nullopt;
  FailureOr<HostTensor> values = read(data, [&] { return emitError(fileLocation); });
  return failed(values) ? std::nullopt : std::optional<HostTensor>(std::move(*values));
}

InFlightDiagnostic ModelFile::tensorError(llvm::StringRef name) const {
  InFlightDiagnostic diagnostic = emitError(fileLocation);
  diagnostic << "tensor " << quoted(name) << ": ";
  return diagnostic;
}

} // namespace partita::importer
