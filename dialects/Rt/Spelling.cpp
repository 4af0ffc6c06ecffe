//===- Spelling.cpp - numbers, types and arguments of calls as C++ ------------------------------===//

#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace mlir;
using namespace partita;
using namespace partita::rt;

std::string rt::floatLiteral(double value) {
  float narrow = static_cast<float>(value);
  if (std::isnan(narrow))
    return "NAN";
  if (std::isinf(narrow))
    return narrow > 0 ? "INFINITY" : "-INFINITY";
  for (int digits = 1; digits <= 9; ++digits) {
    char buffer[40];
    snprintf(buffer, sizeof buffer, "%.*g", digits, narrow);
    if (strtof(buffer, nullptr) != narrow)
      continue;
    std::string text = buffer;
    if (text.find_first_of(".e") == std::string::npos)
      text += ".0";
    return text + "f";
  }
  return "0.0f"; // not reached: nine digits identify every float
}

std::string rt::doubleLiteral(double value) {
  if (!std::isfinite(value))
    return std::isnan(value) ? "NAN" : value > 0 ? "INFINITY" : "-INFINITY";
  char buffer[40];
  int digits = 1;
  do
    snprintf(buffer, sizeof buffer, "%.*g", digits, value);
  while (strtod(buffer, nullptr) != value && ++digits <= 17);
  std::string text = buffer;
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

StringRef rt::cppName(Type element) {
  if (element.isF32())
    return "float";
  if (element.isF64())
    return "double";
  if (element.isF16())
    return "Half";
  if (element.isBF16())
    return "BFloat16";
  if (isa<Float8E4M3FNType>(element))
    return "Float8E4M3";
  if (isa<Float8E5M2Type>(element))
    return "Float8E5M2";
  if (element.isInteger(64))
    return "int64_t";
  if (element.isInteger(32))
    return "int32_t";
  if (element.isInteger(8))
    return "int8_t";
  return "bool";
}

std::string rt::dtypeName(Type element) {
  if (element.isF32())
    return "DType::Float32";
  if (element.isF64())
    return "DType::Float64";
  if (element.isF16())
    return "DType::Float16";
  if (element.isBF16())
    return "DType::BFloat16";
  if (element.isInteger(64))
    return "DType::Int64";
  if (element.isInteger(32))
    return "DType::Int32";
  if (element.isInteger(8))
    return "DType::UInt8";
  return "DType::Bool";
}

CallArgument argument::trans(bool transposed) { return transposed ? "Trans::Yes" : "Trans::No"; }
CallArgument argument::write(bool add) { return add ? "Write::Add" : "Write::Set"; }
CallArgument argument::number(std::optional<int64_t> number) {
  return number ? CallArgument(*number) : CallArgument("");
}
CallArgument argument::real(const APFloat &value) { return floatLiteral(value.convertToDouble()); }
CallArgument argument::element(Value buffer, const APFloat &value) {
  Type type = cast<BufferType>(buffer.getType()).getElement();
  double number = value.convertToDouble();
  if (isa<FloatType>(type))
    return type.getIntOrFloatBitWidth() <= 32 ? floatLiteral(number) : doubleLiteral(number);
  if (type.isInteger(1))
    return number != 0 ? "true" : "false";
  return static_cast<int64_t>(number);
}

CallArgument argument::filling(const APFloat &mean, const APFloat &deviation) {
  std::string center = doubleLiteral(mean.convertToDouble());
  if (deviation.isZero())
    return "Fill::constant(" + center + ")";
  return "Fill::normal(" + doubleLiteral(deviation.convertToDouble()) +
         (mean.isZero() ? "" : ", " + center) + ")";
}

std::string rt::stepsText(partita_rt::ExactSteps exact) {
  return "{{" + std::to_string(exact.until) + ", " + std::to_string(exact.doubling) + "}";
}

std::string argument::numbered(Operation *op, StringRef attribute) {
  if (std::string column = columnText(op, attribute); !column.empty())
    return column;
  auto number = op->getAttrOfType<IntegerAttr>(attribute);
  return number ? std::to_string(number.getInt()) : "";
}

CallArgument argument::source(StringAttr file, const std::string &offset, TypeAttr type,
                              IntegerAttr varints, bool transposed) {
  if (!file)
    return "";
  std::string name;
  for (char c : stringLiteral(file.getValue())) // braces have a meaning in an argument's text
    name += c == '{' ? "\\173" : c == '}' ? "\\175" : std::string(1, c);
  return "{{" + name + ", " + offset + ", " + dtypeName(type.getValue()) +
         (varints      ? ", " + std::to_string(varints.getInt())
          : transposed ? ", 0"
                       : "") +
         (transposed ? ", /*transposed=*/true" : "") + "}";
}

CallArgument argument::listing(ArrayRef<int64_t> numbers) {
  if (numbers.empty())
    return "";
  return "{{" +
         llvm::join(llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); }), ", ") +
         "}";
}

CallArgument argument::orNull(Value value) {
  return value ? CallArgument(value) : CallArgument("nullptr");
}

CallArgument argument::shape(ArrayRef<int64_t> sizes) {
  std::string text = "Shape{{";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(sizes, stream);
  return text + "}";
}

CallArgument argument::classifierBlock(ArrayRef<int64_t> sizes) {
  return CallArgument(llvm::formatv("{{{{{0}, {1}}", sizes[0], sizes[1]).str());
}

