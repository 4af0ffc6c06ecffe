//===- ModelFile.h - an ONNX file and its data files ------------------------------------------===//
//
// Maps the model, parses it without its tensors' values (WireScanner) and finds those values, in
// the model or in external files. All sizes and offsets in a file are checked here, before they are
// used.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_IMPORT_MODELFILE_H
#define PARTITA_IMPORT_MODELFILE_H

#include "mlir/IR/Diagnostics.h"
#include "partita/Import/HostTensor.h"
#include "llvm/ADT/StringMap.h"

namespace partita::onnx {
class ModelProto;
class TensorProto;
} // namespace partita::onnx

namespace partita::importer {

/// Quotes a name from a model so that it is safe to print: in single quotes, control characters and
/// bytes that are not UTF-8 escaped, cut after 200 bytes.
std::string quoted(llvm::StringRef name);

/// Returns the symbol of the parameter with this name: the name itself, which is UTF-8 in a valid
/// file. A name that is not UTF-8, or has a zero byte, could not pass through C++, JSON and
/// safetensors: in it backslashes, control characters and invalid bytes become \xNN. `partita
/// export` finds an initializer by its symbol.
std::string symbolName(llvm::StringRef name);

/// A file mapped for reading; unmapped when the last view of it is destroyed.
struct Mapping {
  std::shared_ptr<const char> data;
  size_t size = 0;
};

/// Where the values of a tensor are; all sizes are checked.
struct TensorData {
  /// `declared`: the file states type and shape but carries no values (they were stripped).
  enum Place { declared, inModel, external };

  DType type = DType::f32;
  Shape shape;
  int64_t count = 0; // elements
  Place place = declared;
  std::string file;     // path to open; the model's own or the external file's
  std::string location; // of external data, as the model writes it
  uint64_t offset = 0;  // bytes
  uint64_t length = 0;  // bytes
  int payloadField = 9; // the TensorProto field; 9 is raw bytes

  /// Returns true if the bytes at `offset` are the elements in memory order, little endian.
  bool isRaw() const;
  /// Returns true if it can be trained, unless it is a buffer.
  bool isParameter() const { return isFloat(type) && !shape.empty() && count > 1; }
};

class ModelFile {
public:
  /// Reads the model at `path`. On failure exactly one error has been emitted.
  static mlir::FailureOr<std::unique_ptr<ModelFile>> open(llvm::StringRef path,
                                                          mlir::MLIRContext *context);
  ~ModelFile();

  const onnx::ModelProto &model() const { return *proto; }
  llvm::StringRef path() const { return modelPath; }
  /// Returns the bytes of the model, and of the external files that `locate` has met.
  uint64_t bytes() const;
  mlir::Location location() const { return fileLocation; }

  using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;
  /// Finds and checks a tensor's values. `emitError` starts the message that names the tensor.
  mlir::FailureOr<TensorData> locate(const onnx::TensorProto &tensor, EmitError emitError);
  /// Fails unless a parameter's values are raw bytes, or 16-bit floats as varints, one per element.
  mlir::LogicalResult checkParameter(const TensorData &data, EmitError emitError);
  /// Maps the file that has a tensor's values.
  mlir::FailureOr<Mapping> map(const TensorData &data, EmitError emitError);
  /// Returns the values: a view of the mapped file if they are raw, else decoded.
  mlir::FailureOr<HostTensor> read(const TensorData &data, EmitError emitError);

  /// Like `locate` and `read`, but without errors: the importer and the report describe a bad
  /// tensor, other callers skip it.
  std::optional<TensorData> tryLocate(const onnx::TensorProto &tensor);
  std::optional<HostTensor> tryRead(const TensorData &data);
  /// Starts an error about a tensor: "tensor 'w': ".
  mlir::InFlightDiagnostic tensorError(llvm::StringRef name) const;

private:
  ModelFile(llvm::StringRef path, mlir::MLIRContext *context);
  mlir::LogicalResult locateExternal(const onnx::TensorProto &tensor, TensorData &data,
                                     EmitError emitError);

  std::string modelPath;
  mlir::Location fileLocation;
  Mapping mapping;
  std::unique_ptr<onnx::ModelProto> proto;
  llvm::StringMap<uint64_t> externalSizes; // by location, as the model spells it
  llvm::StringMap<Mapping> externalMappings;
};

} // namespace partita::importer

#endif // PARTITA_IMPORT_MODELFILE_H
