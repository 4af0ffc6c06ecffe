//===- Names.cpp - converts names in the model to names in the program ------------------------===//

#include "dialects/Rt/Names.h"
#include "dialects/Interfaces/Provenance.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace mlir;
using namespace partita;

std::string rt::readableName(Operation *op) {
  StringRef name = provenance::nameOf(op);
  return (name.empty() ? op->getName().getStringRef() : name).str();
}

static bool isWord(char c) { return isAlnum(c) || c == '_'; }

/// Words to which `identifier` appends a `_`, in addition to general classes of names.
/// dialects/Rt/README.md ("Names are untrusted") says which names of the runtime have to be here.
static const llvm::StringSet<> &reservedWords() {
  static const llvm::StringSet<> words = {
      // C++17, and what C++20 adds
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
      "case", "catch", "char", "class", "compl", "concept", "const", "const_cast", "constexpr",
      "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
      "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
      "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
      "operator", "or", "or_eq", "private", "protected", "public", "register", "requires", "return",
      "reinterpret_cast", "short", "signed", "sizeof", "static", "static_assert", "static_cast",
      "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef",
      "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t",
      "while", "xor", "xor_eq",
      // C's library: macros, types, and what GNU's compilers define
      "NAN", "NULL", "INFINITY", "assert", "errno", "int32_t", "int64_t", "linux", "main", "size_t",
      "std", "stderr", "stdin", "stdout", "uint64_t", "uint8_t", "unix",
      // the emitted program's own functions, tables and parameters
      "at", "forward", "initialize", "partita_rt", "program", "stage",
      // functions of the runtime, all in lower case: math.h, kernels.h, comm.h
      "accumulate", "barrier", "broadcast", "exact_step", "exact_steps", "fail", "fill",
      "gelu_tanh_slope", "gemm", "iota", "maximum", "minimum", "modulo", "nameOf", "near_tanh",
      "over_one_plus", "quotient", "rest", "select", "sigmoid", "sign", "silu_slope", "wait"};
  return words;
}

/// Keeps letters and digits; every run of other characters becomes one `_`. Appends a `_` to a name
/// that could be a macro (all capitals), a type or a function of the runtime (mixed case), a
/// generated kernel (`map_`) or a reserved word.
std::string rt::identifier(StringRef name) {
  std::string result;
  for (char c : name) {
    if (isWord(c))
      result += c;
    else if (!result.empty() && result.back() != '_')
      result += '_';
    if (result.size() == 60)
      break;
  }
  StringRef trimmed = StringRef(result).trim('_');
  if (trimmed.empty())
    return "x";
  std::string word = trimmed.str();
  // Double underscores are reserved for the compiler.
  for (size_t at; (at = word.find("__")) != std::string::npos;)
    word.erase(at, 1);
  if (isDigit(word[0]))
    word = "x" + word;
  bool constant = llvm::none_of(word, [](char c) { return isLower(c); });
  bool camel =
      word.find('_') == std::string::npos && llvm::any_of(word, [](char c) { return isUpper(c); });
  if (constant || camel || StringRef(word).starts_with("map_") || reservedWords().contains(word))
    word += "_";
  return word;
}

std::string rt::commentText(StringRef name) {
  std::string result;
  for (char c : name.take_front(200))
    result += isPrint(c) && c != '\\' && c != '?' ? c : '.';
  for (size_t at; (at = result.find("*/")) != std::string::npos;)
    result[at] = '.';
  return result;
}

std::string rt::stringLiteral(StringRef bytes) {
  std::string result = "\"";
  for (char c : bytes) {
    if (c == '"' || c == '\\' || c == '?' || !isPrint(c)) {
      auto byte = static_cast<unsigned char>(c);
      result += '\\';
      for (int shift : {6, 3, 0})
        result += static_cast<char>('0' + ((byte >> shift) & 7));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string rt::axisName(StringRef axis) {
  std::string name = "k" + identifier(axis);
  name[1] = toUpper(name[1]);
  return name;
}

/// "stages 0 and 3" -> "Stages0And3"
static std::string inOneWord(StringRef words) {
  std::string name;
  bool begins = true;
  for (char c : words) {
    if (isWord(c))
      name += begins ? toUpper(c) : c;
    begins = !isWord(c);
  }
  return name;
}

std::string rt::communicatorName(StringRef communicator) {
  return "kOver" + inOneWord(communicator);
}

std::string rt::channelName(StringRef channel) { return "k" + inOneWord(channel); }

std::string rt::camelCase(StringRef symbol) {
  std::string type;
  bool up = true;
  for (char c : symbol) {
    if (c != '_')
      type += up ? toUpper(c) : c;
    up = c == '_';
  }
  return type;
}

std::string rt::tableName(StringRef symbol) { return "k" + camelCase(symbol); }

std::string rt::modulePath(StringRef name) {
  auto [path, node] = name.rsplit('/');
  if (node.empty() || path.empty())
    return "";
  std::string result;
  for (char c : path.ltrim('/'))
    result += c == '/' ? '.' : c;
  return result;
}
