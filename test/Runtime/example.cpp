// A program like the compiler's output, written by hand: token embedding -> linear -> GELU ->
// linear -> cross-entropy, AdamW with clipping, data parallel over -DRANKS ranks, -DACCUMULATE
// micro-batches. It tests the runtime's main loop, data, collectives and checkpoints without the
// compiler.

#include <partita_rt/partita_rt.h>

#include <algorithm>

using namespace partita_rt;

#ifndef RANKS
#define RANKS 1
#endif
#ifndef ACCUMULATE
#define ACCUMULATE 1
#endif

// Global micro-batch 8, sequence 16, vocabulary 256, width 24, hidden 40.
constexpr int64_t kRows = 8 / RANKS * 16; // tokens of one rank and micro-batch
constexpr int64_t kVocabulary = 256, kWidth = 24, kHidden = 40;

static const Axis kMesh[] = {{"dp", RANKS}};
static const Group kGroups[] = {{"dp", {0}}};

static const Input kInputs[] = {
    {"input_ids", InputRole::TokenIds, DType::Int64, {8, 16}, {8 / RANKS, 16}, {{0, 0}}, 256},
    {"labels", InputRole::Labels, DType::Int64, {8, 16}, {8 / RANKS, 16}, {{0, 0}}, 256},
};

enum : int64_t { // persistent memory
  kWte = 0,
  kFcWeight = kWte + 4 * kVocabulary * kWidth,
  kFcBias = kFcWeight + 4 * kWidth * kHidden,
  kHeadWeight = kFcBias + 192,
  kParameterBytes = kHeadWeight + 4 * kHidden * kVocabulary,
  kM = kParameterBytes,
  kV = 2 * kParameterBytes,
  kPersistentBytes = 3 * kParameterBytes
};

static const Parameter kParameters[] = {
    {"wte", {256, 24}, {256, 24}, {}, kWte, true, true},
    {"fc.weight", {24, 40}, {24, 40}, {}, kFcWeight, true, true},
    {"fc.bias", {40}, {40}, {}, kFcBias, true, false},
    {"head.weight", {40, 256}, {40, 256}, {}, kHeadWeight, true, true},
};

static const OptimizerState kOptimizerStates[] = {
    {"wte.m", 0, {256, 24}, {}, kM + kWte},
    {"wte.v", 0, {256, 24}, {}, kV + kWte},
    {"fc.weight.m", 1, {24, 40}, {}, kM + kFcWeight},
    {"fc.weight.v", 1, {24, 40}, {}, kV + kFcWeight},
    {"fc.bias.m", 2, {40}, {}, kM + kFcBias},
    {"fc.bias.v", 2, {40}, {}, kV + kFcBias},
    {"head.weight.m", 3, {40, 256}, {}, kM + kHeadWeight},
    {"head.weight.v", 3, {40, 256}, {}, kV + kHeadWeight},
};

enum : int64_t {                             // arena
  kX = 0,                                    // [rows, width]
  kH = kX + 4 * kRows * kWidth,              // [rows, hidden] before GELU
  kG = kH + 4 * kRows * kHidden,             // [rows, hidden] after
  kLogits = kG + 4 * kRows * kHidden,        // [rows, vocabulary], then their gradient
  kLoss = kLogits + 4 * kRows * kVocabulary, // [rows]
  kLogSumExp = kLoss + 4 * kRows,            // [rows]
  kScalars = kLogSumExp + 4 * kRows,         // mean loss, seed; count
  kGradients = kScalars + 64,                // laid out as the parameters
  kDx = kGradients + kParameterBytes,        // [rows, width]
  kDh = kDx + 4 * kRows * kWidth,            // [rows, hidden]
  kArenaBytes = kDh + 4 * kRows * kHidden,
  kOutput = kArenaBytes // of forward
};

static const Output kOutputs[] = {
    {"logits", DType::Float32, {8, 16, 256}, {8 / RANKS, 16, 256}, {{0, 0}}, kOutput},
};

#if RANKS > 1
static const CensusEntry kCensus[] = {
    {CollectiveKind::AllReduce, "dp", 1, 8, "token count"},
    {CollectiveKind::AllReduce, "dp", 1, 4, "mean loss"},
    {CollectiveKind::AllReduce, "dp", 2, kParameterBytes - 32, "gradients"},
};
#endif

