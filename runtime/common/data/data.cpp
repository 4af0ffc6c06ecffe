// Token files and batches (data.h).

#include "common/data/data.h"

#include "common/data/samples.h"
#include "common/target.h"
#include "common/tensors/layout.h"
#include "partita_rt/fingerprint.h"
#include "partita_rt/init.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unistd.h>

namespace partita_rt {

//===-- Token files -------------------------------------------------------------------------===//

std::string dataPath(const std::string &argument) {
  for (const char *prefix : {"text:", "uint16:", "uint32:"})
    if (argument.compare(0, std::strlen(prefix), prefix) == 0)
      return argument.substr(std::strlen(prefix));
  return argument;
}

namespace {

/// Files up to this size are scanned completely when they are opened.
constexpr int64_t kScanBytes = int64_t(1) << 30;

struct Header {
  int32_t magic, version;
  int64_t width;
};
constexpr Header kHeaders[] = {{20240520, 1, 2}, {20240801, 7, 4}};
constexpr int64_t kHeaderBytes = 1024;

/// Returns dataPath(argument); fails on an unknown prefix, unless a file of that name exists.
std::string checkedPath(const std::string &argument, const char *option) {
  std::string path = dataPath(argument);
  size_t colon = path.find(':');
  bool isPrefix = path == argument && colon != path.npos && colon > 0 &&
                  std::all_of(path.begin(), path.begin() + int64_t(colon), [](char c) {
                    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
                  });
  if (isPrefix && access(path.c_str(), F_OK) != 0)
    fail("%s: '%s' is unknown; tokens are stored as text: (bytes), uint16: or uint32:", option,
         path.substr(0, colon + 1).c_str());
  return path;
}

} // namespace

TokenFile::TokenFile(const std::string &argument, const char *option, int64_t vocabulary)
    : option(option), file(checkedPath(argument, option), (std::string(option) + ":").c_str()),
      vocabulary(vocabulary) {
  if (file.size() == 0)
    fail("%s: %s is empty", option, file.path().c_str());
  if (argument.compare(0, 5, "text:") == 0)
    width = 1;
  else if (argument.compare(0, 7, "uint32:") == 0)
    width = 4;
  else if (argument.compare(0, 7, "uint16:") != 0 &&
           (argument.size() < 4 || argument.compare(argument.size() - 4, 4, ".bin") != 0))
    fail("%s: %s is not a .bin; say how its tokens are stored: text:FILE (bytes), uint16:FILE or "
         "uint32:FILE",
         option, argument.c_str());
  readHeader(argument == file.path());
  if (file.size() <= kScanBytes)
    for (int64_t i = 0; i < count; ++i)
      if (raw(i) >= vocabulary)
        reject(i);
}

void TokenFile::readHeader(bool mayHaveHeader) {
  int32_t header[3] = {};
  if (mayHaveHeader && file.size() >= kHeaderBytes)
    std::memcpy(header, file.data(), sizeof(header));
  for (const Header &known : kHeaders) {
    if (header[0] != known.magic)
      continue;
    if (header[1] != known.version)
      fail("%s: %s has version %d of llm.c's token format %d, version %d is supported",
           option.c_str(), file.path().c_str(), header[1], known.magic, known.version);
    begin = kHeaderBytes;
    width = known.width;
    count = header[2];
    int64_t present = (file.size() - begin) / width;
    if (count < 0 || count > present)
      fail("%s: %s should have %lld tokens by its header, it has %lld", option.c_str(),
           file.path().c_str(), (long long)count, (long long)present);
    return;
  }
  if (file.size() % width != 0)
    fail("%s: %s has %lld bytes, not a whole number of %lld-byte tokens; write text:FILE for bytes "
         "as tokens",
         option.c_str(), file.path().c_str(), (long long)file.size(), (long long)width);
  count = file.size() / width;
}

int64_t TokenFile::raw(int64_t position) const {
  const unsigned char *p = file.data() + begin + position * width;
  if (width == 1)
    return *p;
  if (width == 2) {
    uint16_t value;
    std::memcpy(&value, p, 2);
    return value;
  }
  uint32_t value;
  std::memcpy(&value, p, 4);
  return value;
}

void TokenFile::reject(int64_t position) const {
  fail("%s: %s: token %lld at position %lld is not below the model's vocabulary of %lld",
       option.c_str(), file.path().c_str(), (long long)raw(position), (long long)position,
       (long long)vocabulary);
}

std::string TokenFile::identity() const {
  uint64_t print = fingerprint(file.data() + begin, count * width, kDataFingerprintBytes);
  return std::to_string(count) + " tokens of " + std::to_string(width) +
         (width == 1 ? " byte" : " bytes") + " with fingerprint " + fingerprintText(print);
}

int64_t vocabularyOf(const Program &program) {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  bool ids = false;
  for (const Input &input : program.inputs) {
    bool hasTokens = input.role == InputRole::TokenIds || input.role == InputRole::Labels;
    if (hasTokens && input.vocabulary > 0)
      smallest = std::min(smallest, input.vocabulary);
    ids = ids || input.role == InputRole::TokenIds;
  }
  if (!ids)
    fail(
        "the program has no input of token ids, so token files cannot feed it: give a .safetensors "
        "file with a column per input, one row per sample");
  return smallest;
}

//===-- Order -------------------------------------------------------------------------------===//

int64_t permute(uint64_t key, int64_t index, int64_t n) {
  int half = 1;
  while (half < 31 && (int64_t(1) << (2 * half)) < n)
    ++half;
  uint64_t mask = (uint64_t(1) << half) - 1;
  uint64_t x = uint64_t(index);
  do {
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      uint64_t next = left ^ (mix64((key + (round << 32)) ^ right) & mask);
      left = right;
      right = next;
    }
    x = (left << half) | right;
  } while (x >= uint64_t(n));
  return int64_t(x);
}

