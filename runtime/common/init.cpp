// Initial values (init.h).

#include "partita_rt/init.h"

#include "common/checkpoint.h"
#include "common/layout.h"
#include "common/options.h"
#include "common/weights.h"

#include <cstdio>
#include <cstring>

namespace partita_rt {

uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t randomKey(uint64_t seed, const char *name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char *p = name; *p; ++p)
    hash = (hash ^ static_cast<unsigned char>(*p)) * 0x100000001B3u;
  return mix64(mix64(seed) ^ hash);
}

/// The four 16-bit fields of x, added.
static int64_t fieldSum(uint64_t x) {
  return int64_t((x & 0xFFFF) + ((x >> 16) & 0xFFFF) + ((x >> 32) & 0xFFFF) + (x >> 48));
}

double standardNormal(uint64_t key, uint64_t index) {
  int64_t sum = 0;
  for (uint64_t j = 0; j < 3; ++j)
    sum += fieldSum(mix64(key + 3 * index + j));
  return double(sum - 393210) / 65536.0;
}

namespace {

void fillFromRule(const Rank &rank, const Parameter &parameter, uint64_t seed) {
  float *values = rank.persistent<float>(parameter.offset);
  int64_t n = parameter.localShape.elements();
  if (parameter.init.kind != InitKind::Normal) {
    for (int64_t i = 0; i < n; ++i)
      values[i] = parameter.init.kind == InitKind::Ones ? 1.0f : 0.0f;
    return;
  }
  uint64_t key = randomKey(seed, parameter.name);
  forRuns(*rank.program, rank.coordinates, parameter.globalShape, parameter.splits,
          [&](int64_t global, int64_t local, int64_t count) {
            for (int64_t i = 0; i < count; ++i)
              values[local + i] =
                  float(standardNormal(key, uint64_t(global + i)) * parameter.init.std);
          });
}

void fillFromBytes(const Rank &rank, const Parameter &parameter, const unsigned char *bytes,
                   DType dtype) {
  float *values = rank.persistent<float>(parameter.offset);
  forRuns(*rank.program, rank.coordinates, parameter.globalShape, parameter.splits,
          [&](int64_t global, int64_t local, int64_t count) {
            convertToFloat(values + local, bytes + global * sizeOf(dtype), dtype, count);
          });
}

/// The columns of the stored matrix are the parameter's rows.
void fillTransposed(const Rank &rank, const Parameter &parameter, const unsigned char *bytes,
                    DType dtype) {
  float *values = rank.persistent<float>(parameter.offset);
  Shape start =
      pieceStart(*rank.program, rank.coordinates, parameter.globalShape, parameter.splits);
  int64_t rows = parameter.globalShape[0], columns = parameter.globalShape[1];
  forRuns(parameter.globalShape, parameter.localShape, start,
          [&](int64_t global, int64_t local, int64_t count) {
            for (int64_t i = 0; i < count; ++i) {
              int64_t from = (global + i) % columns * rows + (global + i) / columns;
              convertToFloat(values + local + i, bytes + from * sizeOf(dtype), dtype, 1);
            }
          });
}

/// From a weights file; rank 0 says which parameters it recognized by their shape alone.
void fillFromFile(const Rank &rank, const std::string &path) {
  SafetensorsFile file(path);
  std::vector<WeightMatch> matches = matchWeights(file, *rank.program);
  for (int64_t i = 0; i < rank.program->parameters.size(); ++i) {
    const Parameter &parameter = rank.program->parameters[i];
    const WeightMatch &match = matches[i];
    if (match.transposed)
      fillTransposed(rank, parameter, match.tensor->data, match.tensor->dtype);
    else
      fillFromBytes(rank, parameter, match.tensor->data, match.tensor->dtype);
    if (rank.rank == 0 && match.byShape)
      std::printf("%-14s %s is '%s' of %s, the only one of its shape %s\n", "parameter",
                  parameter.name, match.name->c_str(), path.c_str(),
                  toString(match.tensor->shape).c_str());
  }
}

void fillFromModel(const Rank &rank, const Parameter &parameter, const std::string &folder) {
  const FileSource &source = parameter.source;
  if (!source.path)
    fail("parameter '%s' has no value in the model's file; give --init seed:N or --init "
         "FILE.safetensors",
         parameter.name);
  std::string path = source.path[0] == '/' ? source.path : folder + "/" + source.path;
  MappedFile file(path, "model file");
  int64_t bytes = parameter.globalShape.elements() * sizeOf(source.dtype);
  if (source.offset < 0 || source.offset > file.size() || bytes > file.size() - source.offset)
    fail("model file %s: parameter '%s' should be its bytes %lld .. %lld, the file has %lld",
         path.c_str(), parameter.name, (long long)source.offset, (long long)(source.offset + bytes),
         (long long)file.size());
  fillFromBytes(rank, parameter, file.data() + source.offset, source.dtype);
}

void setScalar(const Rank &rank, const ScalarState &state) {
  switch (state.dtype) {
  case DType::Float32:
    *rank.persistent<float>(state.offset) = float(state.initial);
    return;
  case DType::Float64:
    *rank.persistent<double>(state.offset) = state.initial;
    return;
  case DType::Int32:
    *rank.persistent<int32_t>(state.offset) = int32_t(state.initial);
    return;
  case DType::Int64:
    *rank.persistent<int64_t>(state.offset) = int64_t(state.initial);
    return;
  default:
    fail("scalar state %s cannot be %s", state.name, nameOf(state.dtype));
  }
}

} // namespace

void initialize(Rank &rank) {
  const Program &program = *rank.program;
  const RunOptions &options = *rank.options;
  if (options.resume)
    return readCheckpoint(rank, options.checkpoint);
  if (options.init == InitFrom::Safetensors)
    fillFromFile(rank, options.initFile);
  else
    for (const Parameter &parameter : program.parameters)
      if (options.init == InitFrom::Seed)
        fillFromRule(rank, parameter, options.initSeed);
      else
        fillFromModel(rank, parameter, options.programFolder);
  for (const OptimizerState &state : program.optimizerStates)
    std::memset(rank.persistent<char>(state.offset), 0,
                size_t(program.parameters[state.parameter].localShape.elements()) * 4);
  for (const ScalarState &state : program.scalarStates)
    setScalar(rank, state);
}

} // namespace partita_rt
