//===- ExportRecord.h - the lines of a dynamo export's record -----------------------*- C++ -*-===//
//
// What PyTorch's dynamo exporter writes into the metadata of a graph and of its nodes: the inputs of
// the exported program, and of each node the call in that program which it was made for. Here it is
// read as text; Origins.h and MergedTensors.h say what follows from it.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_IMPORT_EXPORTRECORD_H
#define PARTITA_IMPORT_EXPORTRECORD_H

#include "onnx.pb.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace partita::importer {

using Metadata = google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>;

constexpr llvm::StringLiteral signatureKey = "pkg.torch.export.ExportedProgram.graph_signature";
constexpr llvm::StringLiteral foldedKey = "pkg.onnxscript.optimizer.folded_from";
constexpr llvm::StringLiteral tracedKey = "pkg.torch.onnx.fx_node"; ///< of a node: its call

/// The only value of a key; null where there is none or several.
const std::string *valueOf(const Metadata &metadata, llvm::StringRef key);

/// Calls `read` with each line that is about an input. False if nothing says where they are.
bool forInputLines(llvm::StringRef signature, llvm::function_ref<void(llvm::StringRef)> read);

/// An input of the exported program: a parameter, a constant (buffers too), or an input of the user.
struct ProgramInput {
  enum Kind { Parameter, Constant, Other } kind = Other;
  llvm::StringRef name;   ///< in the program
  llvm::StringRef target; ///< in the model; empty for others
};

/// "p_weight: PARAMETER target='weight'", "b_mask: BUFFER target='mask' persistent=True",
/// "x: USER_INPUT". Names are not escaped. None, with the reason, if the line is no such.
std::optional<ProgramInput> parseInput(llvm::StringRef line, const char *&problem);

/// The call of "%linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args =
/// (%x, %p_weight, %p_bias), kwargs = {})", which stands at each node that it is decomposed to.
struct ProgramCall {
  llvm::StringRef operation; ///< of PyTorch: "linear"; "?" for what is none of its own
  struct Argument {
    int place; ///< among the arguments; of one list several have the same
    llvm::StringRef name;
  };
  llvm::SmallVector<Argument> arguments; ///< that are values of the program
  llvm::SmallVector<llvm::StringRef> texts; ///< of all arguments without a name, by their places

  /// Of the argument at `place`; empty where the call leaves it out.
  llvm::StringRef textAt(size_t place) const {
    return place < texts.size() ? texts[place] : llvm::StringRef();
  }
};

/// None where the node has no such record.
std::optional<ProgramCall> callOf(const onnx::NodeProto &node);

} // namespace partita::importer

#endif // PARTITA_IMPORT_EXPORTRECORD_H
