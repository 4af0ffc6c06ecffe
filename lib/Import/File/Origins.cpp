//===- Origins.cpp ----------------------------------------------------------------------------===//

#include "lib/Import/File/Origins.h"
#include "lib/Import/File/ExportRecord.h"
#include "lib/Import/File/ExporterNames.h"
#include "partita/Import/ModelFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ConvertUTF.h"

namespace partita::importer {

namespace {

constexpr llvm::StringLiteral kindKey = "pkg.torch.export.graph_signature.InputSpec.kind";

/// Reads the rest of an escape in a Python string, after the backslash, and appends it as UTF-8.
bool unescape(llvm::StringRef &text, std::string &to) {
  if (text.empty())
    return false;
  char escape = text.front();
  text = text.drop_front();
  static constexpr std::pair<char, char> plain[] = {{'\\', '\\'}, {'\'', '\''}, {'"', '"'},
                                                    {'n', '\n'},  {'r', '\r'},  {'t', '\t'}};
  for (auto [letter, meant] : plain)
    if (letter == escape)
      return to += meant, true;
  size_t digits = escape == 'x' ? 2 : escape == 'u' ? 4 : escape == 'U' ? 8 : 0;
  uint32_t code = 0;
  llvm::StringRef number = text.take_front(digits);
  if (digits == 0 || number.size() < digits || !llvm::all_of(number, llvm::isHexDigit) ||
      number.getAsInteger(16, code))
    return false;
  text = text.drop_front(digits);
  char bytes[UNI_MAX_UTF8_BYTES_PER_CODE_POINT], *end = bytes;
  if (!llvm::ConvertCodePointToUTF8(code, end))
    return false;
  to.append(bytes, end);
  return true;
}

} // namespace

std::optional<std::vector<std::string>> parsePythonList(llvm::StringRef text) {
  std::vector<std::string> items;
  if (!text.consume_front("["))
    return std::nullopt;
  while (!text.consume_front("]")) {
    if (!items.empty() && !text.consume_front(", "))
      return std::nullopt;
    if (text.empty() || (text.front() != '\'' && text.front() != '"'))
      return std::nullopt;
    char quote = text.front();
    text = text.drop_front();
    std::string &item = items.emplace_back();
    while (!text.empty() && text.front() != quote) {
      char c = text.front();
      text = text.drop_front();
      if (c != '\\')
        item += c;
      else if (!unescape(text, item))
        return std::nullopt;
    }
    if (text.empty())
      return std::nullopt;
    text = text.drop_front();
  }
  if (!text.empty())
    return std::nullopt;
  return items;
}

void Origins::readLine(llvm::StringRef line) {
  const char *problem = nullptr;
  std::optional<ProgramInput> input = parseInput(line, problem);
  if (input && input->kind != ProgramInput::Other) {
    bool isParameter = input->kind == ProgramInput::Parameter;
    if (!(isParameter ? parameters : constants).insert(input->target).second ||
        (isParameter ? constants : parameters).contains(input->target))
      problem = "a target that is listed twice";
  }
  if (problem && trouble.empty())
    trouble = problem + (" in the line " + quoted(line));
}

void Origins::readSignature(llvm::StringRef text) {
  bool sawInputs = forInputLines(text, [&](llvm::StringRef line) { readLine(line); });
  if (!sawInputs && trouble.empty())
    trouble = "no inputs";
}

/// Is a sum that comes from these values the parameter plus a literal (Literals.h)? A literal is one inner
/// value; a factor (alpha) would add more, and "w + w" has none. Both may have been cast.
static bool isByLiteral(llvm::ArrayRef<std::string> from, llvm::StringRef parameter) {
  static constexpr llvm::StringLiteral casts[] = {"_to_copy", "scalar_tensor_default"};
  return llvm::count_if(from, isInnerName) == 1 && llvm::all_of(from, [&](llvm::StringRef each) {
           return each == parameter || isInnerName(each) ||
                  llvm::is_contained(casts, operationOf(each));
         });
}

/// How many dimensions more the parameters have, at least and at most, than a tensor that comes from them
/// by these operations, the last of which made it. They follow each other; before values are joined, they may
/// also be beside each other. `inner` values were computed inside them: for an element of unbind(), which is
/// decomposed into a Slice, at least its beginning, end and dimension; one of split() has at most the sizes.
static std::pair<int, int> droppedBy(llvm::ArrayRef<const AtenOperation *> operations, int inner) {
  int least = 0, most = 0, joining = 0, beside = 0; // operations that change the number
  bool areJoined = false;
  for (auto [i, each] : llvm::enumerate(operations)) {
    bool joins = each->effect == AtenOperation::Joins, isLast = i + 1 == operations.size();
    bool isOfUnbind = each->name == "getitem" && inner >= 3;
    areJoined |= joins;
    least += isOfUnbind ? each->mostDropped : each->leastDropped;
    most += each->mostDropped;
    if (each->leastDropped != 0 || each->mostDropped != 0)
      joins ? ++joining : beside += !isLast;
  }
  if (areJoined && (beside > 0 || joining > 1))
    return {-mostDimensions, mostDimensions};
  return {least, most};
}

Origin Origins::derived(llvm::StringRef name, llvm::StringRef text) const {
  std::optional<std::vector<std::string>> from = parsePythonList(text);
  Origin origin;
  if (!from || from->empty())
    return origin;
  const AtenOperation &own = operationMaking(name);
  llvm::SmallVector<const AtenOperation *> operations;
  origin.lastInner = isInnerName(name);
  origin.moved = origin.lastInner || own.movesElements();
  origin.joined = own.effect == AtenOperation::Joins;
  origin.allInner = origin.lastInner;
  origin.detached = isDetached(name) || llvm::any_of(*from, isDetached);
  origin.lookedUp = own.effect == AtenOperation::LooksUp;
  origin.cast = own.casts;
  for (const std::string &each : *from) {
    if (parameters.contains(each)) {
      origin.parameters.push_back(each);
      continue;
    }
    if (computed.contains(each))
      continue; // what the program computes is folded by its shape alone
    if (constants.contains(each))
      origin.constants.push_back(each);
    const AtenOperation &operation = operationMaking(each);
    origin.moved &= isInnerName(each) || operation.movesElements();
    origin.joined |= operation.effect == AtenOperation::Joins;
    origin.cast |= operation.casts;
    operations.push_back(&operation);
    origin.allInner &= isInnerName(each);
  }
  operations.push_back(&own);
  std::tie(origin.leastDropped, origin.mostDropped) =
      droppedBy(operations, llvm::count_if(*from, isInnerName));
  origin.folded = true;
  origin.kind = origin.parameters.empty() ? Origin::Constant : Origin::Derived;
  origin.direct = origin.lastInner && from->size() == 1 && origin.parameters.size() == 1;
  origin.shifted = own.effect == AtenOperation::Shifts && origin.parameters.size() == 1 &&
                   isByLiteral(*from, origin.parameters.front());
  llvm::sort(origin.parameters);
  return origin;
}

Origins::Origins(const onnx::GraphProto &graph) {
  const std::string *signature = valueOf(graph.metadata_props(), signatureKey);
  if (!signature)
    return;
  readSignature(*signature);
  if (!trouble.empty())
    return;
  isKnown = true;
  for (const onnx::NodeProto &node : graph.node())
    computed.insert_range(node.output());
  llvm::StringMap<const Metadata *> metadata;
  for (const onnx::ValueInfoProto &value : graph.value_info())
    if (value.metadata_props_size() > 0)
      if (!metadata.try_emplace(value.name(), &value.metadata_props()).second)
        metadata[value.name()] = nullptr; // described twice: not used
  llvm::StringSet<> found;
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    const Metadata *own = metadata.lookup(tensor.name());
    const std::string *folded = own ? valueOf(*own, foldedKey) : nullptr;
    const std::string *kind = own ? valueOf(*own, kindKey) : nullptr;
    Origin origin;
    if (folded && !kind && !parameters.contains(tensor.name()) &&
        !constants.contains(tensor.name()))
      origin = derived(computedName(tensor.name()), *folded);
    else if (!folded && parameters.contains(tensor.name()) && (!kind || *kind == "PARAMETER"))
      origin = {Origin::Parameter, {tensor.name()}};
    else if (!folded && constants.contains(tensor.name()) && (!kind || *kind != "PARAMETER"))
      origin = {Origin::Constant, {}};
    else if (kind || parameters.contains(tensor.name()) || constants.contains(tensor.name()))
      contradictory.push_back(tensor.name());
    found.insert_range(origin.parameters);
    if (origin.kind != Origin::Unknown)
      origins[tensor.name()] = std::move(origin);
  }
  for (const auto &entry : parameters) // the first by name: the set has no order
    if (!found.contains(entry.first()) &&
        (unaccountedParameter.empty() || entry.first() < unaccountedParameter))
      unaccountedParameter = entry.first().str();
}

Decomposed Origins::decomposed(const Origin &origin, const onnx::NodeProto &reader, int operand) {
  std::optional<ProgramCall> call = callOf(reader);
  if (!call) // a tool has dropped the record, or an optimizer has created the node
    return origin.direct && operand == 1 ? llvm::StringSwitch<Decomposed>(reader.op_type())
                                               .Case("MatMul", Decomposed::Transposed)
                                               .Case("Gemm", Decomposed::Moved)
                                               .Default(Decomposed::Unknown)
                                         : Decomposed::Unknown;
  for (const AtenOperation::Reader &each : atenOperation(call->operation).readers)
    if (each.op == reader.op_type() && (each.operand == -1 || each.operand == operand))
      return each.how;
  return Decomposed::Unknown;
}

const Origin &Origins::of(llvm::StringRef initializer) const {
  static const Origin unknown;
  auto found = origins.find(initializer);
  return found == origins.end() ? unknown : found->second;
}

} // namespace partita::importer
