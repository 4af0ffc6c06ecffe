//===- ExportRecord.cpp -----------------------------------------------------------------------===//

#include "lib/Import/File/ExportRecord.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita::importer {

const std::string *valueOf(const Metadata &metadata, llvm::StringRef key) {
  const std::string *found = nullptr;
  for (const onnx::StringStringEntryProto &entry : metadata) {
    if (entry.key() != key)
      continue;
    if (found)
      return nullptr;
    found = &entry.value();
  }
  return found;
}

/// False if there is no such section.
static bool forLinesOf(llvm::StringRef section, llvm::StringRef signature,
                       llvm::function_ref<void(llvm::StringRef)> read) {
  llvm::SmallVector<llvm::StringRef> lines;
  signature.split(lines, '\n');
  bool isInside = false, sawSection = false;
  for (llvm::StringRef line : lines) {
    if (line.starts_with("# ")) {
      isInside = line.drop_front(2) == section;
      sawSection |= isInside;
    } else if (isInside && !line.empty()) {
      read(line);
    }
  }
  return sawSection;
}

bool forInputLines(llvm::StringRef signature, llvm::function_ref<void(llvm::StringRef)> read) {
  return forLinesOf("inputs", signature, read);
}

std::vector<UpdatedTensor> updatedTensors(const onnx::GraphProto &graph) {
  std::vector<UpdatedTensor> updated;
  const std::string *signature = valueOf(graph.metadata_props(), signatureKey);
  if (!signature)
    return updated;
  forLinesOf("outputs", *signature, [&](llvm::StringRef line) {
    auto [kind, target] = line.split(": ").second.split(' ');
    bool isBuffer = kind == "BUFFER_MUTATION";
    if ((isBuffer || kind == "PARAMETER_MUTATION") && target.consume_front("target='") &&
        target.consume_back("'"))
      updated.push_back({target.str(), isBuffer});
  });
  return updated;
}

std::optional<ProgramInput> parseInput(llvm::StringRef line, const char *&problem) {
  auto [name, rest] = line.split(": ");
  auto [kind, target] = rest.split(' ');
  if (name.empty() || kind.empty() ||
      !llvm::all_of(kind, [](char c) { return llvm::isUpper(c) || c == '_'; })) {
    problem = "no input with its kind";
    return std::nullopt;
  }
  ProgramInput input;
  input.name = name;
  // The names of torch.export's InputKind.
  auto known = llvm::StringSwitch<std::optional<ProgramInput::Kind>>(kind)
                   .Case("PARAMETER", ProgramInput::Parameter)
                   .Cases({"BUFFER", "CONSTANT_TENSOR"}, ProgramInput::Constant)
                   .Cases({"USER_INPUT", "CUSTOM_OBJ", "TOKEN"}, ProgramInput::Other)
                   .Default(std::nullopt);
  if (!known) {
    problem = "an unknown kind";
    return std::nullopt;
  }
  input.kind = *known;
  if (input.kind == ProgramInput::Other)
    return input;
  if (!target.consume_back(" persistent=True"))
    target.consume_back(" persistent=False");
  if (!target.consume_front("target='") || !target.consume_back("'") || target.empty()) {
    problem = "no target";
    return std::nullopt;
  }
  input.target = target;
  return input;
}

/// The text of a call's arguments and the values named in them, with their places: commas inside
/// brackets separate no arguments. Ends where the arguments do.
static void readArguments(llvm::StringRef text, ProgramCall &call) {
  int depth = 0, place = 0;
  size_t begin = 1;
  auto end = [&](size_t at) { call.texts.push_back(text.slice(begin, at).trim()); };
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
    if (depth == 0)
      return end(i);
    if (c == ',' && depth == 1) {
      end(i);
      begin = i + 1;
      ++place;
    }
    if (c != '%')
      continue;
    llvm::StringRef name =
        text.drop_front(i + 1).take_while([](char n) { return llvm::isAlnum(n) || n == '_'; });
    call.arguments.push_back({place, name});
  }
}

std::optional<ProgramCall> callOf(const onnx::NodeProto &node) {
  const std::string *traced = valueOf(node.metadata_props(), tracedKey);
  if (!traced)
    return std::nullopt;
  ProgramCall result;
  auto [name, call] = llvm::StringRef(*traced).split(" = ");
  auto [target, arguments] = call.split(']');
  result.result = name.split(' ').first;
  bool isOwn = result.result.consume_front("%") &&
               target.consume_front("call_function[target=torch.ops.aten.");
  result.operation = isOwn ? target.split('.').first : "?";
  if (arguments.consume_front("(args = "))
    readArguments(arguments, result);
  return result;
}

/// batch_norm(input, weight, bias, running_mean, running_var, training, ...), or without an argument for
/// training, as the operation always trains. (Statistics that are no values of the program are none: a
/// BatchNorm without running statistics computes the batch's own in nodes.)
bool isBatchNormInTraining(const onnx::NodeProto &node) {
  std::optional<ProgramCall> call = callOf(node);
  if (!call || !call->textAt(3).starts_with("%"))
    return false;
  return llvm::StringSwitch<bool>(call->operation)
      .Cases({"batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm",
              "_native_batch_norm_legit", "_native_batch_norm_legit_functional"},
             call->textAt(5) == "True")
      .Cases({"_batch_norm_with_update", "_batch_norm_with_update_functional"}, true)
      .Default(false);
}

} // namespace partita::importer
