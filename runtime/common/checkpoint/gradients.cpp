// Gradients of one step as a file (gradients.h).

#include "common/checkpoint/gradients.h"

#include "common/checkpoint/full_tensor.h"
#include "common/mesh/gathered.h"
#include "common/mesh/mesh.h"
#include "common/target.h"
#include "common/tensors/layout.h"
#include "common/tensors/safetensors.h"
#include "partita_rt/comm.h"

#include <memory>

namespace partita_rt {

template <typename T>
static void expose(Rank &rank, int parameter, const T *gradient,
                   std::initializer_list<int> flatOver) {
  if (rank.gradientSink)
    rank.gradientSink->add(rank, parameter, gradient, kDTypeOf<T>, flatOver);
}

void exposeGradient(Rank &rank, int parameter, const float *gradient,
                    std::initializer_list<int> flatOver) {
  expose(rank, parameter, gradient, flatOver);
}
void exposeGradient(Rank &rank, int parameter, const Half *gradient,
                    std::initializer_list<int> flatOver) {
  expose(rank, parameter, gradient, flatOver);
}
void exposeGradient(Rank &rank, int parameter, const BFloat16 *gradient,
                    std::initializer_list<int> flatOver) {
  expose(rank, parameter, gradient, flatOver);
}

/// Describes a rank's shard of a gradient: like its parameter's, or a flat shard of that over axes.
static TensorShard gradientShard(const Rank &rank, const Parameter &parameter, DType dtype,
                                 const std::vector<int> &flatOver) {
  TensorShard shard{parameter.name,   dtype,   parameter.globalShape, parameter.localShape,
                    parameter.splits, nullptr, parameter.stages};
  for (int axis : flatOver)
    shard.splits.list[shard.splits.count++] = {kFlat, axis};
  int64_t elements = parameter.localShape.elements();
  for (int axis : flatOver)
    elements = flatShardSize(elements, rank.program->mesh[axis].size);
  if (!flatOver.empty())
    shard.local = {elements};
  return shard;
}

void GradientFile::add(Rank &rank, int parameter, const void *gradient, DType dtype,
                       std::initializer_list<int> flatOver) {
  TensorShard shard =
      gradientShard(rank, rank.program->parameters[parameter], dtype, std::vector<int>(flatOver));
  int64_t bytes = shard.local.elements() * sizeOf(dtype);
  HostView view(rank, gradient, bytes);
  exposed[parameter] = {dtype, flatOver, std::vector<char>(view.data(), view.data() + bytes)};
}

namespace {

/// The base of formats as numbers: the lowest digit is the type, the others are the axes, innermost
/// first.
constexpr int64_t kDigit = 16;

std::vector<int> axesIn(int64_t format) {
  std::vector<int> axes;
  for (format /= kDigit; format > 0; format /= kDigit)
    axes.insert(axes.begin(), int(format % kDigit) - 1);
  return axes;
}
DType typeIn(int64_t format) { return DType(format % kDigit - 1); }

/// Divides the elements by the loss scale.
std::vector<float> unscaled(const void *elements, int64_t count, DType dtype, float scale) {
  std::vector<float> result;
  result.reserve(size_t(count));
  auto divide = [&](auto element) {
    for (int64_t i = 0; i < count; ++i)
      result.push_back(float(static_cast<const decltype(element) *>(elements)[i]) / scale);
  };
  if (dtype == DType::Float16)
    divide(Half());
  else if (dtype == DType::BFloat16)
    divide(BFloat16());
  else
    divide(0.0f);
  return result;
}

} // namespace

std::vector<int64_t> GradientFile::formats(const Program &program) const {
  std::vector<int64_t> formats(size_t(program.parameters.size()));
  for (const auto &[parameter, gradient] : exposed) {
    int64_t format = 0;
    for (int axis : gradient.flatOver)
      format = format * kDigit + axis + 1;
    formats[size_t(parameter)] = format * kDigit + int64_t(gradient.dtype) + 1;
  }
  return formats;
}

std::vector<int64_t> GradientFile::formatsOfAll(Rank &rank) const {
  const Program &program = *rank.program;
  std::vector<int64_t> mine = formats(program);
  if (mine.empty())
    return mine;
  std::vector<int64_t> all = gathered(rank, mine, "the gradients");
  std::vector<int64_t> result(mine.size());
  for (int r = 0; r < rank.ranks; ++r) {
    Rank other;
    setCoordinates(other, program, r);
    for (size_t i = 0; i < mine.size(); ++i) {
      const Parameter &parameter = program.parameters[int64_t(i)];
      if (!parameter.stages.contains(other.stageNumber))
        continue;
      result[i] = all[size_t(r) * mine.size() + i];
      if (parameter.trainable && result[i] == 0)
        fail("--grads: train_step did not expose the gradient of %s", parameter.name);
    }
  }
  return result;
}

void GradientFile::write(Rank &rank, const std::string &path) const {
  const Program &program = *rank.program;
  std::vector<int64_t> formats = formatsOfAll(rank);
  bool scaled = rank.report.lossScale > 0;
  std::unique_ptr<SafetensorsWriter> writer;
  if (rank.rank == 0) {
    std::vector<SafetensorsWriter::Entry> entries;
    for (size_t i = 0; i < formats.size(); ++i)
      if (formats[i] != 0)
        entries.push_back({program.parameters[int64_t(i)].name,
                           scaled ? DType::Float32 : typeIn(formats[i]),
                           program.parameters[int64_t(i)].globalShape});
    writer = std::make_unique<SafetensorsWriter>(
        path, entries, std::map<std::string, std::string>{{"program", program.name}});
  }
  FullTensor tensor;
  for (size_t i = 0; i < formats.size(); ++i) {
    if (formats[i] == 0)
      continue;
    DType dtype = typeIn(formats[i]);
    auto own = exposed.find(int(i));
    const void *full = tensor.gather(
        rank, gradientShard(rank, program.parameters[int64_t(i)], dtype, axesIn(formats[i])),
        own == exposed.end() ? nullptr : own->second.bytes.data());
    if (!writer)
      continue;
    int64_t elements = program.parameters[int64_t(i)].globalShape.elements();
    if (!scaled) {
      writer->write(full, elements * sizeOf(dtype));
      continue;
    }
    std::vector<float> values = unscaled(full, elements, dtype, rank.report.lossScale);
    writer->write(values.data(), 4 * elements);
  }
  if (writer)
    writer->commit();
  barrier(*rank.world, "the end of writing a file");
}

} // namespace partita_rt
