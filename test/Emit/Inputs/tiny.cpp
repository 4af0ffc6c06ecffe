// tiny: dp = 2
// Written by partita; compile it with the Makefile beside it.

#include <partita_rt/partita_rt.h>

using namespace partita_rt;

enum MeshAxis { kDp };
enum GroupRow { kOverDp }; // rows of kGroups

// Elementwise kernels, generated from the scalar expressions of the ops.

static void sgd(float *p, const float *g, int64_t n, double rate, double decay) {
  const float rate_f = float(rate);
  const float decay_f = float(decay);
  #pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    float p_i = p[i];
    float g_i = g[i];
    p_i = p_i - rate_f * (g_i + decay_f * p_i);
    p[i] = p_i;
  }
}

struct sgd_step {
  double rate, decay;
};
static void sgd_all(float *p, const float *g, TensorRows<2> rows,
    std::initializer_list<sgd_step> steps) {
  for (const TensorRow<2> &row : rows) {
    const sgd_step &step = steps.begin()[row.step];
    sgd(moved(p, row.offsets[0]), moved(g, row.offsets[1]), row.elements, step.rate, step.decay);
  }
}

static void adamw(float *p, float *m, float *v, const float *g, int64_t n, double rate, double t,
    double beta1, double beta2, double epsilon, double decay, double bias_correction) {
  const double keep1 = 1.0 - beta1;
  const double keep2 = 1.0 - beta2;
  const double correction1 = select(bias_correction != 0.0, 1.0 / (1.0 - pow(beta1, t)), 1.0);
  const double correction2 = select(bias_correction != 0.0, 1.0 / (1.0 - pow(beta2, t)), 1.0);
  const float keep1_f = float(keep1);
  const float keep2_f = float(keep2);
  const float rate_f = float(rate);
  const float correction1_f = float(correction1);
  const float correction2_f = float(correction2);
  const float epsilon_f = float(epsilon);
  const float decay_f = float(decay);
  #pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    float p_i = p[i];
    float m_i = m[i];
    float v_i = v[i];
    float g_i = g[i];
    m_i = m_i + keep1_f * (g_i - m_i);
    v_i = v_i + keep2_f * (g_i * g_i - v_i);
    p_i = p_i - rate_f * ((m_i * correction1_f) / (sqrtf(v_i * correction2_f) + epsilon_f) + decay_f * p_i);
    p[i] = p_i;
    m[i] = m_i;
    v[i] = v_i;
  }
}

static void map_mul_2(float *out, const float *a, int64_t ni) {
  #pragma GCC ivdep
  for (int64_t i = 0; i < ni; ++i)
    out[i] = a[i] * 0.5f;
}

static void map_mul(float *out, const float *a, const float *b, int64_t ni) {
  #pragma GCC ivdep
  for (int64_t i = 0; i < ni; ++i)
    out[i] = a[i] * b[i];
}

static void map_add(float *out, const float *a, const float *b, int64_t ni, int64_t nj,
    int64_t out_i, int64_t a_i, int64_t b_i) {
  for (int64_t i = 0; i < ni; ++i)
    #pragma GCC ivdep
    for (int64_t j = 0; j < nj; ++j)
      out[i * out_i + j] = a[i * a_i + j] + b[i * b_i + j];
}

static void map_sub_gelu_tanh(float *out, const float *a, int64_t ni) {
  #pragma GCC ivdep
  for (int64_t i = 0; i < ni; ++i) {
    const float t0 = a[i] + 0.5f;
    const float t1 = 0.5f * t0 * (1.0f + near_tanh(0.7978846f * t0 * (1.0f + 0.044715f * t0 * t0)));
    out[i] = t1;
  }
}

static void map_reciprocal(float *out, const float *x, int64_t ni) {
  #pragma GCC ivdep
  for (int64_t i = 0; i < ni; ++i)
    out[i] = 1.0f / x[i];
}

// What follows only calls; there is nothing in it to optimize.
#pragma GCC push_options
#pragma GCC optimize("O0")

// Parameters and states as they start; where parameters come from, --init says.
static void init(Rank &rank) {
  float *table = rank.persistent(0); // [16, 8]
  initialValue(rank, 0, table, Fill::normal(0.2));

  // head
  float *head_weight = rank.persistent(512); // [8, 16]
  initialValue(rank, 1, head_weight, Fill::normal(0.2));
  float *head_bias = rank.persistent(1024); // [16]
  initialValue(rank, 2, head_bias, Fill::constant(0.0));
  float *head_weight_m = rank.persistent(1088); // [8, 16]
  fill(head_weight_m, 0.0f, 128);
  float *head_weight_v = rank.persistent(1600); // [8, 16]
  fill(head_weight_v, 0.0f, 128);
}

// Places of p and g in bytes, elements, number of the scalars, number of the parameter.
static constexpr TensorRow<2> kUpdates[] = {
  {{0, 0}, 128, 0, 0}, // table
  {{1024, 1280}, 16, 1, 2}, // head_bias
};

