// Attention on one rank's heads (CPU), forward and backward. Types and conventions are those of
// kernels.h, which includes this header.

#ifndef PARTITA_RT_ATTENTION_H
#define PARTITA_RT_ATTENTION_H

#include "partita_rt/block_layout.h"
#include "partita_rt/float_or.h"
#include "partita_rt/half.h"
#include "partita_rt/types.h"
#include "partita_rt/workspaces.h"

namespace partita_rt {

/// A [batch, sequence, heads, headDim] tensor in any layout (heads of at most 1024 elements):
/// element (b, s, h, d) is data[b * batchStride + s * rowStride + h * headStride + d].
/// Inside a packed [b, s, 3 * heads * d] projection, v is {qkv + 2 * heads * d, s * 3 * heads * d,
/// 3 * heads * d, d}.
template <typename T> struct HeadsOf {
  T *data;
  int64_t batchStride;
  int64_t rowStride;
  int64_t headStride;
};
using Heads = HeadsOf<float>;
using ConstHeads = HeadsOf<const float>;

/// Dropout of attention's probabilities [batch, heads, sequence, keySequence]: those that
/// dropout (kernels.h) drops of such a tensor. No mask is stored; the backward pass draws the
/// numbers again.
struct AttentionDropout {
  double ratio = 0.0;             ///< 0: none
  int64_t id = 0;                 ///< of the op as imported
  const int64_t *key = nullptr;   ///< of the step (stepKey)
  const int64_t *micro = nullptr; ///< number of the micro-batch
  int64_t batch = 0, heads = 0;   ///< of the full tensor of a micro-batch
  /// Null, or where the row-major index of this rank's first element in that tensor is. For sequences of which
  /// a rank has a part (SequenceRuns), of the element of its first sequence and head, and of query and key 0:
  /// queries and keys are numbered by their runs.
  const int64_t *first = nullptr;
};

/// Where a rank's positions of a sequence lie in the full one: position i of n is number
///     first[i / (n / runs)] + i % (n / runs)
/// so that consecutive positions are consecutive within a run. A run begins at a multiple of its length. Ranks of
/// context parallelism have one, or two if causal work is balanced: chunks r and 2c - 1 - r of 2c.
struct SequenceRuns {
  int64_t full = 0; ///< positions of the full sequence; 0: the rank has it
  int64_t runs = 1; ///< divides the rank's positions
  /// Null: the rank has the full sequence. On a GPU in device memory.
  const int64_t *first = nullptr;
  /// Positions from one of the rank's sequences to the next in logSumExp, firstKeys and workspaces; 0: as many
  /// as a sequence has. Not 0 if this is a part of the rank's sequences.
  int64_t pitch = 0;
};

struct AttentionShape {
  int64_t batch;
  int64_t heads;
  int64_t sequence;        ///< of queries
  int64_t keySequence;     ///< of keys and values
  int64_t headDim;         ///< of q and k
  int64_t valueDim;        ///< of v and out
  int64_t groups = 1;      ///< query heads per key/value head: k, v have heads / groups heads
  bool causal = true;      ///< query i sees keys j <= i + keySequence - sequence
  float scale = 1.0f;      ///< scores = scale * q.k, usually 1 / sqrt(headDim)
  int64_t window = 0;      ///< if not 0: a query sees only the last `window` of these keys
  bool zeroHidden = false; ///< a query all of whose biased scores are -inf gets zeros, not NaN
  /// Null, or [batch, sequence]: query i sees no key before firstKeys[i], those of other documents.
  /// Nondecreasing in a sequence (documentStarts).
  const int32_t *firstKeys = nullptr;
  AttentionDropout dropout = {};
  /// If it has layouts, which blocks of the scores are computed: the others are hidden, as if they were -inf, and not
  /// touched. Every layout has n * size == sequence == keySequence, or, of sequences of which a rank has a part,
  /// their full lengths; every run of these has a multiple of the size, so it begins at a block. On a
  /// GPU, all that this points to lies in device memory.
  BlockLayouts blocks = {};
  /// For attentionStep and attentionStepBackward alone: which of the full sequences these queries and keys are. All
  /// of the above then speaks of positions and lengths of the full sequences.
  SequenceRuns queries = {}, keys = {};
};

/// A bias added to the scores: element (b, h, i, j) is data[b * batchStride + h * headStride + i *
/// rowStride + j * columnStride]; a stride of 0 repeats, columnStride is 0 or 1.
template <typename T> struct ScoresOf {
  FloatOr<T> data = nullptr;
  int64_t batchStride = 0;
  int64_t headStride = 0;
  int64_t rowStride = 0;
  int64_t columnStride = 0;
};
using Scores = ScoresOf<float>;
using ConstScores = ScoresOf<const float>;

/// Where the sums of rows of dq (over all queries of all sequences), dk and dv (over all keys) go: [heads, headDim],
/// [heads / groups, headDim] and [heads / groups, valueDim]. They are the gradients of biases of the projections to q, k and
/// v. Null ones are not computed.
template <typename T> struct RowSumsOf {
  FloatOr<T> dq = nullptr, dk = nullptr, dv = nullptr;
  explicit operator bool() const { return bool(dq) || bool(dk) || bool(dv); }
};

/// out = softmax(scale * q k^T + bias, masked) v, its probabilities dropped, in tiles: the [sequence, keySequence] scores are
/// never stored. logSumExp [batch, heads, sequence], relative to each query's base (attention_base.h), is saved for
/// the backward pass; null: not saved. A query that sees no key gets zeros.
#define PARTITA_RT_ATTENTION_FORWARD(T)                                                            \
  void attentionForward(HeadsOf<T> out, float *logSumExp, HeadsOf<const T> q, HeadsOf<const T> k,  \
                        HeadsOf<const T> v, const AttentionShape &shape,                           \
                        ScoresOf<const T> bias = {});
PARTITA_RT_ATTENTION_FORWARD(float)
PARTITA_RT_ATTENTION_FORWARD(Half)
PARTITA_RT_ATTENTION_FORWARD(BFloat16)
#undef PARTITA_RT_ATTENTION_FORWARD

/// Overwrites dq, dk and dv (which may lie in one packed tensor, laid out as q, k and v or not),
/// and dbias, laid out as the bias, if it has data. Needs out and logSumExp of the forward pass.
/// workspace: attentionWorkspace floats. It begins with delta [batch, heads, sequence], the sums
/// over d of dout * out; for 16-bit heads, the sums of dq of the heads that share keys follow.
/// `sums` are those of the stored gradients (columnSum's), on a GPU's tensor cores of the gradients before rounding.
#define PARTITA_RT_ATTENTION_BACKWARD(T)                                                           \
  void attentionBackward(HeadsOf<T> dq, HeadsOf<T> dk, HeadsOf<T> dv, float *workspace,            \
                         HeadsOf<const T> dout, HeadsOf<const T> out, const float *logSumExp,      \
                         HeadsOf<const T> q, HeadsOf<const T> k, HeadsOf<const T> v,               \
                         const AttentionShape &shape, ScoresOf<const T> bias = {},                 \
                         Scores dbias = {}, RowSumsOf<T> sums = {});
PARTITA_RT_ATTENTION_BACKWARD(float)
PARTITA_RT_ATTENTION_BACKWARD(Half)
PARTITA_RT_ATTENTION_BACKWARD(BFloat16)
#undef PARTITA_RT_ATTENTION_BACKWARD

/// One step of attention whose keys come in parts (ring attention, Liu et al., arXiv 2310.01889): what
/// attentionForward does, with these keys alone, whatever their order. out and logSumExp are the state from one
/// step to the next: the normalized sums, always float, and the logarithms of their denominators, relative to the
/// base that a query has with all keys of the full sequence; a query that has seen no key yet has 0 and -inf. The
/// first step (not `continues`) overwrites both, the others add their keys: after the last one they are those of
/// attentionForward with all keys, up to rounding. One step with all keys has the very bits of attentionForward (on
/// a GPU, if the same kernels compute both).
///
/// Queries and keys are those of shape.queries and shape.keys: causal, window, firstKeys (global numbers; one per
/// query of the rank), dropout and blocks go by their positions in the full sequences. A bias has a row for each query
/// of the rank, and columns of all keys of the full sequence. Pairs of runs whose scores are all hidden cost
/// nothing.
///
/// zeroHidden concerns queries that have seen no key with a finite score when this step ends: set it in all steps
/// except the last, and there to what the whole attention says.
#define PARTITA_RT_ATTENTION_STEP(T)                                                               \
  void attentionStep(HeadsOf<float> out, float *logSumExp, HeadsOf<const T> q, HeadsOf<const T> k, \
                     HeadsOf<const T> v, const AttentionShape &shape, ScoresOf<const T> bias,      \
                     bool continues);
PARTITA_RT_ATTENTION_STEP(float)
PARTITA_RT_ATTENTION_STEP(Half)
PARTITA_RT_ATTENTION_STEP(BFloat16)
#undef PARTITA_RT_ATTENTION_STEP

/// The gradients of one step, from the final out (rounded to T) and logSumExp of all steps. dq, dk and dv are sums in
/// float, laid out as they like: dq is overwritten or, if the step continues, added to; dk and dv, which travel, are
/// overwritten. dbias, laid out as the bias, is always added to: the caller zeroes it before the first step.
/// workspace: attentionStepWorkspaceOnCpu floats, on a GPU attentionWorkspaceOnCuda. One step with all keys that adds
/// to nothing has, before rounding to T, the bits of attentionBackward.
#define PARTITA_RT_ATTENTION_STEP_BACKWARD(T)                                                      \
  void attentionStepBackward(HeadsOf<float> dq, HeadsOf<float> dk, HeadsOf<float> dv,              \
                             float *workspace, HeadsOf<const T> dout, HeadsOf<const T> out,        \
                             const float *logSumExp, HeadsOf<const T> q, HeadsOf<const T> k,       \
                             HeadsOf<const T> v, const AttentionShape &shape,                      \
                             ScoresOf<const T> bias, Scores dbias, bool continues);
PARTITA_RT_ATTENTION_STEP_BACKWARD(float)
PARTITA_RT_ATTENTION_STEP_BACKWARD(Half)
PARTITA_RT_ATTENTION_STEP_BACKWARD(BFloat16)
#undef PARTITA_RT_ATTENTION_STEP_BACKWARD

/// AttentionShape::firstKeys of packed sequences: starts[row, i] is the first position of the document
/// that position i belongs to. A document is a run of equal ids [rows, width]; an id that comes back
/// after another one is an error. Id: int32_t or int64_t.
template <typename Id>
void documentStarts(int32_t *starts, const Id *ids, int64_t rows, int64_t width);
/// The same of rows of token ids, where a document begins behind each `token`, with which the one
/// before it ends.
template <typename Id>
void documentStartsAfter(int64_t token, int32_t *starts, const Id *ids, int64_t rows,
                         int64_t width);

/// What determines the workspace of attentionBackward without a bias.
constexpr AttentionWork attentionWork(const AttentionShape &shape, DType dtype) {
  return {shape.batch * shape.heads * shape.sequence,
          shape.sequence,
          shape.keySequence,
          shape.headDim,
          shape.groups,
          dtype == DType::Float32,
          /*plain=*/!shape.blocks && shape.headDim == shape.valueDim};
}
/// Floats of attentionBackward's workspace.
constexpr int64_t attentionWorkspace(const AttentionShape &shape, DType dtype) {
  return attentionWorkspaceOnCpu(attentionWork(shape, dtype));
}

} // namespace partita_rt

#endif // PARTITA_RT_ATTENTION_H
