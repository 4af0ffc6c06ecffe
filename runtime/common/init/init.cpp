// Initial values (init.h).

#include "partita_rt/init.h"

#include "common/checkpoint/checkpoint.h"
#include "common/grouped.h"
#include "common/init/weights.h"
#include "common/mesh/gathered.h"
#include "common/run_options.h"
#include "common/target.h"
#include "common/tensors/layout.h"
#include "partita_rt/kernels.h"
#include "partita_rt/printable.h"
#include "partita_rt/varints.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace partita_rt {

/// The files that initial values come from, each opened once, and counts of non-finite values.
class InitialFiles {
public:
  explicit InitialFiles(const Rank &rank) : found(size_t(rank.program->parameters.size())) {
    if (rank.options->init != InitFrom::Safetensors)
      return;
    given = std::make_unique<WeightsFile>(rank.options->initFile);
    matches = matchWeights(*given, *rank.program);
  }
  const MappedFile &model(const std::string &path) {
    std::unique_ptr<MappedFile> &file = models[path];
    if (!file)
      file = std::make_unique<MappedFile>(path, "model file");
    return *file;
  }
  std::unique_ptr<WeightsFile> given; ///< --init FILE
  std::vector<WeightMatch> matches;   ///< of each parameter, in `given`

  /// Counts of a parameter's non-finite values, excluding those that another rank also has and
  /// counts.
  struct NotFinite {
    int64_t nan = 0, infinite = 0;
    /// Of the infinite ones, those that are finite in the file, and the largest of them.
    int64_t high = 0, low = 0;
    double largest = 0;
    void add(const NotFinite &other) {
      nan += other.nan;
      infinite += other.infinite;
      high += other.high;
      low += other.low;
      if (std::fabs(other.largest) > std::fabs(largest))
        largest = other.largest;
    }
  };
  std::vector<NotFinite> found; ///< of each parameter

private:
  std::map<std::string, std::unique_ptr<MappedFile>> models;
};

namespace {

/// Calls forRuns on this rank's shard of a parameter.
template <typename Visit> void forShard(const Rank &rank, const Parameter &parameter, Visit visit) {
  forRuns(*rank.program, rank.coordinates, parameter.globalShape, parameter.splits, visit);
}

using NotFinite = InitialFiles::NotFinite;

/// A parameter's memory. `put(local, count, make)` sets elements from `local` on: make(to, first,
/// n) writes numbers first ... first + n - 1 of them as floats; a 16-bit parameter's are then
/// rounded.
template <typename T> struct Values {
  T *data;
  NotFinite *beyond; ///< counts those that the type cannot hold
  template <typename Make> void put(int64_t local, int64_t count, Make make) const {
    if constexpr (std::is_same_v<T, float>) {
      make(data + local, int64_t{0}, count);
    } else {
      constexpr int64_t kChunk = 1024;
      float chunk[kChunk];
      for (int64_t first = 0; first < count; first += kChunk) {
        int64_t n = std::min(kChunk, count - first);
        make(chunk, first, n);
        std::copy_n(chunk, n, data + local + first);
        for (int64_t i = 0; i < n; ++i)
          if (float rounded = data[local + first + i]; std::isinf(rounded) && !std::isinf(chunk[i]))
            beyond->add({0, 0, rounded > 0, rounded < 0, chunk[i]});
      }
    }
  }
};

/// Does this rank's shard have padding? Padding is zero, and remains so.
bool hasPadding(const Rank &rank, const Parameter &parameter) {
  int64_t inside = 0;
  forShard(rank, parameter, [&](int64_t, int64_t, int64_t count) { inside += count; });
  return inside != parameter.localShape.elements();
}

/// Draws on the device: a GPU draws faster than the host draws and copies.
template <typename T>
void fillFromRule(const Rank &rank, const Parameter &parameter, T *values, Fill rule,
                  uint64_t seed) {
  int64_t elements = parameter.localShape.elements();
  if (hasPadding(rank, parameter)) {
    HostEdit zeros(rank, values, elements * int64_t(sizeof(T)));
    std::memset(zeros.data(), 0, size_t(elements) * sizeof(T));
    zeros.send();
  }
  uint64_t key = randomKey(seed, parameter.name);
  forShard(rank, parameter, [&](int64_t global, int64_t local, int64_t count) {
    drawNormal(rank, values + local, count, key, uint64_t(global), rule.mean, rule.std);
  });
}

template <typename T>
void fillFromBytes(const Rank &rank, const Parameter &parameter, Values<T> values,
                   const unsigned char *bytes, DType dtype) {
  forShard(rank, parameter, [&](int64_t global, int64_t local, int64_t count) {
    values.put(local, count, [&](float *to, int64_t first, int64_t n) {
      convertToFloat(to, bytes + (global + first) * sizeOf(dtype), dtype, n);
    });
  });
}

/// Reads varints. The runs come in the order of the full tensor, so one pass finds them all.
template <typename T>
void fillFromVarints(const Rank &rank, const Parameter &parameter, Values<T> values,
                     const unsigned char *bytes, const FileSource &source) {
  VarintReader reader(bytes, bytes + source.varints);
  int64_t at = 0;
  auto next = [&] {
    uint64_t bits = 0;
    if (!reader.next(bits))
      fail("model file %s: parameter '%s' ends after %lld of %lld values", source.path,
           parameter.name, (long long)at, (long long)parameter.globalShape.elements());
    ++at;
    return uint16_t(bits);
  };
  for (const Run &run : runsOf(rank, parameter.globalShape, parameter.splits)) {
    while (at < run.global)
      next();
    values.put(run.local, run.count, [&](float *to, int64_t, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        uint16_t half = next();
        convertToFloat(to + i, reinterpret_cast<const unsigned char *>(&half), source.dtype, 1);
      }
    });
  }
}

