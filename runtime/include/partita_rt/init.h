// Initial values: from the model's file, from a safetensors file, or from counter-based random
// numbers that depend only on (seed, parameter name, element): no layout, number of ranks or order of
// evaluation changes them. tools/python/partita_init.py states the same in numpy.
//
// normal(seed, name, i), i = row-major index of the element in the *global* tensor, all arithmetic
// in unsigned 64 bit:
//
//     mix(x):  x += 0x9E3779B97F4A7C15
//              x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
//              x = (x ^ (x >> 27)) * 0x94D049BB133111EB
//              return x ^ (x >> 31)                                   (splitmix64)
//     fnv(name): h = 0xCBF29CE484222325; for each byte b: h = (h ^ b) * 0x100000001B3   (FNV-1a)
//     key    = mix(mix(seed) ^ fnv(name))
//     h_j    = mix(key + 3 * i + j),  j = 0, 1, 2
//     sum    = the twelve 16-bit fields of h_0, h_1, h_2, added (an integer, 0 .. 786420)
//     normal = (sum - 393210) / 65536                     mean 0, variance 1 - 2^-32, |x| <= 6
//     value  = float32(mean + double(normal) * std)       one rounding (the mean is usually zero)
//
// (The sum of twelve uniforms has variance 12/12 = 1: exact in any language, no libm involved.)

#ifndef PARTITA_RT_INIT_H
#define PARTITA_RT_INIT_H

#include "partita_rt/program.h"
#include "partita_rt/random.h"

namespace partita_rt {

/// mix(mix(seed) ^ fnv(name)).
uint64_t randomKey(uint64_t seed, const char *name);

/// The distribution with which `--init seed:N` fills a parameter.
struct Fill {
  double mean = 0, std = 0;
  static constexpr Fill constant(double value) { return {value, 0}; }
  static constexpr Fill normal(double std, double mean = 0) { return {mean, std}; }
};

/// The location of a parameter's value in the model's files: row-major, little-endian, global
/// shape.
struct FileSource {
  const char *path = nullptr; ///< relative to Program::modelFolder; null: no file has the value
  int64_t offset = 0;
  DType dtype = DType::Float32; ///< Float32, Float64, Float16, BFloat16
  /// If not 0, the elements' bits are varints (varints.h), with this many bytes in all.
  int64_t varints = 0;
  bool transposed = false; ///< the file holds the transpose of the matrix
};

/// Writes this rank's shard of parameter number `index` to `values`; emitted `init` calls it for each
/// parameter. Without --init the value comes from `source`, with `--init seed:N` from `fill`, with
/// `--init FILE` from that file or index of files. Throws Error if a parameter has no value, a file is
/// missing or too short, or a tensor has another shape.
/// A 16-bit parameter's value is the float one, rounded once.
void initialValue(Rank &rank, int index, float *values, Fill fill, FileSource source = {});
void initialValue(Rank &rank, int index, Half *values, Fill fill, FileSource source = {});
void initialValue(Rank &rank, int index, BFloat16 *values, Fill fill, FileSource source = {});
/// Does the same in float, unrounded, for optimizer state number `state`, the master of a 16-bit
/// parameter: writes the shard of it that this rank keeps.
void initialMaster(Rank &rank, int state, float *values, Fill fill, FileSource source = {});
/// Returns the key of the stochastic rounding of parameter number `parameter`: 53 bits of the run's
/// seed, the parameter and the number of the update. If `applied` is 0 the step is skipped, and the
/// key is that of the previous update, so that rounding again gives the same value; -1 if there is
/// none, and the parameter is rounded to nearest.
double roundingKey(const Rank &rank, int64_t parameter, float applied = 1);

} // namespace partita_rt

#endif // PARTITA_RT_INIT_H
