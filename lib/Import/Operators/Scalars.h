//===- Scalars.h - scalar functions for folding -----------------------------------------------===//
//
// ONNX's elementwise operators on doubles and on integers that wrap. Template arguments of the
// elementwise handlers, which is why each has a name.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_OPERATORS_SCALARS_H
#define PARTITA_LIB_IMPORT_OPERATORS_SCALARS_H

#include "lib/Import/Folding/Folder.h"
#include <cmath>

namespace partita::importer::scalars {

using D = const double *;
using I = const int64_t *;

/// Integers wrap like the hardware's; signed overflow would be undefined.
template <typename Function> constexpr int64_t wrapping(I v, Function function) {
  return static_cast<int64_t>(function(static_cast<uint64_t>(v[0]), static_cast<uint64_t>(v[1])));
}

inline constexpr ScalarFunction add{
    [](D v) { return v[0] + v[1]; },
    [](I v) { return wrapping(v, [](uint64_t a, uint64_t b) { return a + b; }); }};
inline constexpr ScalarFunction sub{
    [](D v) { return v[0] - v[1]; },
    [](I v) { return wrapping(v, [](uint64_t a, uint64_t b) { return a - b; }); }};
inline constexpr ScalarFunction mul{
    [](D v) { return v[0] * v[1]; },
    [](I v) { return wrapping(v, [](uint64_t a, uint64_t b) { return a * b; }); }};
/// Truncates toward zero. The caller has refused zero divisors.
inline constexpr ScalarFunction div{
    [](D v) { return v[0] / v[1]; },
    [](I v) {
      return v[1] == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(v[0])) : v[0] / v[1];
    }};
/// The sign of the divisor (Python's %).
inline constexpr ScalarFunction mod{
    [](D v) {
      double rest = std::fmod(v[0], v[1]);
      return rest == 0 ? std::copysign(0.0, v[1]) : (rest < 0) != (v[1] < 0) ? rest + v[1] : rest;
    },
    [](I v) {
      if (v[1] == -1)
        return int64_t(0);
      int64_t rest = v[0] % v[1];
      return rest != 0 && (rest < 0) != (v[1] < 0) ? rest + v[1] : rest;
    }};
/// The sign of the dividend (C's fmod).
inline constexpr ScalarFunction fmod{[](D v) { return std::fmod(v[0], v[1]); },
                                     [](I v) { return v[1] == -1 ? 0 : v[0] % v[1]; }};
inline constexpr ScalarFunction pow{[](D v) { return std::pow(v[0], v[1]); }, nullptr};
inline constexpr ScalarFunction maximum{
    [](D v) { return std::isnan(v[0]) || v[0] > v[1] ? v[0] : v[1]; },
    [](I v) { return v[0] > v[1] ? v[0] : v[1]; }};
inline constexpr ScalarFunction minimum{
    [](D v) { return std::isnan(v[0]) || v[0] < v[1] ? v[0] : v[1]; },
    [](I v) { return v[0] < v[1] ? v[0] : v[1]; }};

inline constexpr ScalarFunction neg{
    [](D v) { return -v[0]; },
    [](I v) { return static_cast<int64_t>(-static_cast<uint64_t>(v[0])); }};
inline constexpr ScalarFunction absolute{
    [](D v) { return std::fabs(v[0]); },
    [](I v) { return v[0] < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(v[0])) : v[0]; }};
inline constexpr ScalarFunction sign{
    [](D v) { return v[0] > 0   ? 1.0
                     : v[0] < 0 ? -1.0
                                : v[0]; },
    [](I v) { return static_cast<int64_t>((v[0] > 0) - (v[0] < 0)); }};
inline constexpr ScalarFunction exp{[](D v) { return std::exp(v[0]); }, nullptr};
inline constexpr ScalarFunction log{[](D v) { return std::log(v[0]); }, nullptr};
inline constexpr ScalarFunction sqrt{[](D v) { return std::sqrt(v[0]); }, nullptr};
inline constexpr ScalarFunction reciprocal{[](D v) { return 1 / v[0]; }, nullptr};
inline constexpr ScalarFunction tanh{[](D v) { return std::tanh(v[0]); }, nullptr};
inline constexpr ScalarFunction erf{[](D v) { return std::erf(v[0]); }, nullptr};
inline constexpr ScalarFunction sigmoid{[](D v) { return 1 / (1 + std::exp(-v[0])); }, nullptr};
inline constexpr ScalarFunction relu{[](D v) { return v[0] < 0 ? 0.0 : v[0]; },
                                     [](I v) { return v[0] > 0 ? v[0] : int64_t(0); }};
inline constexpr ScalarFunction cos{[](D v) { return std::cos(v[0]); }, nullptr};
inline constexpr ScalarFunction sin{[](D v) { return std::sin(v[0]); }, nullptr};
inline constexpr ScalarFunction floor{[](D v) { return std::floor(v[0]); },
                                      [](I v) { return v[0]; }};
inline constexpr ScalarFunction ceil{[](D v) { return std::ceil(v[0]); }, [](I v) { return v[0]; }};
/// Halves to even, as ONNX says.
inline constexpr ScalarFunction round{[](D v) { return std::nearbyint(v[0]); },
                                      [](I v) { return v[0]; }};

inline constexpr ScalarFunction equal{[](D v) { return double(v[0] == v[1]); },
                                      [](I v) { return int64_t(v[0] == v[1]); }};
inline constexpr ScalarFunction less{[](D v) { return double(v[0] < v[1]); },
                                     [](I v) { return int64_t(v[0] < v[1]); }};
inline constexpr ScalarFunction lessEqual{[](D v) { return double(v[0] <= v[1]); },
                                          [](I v) { return int64_t(v[0] <= v[1]); }};
inline constexpr ScalarFunction greater{[](D v) { return double(v[0] > v[1]); },
                                        [](I v) { return int64_t(v[0] > v[1]); }};
inline constexpr ScalarFunction greaterEqual{[](D v) { return double(v[0] >= v[1]); },
                                             [](I v) { return int64_t(v[0] >= v[1]); }};
inline constexpr ScalarFunction logicalAnd{nullptr, [](I v) { return int64_t(v[0] && v[1]); }};
inline constexpr ScalarFunction logicalOr{nullptr, [](I v) { return int64_t(v[0] || v[1]); }};
inline constexpr ScalarFunction logicalXor{nullptr, [](I v) { return int64_t(!v[0] != !v[1]); }};
inline constexpr ScalarFunction logicalNot{nullptr, [](I v) { return int64_t(!v[0]); }};
inline constexpr ScalarFunction isNan{[](D v) { return double(std::isnan(v[0])); }, nullptr};

} // namespace partita::importer::scalars

#endif // PARTITA_LIB_IMPORT_OPERATORS_SCALARS_H
