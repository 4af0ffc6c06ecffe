// Token files and the order in which training reads them.
//
// A token file is one of
//     FILE.bin     llm.c: 256 int32 of header (magic 20240520, version 1: uint16 tokens; magic
//                  20240801, version 7: uint32 tokens; then the number of tokens), or, without a
//                  magic, nanoGPT: nothing but uint16 tokens
//     uint16:FILE  nothing but uint16 tokens; uint32:FILE likewise
//     text:FILE    the bytes of any file as tokens, vocabulary 256
// all little-endian.
//
// A sample of a token file is a window of sequence + 1 tokens: the first `sequence` are the input,
// the last `sequence` the labels. Window w starts at token w * sequence, so every token but the
// first is predicted once. (Other data: samples.h; rows of whole documents: packed_rows.h.) In epoch e the samples come in the order
// permute(w) below, a function of (seed, e) alone; with --shuffle off, in evaluation and with
// --forward, in the file's order. Samples are numbered through all epochs: micro-batch a of step t
// (from 0) holds samples ((t * accumulate + a) * batch) .. + batch - 1, and each rank reads its own
// rows of it; so the global batch of a step is a function of (seed, t) and not of the ranks.

#ifndef PARTITA_RT_COMMON_DATA_DATA_H
#define PARTITA_RT_COMMON_DATA_DATA_H

#include "common/tensors/safetensors.h"
#include "partita_rt/program.h"

namespace partita_rt {

class Samples;

/// Returns the file of --data's argument, without the prefix for how its tokens are stored.
std::string dataPath(const std::string &argument);

/// A token file, mapped. Read-only, shared by rank threads.
class TokenFile {
public:
  /// `option` ("--data") begins the messages. Throws Error on a missing, empty or truncated file,
  /// an unknown version, or a token of at least `vocabulary` (with its position and value).
  TokenFile(const std::string &argument, const char *option, int64_t vocabulary);
  int64_t tokens() const { return count; }
  /// Identifies the data, so that a later run recognizes them: "35149 tokens of 1 byte with
  /// fingerprint 1f2e...".
  std::string identity() const;
  /// Returns a token. Throws Error if it is not below the vocabulary (files above 1 GiB are not
  /// scanned when they are opened).
  int64_t token(int64_t position) const {
    int64_t value = raw(position);
    if (value >= vocabulary)
      reject(position);
    return value;
  }

private:
  int64_t raw(int64_t position) const;
  [[noreturn]] void reject(int64_t position) const;
  void readHeader(bool mayHaveHeader);

  std::string option;
  MappedFile file;
  int64_t vocabulary;
  int64_t begin = 0; ///< byte of the first token
  int64_t width = 2;
  int64_t count = 0;
};

/// Returns the position of `index` in a pseudo-random permutation of 0 .. n-1: a four-round Feistel
/// network on the smallest even number of bits (at least 2) that holds n - 1, walked until it lands
/// below n. With h = bits / 2 and (L, R) the high and low halves, round r = 0 .. 3 maps (L, R) to
/// (R, L ^ (mix64(key + r << 32 ^ R) mod 2^h)); here + binds before ^, and r << 32 before both.
int64_t permute(uint64_t key, int64_t index, int64_t n);

/// A data loader, which fills the inputs of ranks with the samples of steps.
class Batches {
public:
  /// The batch is the first dimension of batched inputs. With `shuffle` off, samples come in order.
  /// Throws Error if there are fewer samples than `perStep` micro-batches need.
  Batches(const Samples &samples, const char *option, const Program &program, uint64_t seed,
          bool shuffle, int64_t perStep);

  /// Fills all inputs of the rank with the micro-batches of step `step` (from 0).
  void fill(Rank &rank, int64_t step, int64_t microBatches) const;

  int64_t samplesInFile() const { return sampleCount; }
  /// The number of complete micro-batches in the file.
  int64_t microBatches() const { return sampleCount / batch; }
  int64_t samplesPerMicroBatch() const { return batch; }
  /// The unit of speed: tokens if the program has some, else samples.
  int64_t unitsPerMicroBatch() const { return batch * sequence; }
  const char *unit() const { return sequence > 1 ? "tokens" : "samples"; }

private:
  int64_t sampleAt(int64_t position) const;
  void fillInput(char *out, const Rank &rank, const Input &input, int64_t firstSample) const;

  const Samples &samples;
  uint64_t seed;
  bool shuffle;
  int64_t batch = 0, sequence = 1, sampleCount = 0;
};

/// Returns the smallest vocabulary among the program's token inputs; fails if it has no TokenIds.
int64_t vocabularyOf(const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_DATA_DATA_H
