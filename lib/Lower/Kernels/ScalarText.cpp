//===- ScalarText.cpp - the op table's scalar expressions as C++ in float32 -------------------===//

#include "partita/Lower/ScalarText.h"
#include "dialects/Rt/Rt.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace partita;

/// The function's name in partita_rt/math.h. One that has none there would be found among C's, in
/// double: it gets a name that does not compile.
static std::string floatFunction(StringRef name) {
  static constexpr StringLiteral same[] = {
      "select",          "quotient",   "modulo",    "rest",          "sign",     "sigmoid",
      "gelu_tanh_slope", "silu_slope", "fp8_scale", "over_one_plus", "near_tanh"};
  static constexpr std::pair<StringLiteral, StringLiteral> functions[] = {
      {"abs", "fabsf"},  {"cos", "cosf"},    {"erf", "erff"},    {"exp", "expf"},
      {"log", "logf"},   {"pow", "powf"},    {"sin", "sinf"},    {"sqrt", "sqrtf"},
      {"tanh", "tanhf"}, {"max", "maximum"}, {"min", "minimum"}, {"floor", "floorf"},
      {"ceil", "ceilf"}, {"round", "rintf"}};
  for (auto [from, to] : functions)
    if (from == name)
      return to.str();
  return is_contained(same, name) ? name.str() : name.str() + "_is_missing_in_ScalarText";
}

/// Appends an operand: of a negative number that is added or subtracted the positive one, `a + 0.5f` for
/// `a - (-0.5f)`, which rounds alike.
static void appendOperand(std::string &result, StringRef operand) {
  StringRef before = result, number = operand;
  bool isNegative = number.consume_front("(-") && number.consume_back(")") &&
                    all_of(number, [](char c) { return isAlnum(c) || c == '.' || c == '-'; });
  if (isNegative && (before.ends_with(" - ") || before.ends_with(" + "))) {
    result[result.size() - 2] = before.ends_with(" - ") ? '+' : '-';
    operand = number;
  }
  result += operand;
}

/// The literal that a text begins with: 3, 0.5 or 1.5e-10.
static StringRef takeNumber(StringRef text) {
  auto isPart = [](char c) { return isDigit(c) || c == '.'; };
  StringRef rest = text.drop_while(isPart);
  if (rest.consume_front("e")) {
    StringRef exponent = rest.starts_with("-") ? rest.drop_front() : rest;
    if (!exponent.empty() && isDigit(exponent[0]))
      return text.drop_back(exponent.drop_while(isDigit).size());
  }
  return text.take_while(isPart);
}

static bool startsName(char c) { return isAlpha(c) || c == '_'; }

std::string rt::floatExpression(StringRef text, llvm::function_ref<std::string(StringRef)> name) {
  std::string result;
  while (!text.empty()) {
    if (startsName(text[0])) {
      StringRef word = text.take_while([](char c) { return isAlnum(c) || c == '_'; });
      text = text.drop_front(word.size());
      if (text.ltrim().starts_with("("))
        result += floatFunction(word);
      else
        appendOperand(result, name(word));
    } else if (isDigit(text[0])) {
      StringRef number = takeNumber(text);
      text = text.drop_front(number.size());
      double value = 0;
      if (number.contains('.') && !number.getAsDouble(value))
        result += floatLiteral(value);
      else
        result += number;
    } else {
      result += text[0];
      text = text.drop_front();
    }
  }
  return result;
}
