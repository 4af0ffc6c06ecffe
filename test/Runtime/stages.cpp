// A hand-written program of three pipeline stages, on pp=3,dp=2, whose ranks differ in their
// functions, memory and census. Every parameter moves to its own target; `shared`, like a tied
// embedding, is on the first stage and on the last, with a target on each. -DWRONG: the second
// stage's census is wrong.

#include <partita_rt/partita_rt.h>

using namespace partita_rt;

static const Axis kMesh[] = {{"pp", 3}, {"dp", 2}};
constexpr int kPp = 0, kDp = 1;

enum Rows { kAll, kData, kEnds };
static const Group kGroups[] = {{"pp", {kPp}}, {"dp", {kDp}}, {"ends", {kPp}, {0, 2}}};

/// For the training loop only: the model reads no inputs.
static const Input kInputs[] = {
    {"input_ids", InputRole::TokenIds, DType::Int64, {4, 16}, {2, 16}, {{0, kDp}}, 256},
};

enum : int64_t { kShared = 0, kFirst = 64, kColumns = 64, kMoments = kColumns + 4 * 3 * 20 + 16 };

static const Parameter kParameters[] = {
    {"first", {5}, {5}, {}, kFirst, true, true, Home::Device, DType::Float32, {0}},
    {"columns",
     {3, 40},
     {3, 20},
     {{1, kDp}},
     kColumns,
     true,
     true,
     Home::Device,
     DType::Float32,
     {1}},
    {"shared", {16}, {16}, {}, kShared, true, true, Home::Device, DType::Float32, {0, 2}},
};
static const OptimizerState kOptimizerStates[] = {
    {"columns.m", 1, {3, 20}, {{1, kDp}}, kMoments},
};

static const CensusEntry kEndCensus[] = {
    {CollectiveKind::AllReduce, "ends", 1, 64, "gradient of shared"},
    {CollectiveKind::AllReduce, "pp", 1, 4, "loss"},
};
static const CensusEntry kMiddleCensus[] = {
#ifndef WRONG
    {CollectiveKind::AllReduce, "dp", 1, 4, "loss of the columns"},
#endif
    {CollectiveKind::AllReduce, "pp", 1, 4, "loss"},
};

/// Sets gradients[i] = values[i] - target; returns the loss.
static float lossOf(float *gradients, const float *values, int64_t n, float target) {
  float loss = 0;
  for (int64_t i = 0; i < n; ++i) {
    gradients[i] = values[i] - target;
    loss += 0.5f * gradients[i] * gradients[i];
  }
  return loss;
}

static void descend(Rank &rank, float *values, const float *gradients, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    values[i] -= rank.learningRate * gradients[i];
}

/// Runs on the first and the last stage at the same time; returns the stage's part of the loss.
static float updateShared(Rank &rank, float target) {
  float *gradient = rank.at(0);
  float loss = lossOf(gradient, rank.persistent(kShared), 16, target);
  allReduce(rank.group(kEnds), {{gradient, 16}}, "gradient of shared");
  exposeGradient(rank, 2, gradient);
  descend(rank, rank.persistent(kShared), gradient, 16);
  return loss;
}

/// Runs on all stages.
static void report(Rank &rank, float loss) {
  float *sum = rank.at(64);
  *sum = loss;
  allReduce(rank.group(kAll), {{sum, 1}}, "loss");
  rank.report.loss = *sum;
}

static void init0(Rank &rank) {
  initialValue(rank, 0, rank.persistent(kFirst), Fill::normal(0.5));
  initialValue(rank, 2, rank.persistent(kShared), Fill::normal(0.5));
}

static void step0(Rank &rank) {
  float *gradient = rank.at(128);
  float loss = lossOf(gradient, rank.persistent(kFirst), 5, 1);
  exposeGradient(rank, 0, gradient);
  descend(rank, rank.persistent(kFirst), gradient, 5);
  report(rank, loss + updateShared(rank, 1));
}

static void init1(Rank &rank) {
  initialValue(rank, 1, rank.persistent(kColumns), Fill::normal(0.5));
  fill(rank.persistent(kMoments), 0.0f, 3 * 20);
}

static void step1(Rank &rank) {
  float *own = rank.at(64), *gradient = rank.at(128), *moments = rank.persistent(kMoments);
  *own = lossOf(gradient, rank.persistent(kColumns), 3 * 20, 2);
  allReduce(rank.group(kData), {{own, 1}}, "loss of the columns");
  exposeGradient(rank, 1, gradient);
  for (int64_t i = 0; i < 3 * 20; ++i)
    moments[i] = 0.5f * moments[i] + gradient[i];
  descend(rank, rank.persistent(kColumns), moments, 3 * 20);
  report(rank, *own);
}

static void init2(Rank &rank) {
  initialValue(rank, 2, rank.persistent(kShared), Fill::normal(0.5));
}

static void step2(Rank &rank) { report(rank, updateShared(rank, 3)); }

static Stage first() {
  Stage s;
  s.persistentBytes = 128;
  s.arenaBytes = 192;
  s.census = kEndCensus;
  s.init = init0;
  s.trainStep = step0;
  return s;
}
static Stage second() {
  Stage s;
  s.persistentBytes = kMoments + 4 * 3 * 20;
  s.arenaBytes = 128 + 4 * 3 * 20;
  s.census = kMiddleCensus;
  s.init = init1;
  s.trainStep = step1;
  return s;
}
static Stage third() {
  Stage s;
  s.persistentBytes = 64;
  s.arenaBytes = 128;
  s.census = kEndCensus;
  s.init = init2;
  s.trainStep = step2;
  return s;
}
static const Stage kStages[] = {first(), second(), third()};

static Program program() {
  Program p;
  p.name = "stages";
  p.optimizer = "sgd";
  p.mesh = kMesh;
  p.groups = kGroups;
  p.inputs = kInputs;
  p.parameters = kParameters;
  p.optimizerStates = kOptimizerStates;
  p.stages = kStages;
  p.stageAxis = kPp;
  p.hyper.learningRate = 0.125;
  p.exposesGradients = true;
  return p;
}

int main(int argc, char **argv) { return programMain(argc, argv, program()); }