static void init(Rank &rank) {
  initialValue(rank, 0, rank.persistent(kWte), Fill::normal(0.5));
  initialValue(rank, 1, rank.persistent(kFcWeight), Fill::normal(0.2));
  initialValue(rank, 2, rank.persistent(kFcBias), Fill::constant(0.0));
  initialValue(rank, 3, rank.persistent(kHeadWeight), Fill::normal(0.2));
  fill(rank.persistent(kM), 0.0f, (kPersistentBytes - kM) / 4);
}

static void gelu_forward(float *__restrict y, const float *__restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = 0.5f * x[i] * (1.0f + erff(0.70710678f * x[i]));
}

static void gelu_backward(float *__restrict dx, const float *__restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    dx[i] *=
        0.5f * (1.0f + erff(0.70710678f * x[i])) + 0.39894228f * x[i] * expf(-0.5f * x[i] * x[i]);
}

static void forward_rows(Rank &rank, int64_t micro) {
  embeddingForward(rank.at(kX), rank.input(0, micro), rank.persistent(kWte), kRows, kWidth,
                   kVocabulary);
  gemmBias(Trans::No, Trans::No, kRows, kHidden, kWidth, rank.at(kX), kWidth,
           rank.persistent(kFcWeight), kHidden, rank.persistent(kFcBias), rank.at(kH), kHidden);
  gelu_forward(rank.at(kG), rank.at(kH), kRows * kHidden);
  gemm(Trans::No, Trans::No, kRows, kVocabulary, kHidden, 1.0f, rank.at(kG), kHidden,
       rank.persistent(kHeadWeight), kVocabulary, 0.0f, rank.at(kLogits), kVocabulary);
}

/// Returns the sum of the losses of one micro-batch.
static float loss_rows(Rank &rank, int64_t micro) {
  forward_rows(rank, micro);
  crossEntropyForward(rank.at(kLoss), rank.at(kLogSumExp), rank.at(kLogits), rank.input(1, micro),
                      kRows, kVocabulary, kVocabulary, -100);
  float sum;
  reduceSum(&sum, rank.at(kLoss), 1, kRows, 1);
  return sum;
}

static int64_t count_tokens(Rank &rank, int64_t micros) {
  int64_t *count = rank.at<int64_t>(kScalars + 8);
  *count = countLabels(rank.input(1), micros * kRows, -100);
  allReduce(rank.group(0), {{count, 1}}, "token count");
  return *count;
}

static void backward_rows(Rank &rank, int64_t micro, Write write) {
  float beta = write == Write::Add ? 1.0f : 0.0f;
  float *grads = rank.at(kGradients);
  crossEntropyBackward(rank.at(kLogits), rank.at(kScalars + 4), 0, rank.at(kLogits),
                       rank.at(kLogSumExp), rank.input(1, micro), kRows, kVocabulary, kVocabulary,
                       -100);
  gemm(Trans::Yes, Trans::No, kHidden, kVocabulary, kRows, 1.0f, rank.at(kG), kHidden,
       rank.at(kLogits), kVocabulary, beta, grads + kHeadWeight / 4, kVocabulary);
  gemm(Trans::No, Trans::Yes, kRows, kHidden, kVocabulary, 1.0f, rank.at(kLogits), kVocabulary,
       rank.persistent(kHeadWeight), kVocabulary, 0.0f, rank.at(kDh), kHidden);
  gelu_backward(rank.at(kDh), rank.at(kH), kRows * kHidden);
  columnSum(grads + kFcBias / 4, rank.at(kDh), kRows, kHidden, kHidden, write);
  gemm(Trans::Yes, Trans::No, kWidth, kHidden, kRows, 1.0f, rank.at(kX), kWidth, rank.at(kDh),
       kHidden, beta, grads + kFcWeight / 4, kHidden);
  gemm(Trans::No, Trans::Yes, kRows, kWidth, kHidden, 1.0f, rank.at(kDh), kHidden,
       rank.persistent(kFcWeight), kHidden, 0.0f, rank.at(kDx), kWidth);
  embeddingBackward(grads + kWte / 4, rank.at(kDx), rank.input(0, micro), kRows, kWidth,
                    kVocabulary, write);
}

static void adamw(float *p, float *m, float *v, const float *g, int64_t n, double rate, double t,
                  double beta1, double beta2, double epsilon, double decay, double scale) {
  double correction1 = 1 / (1 - std::pow(beta1, t)), correction2 = 1 / (1 - std::pow(beta2, t));
  for (int64_t i = 0; i < n; ++i) {
    double gradient = scale * double(g[i]);
    m[i] = float(beta1 * double(m[i]) + (1 - beta1) * gradient);
    v[i] = float(beta2 * double(v[i]) + (1 - beta2) * gradient * gradient);
    double direction =
        double(m[i]) * correction1 / (std::sqrt(double(v[i]) * correction2) + epsilon);
    p[i] -= float(rate * (direction + decay * double(p[i])));
  }
}

