// tiny: dp = 2
// Written by partita; compile it with the Makefile beside it.

#include <partita_rt/partita_rt_cuda.h>

using namespace partita_rt;
using namespace partita_rt::cuda;

enum MeshAxis { kDp };
enum GroupRow { kOverDp }; // rows of kGroups

// Elementwise kernels, generated from the scalar expressions of the ops.

struct sgd_step {
  Scalar rate_at, decay_at;

  struct Element {
    float rate_f, decay_f;
    __device__ void operator()(int64_t, float &p, float g) const {
      float p_i = p;
      float g_i = g;
      p_i = p_i - rate_f * (g_i + decay_f * p_i);
      p = p_i;
    }
  };

  __device__ Element prepare() const {
    const double rate = rate_at.read();
    const double decay = decay_at.read();
    return {float(rate), float(decay)};
  }
};
static void sgd_all(const Stream &stream, float *p, const float *g, const DeviceRows<2> &rows,
    std::initializer_list<sgd_step> steps) {
  updateAll(stream, rows, steps, updated(p), each(g));
}

struct adamw_step {
  Scalar rate_at, t_at, beta1_at, beta2_at, epsilon_at, decay_at, bias_correction_at;

  struct Element {
    float keep1_f, keep2_f, rate_f, correction1_f, correction2_f, epsilon_f, decay_f;
    __device__ void operator()(int64_t, float &p, float &m, float &v, float g) const {
      float p_i = p;
      float m_i = m;
      float v_i = v;
      float g_i = g;
      m_i = m_i + keep1_f * (g_i - m_i);
      v_i = v_i + keep2_f * (g_i * g_i - v_i);
      p_i = p_i - rate_f * ((m_i * correction1_f) / (sqrtf(v_i * correction2_f) + epsilon_f) + decay_f * p_i);
      p = p_i;
      m = m_i;
      v = v_i;
    }
  };

  __device__ Element prepare() const {
    const double rate = rate_at.read();
    const double t = t_at.read();
    const double beta1 = beta1_at.read();
    const double beta2 = beta2_at.read();
    const double epsilon = epsilon_at.read();
    const double decay = decay_at.read();
    const double bias_correction = bias_correction_at.read();
    const double keep1 = 1.0 - beta1;
    const double keep2 = 1.0 - beta2;
    const double correction1 = select(bias_correction != 0.0, 1.0 / (1.0 - power(beta1, t)), 1.0);
    const double correction2 = select(bias_correction != 0.0, 1.0 / (1.0 - power(beta2, t)), 1.0);
    return {float(keep1), float(keep2), float(rate), float(correction1), float(correction2),
        float(epsilon), float(decay)};
  }
};
static void adamw(const Stream &stream, float *p, float *m, float *v, const float *g, int64_t n,
    Scalar rate, Scalar t, Scalar beta1, Scalar beta2, Scalar epsilon, Scalar decay,
    Scalar bias_correction) {
  updateElements(stream, n, adamw_step{rate, t, beta1, beta2, epsilon, decay, bias_correction},
      updated(p), updated(m), updated(v), each(g));
}

struct map_mul_2_element {
  __device__ void operator()(float &out, float a) const {
    out = a * 0.5f;
  }
};
static void map_mul_2(const Stream &stream, float *out, const float *a, int64_t ni) {
  mapElements(stream, {ni}, map_mul_2_element(), each(out), each(a));
}

struct map_mul_element {
  __device__ void operator()(float &out, float a, float b) const {
    out = a * b;
  }
};
static void map_mul(const Stream &stream, float *out, const float *a, const float *b, int64_t ni) {
  mapElements(stream, {ni}, map_mul_element(), each(out), each(a), each(b));
}

struct map_add_element {
  __device__ void operator()(float &out, float a, float b) const {
    out = a + b;
  }
};
static void map_add(const Stream &stream, float *out, const float *a, const float *b, int64_t ni,
    int64_t nj, int64_t out_i, int64_t a_i, int64_t b_i) {
  mapElements(stream, {ni, nj}, map_add_element(), each(out, {out_i}), each(a, {a_i}), each(b,
      {b_i}));
}

struct map_sub_gelu_tanh_element {
  __device__ void operator()(float &out, float a) const {
    const float t0 = a + 0.5f;
    const float t1 = 0.5f * t0 * (1.0f + near_tanh(0.7978846f * t0 * (1.0f + 0.044715f * t0 * t0)));
    out = t1;
  }
};
static void map_sub_gelu_tanh(const Stream &stream, float *out, const float *a, int64_t ni) {
  mapElements(stream, {ni}, map_sub_gelu_tanh_element(), each(out), each(a));
}

