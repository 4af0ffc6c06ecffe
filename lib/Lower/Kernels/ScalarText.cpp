//===- ScalarText.cpp - the op table's scalar expressions as C++ in float32 -------------------===//

#include "partita/Lower/ScalarText.h"
#include "dialects/Rt/Rt.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace partita;

/// The function's name in partita_rt/math.h.
static StringRef floatFunction(StringRef name) {
  static constexpr std::pair<StringLiteral, StringLiteral> functions[] = {
      {"abs", "fabsf"},  {"cos", "cosf"},    {"erf", "erff"},    {"exp", "expf"},
      {"log", "logf"},   {"pow", "powf"},    {"sin", "sinf"},    {"sqrt", "sqrtf"},
      {"tanh", "tanhf"}, {"max", "maximum"}, {"min", "minimum"}, {"floor", "floorf"},
      {"ceil", "ceilf"}, {"round", "rintf"}};
  for (auto [from, to] : functions)
    if (from == name)
      return to;
  return name; // select, quotient, gelu_tanh_slope...: the same in both
}

static bool startsName(char c) { return isAlpha(c) || c == '_'; }

std::string rt::floatExpression(StringRef text, function_ref<std::string(StringRef)> name) {
  std::string result;
  while (!text.empty()) {
    if (startsName(text[0])) {
      StringRef word = text.take_while([](char c) { return isAlnum(c) || c == '_'; });
      text = text.drop_front(word.size());
      result += text.ltrim().starts_with("(") ? floatFunction(word).str() : name(word);
    } else if (isDigit(text[0])) {
      StringRef number = text.take_while([](char c) { return isDigit(c) || c == '.'; });
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
