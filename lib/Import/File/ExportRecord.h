//===- ExportRecord.h - the lines of a dynamo export's record -----------------------*- C++ -*-===//
//
// PyTorch's dynamo exporter records in the metadata of a graph the inputs of the exported program, and
// in that of a node the call in that program which the node was made for. Here the text is parsed;
// Origins.h and MergedTensors.h draw conclusions from it.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FILE_EXPORTRECORD_H
#define PARTITA_LIB_IMPORT_FILE_EXPORTRECORD_H

#include "partita/Import/TensorsToSplit.h" // foldedKey
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace google::protobuf {
template <typename Element> class RepeatedPtrField;
} // namespace google::protobuf
namespace partita::onnx { // onnx.pb.h is not installed
class GraphProto;
class NodeProto;
class StringStringEntryProto;
} // namespace partita::onnx

namespace partita::importer {

using Metadata = google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>;

constexpr llvm::StringLiteral signatureKey = "pkg.torch.export.ExportedProgram.graph_signature";
constexpr llvm::StringLiteral tracedKey = "pkg.torch.onnx.fx_node"; ///< of a node: its call
/// Of a node: the modules around its call.
constexpr llvm::StringLiteral scopesKey = "pkg.torch.onnx.name_scopes";

/// The value of a key; null if there is none, or several.
const std::string *valueOf(const Metadata &metadata, llvm::StringRef key);

/// Calls `read` with each line about an input. False if the text has no section of inputs.
bool forInputLines(llvm::StringRef signature, llvm::function_ref<void(llvm::StringRef)> read);

/// An input of the exported program: a parameter, a constant (buffers too), or an input of the user.
struct ProgramInput {
  enum Kind { Parameter, Constant, Other } kind = Other;
  llvm::StringRef name;   ///< in the program
  llvm::StringRef target; ///< in the model; empty for others
};

/// "p_weight: PARAMETER target='weight'", "b_mask: BUFFER target='mask' persistent=True",
/// "x: USER_INPUT". Names are not escaped. None, with the reason, if the line is not of this form.
std::optional<ProgramInput> parseInput(llvm::StringRef line, const char *&problem);

/// The model's buffers (or parameters) that its forward pass updates, which the record lists among the
/// program's outputs: "add: BUFFER_MUTATION target='center'".
struct UpdatedTensor {
  std::string target;
  bool isBuffer;
};
std::vector<UpdatedTensor> updatedTensors(const onnx::GraphProto &graph);

/// The call "%linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x,
/// %p_weight, %p_bias), kwargs = {})", which is recorded at each node that it is decomposed into.
struct ProgramCall {
  llvm::StringRef result;    ///< its name in the program
  llvm::StringRef operation; ///< of torch.ops.aten: "linear"; "?" for any other call
  struct Argument {
    int place; ///< among the arguments; the values of a list share one
    llvm::StringRef name;
  };
  llvm::SmallVector<Argument> arguments;    ///< those that are values of the program
  llvm::SmallVector<llvm::StringRef> texts; ///< of all positional arguments, by place

  /// The text of the argument at `place`; empty if the call leaves it out.
  llvm::StringRef textAt(size_t place) const {
    return place < texts.size() ? texts[place] : llvm::StringRef();
  }
};

/// None if the node has no such record. The names lie in the node.
std::optional<ProgramCall> callOf(const onnx::NodeProto &node);

/// Is it made for a batch normalization that has running statistics, but normalizes by the batch's own and
/// updates them? The exporter writes it as one by the running statistics, and may fold that into a layer.
bool isBatchNormInTraining(const onnx::NodeProto &node);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FILE_EXPORTRECORD_H
