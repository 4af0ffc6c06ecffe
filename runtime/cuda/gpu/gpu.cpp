// A rank's memory, streams and captured functions (gpu.h).

#include "cuda/gpu/gpu.h"

#include "common/mesh/launch.h"
#include "common/watch/rank_position.h"
#include "cuda/cuda.h"
#include "cuda/side_streams.h"
#include "partita_rt/comm.h"
#include "partita_rt/work.h"

#include <cstring>

namespace partita_rt::cuda {

namespace {

/// Memory that the host and the device share.
struct Shared {
  Report report;
  Fault fault;
};

std::vector<void *> inputsIn(const Program &program, char *base) {
  std::vector<void *> addresses;
  for (int64_t offset : inputOffsets(program))
    addresses.push_back(base + offset);
  return addresses;
}

/// Returns the max number of updates by the host in a step: a parameter's takes two calls if it
/// needs norms first, and may be split.
int64_t hostUpdates(const Program &program) { return 4 * program.parameters.size() + 16; }

} // namespace

static int64_t freeMemory() {
  size_t free = 0, total = 0;
  checkCuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return int64_t(free);
}

Gpu::HostInputs::HostInputs(const Program &program)
    : memory(inputBytes(program), "inputs"), at(inputsIn(program, memory.base)) {
  checkCuda(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming), "cudaEventCreate");
}

Gpu::HostInputs::~HostInputs() { cudaEventDestroy(copied); }

Gpu::Gpu(Rank &rank)
    : position(rank.position), freeBefore(freeMemory()),
      persistent(rank.stage->persistentBytes, "parameters and states"),
      arena(arenaBytes(*rank.stage, rank.options), "arena"),
      inputs(inputBytes(*rank.program), "inputs"),
      scratchMemory(rank.stage->scratchBytes, "kernels' scratch memory"),
      matmulWorkspace(kMatmulWorkspace, "workspace of matmuls"),
      attentionWorkspace(fusedWorkspaceBytes(), "workspace of cuDNN's attention"),
      control(sizeof(Control), "step's control values"),
      host(rank.stage->hostBytes, "host's parameters and states"),
      pinned(rank.stage->pinnedBytes, "copies between device and host"),
      sent(sizeof(Control), "step's control values"), shared(sizeof(Shared), "step's report"),
      hostInputs{HostInputs(*rank.program), HostInputs(*rank.program)},
      inputAt(inputsIn(*rank.program, inputs.base)) {
  checkCuda(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking), "cudaStreamCreate");
  checkCuda(cudaEventCreateWithFlags(&computed, cudaEventDisableTiming), "cudaEventCreate");
  for (const ZerosEntry &zeros : rank.stage->zeros)
    checkCuda(cudaMemsetAsync(persistent.base + zeros.offset, 0, size_t(zeros.bytes), compute),
              "clearing rows behind a parameter");
  auto *seen = reinterpret_cast<Shared *>(shared.base);
  theMatmuls = std::make_unique<Matmuls>(matmulWorkspace.base, kMatmulWorkspace);
  attention = fusedAttention(attentionWorkspace.base, ownAttention);
  transfers = std::make_unique<TransferEngine>(compute, hostUpdates(*rank.program));
  stream.handle = compute;
  stream.fault = &seen->fault;
  stream.scratch = scratchMemory.base;
  stream.scratchBytes = rank.stage->scratchBytes;
  stream.matmuls = theMatmuls.get();
  stream.attention = attention.get();
  Device::control = reinterpret_cast<const Control *>(control.base);
  report = &seen->report;
  rank.persistentBase = persistent.base;
  rank.arenaBase = arena.base;
  rank.hostBase = host.base;
  rank.pinnedBase = pinned.base;
  rank.inputs = inputAt.data();
  rank.hostInputs = hostInputs[written].at.data();
  rank.transfers = transfers.get();
  rank.device = this;
}

Gpu::~Gpu() {
  cudaStreamSynchronize(compute); // nothing may be pending in memory that is freed
  dropGraphs();
  transfers.reset();
  attention.reset();
  theMatmuls.reset();
  cudaEventDestroy(computed);
  cudaStreamDestroy(compute);
}

void Gpu::dropGraphs() {
  for (auto &[function, states] : functions)
    for (Function &state : states)
      if (state.graph)
        cudaGraphExecDestroy(state.graph);
  functions.clear();
}

void Gpu::finish() {
  WaitScope waiting(position, "the GPU's work");
  checkCuda(cudaStreamSynchronize(compute), "waiting for the GPU");
}

void Gpu::sendInputs(Rank &rank, int64_t microBatches) {
  for (int64_t i = 0; i < rank.program->inputs.size(); ++i) {
    const Input &input = rank.program->inputs[i];
    size_t bytes = size_t(microBatches * input.localShape.elements() * sizeOf(input.dtype));
    checkCuda(cudaMemcpyAsync(inputAt[size_t(i)], rank.hostInputs[i], bytes, cudaMemcpyHostToDevice,
                              compute),
              "copying the inputs");
  }
  checkCuda(cudaEventRecord(hostInputs[written].copied, compute), "cudaEventRecord");
  written = 1 - written; // its own copy was started a step ago
  checkCuda(cudaEventSynchronize(hostInputs[written].copied), "copying the inputs");
  rank.hostInputs = hostInputs[written].at.data();
}

