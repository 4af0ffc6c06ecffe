// Computes a graph of the simulated cuDNN (graph_operations.h). Arithmetic is float; a value is
// rounded when it is stored, in memory or in a virtual tensor.

#include "simulated/graph_operations.h"

#include "partita_rt/half.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>

using partita_rt::BFloat16;
using partita_rt::Half;

namespace simulated {

int64_t GraphTensor::elementBytes() const {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_INT32 ? 4
         : type == CUDNN_DATA_BOOLEAN                         ? 1
                                                              : 2;
}

int64_t GraphTensor::span() const {
  int64_t last = 0;
  for (size_t d = 0; d < 4; ++d)
    last += (sizes[d] - 1) * strides[d];
  return last + 1;
}

//===-- Checks ------------------------------------------------------------------------------===//

/// Can x be used with y's sizes? A size of 1 repeats; heads are shared by groups.
static bool repeats(const Sizes &x, const Sizes &y) {
  for (size_t d : {size_t(0), size_t(2), size_t(3)})
    if (x[d] != y[d] && x[d] != 1)
      return false;
  return x[1] <= y[1] && y[1] % x[1] == 0;
}

static std::string problemOf(const Graph &graph, const GraphOperation &operation) {
  auto sizes = [&](int64_t id) { return graph.tensors.at(id).sizes; };
  Sizes x = sizes(operation.x), y = sizes(operation.y);
  switch (operation.kind) {
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: {
    Sizes b = sizes(operation.b);
    bool good = x[3] == b[2] && y[2] == x[2] && y[3] == b[3] && x[0] == y[0] && b[0] == y[0] &&
                x[1] == y[1] && y[1] % b[1] == 0;
    return good ? "" : "a product of matrices whose sizes do not go together";
  }
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    return repeats(y, x) ? "" : "a reduction to other sizes";
  case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    return graph.tensors.at(operation.x).span() == graph.tensors.at(operation.y).span()
               ? ""
               : "a reshape to another number of elements";
  default:
    for (int64_t id : {operation.x, operation.b, operation.condition})
      if (id >= 0 && !repeats(sizes(id), y))
        return "a pointwise operation on sizes that do not go together";
    return "";
  }
}

std::string Graph::problem() const {
  std::set<int64_t> made;
  for (const GraphOperation &operation : operations) {
    for (int64_t id : {operation.x, operation.b, operation.condition})
      if (id >= 0 && tensors.at(id).isVirtual && !made.count(id))
        return "virtual tensor " + std::to_string(id) + " is used before it is made";
    if (!made.insert(operation.y).second)
      return "tensor " + std::to_string(operation.y) + " is made twice";
    if (std::string problem = problemOf(*this, operation); !problem.empty())
      return problem;
  }
  for (const auto &[id, tensor] : tensors)
    if (tensor.isVirtual && !made.count(id))
      return "virtual tensor " + std::to_string(id) + " is never made";
  return "";
}

//===-- Values ------------------------------------------------------------------------------===//

namespace {

/// A tensor and its elements.
struct Values {
  const GraphTensor *tensor = nullptr;
  std::vector<float> own; ///< for a virtual tensor, one per position in its span
  void *data = nullptr;   ///< for any other

  float load(int64_t place) const {
    if (!data)
      return own[size_t(place)];
    const char *at = static_cast<const char *>(data) + place * tensor->elementBytes();
    return tensor->type == CUDNN_DATA_FLOAT  ? loaded<float>(at)
           : tensor->type == CUDNN_DATA_HALF ? float(loaded<Half>(at))
                                             : float(loaded<BFloat16>(at));
  }
  void store(int64_t place, float x) {
    if (!data) {
      own[size_t(place)] = tensor->type == CUDNN_DATA_HALF       ? float(Half(x))
                           : tensor->type == CUDNN_DATA_BFLOAT16 ? float(BFloat16(x))
                                                                 : x;
      return;
    }
    char *at = static_cast<char *>(data) + place * tensor->elementBytes();
    if (tensor->type == CUDNN_DATA_FLOAT)
      std::memcpy(at, &x, 4);
    else if (tensor->type == CUDNN_DATA_HALF)
      stored(at, Half(x));
    else
      stored(at, BFloat16(x));
  }