static void train_step(Rank &rank) {
  rank.report.tokenCount = count_tokens(rank, ACCUMULATE);
  float *loss = rank.at(kScalars), *seed = rank.at(kScalars + 4), *grads = rank.at(kGradients);
  *seed = 1.0f / float(rank.report.tokenCount);
  *loss = 0.0f;
  for (int64_t micro = 0; micro < ACCUMULATE; ++micro) {
    beginWork(rank, Work::Forward);
    *loss += loss_rows(rank, micro) * *seed;
    beginWork(rank, Work::Backward);
    backward_rows(rank, micro, micro ? Write::Add : Write::Set);
  }
  Pending head = allReduceStart(rank.group(0), {{grads + kHeadWeight / 4, kHidden * kVocabulary}},
                                "head.weight");
  Pending rest = allReduceStart(rank.group(0),
                                {{grads + kFcBias / 4, kHidden},
                                 {grads + kFcWeight / 4, kWidth * kHidden},
                                 {grads + kWte / 4, kVocabulary * kWidth}},
                                "fc, wte");
  allReduce(rank.group(0), {{loss, 1}}, "mean loss");
  wait(rest);
  wait(head);
  rank.report.loss = *loss;

  beginWork(rank, Work::Update);
  float *scalars = rank.at(kScalars), *norm = scalars + 1, *scale = scalars + 2;
  double squares[std::size(kParameters)];
  for (const Parameter &p : kParameters) {
    int index = int(&p - kParameters);
    exposeGradient(rank, index, grads + p.offset / 4);
    squareSum(&squares[index], {{grads + p.offset / 4, p.localShape.elements()}});
  }
  rootOfSum(norm, {{squares, std::size(kParameters)}});
  rank.report.gradientNorm = *norm;
  firstNonfinite(rank, {{squares, std::size(kParameters)}}, {0, 1, 2, 3});
  clipScale(scale, norm, rank.hyper.gradientClip);
  const Hyper &hyper = rank.hyper;
  beginChanges(rank);
  for (const Parameter &p : kParameters)
    adamw(rank.persistent(p.offset), rank.persistent(kM + p.offset), rank.persistent(kV + p.offset),
          grads + p.offset / 4, p.localShape.elements(), rank.learningRate, double(rank.step),
          hyper.beta1, hyper.beta2, hyper.epsilon, p.weightDecay ? hyper.weightDecay : 0.0, *scale);
}

static void eval_step(Rank &rank) {
  rank.report.tokenCount = count_tokens(rank, 1);
  float *loss = rank.at(kScalars);
  *loss = loss_rows(rank, 0) / float(rank.report.tokenCount);
  allReduce(rank.group(0), {{loss, 1}}, "mean loss");
  rank.report.loss = *loss;
}

/// Puts its output after all memory that training needs.
static void forward(Rank &rank) {
  forward_rows(rank, 0);
  std::copy_n(rank.at(kLogits), kRows * kVocabulary, rank.at(kOutput));
}

static Stage stage() {
  Stage s;
#if RANKS > 1
  s.census = kCensus;
#endif
  s.persistentBytes = kPersistentBytes;
  s.arenaBytes = kArenaBytes;
  s.forwardArenaBytes = kOutput + 4 * kRows * kVocabulary;
  s.init = init;
  s.trainStep = train_step;
  s.evalStep = eval_step;
  s.forward = forward;
  return s;
}

static const Stage kStages[] = {stage()};

static Program program() {
  Program p;
  p.name = "example";
  p.mesh = kMesh;
  p.groups = kGroups;
  p.inputs = kInputs;
  p.parameters = kParameters;
  p.optimizerStates = kOptimizerStates;
  p.outputs = kOutputs;
  p.stages = kStages;
  p.accumulate = ACCUMULATE;
  p.modelFlops = 3.0 * 2 * ACCUMULATE * 8 * 16 * kHidden * (kWidth + kVocabulary);
  p.hyper.learningRate = 1e-2;
  p.hyper.weightDecay = 0.01;
  p.reads = {true, true, true, true, false, true};
  p.exposesGradients = true;
  p.announcesChanges = true;
  return p;
}

int main(int argc, char **argv) { return programMain(argc, argv, program()); }
