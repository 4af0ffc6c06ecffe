// Attention with a library's fused kernels (fused_attention.h): supported calls, splitting, the
// call.

#include "cuda/attention/fused_attention.h"
#include "cuda/attention/packs.h"

#include "partita_rt/cuda/kernel_times.h"
#include "partita_rt/cuda/shapes.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace partita_rt::cuda {

AttentionBy attentionBy() {
  const char *text = std::getenv("PARTITA_RT_ATTENTION");
  std::string value = text ? text : "";
  if (value.empty() || value == "own")
    return AttentionBy::Own;
  if (value == "tiles")
    return AttentionBy::Tiles;
  if (value == "auto")
    return AttentionBy::Auto;
  if (value == "nondeterministic")
    return AttentionBy::Nondeterministic;
  if (value != "cudnn")
    fail("PARTITA_RT_ATTENTION=%.40s: own, tiles, auto, cudnn or nondeterministic is expected",
         value.c_str());
  return AttentionBy::Cudnn;
}

static bool asksCudnn(AttentionBy by) { return by != AttentionBy::Own && by != AttentionBy::Tiles; }

/// For the user: what a run cannot be compared with bit by bit.
static constexpr const char *kNondeterministic = ", nondeterministic";

std::string attentionMakers() {
  AttentionBy by = attentionBy();
  if (!asksCudnn(by))
    return by == AttentionBy::Tiles ? "own kernels, backward by tiles" : "own kernels";
  std::string why, name = findCudnn(why);
  if (!name.empty())
    return name + (by == AttentionBy::Cudnn ? " alone" : " where it can") +
           (by == AttentionBy::Nondeterministic ? kNondeterministic : "");
  if (by == AttentionBy::Cudnn)
    fail("PARTITA_RT_ATTENTION=cudnn: %s", why.c_str());
  return "own kernels";
}

int64_t fusedWorkspaceBytes() {
  std::string why;
  return asksCudnn(attentionBy()) && !findCudnn(why).empty() ? kAttentionWorkspace : 0;
}

//===-- Shapes ------------------------------------------------------------------------------===//

static auto fieldsOf(const FusedShape::Strides &s) { return std::tie(s.batch, s.head, s.row); }
static auto fieldsOf(const FusedShape &s) {
  return std::tuple_cat(std::tie(s.dtype, s.backward, s.causal, s.stats, s.deterministic, s.batch,
                                 s.heads, s.groups, s.sequence, s.keySequence, s.headDim,
                                 s.valueDim, s.rowsOfBatch),
                        fieldsOf(s.q), fieldsOf(s.k), fieldsOf(s.v), fieldsOf(s.out),
                        fieldsOf(s.dout), fieldsOf(s.dq), fieldsOf(s.dk), fieldsOf(s.dv));
}
bool operator<(const FusedShape &left, const FusedShape &right) {
  return fieldsOf(left) < fieldsOf(right);
}

std::string FusedShape::text() const {
  auto number = [](int64_t value) { return std::to_string(value); };
  std::string text = std::string(backward ? "attention backward, " : "attention forward, ") +
                     nameOf(dtype) + ", " + number(batch) + " x " + number(sequence) +
                     " queries, " + number(keySequence) + " keys, " + number(heads) + " heads of " +
                     number(headDim);
  if (valueDim != headDim)
    text += " with values of " + number(valueDim);
  if (groups != 1)
    text += ", groups of " + number(groups);
  return text + (causal ? ", causal" : "");
}

template <typename T> static FusedShape::Strides stridesOf(const HeadsOf<T> &heads) {
  return {heads.batchStride, heads.headStride, heads.rowStride};
}

