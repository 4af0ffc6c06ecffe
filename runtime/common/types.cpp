// Names and messages of the small types.

#include "partita_rt/types.h"

#include "partita_rt/program.h"

#include <cstdarg>
#include <cstdio>
#include <vector>

namespace partita_rt {

void fail(const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  std::vector<char> text(size_t(std::vsnprintf(nullptr, 0, format, arguments)) + 1);
  va_end(arguments);
  std::vsnprintf(text.data(), text.size(), format, again);
  va_end(again);
  throw Error(text.data());
}

const char *nameOf(DType type) {
  switch (type) {
  case DType::Float32:
    return "float32";
  case DType::Float64:
    return "float64";
  case DType::Float16:
    return "float16";
  case DType::BFloat16:
    return "bfloat16";
  case DType::Int32:
    return "int32";
  case DType::Int64:
    return "int64";
  case DType::UInt8:
    return "uint8";
  case DType::UInt16:
    return "uint16";
  case DType::UInt32:
    return "uint32";
  case DType::Bool:
    return "bool";
  case DType::Float8E4M3:
    return "float8_e4m3fn";
  case DType::Float8E5M2:
    return "float8_e5m2";
  }
  return "unknown";
}

const char *nameOf(CollectiveKind kind) {
  return int(kind) < kCollectiveKinds ? rowOf(kind).name : "unknown";
}

std::string toString(const Shape &shape) {
  if (shape.rank == 0)
    return "scalar";
  std::string text;
  for (int i = 0; i < shape.rank; ++i)
    text += (i ? "x" : "") + std::to_string(shape[i]);
  return text;
}

} // namespace partita_rt