/// Sets a call's values. The last call is complete, so nothing reads them while they change.
void Gpu::setControl(const Rank &rank) {
  Control values{rank.learningRate, rank.step,  rank.update,
                 rank.seed,         rank.hyper, progress.begun + 1};
  std::memcpy(sent.base, &values, sizeof(values));
  checkCuda(
      cudaMemcpyAsync(control.base, sent.base, sizeof(values), cudaMemcpyHostToDevice, compute),
      "copying a step's control values");
  *report = {};
  report->gradientNorm = -1;
  report->tokenCount = -1;
  report->firstNonfinite = -1;
  stream.fault->kind = Fault::None;
}

void Gpu::takeReport(Rank &rank) {
  partita_rt::cuda::check(*stream.fault);
  rank.report.loss = report->loss;
  rank.report.gradientNorm = report->gradientNorm;
  rank.report.tokenCount = report->tokenCount;
  rank.report.lossScale = report->scale.lossScale;
  rank.report.scaleExhausted = report->scale.scaleExhausted;
  rank.report.skippedSteps = report->scale.skippedSteps;
  rank.report.firstNonfinite = report->firstNonfinite;
}

/// Captures everything that the function does, including collectives and copies on their own
/// streams, as one graph, which is launched at once, without the host in between.
cudaGraphExec_t Gpu::capture(Rank &rank, void (*function)(Rank &)) {
  checkCuda(cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal), "capturing a step");
  cudaGraph_t graph = nullptr;
  try {
    function(rank);
    joinSideStreams(*this);
  } catch (...) {
    cudaStreamEndCapture(compute, &graph);
    if (graph)
      cudaGraphDestroy(graph);
    throw;
  }
  checkCuda(cudaStreamEndCapture(compute, &graph), "capturing a step");
  cudaGraphExec_t executable = nullptr;
  // Without this flag, collectives lose the priority of their streams (nccl_queue.cpp).
  cudaError_t error =
      cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority);
  cudaGraphDestroy(graph);
  checkCuda(error, "instantiating the graph of a step");
  return executable;
}

/// Returns the state for an update that gives the answers of an earlier one; else a new one.
Gpu::Function &Gpu::functionOf(const Rank &rank, void (*function)(Rank &)) {
  std::deque<Function> &states = functions[function];
  for (Function &state : states)
    if (std::all_of(state.asked.begin(), state.asked.end(), [&](const AskedStep &each) {
          return each.exact.contains(rank.update) == each.isExact;
        }))
      return state;
  return states.emplace_back();
}

bool Gpu::call(Rank &rank, void (*function)(Rank &), const std::function<void()> &meanwhile) {
  setControl(rank);
  Function &state = functionOf(rank, function);
  asked.clear();
  // The first call is not captured: it makes libraries load what they load late, and --grads may
  // look at its gradients. A call whose parts are timed is not a single launch.
  bool isTimed = timed > 0 && rank.step == timed && !times;
  bool asGraph = state.calls++ > 0 && !rank.gradientSink && !rank.clock && !isTimed;
  size_t mark = transfers->begin();
  bool issues = !asGraph || !state.graph;
  if (asGraph && !state.graph)
    state.graph = capture(rank, function);
  if (rank.clock)
    rank.clock->settleBy([this] { finish(); });
  progress.step = rank.step;
  ++progress.begun;
  if (asGraph)
    checkCuda(cudaGraphLaunch(state.graph, compute), "launching a step");
  else if (isTimed)
    callTimed(rank, function);
  else
    function(rank);
  if (!asked.empty()) // of a graph, what its capture has asked
    state.asked = asked;
  rank.slot = {};
  checkCuda(cudaEventRecord(computed, compute), "cudaEventRecord");
  if (meanwhile)
    meanwhile();
  {
    WaitScope waiting(position, "the GPU's work");
    checkCuda(cudaEventSynchronize(computed), "waiting for the GPU");
  }
  ++progress.complete;
  if (!asGraph)
    transfers->end(mark);
  takeReport(rank);
  if (isTimed && rank.rank == 0)
    std::printf("%s", times->table().c_str());
  return issues;
}

void Gpu::callTimed(Rank &rank, void (*function)(Rank &)) {
  times = std::make_unique<EventTimes>();
  stream.times = times.get();
  try {
    function(rank);
  } catch (...) {
    stream.times = nullptr;
    throw;
  }
  stream.times = nullptr;
}

/// The candidates' runs take milliseconds each; the median of a few is steady enough.
constexpr int kTuneRepetitions = 7;

void Gpu::tune(Rank &rank, const std::vector<void (*)(Rank &)> &functions,
               const std::string &path) {
  rank.step = rank.update = 1;
  if (rank.rank == 0)
    theMatmuls->beginRecording();
  for (auto *function : functions)
    call(rank, function);
  if (rank.rank == 0) {
    std::vector<Choice> choices = theMatmuls->tuneRecorded(stream, kTuneRepetitions);
    theMatmuls->writeChoices(path);
    int64_t before = 0, after = 0, apart = 0;
    for (const Choice &choice : choices) {
      before += choice.first;
      after += choice.nanoseconds;
      apart += choice.apart;
    }
    std::printf("%-14s %zu shapes of matmuls, each once: %.3f ms with the first "
                "suggestions, %.3f ms with the choices in %s; %lld of them run as a matmul and "
                "separate kernels\n",
                "tuned", choices.size(), double(before) / 1e6, double(after) / 1e6, path.c_str(),
                (long long)apart);
  }
  barrier(*rank.world, "the choices for matmuls");
}

int64_t Gpu::takenBytes() const { return freeBefore - freeMemory(); }

std::string Gpu::attentionText() const {
  if (attention)
    return attention->text();
  return ownAttention.empty() ? "" : "own kernels: " + ownAttention;
}

} // namespace partita_rt::cuda
