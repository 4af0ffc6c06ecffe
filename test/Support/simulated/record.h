// Records what a program would run on the device, without running it:
// PARTITA_SIMULATED_LAUNCHES=FILE.
//
// Each launch, matmul, copy and fill becomes a line of FILE, a JSON object, when the program calls
// it, and no entry runs except host functions. Device memory is never touched, so a program may use
// more than this machine has. It reads back zeros.
//
//     {"kernel": "normForward<T, 3>", "address": 182144, "grid": [4096, 1, 1], "block": [32, 8, 1],
//      "shared": 0, "arguments": ["*", null, 768, 1e-05, [32, 12, 1024]]}
//     {"matmul": [768, 32768, 3072], "batch": 1, "bytes": [2, 2, 2], "epilogue": 4, "adds": false}
//     {"copy": 768}    {"fill": 768}    bytes
//     {"capture": true}    of a graph: it begins; false: it ends
//
// matmul: m, n and k as passed to cuBLASLt, bytes per element of A, B and D, and whether C is
// added. address: the function's offset in the executable, whose symbol has the template's
// arguments. Pointer arguments are "*" or null, structs their 64-bit words.

#ifndef PARTITA_TEST_SIMULATED_RECORD_H
#define PARTITA_TEST_SIMULATED_RECORD_H

#include "simt/simt.h"

#include <cstring>
#include <string>
#include <type_traits>

namespace simulated {

/// Does this process record?
bool recording();
void record(const std::string &line);

/// A kernel's line; pass arguments in their order.
class LaunchLine {
public:
  LaunchLine(const simt::Launch &shape, const void *function);
  template <typename T> void add(const T &argument) {
    if constexpr (std::is_null_pointer_v<T>)
      append("null");
    else if constexpr (std::is_pointer_v<T>)
      append(argument ? "\"*\"" : "null");
    else if constexpr (std::is_enum_v<T>)
      append(std::to_string(int64_t(argument)));
    else if constexpr (std::is_floating_point_v<T>)
      appendNumber(double(argument));
    else if constexpr (std::is_integral_v<T>)
      append(std::to_string(argument));
    else
      appendWords(reinterpret_cast<const unsigned char *>(&argument), sizeof(T));
  }
  void write();

private:
  std::string text;
  bool first = true;

  void append(const std::string &value);
  void appendNumber(double value);
  void appendWords(const unsigned char *bytes, size_t count);
};

} // namespace simulated

#endif // PARTITA_TEST_SIMULATED_RECORD_H