// One update of the parameters from the micro-batches in the inputs.
static void train_step(Rank &rank) {
  beginWork(rank, Work::Forward);
  float *token_count = rank.at(640);
  const int64_t *labels = rank.input<int64_t>(1); // [1, 2, 4]
  *token_count = float(countLabels(labels, 8, -100));
  allReduce(rank.group(kOverDp), {{token_count, 1}}, "loss");
  rank.report.tokenCount = int64_t(*token_count);
  float *dloss = rank.at(640);
  map_reciprocal(dloss, token_count, 1);

  // model.embed
  float *model_embed_Gather = rank.at(1024); // [2, 4, 8]
  const int64_t *input_ids = rank.input<int64_t>(0); // [1, 2, 4]
  float *table = rank.persistent(0); // [16, 8]
  embeddingForward(model_embed_Gather, input_ids, table, 8, 8, 16);

  // model.act
  float *model_act_Gelu = rank.at(1024); // [2, 4, 8]
  map_sub_gelu_tanh(model_act_Gelu, model_embed_Gather, 64);

  // model.head
  float *model_head_MatMul = rank.at(0); // [2, 4, 16]
  float *head_weight = rank.persistent(512); // [8, 16]
  gemm(Trans::No, Trans::No, 8, 16, 8, 1.0f, model_act_Gelu, 8, head_weight, 16, 0.0f,
      model_head_MatMul, 16);
  float *logits = rank.at(0); // [2, 4, 16]
  float *head_bias = rank.persistent(1024); // [16]
  map_add(logits, model_head_MatMul, head_bias, 8, 16, 16, 16, 0);
  float *losses = rank.at(512); // [2, 4]
  float *logits_lse = rank.at(576); // [2, 4]
  crossEntropyForward(losses, logits_lse, logits, labels, 8, 16, 16, -100);
  float *loss_sum = rank.at(1344);
  reduceSum(loss_sum, losses, 1, 8, 1);
  float *loss = rank.at(1344);
  map_mul(loss, loss_sum, dloss, 1);
  allReduce(rank.group(kOverDp), {{loss, 1}}, "loss");

  // model.head, backward
  beginWork(rank, Work::Backward);
  float *dlogits = rank.at(0); // [2, 4, 16]
  crossEntropyBackward(dlogits, dloss, 0, logits, logits_lse, labels, 8, 16, 16, -100);
  float *head_weight_grad = rank.at(512); // [8, 16]
  gemm(Trans::Yes, Trans::No, 8, 16, 8, 1.0f, model_act_Gelu, 8, dlogits, 16, 0.0f,
      head_weight_grad, 16);
  float *head_bias_grad = rank.at(1280); // [16]
  reduceSum(head_bias_grad, dlogits, 1, 8, 16);
  Pending pending = allReduceStart(rank.group(kOverDp),
      {{head_weight_grad, 128}, {head_bias_grad, 16}},
      "gradients of \042head\042 */ \134, backward");
  float *dmodel_act_Gelu = rank.at(1024); // [2, 4, 8]
  gemm(Trans::No, Trans::Yes, 8, 8, 16, 1.0f, dlogits, 16, head_weight, 16, 0.0f, dmodel_act_Gelu,
      8);

  // model.act, backward
  float *model_act_Gelu_2 = rank.at(1024); // [2, 4, 8]
  map_mul_2(model_act_Gelu_2, dmodel_act_Gelu, 64);

  // model.embed, backward
  float *table_grad = rank.at(0); // [16, 8]
  embeddingBackward(table_grad, model_act_Gelu_2, input_ids, 8, 8, 16, Write::Set);
  allReduce(rank.group(kOverDp), {{table_grad, 128}}, "gradient of table, backward");
  wait(pending);
  float *step_number = rank.at(1024);
  *step_number = float(rank.update);

  // update
  beginWork(rank, Work::Update);
  beginChanges(rank);
  exposeGradient(rank, 1, head_weight_grad);
  float *head_weight_m = rank.persistent(1088); // [8, 16]
  float *head_weight_v = rank.persistent(1600); // [8, 16]
  float *learning_rate = &rank.learningRate;
  adamw(head_weight, head_weight_m, head_weight_v, head_weight_grad, 128, *learning_rate,
      *step_number, rank.hyper.beta1, rank.hyper.beta2, rank.hyper.epsilon, rank.hyper.weightDecay,
      1.0);
  exposeGradients(rank, tensorRows(kUpdates), 1, rank.at(0));
  sgd_all(rank.persistent(0), rank.at(0), tensorRows(kUpdates),
      {sgd_step{*learning_rate, rank.hyper.weightDecay}, sgd_step{*learning_rate, 0.0}});
  rank.report.loss = *loss;
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
  s.census = kCensus;
  s.init = init;
  s.trainStep = train_step;
  return s;
}

static const Stage kStages[] = {stage()};

static Program program() {
  Program p;
  p.name = "tiny";
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
  p.announcesChanges = true;
  return p;
}

int main(int argc, char **argv) { return programMain(argc, argv, program()); }
