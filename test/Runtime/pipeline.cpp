// A pipeline written by hand: -DSTAGES stages of one layer each, data parallel over two ranks, six
// micro-batches in the order "one forward, one backward". With one stage (and then one rank) the
// same numbers are computed one after another, and every bit must be equal. The environment
// variable MISTAKE makes one of the stages do something wrong.

#include <partita_rt/partita_rt.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

using namespace partita_rt;

#ifndef STAGES
#define STAGES 3
#endif
constexpr int kStages = STAGES > 1 ? STAGES : 3; // layers
constexpr int kShards = STAGES > 1 ? 1 : 2;      // of the batch, on this rank
constexpr int kPp = 0, kDp = 1;
constexpr int64_t kMicros = 6;
constexpr int64_t kWidth = 20000, kEdge = 3; // of an activation: two messages' buffers
constexpr int64_t kAll = kWidth + kEdge;
constexpr int64_t kRing = kStages + 1; // activations in flight, and one arriving

#if STAGES > 1
static const Axis kMesh[] = {{"pp", kStages}, {"dp", 2}};
static const Group kGroups[] = {{"pp", {kPp}}, {"dp", {kDp}}};
#define CHANNELS_OF(i)                                                                             \
  {"onward " #i, i, i + 1}, { "back " #i, i + 1, i }
static const Channel kChannels[] = {CHANNELS_OF(0), CHANNELS_OF(1),
#if STAGES > 3
                                    CHANNELS_OF(2)
#endif
};
#else
static const Axis kMesh[] = {{"pp", 1}, {"dp", 1}};
#endif
static const Input kInputs[] = {
    {"input_ids",
     InputRole::TokenIds,
     DType::Int64,
     {4, 16},
     {kShards == 2 ? 4 : 2, 16},
     {{0, kDp}},
     256},
};

constexpr int64_t kBytes = (4 * kAll + 63) / 64 * 64; // of one tensor

#if STAGES > 1
#define PARAMETER(i)                                                                               \
  {                                                                                                \
    "w" #i, {kAll}, {kAll}, {}, 0, true, true, Home::Device, DType::Float32, { i }                 \
  }
#else
#define PARAMETER(i) {"w" #i, {kAll}, {kAll}, {}, i * kBytes}
#endif
static const Parameter kParameters[] = {PARAMETER(0), PARAMETER(1), PARAMETER(2),
#if STAGES > 3
                                        PARAMETER(3)
#endif
};

enum : int64_t { // arena, in tensors
  kX = 0,        // activations in flight
  kY = kX + kRing,
  kG = kY + 2, // cotangents: of the output, of the input
  kDx = kG + 2,
  kSums = kDx + 2, // gradients, of both shards if they are computed here
  kLoss = kSums + 2 * kStages,
  kTensors = kLoss + 2
};
static float *tensor(Rank &rank, int64_t number) { return rank.at(number * kBytes); }

//===-- The layer ---------------------------------------------------------------------------===//
// Not inlined: one copy of the code, and so the same rounding for every caller.

__attribute__((noinline)) static void readInput(float *x, const int64_t *ids) {
  for (int64_t i = 0; i < kAll; ++i)
    x[i] = 0.125f * float(ids[i % 32]) / 256 + 0.0001f * float(i % 97);
}
__attribute__((noinline)) static void layer(float *y, const float *x, const float *w) {
  for (int64_t i = 0; i < kAll; ++i)
    y[i] = w[i] * x[i] + 0.25f * x[i] * x[i];
}
__attribute__((noinline)) static void layerBackward(float *dx, float *sum, const float *g,
                                                    const float *x, const float *w) {
  for (int64_t i = 0; i < kAll; ++i) {
    dx[i] = g[i] * (w[i] + 0.5f * x[i]);
    sum[i] += g[i] * x[i];
  }
}
__attribute__((noinline)) static float lossOf(float *g, const float *y) {
  float loss = 0;
  for (int64_t i = 0; i < kAll; ++i) {
    g[i] = (y[i] - 1) / float(kMicros);
    loss += 0.5f * (y[i] - 1) * g[i] / float(kAll);
  }
  return loss;
}
__attribute__((noinline)) static void descend(float *w, const float *sum, float rate) {
  for (int64_t i = 0; i < kAll; ++i)
    w[i] -= rate * sum[i];
}

static void init(Rank &rank) {
  for (int64_t i = 0; i < int64_t(sizeof(kParameters) / sizeof(Parameter)); ++i)
    if (kParameters[i].stages.contains(rank.stageNumber))
      initialValue(rank, int(i), rank.persistent(kParameters[i].offset), Fill::normal(0.5));
}

#if STAGES > 1

//===-- A stage -----------------------------------------------------------------------------===//

static int onward(int from) { return 2 * from; }
static int back(int to) { return 2 * to + 1; }

static bool makes(const Rank &rank, const char *mistake, int stage, int shard = 0) {
  const char *made = std::getenv("MISTAKE");
  return made && !std::strcmp(made, mistake) && rank.stageNumber == stage &&
         rank.coordinates[kDp] == shard;
}

/// One train_step of one rank.
struct Passes {
  Rank &rank;
  int stage = rank.stageNumber;
  bool isFirst = stage == 0, isLast = stage == kStages - 1;
  float *w = rank.persistent(0), *sum = tensor(rank, kSums);
  float loss = 0;
  PendingMessage input, cotangent, outputs[2], gradients[2]; ///< pending
  int64_t slot = 0;

  explicit Passes(Rank &rank) : rank(rank) {}
  float *x(int64_t m) { return tensor(rank, kX + m % kRing); }
  float *g(int64_t m) { return tensor(rank, kG + m % 2); }

  /// Starts the message of an activation or its cotangent.
  PendingMessage start(bool sends, int channel, float *data, const char *why, int64_t m) {
    int64_t edge = kEdge, its = m;
    if (m == 3 && sends && channel == onward(0)) {
      if (makes(rank, "bytes", 0))
        --edge;
      if (makes(rank, "order", 0))
        ++its;
      if (makes(rank, "missing", 0))
        return {};
      if (makes(rank, "buffers", 0))
        return sendStart(rank, channel, {{data, kEdge}, {data + kEdge, kWidth}}, why, its);
    }
    if (sends)
      return sendStart(rank, channel, {{data, kWidth}, {data + kWidth, edge}}, why, its);
    return receiveStart(rank, channel, {{data, kWidth}, {data + kWidth, edge}}, why, its);
  }
  void startInput(int64_t m) {
    if (!isFirst && m < kMicros)
      input = start(false, onward(stage - 1), x(m), "the input", m);
  }
  void startCotangent(int64_t m) {
    if (!isLast && m < kMicros)
      cotangent = start(false, back(stage), g(m), "the output's cotangent", m);
  }

  void forward(int64_t m) {
    beginSlot(rank, slot++, m, "forward of the layer");
    if (isFirst)
      readInput(x(m), rank.input(0, m));
    wait(input);
    startInput(m + 1); // before it is needed
    if (m == 2 && makes(rank, "die", 1))
      fail("something broke");
    if (m == 2 && (makes(rank, "kill", 1) || makes(rank, "kill0", 0)))
      raise(SIGKILL);
    if (m == 2 && makes(rank, "stop", 2))
      raise(SIGSTOP);
    if (m == 2 && makes(rank, "stop1", 2, 1))
      raise(SIGSTOP);
    if (m == 2 && makes(rank, "deadlock", 0)) { // waits for its own output before that cotangent
      wait(cotangent);
      startCotangent(1);
      wait(cotangent);
    }
    float *y = tensor(rank, kY + m % 2);
    wait(outputs[m % 2]);
    layer(y, x(m), w);
    if (isLast)
      loss += lossOf(g(m), y);
    else
      outputs[m % 2] = start(true, onward(stage), y, "the output", m);
  }
  void backward(int64_t m) {
    beginSlot(rank, slot++, m, "backward of the layer");
    wait(cotangent);
    startCotangent(m + 1);
    float *dx = tensor(rank, kDx + m % 2);
    wait(gradients[m % 2]);
    layerBackward(dx, sum, g(m), x(m), w);
    if (!isFirst)
      gradients[m % 2] = start(true, back(stage - 1), dx, "the input's cotangent", m);
    poll(rank, {}, 0);
  }

  void run() {
    std::memset(sum, 0, size_t(kBytes));
    startInput(0);
    startCotangent(0);
    int64_t ahead = kStages - 1 - stage, forwards = 0, backwards = 0;
    while (forwards < ahead)
      forward(forwards++);
    while (backwards < kMicros) {
      if (forwards < kMicros)
        forward(forwards++);
      backward(backwards++);
    }
    if (makes(rank, "unwaited", 0))
      outputs[1] = {};
    for (PendingMessage each : {outputs[0], outputs[1], gradients[0], gradients[1]})
      wait(each);
  }
};

static void train_step(Rank &rank) {
  Passes passes(rank);
  passes.run();
  allReduce(rank.group(kDp), {{passes.sum, kAll}}, "gradients");
  descend(passes.w, passes.sum, rank.learningRate);
  float *loss = tensor(rank, kLoss);
  *loss = passes.loss;
  allReduce(rank.group(kDp), {{loss, 1}}, "loss");
  allReduce(rank.group(kPp), {{loss, 1}}, "loss");
  rank.report.loss = *loss;
}

/// Sends booleans too. The mistakes "many" and "few" are here because no message follows that would
/// mismatch and reveal them early.
static void forward(Rank &rank) {
  bool mask[] = {true, false, true}, got[3] = {};
  if (rank.stageNumber == 0)
    send(rank, onward(0), {{mask, 3}}, "mask");
  if (rank.stageNumber == 1)
    receive(rank, onward(0), {{got, 3}}, "mask");
  if (rank.stageNumber == 1 && std::memcmp(mask, got, sizeof(mask)) != 0)
    fail("the mask is another one");
  float *loss = tensor(rank, kLoss);
  if (makes(rank, "many", 0))
    send(rank, onward(0), {{loss, 1}}, "one more");
  if (makes(rank, "few", 1))
    receive(rank, onward(0), {{loss, 1}}, "one more");
}

static const CensusEntry kCensus[] = {
    {CollectiveKind::AllReduce, "dp", 1, 4 * kAll, "gradients"},
    {CollectiveKind::AllReduce, "dp", 1, 4, "loss"},
    {CollectiveKind::AllReduce, "pp", 1, 4, "loss"},
};
#ifdef WRONG
constexpr int64_t kAnnounced = kMicros + 1;
#else
constexpr int64_t kAnnounced = kMicros;
#endif
#define BELOW(i)                                                                                   \
  {2 * (i), kAnnounced, 4 * kAll * kMicros, "output of layer " #i},                                \
      {2 * (i) + 1, kMicros, 4 * kAll * kMicros, "its cotangent"}
static const MessageEntry kMessages0[] = {BELOW(0)};
static const MessageEntry kMessages1[] = {BELOW(0), BELOW(1)};
#if STAGES > 3
static const MessageEntry kMessages2[] = {BELOW(1), BELOW(2)};
static const MessageEntry kMessages3[] = {BELOW(2)};
#else
static const MessageEntry kMessages2[] = {BELOW(1)};
#endif

#else

//===-- The same on one rank ----------------------------------------------------------------===//

static void train_step(Rank &rank) {
  std::memset(tensor(rank, kSums), 0, size_t(2 * kStages * kBytes));
  float losses[2] = {};
  for (int64_t shard = 0; shard < 2; ++shard)
    for (int64_t m = 0; m < kMicros; ++m) {
      auto x = [&](int64_t i) { return tensor(rank, kX + i); };
      auto w = [&](int64_t i) { return rank.persistent(i * kBytes); };
      readInput(x(0), rank.input(0, m) + shard * 32);
      for (int i = 0; i < kStages; ++i)
        layer(x(i + 1), x(i), w(i));
      losses[shard] += lossOf(tensor(rank, kG), x(kStages));
      for (int i = kStages - 1; i >= 0; --i) {
        layerBackward(tensor(rank, kDx), tensor(rank, kSums + 2 * i + shard), tensor(rank, kG),
                      x(i), w(i));
        std::memcpy(tensor(rank, kG), tensor(rank, kDx), size_t(kBytes));
      }
    }
  for (int i = 0; i < kStages; ++i) {
    float *sum = tensor(rank, kSums + 2 * i), *other = tensor(rank, kSums + 2 * i + 1);
    for (int64_t e = 0; e < kAll; ++e)
      sum[e] += other[e];
    descend(rank.persistent(i * kBytes), sum, rank.learningRate);
  }
  rank.report.loss = losses[0] + losses[1];
}

#endif

template <typename Messages> static Stage stageWith(const Messages &messages) {
  Stage s;
  s.persistentBytes = (STAGES > 1 ? 1 : kStages) * kBytes;
  s.arenaBytes = kTensors * kBytes;
  s.init = init;
  s.trainStep = train_step;
#if STAGES > 1
  s.census = kCensus;
  s.forward = forward;
  s.messages = messages;
#else
  (void)messages;
#endif
  return s;
}
static const Stage kStageTable[] = {
#if STAGES > 1
    stageWith(kMessages0),
    stageWith(kMessages1),
    stageWith(kMessages2),
#if STAGES > 3
    stageWith(kMessages3),
#endif
#else
    stageWith(0),
#endif
};

static Program program() {
  Program p;
  p.name = "pipeline";
  p.optimizer = "sgd";
  p.mesh = kMesh;
  p.inputs = kInputs;
  p.parameters = kParameters;
  p.stages = kStageTable;
  p.stageAxis = kPp;
#if STAGES > 1
  p.groups = kGroups;
  p.channels = kChannels;
#endif
  p.accumulate = kMicros;
  p.hyper.learningRate = 0.25;
  return p;
}

int main(int argc, char **argv) { return programMain(argc, argv, program()); }