static FusedShape shapeOf(const FusedCall &call, AttentionBy by) {
  const AttentionShape &a = call.shape;
  FusedShape shape{};
  shape.dtype = call.dtype;
  shape.backward = call.backward;
  shape.causal = a.causal;
  shape.stats = call.logSumExp != nullptr;
  shape.deterministic = by != AttentionBy::Nondeterministic;
  shape.batch = a.batch;
  shape.heads = a.heads;
  shape.groups = a.groups;
  shape.sequence = a.sequence;
  shape.keySequence = a.keySequence;
  shape.headDim = a.headDim;
  shape.valueDim = a.valueDim;
  shape.rowsOfBatch = a.heads * a.sequence;
  shape.q = stridesOf(call.q);
  shape.k = stridesOf(call.k);
  shape.v = stridesOf(call.v);
  shape.out = call.backward ? stridesOf(call.forwardOut) : stridesOf(call.out);
  if (call.backward) {
    shape.dout = stridesOf(call.dout);
    shape.dq = stridesOf(call.dq);
    shape.dk = stridesOf(call.dk);
    shape.dv = stridesOf(call.dv);
  }
  return shape;
}

//===-- Supported calls ---------------------------------------------------------------------===//

std::string whyNotFused(const FusedCall &call) {
  const AttentionShape &a = call.shape;
  if (call.dtype == DType::Float32)
    return "float32";
  if (call.bias)
    return "a bias";
  if (a.window != 0)
    return "a window";
  if (a.firstKeys)
    return "documents";
  if (a.blocks)
    return "a layout of blocks";
  if (a.dropout.ratio > 0.0)
    return "dropout";
  if (a.batch < 1 || a.heads < 1 || a.sequence < 1 || a.keySequence < 1 || a.headDim < 1 ||
      a.valueDim < 1)
    return "nothing to do";
  if (a.causal && a.sequence != a.keySequence)
    return "causal, with other keys than queries";
  if (most(a.headDim, a.valueDim) > 256)
    return "heads of more than 256 elements";
  if (a.headDim % kPack != 0 || a.valueDim % kPack != 0)
    return "heads that are not a multiple of 8 elements";
  bool packs = inPacks(call.q) && inPacks(call.k) && inPacks(call.v) && isAligned16(call.logSumExp);
  if (call.backward)
    packs = packs && inPacks(call.dout) && inPacks(call.forwardOut) && inPacks(call.dq) &&
            inPacks(call.dk) && inPacks(call.dv) && isAligned16(call.workspace);
  else
    packs = packs && inPacks(call.out);
  return packs ? "" : "rows that do not begin at multiples of 16 bytes";
}

FusedAttention::FusedAttention(AttentionBy by, std::unique_ptr<FusedLibrary> library,
                               void *workspace, int64_t workspaceBytes)
    : by(by), library(std::move(library)), workspace(workspace), workspaceBytes(workspaceBytes) {}

std::unique_ptr<FusedAttention> fusedAttention(void *workspace, std::string &why) {
  AttentionBy by = attentionBy();
  if (!asksCudnn(by))
    return nullptr;
  if (findCudnn(why).empty()) {
    if (by == AttentionBy::Cudnn)
      fail("PARTITA_RT_ATTENTION=cudnn: %s", why.c_str());
    return nullptr;
  }
  std::unique_ptr<FusedLibrary> library = openCudnn(why);
  if (!library) // another rank may have one
    fail("PARTITA_RT_ATTENTION=%s: %s", std::getenv("PARTITA_RT_ATTENTION"), why.c_str());
  return std::make_unique<FusedAttention>(by, std::move(library), workspace, kAttentionWorkspace);
}

//===-- Plans -------------------------------------------------------------------------------===//

/// Max bytes of workspace that a plan takes regardless of its size.
constexpr int64_t kPlanBytes = 4096;

/// Returns the largest number of sequences, or of key heads of one sequence, that divides their
/// number and starts the statistics of each call at 16-byte addresses, and for which the share of
/// `bytes` is at most `most`. 0: none.
static int64_t largestChunk(int64_t count, int64_t rows, int64_t bytes, int64_t most) {
  for (int64_t chunk = count; chunk > 0; --chunk)
    if (count % chunk == 0 && ceilDiv(bytes, count) * chunk + kPlanBytes <= most &&
        (chunk == count || rows * chunk % 4 == 0))
      return chunk;
  return 0;
}

