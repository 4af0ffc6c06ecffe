// Token files and batches (data.h).

#include "common/data.h"

#include "common/layout.h"
#include "partita_rt/fingerprint.h"
#include "partita_rt/init.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace partita_rt {

//===-- Token files -------------------------------------------------------------------------===//

namespace {

std::string pathOf(const std::string &argument) {
  for (const char *prefix : {"text:", "uint16:", "uint32:"})
    if (argument.compare(0, std::strlen(prefix), prefix) == 0)
      return argument.substr(std::strlen(prefix));
  return argument;
}

/// Files up to this size are checked whole when they are opened.
constexpr int64_t kScanBytes = int64_t(1) << 30;

struct Header {
  int32_t magic, version;
  int64_t width;
};
constexpr Header kHeaders[] = {{20240520, 1, 2}, {20240801, 7, 4}};
constexpr int64_t kHeaderBytes = 1024;

} // namespace

TokenFile::TokenFile(const std::string &argument, const char *option, int64_t vocabulary)
    : option(option), file(pathOf(argument), (std::string(option) + ":").c_str()),
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
    if (input.vocabulary > 0)
      smallest = std::min(smallest, input.vocabulary);
    ids = ids || input.role == InputRole::TokenIds;
  }
  if (!ids)
    fail("the program has no input of token ids, so token files cannot feed it");
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

Batches::Batches(const TokenFile &file, const char *option, const Program &program, uint64_t seed,
                 bool shuffle, int64_t perStep)
    : file(file), seed(seed), shuffle(shuffle) {
  for (const Input &input : program.inputs)
    if (input.role == InputRole::TokenIds) {
      batch = input.globalShape[0];
      sequence = input.globalShape[1];
    }
  windowCount = file.tokens() > 0 ? (file.tokens() - 1) / sequence : 0;
  if (windowCount < batch * perStep)
    fail("%s: %lld tokens give %lld samples of %lld + 1 tokens, one step needs %lld", option,
         (long long)file.tokens(), (long long)windowCount, (long long)sequence,
         (long long)(batch * perStep));
}

int64_t Batches::windowOf(int64_t sample) const {
  int64_t epoch = sample / windowCount, index = sample % windowCount;
  return shuffle ? permute(mix64(mix64(seed) ^ uint64_t(epoch)), index, windowCount) : index;
}

template <typename T>
void Batches::fillInput(T *out, const Rank &rank, const Input &input, int64_t firstSample) const {
  if (input.role == InputRole::Ones) {
    std::fill(out, out + input.localShape.elements(), T(1));
    return;
  }
  Shape start = pieceStart(*rank.program, rank.coordinates, input.globalShape, input.splits);
  for (int64_t row = 0; row < input.localShape[0]; ++row) {
    T *line = out + row * input.localShape[1];
    if (input.role == InputRole::PositionIds) {
      for (int64_t i = 0; i < input.localShape[1]; ++i)
        line[i] = T(start[1] + i);
      continue;
    }
    int64_t first = windowOf(firstSample + start[0] + row) * sequence + start[1] +
                    (input.role == InputRole::Labels ? 1 : 0);
    for (int64_t i = 0; i < input.localShape[1]; ++i)
      line[i] = T(file.token(first + i));
  }
}

void Batches::fill(Rank &rank, int64_t step, int64_t microBatches) const {
  const Program &program = *rank.program;
  for (int64_t micro = 0; micro < microBatches; ++micro) {
    int64_t firstSample = (step * microBatches + micro) * batch;
    for (int64_t i = 0; i < program.inputs.size(); ++i) {
      const Input &input = program.inputs[i];
      char *out = static_cast<char *>(rank.inputs[i]) +
                  micro * input.localShape.elements() * sizeOf(input.dtype);
      switch (input.dtype) {
      case DType::Int64:
        fillInput(reinterpret_cast<int64_t *>(out), rank, input, firstSample);
        break;
      case DType::Int32:
        fillInput(reinterpret_cast<int32_t *>(out), rank, input, firstSample);
        break;
      case DType::Float32:
        fillInput(reinterpret_cast<float *>(out), rank, input, firstSample);
        break;
      default:
        fillInput(reinterpret_cast<uint8_t *>(out), rank, input, firstSample);
        break;
      }
    }
  }
}

} // namespace partita_rt