/// Fills from a transposed matrix: the columns of the stored matrix are the parameter's rows.
template <typename T>
void fillTransposed(const Rank &rank, const Parameter &parameter, Values<T> values,
                    const unsigned char *bytes, DType dtype) {
  int64_t rows = parameter.globalShape[0], columns = parameter.globalShape[1];
  forShard(rank, parameter, [&](int64_t global, int64_t local, int64_t count) {
    values.put(local, count, [&](float *to, int64_t first, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        int64_t at = global + first + i, from = at % columns * rows + at / columns;
        convertToFloat(to + i, bytes + from * sizeOf(dtype), dtype, 1);
      }
    });
  });
}

/// Fills from a weights file; rank 0 prints which parameters matched by shape only.
template <typename T>
void fillFromWeights(const Rank &rank, const Parameter &parameter, Values<T> values, int index) {
  const WeightMatch &match = rank.initialFiles->matches[size_t(index)];
  std::vector<Run> runs = runsOf(rank, parameter.globalShape, parameter.splits);
  if (match.transposed) // a shard's elements are spread over the stored matrix
    runs = {{0, 0, parameter.globalShape.elements()}};
  std::vector<unsigned char> storage;
  const unsigned char *bytes = rank.initialFiles->given->bytesOf(*match.name, runs, storage);
  if (match.transposed)
    fillTransposed(rank, parameter, values, bytes, match.tensor->dtype);
  else
    fillFromBytes(rank, parameter, values, bytes, match.tensor->dtype);
  // A parameter with a master is filled twice, once in each type.
  if (rank.rank == 0 && match.byShape && parameter.dtype == rank.program->parameters[index].dtype)
    std::printf("%-14s %s is '%s' of %s, the only one of its shape %s\n", "parameter",
                printable(parameter.name).c_str(), printable(*match.name).c_str(),
                rank.options->initFile.c_str(), toString(match.tensor->shape).c_str());
}

template <typename T>
void fillFromModel(const Rank &rank, const Parameter &parameter, Values<T> values,
                   const FileSource &source) {
  if (!source.path)
    fail("parameter '%s' has no value in the model's file; give --init seed:N or --init "
         "FILE.safetensors",
         parameter.name);
  std::string path = modelPath(*rank.program, *rank.options, source.path);
  const MappedFile &file = rank.initialFiles->model(path);
  int64_t bytes =
      source.varints ? source.varints : parameter.globalShape.elements() * sizeOf(source.dtype);
  if (source.offset < 0 || source.offset > file.size() || bytes > file.size() - source.offset)
    fail("model file %s: parameter '%s' should be its bytes %lld .. %lld, the file has %lld",
         path.c_str(), parameter.name, (long long)source.offset, (long long)(source.offset + bytes),
         (long long)file.size());
  if (source.varints)
    return fillFromVarints(rank, parameter, values, file.data() + source.offset, source);
  if (source.transposed)
    return fillTransposed(rank, parameter, values, file.data() + source.offset, source.dtype);
  fillFromBytes(rank, parameter, values, file.data() + source.offset, source.dtype);
}