CallArgument argument::paddedRows(int64_t rows, int64_t padded) {
  if (!padded)
    return rows;
  return CallArgument(llvm::formatv("{{{{{0}, {1}}", rows, padded).str());
}

CallArgument argument::heads(Value data, ArrayRef<int64_t> strides, unsigned index) {
  return CallArgument(llvm::formatv("{{{{{{}, {0}, {1}, {2}}", strides[3 * index],
                                    strides[3 * index + 1], strides[3 * index + 2])
                          .str(),
                      data);
}

CallArgument argument::attentionDropout(std::optional<APFloat> ratio, const std::string &id,
                                        Value key, Value micro, Value first,
                                        ArrayRef<int64_t> fullShape) {
  if (!key)
    return "";
  std::string text = "{{" + doubleLiteral(ratio->convertToDouble()) + ", " + id + ", {}, {}, " +
                     std::to_string(fullShape[0]) + ", " + std::to_string(fullShape[1]);
  SmallVector<Value> values{key, micro};
  if (!first)
    return CallArgument(text + "}", values);
  values.push_back(first);
  return CallArgument(text + ", {}}", values);
}

CallArgument argument::attention(ArrayRef<int64_t> shape, bool causal, const APFloat &scale,
                                 int64_t window, bool zeroHidden, Value firstKeys,
                                 const CallArgument &dropout, StringRef blocks, Value firstHead) {
  std::string text = "{{";
  for (int64_t size : shape)
    text += std::to_string(size) + ", ";
  text += std::string(causal ? "true" : "false") + ", " + floatLiteral(scale.convertToDouble());
  bool drops = !dropout.text.empty(), isSparse = !blocks.empty();
  if (window || zeroHidden || firstKeys || drops || isSparse)
    text += ", " + std::to_string(window);
  if (zeroHidden || firstKeys || drops || isSparse)
    text += zeroHidden ? ", true" : ", false";
  SmallVector<Value> values;
  if (firstKeys)
    values.push_back(firstKeys);
  if (firstKeys || drops || isSparse)
    text += firstKeys ? ", {}" : ", nullptr";
  if (drops)
    text += ", " + dropout.text;
  else if (isSparse)
    text += ", {{}"; // no dropout
  llvm::append_range(values, dropout.values);
  if (isSparse)
    text += (", " + blocks + (firstHead ? "({})" : "()")).str();
  if (firstHead)
    values.push_back(firstHead);
  return CallArgument(text + "}", values);
}

CallArgument argument::attentionStep(ArrayRef<int64_t> shape, bool causal, const APFloat &scale,
                                     int64_t window, bool zeroHidden, Value firstKeys,
                                     const CallArgument &dropout, ArrayRef<int64_t> full,
                                     ArrayRef<int64_t> runs, Value firstQuery, Value firstKey,
                                     StringRef blocks, Value firstHead) {
  std::string text = "{{";
  for (int64_t size : shape)
    text += std::to_string(size) + ", ";
  std::string layouts = blocks.empty() ? "{{}" : (blocks + (firstHead ? "({})" : "()")).str();
  text += llvm::formatv("{0}, {1}, {2}, {3}, {4}, {5}, {6}", causal ? "true" : "false",
                        floatLiteral(scale.convertToDouble()), window,
                        zeroHidden ? "true" : "false", firstKeys ? "{}" : "nullptr",
                        dropout.text.empty() ? "{{}" : dropout.text, layouts)
              .str();
  SmallVector<Value> values;
  if (firstKeys)
    values.push_back(firstKeys);
  llvm::append_range(values, dropout.values);
  if (firstHead)
    values.push_back(firstHead);
  const Value firsts[] = {firstQuery, firstKey};
  for (auto [length, count, first] : llvm::zip(full, runs, firsts)) {
    text += ", {{" + std::to_string(length) + ", " + std::to_string(count) + ", {}}";
    values.push_back(first);
  }
  return CallArgument(text + "}", values);
}

CallArgument argument::listingOrNull(ArrayRef<Value> values) {
  SmallVector<Value> given;
  SmallVector<StringRef> texts;
  for (Value value : values) {
    texts.push_back(value ? "{}" : "nullptr");
    if (value)
      given.push_back(value);
  }
  return given.empty() ? CallArgument("")
                       : CallArgument("{{" + llvm::join(texts, ", ") + "}", given);
}

CallArgument argument::yesOrNo(bool value) { return value ? "true" : "false"; }

CallArgument argument::scores(Value data, ArrayRef<int64_t> strides, bool more) {
  if (!data)
    return more ? "{{}" : "";
  return CallArgument(
      llvm::formatv("{{{{{{}, {0}, {1}, {2}, {3}}", strides[0], strides[1], strides[2], strides[3])
          .str(),
      data);
}

CallArgument argument::frozenRatio(ArrayRef<APFloat> numbers) {
  auto literals = llvm::map_range(
      numbers, [](const APFloat &number) { return doubleLiteral(number.convertToDouble()); });
  return "FrozenRatioOptions{" + llvm::join(literals, ", ") + "}";
}

CallArgument argument::scaler(bool dynamic, int64_t window, int64_t hysteresis, bool consecutive,
                              const APFloat &minimum) {
  return llvm::formatv("LossScalerOptions{{{0}, 0, {1}, {2}, {3}, {4}}", dynamic ? "true" : "false",
                       window, hysteresis, consecutive ? "true" : "false",
                       doubleLiteral(minimum.convertToDouble()))
      .str();
}

CallArgument argument::home(bool onHost) { return onHost ? "Home::Host" : "Home::Device"; }