FusedAttention::Plan FusedAttention::plan(const FusedShape &full) {
  Plan made{nullptr, full, ""};
  try {
    made.plan = library->plan(full);
    int64_t bytes = made.plan->workspaceBytes;
    if (bytes <= workspaceBytes)
      return made;
    FusedShape &chunk = made.chunk;
    chunk.batch = largestChunk(full.batch, full.rowsOfBatch, bytes, workspaceBytes);
    if (chunk.batch == 0) {
      chunk.batch = 1;
      bool begins = full.batch == 1 || full.rowsOfBatch % 4 == 0; // at 16-byte addresses
      int64_t groups = begins ? largestChunk(full.heads / full.groups, full.groups * full.sequence,
                                             ceilDiv(bytes, full.batch), workspaceBytes)
                              : 0;
      chunk.heads = groups * full.groups;
    }
    if (chunk.heads > 0)
      made.plan = library->plan(chunk);
    if (chunk.heads > 0 && made.plan->workspaceBytes <= workspaceBytes)
      return made;
    made.why = library->name + " needs " + std::to_string(bytes) + " bytes of workspace, of " +
               std::to_string(workspaceBytes) + ", and no split of the call needs less";
  } catch (const Error &error) {
    made.why = error.what();
  }
  made.plan.reset();
  return made;
}

/// Returns `data` moved to a sequence and a head.
template <typename T> static void *at(const HeadsOf<T> &heads, int64_t batch, int64_t head) {
  int64_t elements = batch * heads.batchStride + head * heads.headStride;
  return const_cast<char *>(static_cast<const char *>(heads.data)) + 2 * elements;
}

void FusedAttention::launch(const Stream &stream, const Plan &plan, const FusedCall &call) {
  const AttentionShape &a = call.shape;
  FusedPointers pointers;
  pointers.scale = a.scale;
  std::string name = stream.times ? "cuDNN's attention " + plan.chunk.text() : "";
  for (int64_t b = 0; b < a.batch; b += plan.chunk.batch)
    for (int64_t h = 0; h < a.heads; h += plan.chunk.heads) {
      int64_t keyHead = h / a.groups, rows = (b * a.heads + h) * a.sequence;
      void **data = pointers.data;
      data[kFusedQ] = at(call.q, b, h);
      data[kFusedK] = at(call.k, b, keyHead);
      data[kFusedV] = at(call.v, b, keyHead);
      data[kFusedOut] = call.backward ? at(call.forwardOut, b, h) : at(call.out, b, h);
      if (call.logSumExp)
        data[kFusedStats] = call.logSumExp + rows;
      if (call.backward) {
        data[kFusedDout] = at(call.dout, b, h);
        data[kFusedDelta] = call.workspace + rows;
        data[kFusedDq] = at(call.dq, b, h);
        data[kFusedDk] = at(call.dk, b, keyHead);
        data[kFusedDv] = at(call.dv, b, keyHead);
      }
      Timed timed(stream, name.c_str(), nullptr);
      plan.plan->run(stream.handle, pointers, workspace);
    }
}

bool FusedAttention::run(const Stream &stream, const FusedCall &call) {
  std::string why = whyNotFused(call);
  if (!why.empty()) {
    refused.insert(why);
  } else {
    FusedShape shape = shapeOf(call, by);
    auto found = plans.find(shape);
    if (found == plans.end())
      found = plans.emplace(shape, plan(shape)).first;
    if (found->second.plan) {
      launch(stream, found->second, call);
      return true;
    }
    why = found->second.why;
  }
  if (by == AttentionBy::Cudnn)
    fail("PARTITA_RT_ATTENTION=cudnn: %s cannot compute %s: %s", library->name.c_str(),
         shapeOf(call, by).text().c_str(), why.c_str());
  return false;
}

std::string FusedAttention::text() const {
  int64_t made = 0;
  std::set<std::string> others = refused;
  for (const auto &[shape, plan] : plans) {
    made += plan.plan != nullptr;
    if (!plan.plan)
      others.insert(plan.why);
  }
  std::string reasons;
  for (const std::string &why : others)
    reasons += (reasons.empty() ? "" : "; ") + why;
  if (made == 0)
    return reasons.empty() ? ""
                           : "own kernels alone; " + library->name + " computes none: " + reasons;
  return library->name + " computes " + std::to_string(made) + " of its shapes" +
         (by == AttentionBy::Nondeterministic ? kNondeterministic : "") +
         (reasons.empty() ? "" : ", own kernels the others: " + reasons);
}

} // namespace partita_rt::cuda