struct map_reciprocal_element {
  __device__ void operator()(float &out, float x) const {
    out = 1.0f / x;
  }
};
static void map_reciprocal(const Stream &stream, float *out, const float *x, int64_t ni) {
  mapElements(stream, {ni}, map_reciprocal_element(), each(out), each(x));
}

// What follows only calls; there is nothing in it to optimize.
#pragma GCC push_options
#pragma GCC optimize("O0")

// Parameters and states as they start; where parameters come from, --init says.
static void init(Rank &rank) {
  const Stream &stream = rank.device->stream;
  float *table = rank.persistent(0); // [16, 8]
  initialValue(rank, 0, table, Fill::normal(0.2));

  // head
  float *head_weight = rank.persistent(512); // [8, 16]
  initialValue(rank, 1, head_weight, Fill::normal(0.2));
  float *head_bias = rank.persistent(1024); // [16]
  initialValue(rank, 2, head_bias, Fill::constant(0.0));
  float *head_weight_m = rank.persistent(1088); // [8, 16]
  fill(stream, head_weight_m, 0.0f, 128);
  float *head_weight_v = rank.persistent(1600); // [8, 16]
  fill(stream, head_weight_v, 0.0f, 128);
}

// Places of p and g in bytes, elements, number of the scalars, number of the parameter.
static constexpr TensorRow<2> kUpdates[] = {
  {{0, 0}, 128, 0, 0}, // table
  {{1024, 1280}, 16, 1, 2}, // head_bias
};
static __device__ const TensorTable kUpdatesOnDevice(kUpdates);

// One update of the parameters from the micro-batches in the inputs.
static void train_step(Rank &rank) {
  const Stream &stream = rank.device->stream;
  beginWork(rank, Work::Forward);
  float *token_count = rank.at(640);
  const int64_t *labels = rank.input<int64_t>(1); // [1, 2, 4]
  countLabels(stream, token_count, labels, 8, -100);
  allReduce(rank.group(kOverDp), {{token_count, 1}}, "loss");
  report(stream, &rank.device->report->tokenCount, token_count);
  float *dloss = rank.at(640);
  map_reciprocal(stream, dloss, token_count, 1);

  // model.embed
  float *model_embed_Gather = rank.at(1024); // [2, 4, 8]
  const int64_t *input_ids = rank.input<int64_t>(0); // [1, 2, 4]
  float *table = rank.persistent(0); // [16, 8]
  embeddingForward(stream, model_embed_Gather, input_ids, table, 8, 8, 16);

  // model.act
  float *model_act_Gelu = rank.at(1024); // [2, 4, 8]
  map_sub_gelu_tanh(stream, model_act_Gelu, model_embed_Gather, 64);

  // model.head
  float *model_head_MatMul = rank.at(0); // [2, 4, 16]
  float *head_weight = rank.persistent(512); // [8, 16]
  gemm(stream, Trans::No, Trans::No, 8, 16, 8, 1.0f, model_act_Gelu, 8, head_weight, 16, 0.0f,
      model_head_MatMul, 16);
  float *logits = rank.at(0); // [2, 4, 16]
  float *head_bias = rank.persistent(1024); // [16]
  map_add(stream, logits, model_head_MatMul, head_bias, 8, 16, 16, 16, 0);
  float *losses = rank.at(512); // [2, 4]
  float *logits_lse = rank.at(576); // [2, 4]
  crossEntropyForward(stream, losses, logits_lse, logits, labels, 8, 16, 16, -100);
  float *loss_sum = rank.at(1344);
  reduceSum(stream, loss_sum, losses, 1, 8, 1);
  float *loss = rank.at(1344);
  map_mul(stream, loss, loss_sum, dloss, 1);
  allReduce(rank.group(kOverDp), {{loss, 1}}, "loss");

  // model.head, backward
  beginWork(rank, Work::Backward);
  float *dlogits = rank.at(0); // [2, 4, 16]
  crossEntropyBackward(stream, dlogits, dloss, 0, logits, logits_lse, labels, 8, 16, 16, -100);
  float *head_weight_grad = rank.at(512); // [8, 16]
  gemm(stream, Trans::Yes, Trans::No, 8, 16, 8, 1.0f, model_act_Gelu, 8, dlogits, 16, 0.0f,
      head_weight_grad, 16);
  float *head_bias_grad = rank.at(1280); // [16]
  reduceSum(stream, head_bias_grad, dlogits, 1, 8, 16);
  Pending pending = allReduceStart(rank.group(kOverDp),
      {{head_weight_grad, 128}, {head_bias_grad, 16}},
      "gradients of \042head\042 */ \134, backward");
  float *dmodel_act_Gelu = rank.at(1024); // [2, 4, 8]
  gemm(stream, Trans::No, Trans::Yes, 8, 8, 16, 1.0f, dlogits, 16, head_weight, 16, 0.0f,
      dmodel_act_Gelu, 8);

  // model.act, backward
  float *model_act_Gelu_2 = rank.at(1024); // [2, 4, 8]
  map_mul_2(stream, model_act_Gelu_2, dmodel_act_Gelu, 64);

  // model.embed, backward
  float *table_grad = rank.at(0); // [16, 8]
  embeddingBackward(stream, table_grad, model_act_Gelu_2, input_ids, 8, 8, 16, Write::Set);
  allReduce(rank.group(kOverDp), {{table_grad, 128}}, "gradient of table, backward");
  wait(pending);
  float *step_number = rank.at(1024);
  stepNumber(stream, step_number, rank.device->control);

  // update
  beginWork(rank, Work::Update);
  exposeGradient(rank, 1, head_weight_grad);
  float *head_weight_m = rank.persistent(1088); // [8, 16]
  float *head_weight_v = rank.persistent(1600); // [8, 16]
  const float *learning_rate = &rank.device->control->learningRate;
  adamw(stream, head_weight, head_weight_m, head_weight_v, head_weight_grad, 128, learning_rate,
      step_number, &rank.device->control->hyper.beta1, &rank.device->control->hyper.beta2,
      &rank.device->control->hyper.epsilon, &rank.device->control->hyper.weightDecay, 1.0);
  exposeGradients(rank, tensorRows(kUpdates, kUpdatesOnDevice), 1, rank.at(0));
  sgd_all(stream, rank.persistent(0), rank.at(0), tensorRows(kUpdates, kUpdatesOnDevice),
      {sgd_step{learning_rate, &rank.device->control->hyper.weightDecay}, sgd_step{learning_rate,
      0.0}});
  report(stream, &rank.device->report->loss, loss);
}