Batches::Batches(const Samples &samples, const char *option, const Program &program, uint64_t seed,
                 bool shuffle, int64_t perStep)
    : samples(samples), seed(seed), shuffle(shuffle), sampleCount(samples.count()) {
  for (const Input &input : program.inputs) {
    if (input.batched && batch == 0)
      batch = input.globalShape[0];
    if (input.role == InputRole::TokenIds && input.globalShape.rank == 2)
      sequence = input.globalShape[1];
  }
  if (batch == 0)
    batch = 1; // no input has a batch dimension: all inputs are one sample
  if (sampleCount < batch * perStep)
    fail("%s: %s, one step needs %lld", option, samples.text().c_str(),
         (long long)(batch * perStep));
}

int64_t Batches::sampleAt(int64_t position) const {
  int64_t epoch = position / sampleCount, index = position % sampleCount;
  return shuffle ? permute(mix64(mix64(seed) ^ uint64_t(epoch)), index, sampleCount) : index;
}

/// Fills an input that needs no data: with ones, zeros, or 0, 1, 2, ... along the last dimension.
template <typename T> static void fillConstant(T *out, const Rank &rank, const Input &input) {
  if (input.role != InputRole::PositionIds) {
    std::fill_n(out, input.localShape.elements(), T(input.role == InputRole::Ones ? 1 : 0));
    return;
  }
  int64_t width = input.globalShape[input.globalShape.rank - 1];
  forRuns(*rank.program, rank.coordinates, input.globalShape, input.splits,
          [&](int64_t at, int64_t to, int64_t count) {
            for (int64_t i = 0; i < count; ++i)
              out[to + i] = T((at + i) % width);
          });
}

/// The splits of a row of the input: all but those of the batch.
static Splits splitsOfRow(const Input &input) {
  Splits splits;
  for (const Split &split : input.splits)
    if (!input.batched || split.dim != 0)
      splits.list[splits.count++] = split;
  return splits;
}

void Batches::fillInput(char *out, const Rank &rank, const Input &input,
                        int64_t firstSample) const {
  if (!samples.provides(input)) {
    switch (input.dtype) {
    case DType::Int64:
      return fillConstant(reinterpret_cast<int64_t *>(out), rank, input);
    case DType::Int32:
      return fillConstant(reinterpret_cast<int32_t *>(out), rank, input);
    case DType::Float32:
      return fillConstant(reinterpret_cast<float *>(out), rank, input);
    default:
      return fillConstant(reinterpret_cast<uint8_t *>(out), rank, input);
    }
  }
  // An input without a batch dimension is a single row.
  int64_t rows = input.batched ? input.localShape[0] : 1;
  Shape row = input.globalShape;
  int64_t firstRow = 0;
  if (input.batched) {
    firstRow = shardStart(*rank.program, rank.coordinates, input.globalShape, input.splits)[0];
    row.dims[0] = 1;
  }
  Splits splits = splitsOfRow(input);
  int64_t size = sizeOf(input.dtype),
          width = input.localShape.elements() / std::max<int64_t>(rows, 1);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t sample = input.batched ? sampleAt(firstSample + firstRow + r) : 0;
    forRuns(*rank.program, rank.coordinates, row, splits,
            [&](int64_t at, int64_t to, int64_t count) {
              samples.read(input, sample, at, count, out + (r * width + to) * size);
            });
  }
}

void Batches::fill(Rank &rank, int64_t step, int64_t microBatches) const {
  const Program &program = *rank.program;
  for (int64_t micro = 0; micro < microBatches; ++micro) {
    int64_t firstSample = (step * microBatches + micro) * batch;
    for (int64_t i = 0; i < program.inputs.size(); ++i) {
      const Input &input = program.inputs[i];
      char *out = static_cast<char *>(rank.hostInputs[i]) +
                  micro * input.localShape.elements() * sizeOf(input.dtype);
      fillInput(out, rank, input, firstSample);
    }
  }
  sendInputs(rank, microBatches);
}

} // namespace partita_rt