/// Counts a file's non-finite values, which make any result meaningless. Each is counted once, on
/// the first of the ranks that hold it.
template <typename T>
void noteNotFinite(const Rank &rank, const Parameter &parameter, int index, Values<T> values) {
  if (!isFirstOwner(*rank.program, rank.coordinates, parameter.splits, parameter.stages))
    return;
  NotFinite found = *values.beyond;
  int64_t elements = parameter.localShape.elements();
  for (int64_t i = 0; i < elements; ++i) {
    float value = values.data[i];
    found.nan += std::isnan(value);
    found.infinite += std::isinf(value);
  }
  rank.initialFiles->found[size_t(index)] = found;
}

/// Fills `data`, a shard that `parameter` describes, of parameter number `index` or its master.
template <typename T>
void setInitialValue(Rank &rank, const Parameter &parameter, int index, T *data, Fill fill,
                     const FileSource &source) {
  const RunOptions &options = *rank.options;
  if (parameter.dtype != kDTypeOf<T>)
    fail("parameter '%s' is %s, init fills it as %s", parameter.name, nameOf(parameter.dtype),
         nameOf(kDTypeOf<T>));
  if (options.init == InitFrom::Seed)
    return fillFromRule(rank, parameter, data, fill, options.initSeed);
  HostEdit edit(rank, data, parameter.localShape.elements() * int64_t(sizeof(T)));
  NotFinite beyond;
  Values<T> values{reinterpret_cast<T *>(edit.data()), &beyond};
  if (hasPadding(rank, parameter))
    std::fill_n(values.data, parameter.localShape.elements(), T(0.0f));
  if (options.init == InitFrom::Safetensors)
    fillFromWeights(rank, parameter, values, index);
  else
    fillFromModel(rank, parameter, values, source);
  if (parameter.dtype == rank.program->parameters[index].dtype) // its master has the same values
    noteNotFinite(rank, parameter, index, values);
  edit.send();
}

} // namespace

void initialValue(Rank &rank, int index, float *values, Fill fill, FileSource source) {
  setInitialValue(rank, rank.program->parameters[index], index, values, fill, source);
}
void initialValue(Rank &rank, int index, Half *values, Fill fill, FileSource source) {
  setInitialValue(rank, rank.program->parameters[index], index, values, fill, source);
}
void initialValue(Rank &rank, int index, BFloat16 *values, Fill fill, FileSource source) {
  setInitialValue(rank, rank.program->parameters[index], index, values, fill, source);
}

void initialMaster(Rank &rank, int state, float *values, Fill fill, FileSource source) {
  const OptimizerState &master = rank.program->optimizerStates[state];
  Parameter shard = rank.program->parameters[master.parameter];
  shard.localShape = master.localShape;
  shard.splits = master.splits;
  shard.dtype = master.dtype;
  setInitialValue(rank, shard, master.parameter, values, fill, source);
}

/// Each process has looked into the folder by itself, so they must agree.
static void checkAllResume(Rank &rank) {
  std::vector<int64_t> all = gathered(rank, int64_t(rank.options->resume), "whether to resume");
  for (int r = 1; r < rank.ranks; ++r)
    if (all[size_t(r)] != all[0])
      fail("--resume auto: rank %d finds a checkpoint in %s, rank %d none; all hosts must see one "
           "folder",
           all[0] ? 0 : r, rank.options->checkpoint.c_str(), all[0] ? r : 0);
}

/// Combines the counts of all ranks, per parameter.
static std::vector<NotFinite> foundByAll(const Rank &rank) {
  const std::vector<NotFinite> &found = rank.initialFiles->found;
  std::vector<NotFinite> all = gathered(rank, found, "initial values that are not finite");
  std::vector<NotFinite> sums(found.size());
  for (size_t i = 0; i < all.size(); ++i)
    sums[i % found.size()].add(all[i]);
  return sums;
}