  /// Returns the position of an element of a tensor of these sizes, along which this one repeats.
  int64_t placeIn(const Sizes &sizes, const Sizes &i) const {
    int64_t place = 0;
    for (size_t d = 0; d < 4; ++d) {
      int64_t at = d == 1 ? i[1] / (sizes[1] / tensor->sizes[1]) : tensor->sizes[d] == 1 ? 0 : i[d];
      place += at * tensor->strides[d];
    }
    return place;
  }
  float at(const Sizes &sizes, const Sizes &i) const { return load(placeIn(sizes, i)); }

private:
  template <typename T> static T loaded(const char *at) {
    T x;
    std::memcpy(&x, at, sizeof(x));
    return x;
  }
  template <typename T> static void stored(char *at, T x) { std::memcpy(at, &x, sizeof(x)); }
};

template <typename Body> void forEach(const Sizes &sizes, Body body) {
  Sizes i{};
  for (i[0] = 0; i[0] < sizes[0]; ++i[0])
    for (i[1] = 0; i[1] < sizes[1]; ++i[1])
      for (i[2] = 0; i[2] < sizes[2]; ++i[2])
        for (i[3] = 0; i[3] < sizes[3]; ++i[3])
          body(i);
}

//===-- Operations --------------------------------------------------------------------------===//

void matmul(const Values &a, const Values &b, Values &c) {
  const Sizes &sizes = c.tensor->sizes;
  int64_t inner = a.tensor->sizes[3];
  forEach(sizes, [&](const Sizes &i) {
    int64_t row = a.placeIn(a.tensor->sizes, {i[0], i[1], i[2], 0});
    int64_t group = sizes[1] / b.tensor->sizes[1];
    int64_t column = b.placeIn(b.tensor->sizes, {i[0], i[1] / group, 0, i[3]});
    float sum = 0.0f;
    for (int64_t k = 0; k < inner; ++k)
      sum += a.load(row + k * a.tensor->strides[3]) * b.load(column + k * b.tensor->strides[2]);
    c.store(c.placeIn(sizes, i), sum);
  });
}

float apply(int mode, float x, float b, float condition, int64_t index) {
  switch (mode) {
  case CUDNN_POINTWISE_ADD:
    return x + b;
  case CUDNN_POINTWISE_MUL:
    return x * b;
  case CUDNN_POINTWISE_DIV:
    return x / b;
  case CUDNN_POINTWISE_SUB:
    return x - b;
  case CUDNN_POINTWISE_EXP:
    return std::exp(x);
  case CUDNN_POINTWISE_LOG:
    return std::log(x);
  case CUDNN_POINTWISE_IDENTITY:
    return x;
  case CUDNN_POINTWISE_CMP_GE:
    return x >= b;
  case CUDNN_POINTWISE_GEN_INDEX:
    return float(index);
  case CUDNN_POINTWISE_BINARY_SELECT:
    return condition != 0.0f ? x : b;
  }
  return NAN;
}

void pointwise(const GraphOperation &operation, const Values &x, const Values *b,
               const Values *condition, Values &y) {
  const Sizes &sizes = y.tensor->sizes;
  forEach(sizes, [&](const Sizes &i) {
    y.store(y.placeIn(sizes, i), apply(operation.mode, x.at(sizes, i), b ? b->at(sizes, i) : 0.0f,
                                       condition ? condition->at(sizes, i) : 0.0f,
                                       operation.axis >= 0 ? i[size_t(operation.axis)] : 0));
  });
}

void reduce(int mode, const Values &x, Values &y) {
  bool max = mode == CUDNN_REDUCE_TENSOR_MAX;
  std::vector<float> sums(size_t(y.tensor->span()),
                          max ? -std::numeric_limits<float>::infinity() : 0.0f);
  const Sizes &sizes = x.tensor->sizes;
  forEach(sizes, [&](const Sizes &i) {
    float &sum = sums[size_t(y.placeIn(sizes, i))], each = x.at(sizes, i);
    sum = max ? std::fmax(sum, each) : sum + each;
  });
  forEach(y.tensor->sizes, [&](const Sizes &i) {
    int64_t place = y.placeIn(y.tensor->sizes, i);
    y.store(place, sums[size_t(place)]);
  });
}

} // namespace

void compute(const Graph &graph, const std::map<int64_t, void *> &data) {
  std::map<int64_t, Values> values;
  for (const auto &[id, tensor] : graph.tensors) {
    Values &each = values[id];
    each.tensor = &tensor;
    if (tensor.isVirtual)
      each.own.assign(size_t(tensor.span()), NAN);
    else
      each.data = data.at(id);
  }
  auto of = [&](int64_t id) { return id < 0 ? nullptr : &values.at(id); };
  for (const GraphOperation &operation : graph.operations) {
    const Values &x = *of(operation.x);
    Values &y = *of(operation.y);
    if (operation.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
      matmul(x, *of(operation.b), y);
    else if (operation.kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
      reduce(operation.mode, x, y);
    else if (operation.kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
      for (int64_t place = 0; place < x.tensor->span(); ++place)
        y.store(place, x.load(place));
    else
      pointwise(operation, x, of(operation.b), of(operation.condition), y);
  }
}

} // namespace simulated