#pragma GCC pop_options

//===-- What the runtime needs to know ---------------------------------------------------------===//

static const Axis kMesh[] = {
    {"dp", 2},
};

static const Group kGroups[] = {
    {"dp", {kDp}},
};

static const Input kInputs[] = {
    {"input_ids", InputRole::TokenIds, DType::Int64, {4, 4}, {2, 4}, {{0, 0}}, 16},
    {"labels", InputRole::Labels, DType::Int64, {4, 4}, {2, 4}, {{0, 0}}, 16, -100},
};

static const Parameter kParameters[] = {
    {"table", {16, 8}, {16, 8}, {}, 0, true, true},
    {"head.weight", {8, 16}, {8, 16}, {}, 512, true, true},
    {"head.bias", {16}, {16}, {}, 1024, true, false},
};

static const OptimizerState kOptimizerStates[] = {
    {"head.weight.m", 1, {8, 16}, {}, 1088},
    {"head.weight.v", 1, {8, 16}, {}, 1600},
};

static const CensusEntry kCensus[] = {
    {CollectiveKind::AllReduce, "dp", 2, 8, "loss"},
    {CollectiveKind::AllReduce, "dp", 1, 576, "gradients of \042head\042 */ \134, backward"},
    {CollectiveKind::AllReduce, "dp", 1, 512, "gradient of table, backward"},
};

static Stage stage() {
  Stage s;
  s.persistentBytes = 2112;
  s.arenaBytes = 1408;
  s.scratchBytes = 1216;
  s.census = kCensus;
  s.init = init;
  s.trainStep = train_step;
  return s;
}

static const Stage kStages[] = {stage()};

static Program program() {
  Program p;
  p.name = "tiny";
  p.compiler = "Partita 0.1.0 (863e0ca60975), LLVM 22.1.8";
  p.optimizer = "sgd";
  p.mesh = kMesh;
  p.groups = kGroups;
  p.inputs = kInputs;
  p.parameters = kParameters;
  p.optimizerStates = kOptimizerStates;
  p.stages = kStages;
  p.accumulate = 1;
  p.hyper.beta1 = 0.9;
  p.hyper.beta2 = 0.999;
  p.hyper.epsilon = 1e-08;
  p.hyper.learningRate = 0.001;
  p.hyper.weightDecay = 0.1;
  p.reads.beta1 = true;
  p.reads.beta2 = true;
  p.reads.epsilon = true;
  p.reads.weightDecay = true;
  p.exposesGradients = true;
  return p;
}

int main(int argc, char **argv) { return programMain(argc, argv, program()); }