[[noreturn]] static void failNotFinite(const Rank &rank, const Parameter &parameter, int64_t values,
                                       const std::string &what, int64_t others) {
  bool given = rank.options->init == InitFrom::Safetensors;
  std::string more = others == 0 ? ""
                                 : ", and " + grouped(others) + " other parameter" +
                                       (others > 1 ? "s" : "") + " with some as well";
  fail("parameter '%.200s' would start with %s of its %s values %s, as %s has them%s; repair the "
       "file, or give other values with --init",
       parameter.name, grouped(values).c_str(), grouped(parameter.globalShape.elements()).c_str(),
       what.c_str(), given ? rank.options->initFile.c_str() : "the model's file", more.c_str());
}

/// A frozen value that the type cannot hold spoils every step, unless it is very low: that is how a mask
/// excludes something, and -inf does too.
static void checkFrozenFit(const Rank &rank, const std::vector<NotFinite> &found) {
  for (size_t i = 0; i < found.size(); ++i) {
    const Parameter &parameter = rank.program->parameters[int64_t(i)];
    const NotFinite &its = found[i];
    if (parameter.trainable || its.high + its.low == 0)
      continue;
    bool half = parameter.dtype == DType::Float16;
    std::string text = "frozen parameter '" + std::string(parameter.name).substr(0, 200) +
                       "' has " + grouped(its.high + its.low) + " of its " +
                       grouped(parameter.globalShape.elements()) + " values beyond " +
                       nameOf(parameter.dtype) + "'s range" +
                       (half ? ", which ends at 65504" : "") + ": " + format("%.6g", its.largest);
    if (its.high > 0)
      fail("%s; compile with --precision %s, or give other values with --init", text.c_str(),
           half ? "bfloat16" : "float32");
    if (rank.rank == 0)
      std::fprintf(stderr, "%s: warning: %s; it becomes -inf, as in a mask\n", rank.program->name,
                   printable(text).c_str());
  }
}

/// A run that starts from NaN computes NaN, and so does nearly every run that trains an infinite
/// value. A value found by one rank is an error on all.
static void checkAllFinite(const Rank &rank) {
  const Program &program = *rank.program;
  if (program.parameters.size() == 0)
    return;
  std::vector<NotFinite> found = foundByAll(rank);
  auto check = [&](auto countOf, const std::string &what) {
    std::vector<size_t> bad;
    for (size_t i = 0; i < found.size(); ++i)
      if (countOf(found[i], program.parameters[int64_t(i)]) > 0)
        bad.push_back(i);
    if (bad.empty())
      return;
    const Parameter &first = program.parameters[int64_t(bad[0])];
    bool half = first.dtype == DType::Float16 && what != "NaN";
    failNotFinite(rank, first, countOf(found[bad[0]], first),
                  what + (half ? " in float16 (it ends at 65504, bfloat16 does not)" : ""),
                  int64_t(bad.size()) - 1);
  };
  check([](const NotFinite &count, const Parameter &) { return count.nan; }, "NaN");
  bool trains = rank.options->steps.value_or(0) > 0; // untrained values may be infinite: a mask
  check(
      [&](const NotFinite &count, const Parameter &parameter) {
        return trains && parameter.trainable ? count.infinite : 0;
      },
      "infinite");
  checkFrozenFit(rank, found);
}

const ResumePoint *initialize(Rank &rank, const std::vector<ResumePoint> &points) {
  if (rank.options->resumeIfThere)
    checkAllResume(rank);
  if (rank.options->resume)
    return &resumeFrom(rank, points);
  if (!rank.stage->init)
    return nullptr; // nothing to fill: checkProgram refuses parameters without it
  InitialFiles files(rank);
  if (rank.rank == 0 && files.given)
    printCheckpointNote(files.given->note());
  rank.initialFiles = &files;
  call(rank, rank.stage->init);
  if (rank.options->init != InitFrom::Seed)
    checkAllFinite(rank);
  rank.initialFiles = nullptr;
  return nullptr;
}

} // namespace partita_rt
