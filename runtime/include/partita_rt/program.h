// The description of an emitted program: constant tables, and the Rank that its functions receive.
//
// An emitted program is one C++ file:
//
//     #include <partita_rt/partita_rt.h>
//     using namespace partita_rt;
//
//     static const Axis kMesh[] = {{"dp", 2}};
//     static const Group kGroups[] = {{"dp", {kDp}}};
//     static const Parameter kParameters[] = {...};
//     static void train_step(Rank &rank) { ... }
//
//     static Stage stage() {
//       Stage s;
//       s.arenaBytes = 4096;  s.census = kCensus;  s.trainStep = train_step;
//       ...
//       return s;
//     }
//     static const Stage kStages[] = {stage()};
//
//     static Program program() {
//       Program p;
//       p.name = "gpt2";  p.mesh = kMesh;  p.groups = kGroups;  p.parameters = kParameters;
//       p.stages = kStages;
//       ...
//       return p;
//     }
//     int main(int argc, char **argv) { return programMain(argc, argv, program()); }
//
// All sizes are in bytes unless the name says elements. Every offset is a multiple of 64 (vector
// loads), that of a parameter or state a multiple of 16. Strings are UTF-8, already escaped by the
// emitter. programMain checks the tables before anything runs (checkProgram): offsets are inside
// their arena, local shapes divide the global ones, axes exist. An error is one message and exit
// code 1.

#ifndef PARTITA_RT_PROGRAM_H
#define PARTITA_RT_PROGRAM_H

#include "partita_rt/collectives.h"
#include "partita_rt/exact_steps.h"
#include "partita_rt/half.h"
#include "partita_rt/mesh.h"
#include "partita_rt/tensors.h"
#include "partita_rt/types.h"
#include <vector>

namespace partita_rt {

class ChannelEnd;
class ChangeGuard;
class Communicator;
class GradientSink;
class InitialFiles;
class TransferEngine;
class WorkClock;
struct Rank;
namespace cuda {
struct Device;
}

/// What an input means to the data loader (common/data/samples.h).
enum class InputRole : uint8_t {
  TokenIds,    ///< tokens: of a window, or a column
  Labels,      ///< the tokens after those of TokenIds, or a column
  Targets,     ///< a column of labels or numbers to predict
  PositionIds, ///< 0, 1, ... along the last dimension (global positions when it is split)
  Ones,        ///< all one (attention masks of exports)
  Zeros,       ///< all zero (token types)
  Shifted,     ///< the targets shifted by one; `filler` comes first, and replaces ignored targets
  Data         ///< a column
};

/// An input of train_step, eval_step and forward. The runtime owns its memory and fills it before
/// each call: `accumulate` micro-batches of localShape, one after the other, for train_step; one
/// for eval_step and forward.
struct Input {
  const char *name; ///< and of its column in a data file
  InputRole role;
  DType dtype;         ///< Int64, Int32, Float32 or Bool
  Shape globalShape;   ///< per micro-batch, over all ranks
  Shape localShape;    ///< per micro-batch and rank
  Splits splits;       ///< of the global shape into the local one
  int64_t vocabulary;  ///< ids are 0 .. vocabulary-1, or `filler`; 0: unlimited
  int64_t filler = 0;  ///< the ignored label; the first of Shifted
  bool batched = true; ///< one row per sample; else the same values for all
};

/// A file with initial values, as it was when the program was compiled. In any other file the
/// offsets would point to different data.
struct ModelFile {
  const char *path; ///< relative to Program::modelFolder
  int64_t bytes;
  uint64_t fingerprint; ///< fingerprint.h
};

/// The home of a parameter or state: device memory, where it is computed on, or host memory.
enum class Home : uint8_t { Device, Host };

/// How an exporter's constant folding produced a tensor, which determines whether a file of the
/// model's weights contains it. `Moved`: it has the tensor or its transpose. `Computed` (such as
/// weight_norm's product): it does not, whatever its names and shapes.
enum class Folded : uint8_t { No, Moved, Computed };

/// A trainable (or frozen) tensor at `offset` of its home's persistent memory, on every stage that
/// holds it.
struct Parameter {
  const char *name;
  Shape globalShape;
  Shape localShape;
  Splits splits;
  int64_t offset;
  bool trainable = true;
  bool weightDecay = true; ///< false: the emitted update uses decay 0 (biases, norms)
  Home home = Home::Device;
  DType dtype = DType::Float32; ///< or Float16, BFloat16
  StageSet stages = {};
  Folded folded = Folded::No;
};

/// A persistent tensor of optimizer state, on the stages of its parameter. Its full shape is the
/// parameter's, but for `rows`; a rank may hold a smaller shard.
struct OptimizerState {
  const char *name; ///< "<parameter>.m"
  int parameter;    ///< index into Program::parameters
  Shape localShape; ///< without dimensions: a number that all ranks that hold the parameter have
  Splits splits;
  int64_t offset;
  Home home = Home::Device;
  DType dtype = DType::Float32; ///< or Float16, BFloat16
  /// Not 0: each of so many ranks has a row, its term of a sum, and the full shape has a first dimension of rows. Another
  /// number of ranks takes equal shares of the sum from a checkpoint.
  int64_t rows = 0;
};

/// A persistent scalar (loss scale, ...), or a small tensor, that is equal on all ranks and saved in
/// checkpoints. The number of steps done is not one of these: it is Rank::step.
struct ScalarState {
  const char *name;
  DType dtype; ///< Float32, Float64, Int32 or Int64
  int64_t offset;
  bool countsSkipped = false; ///< an Int64: steps so far that made no update
  Shape shape = {};
  double initial = 0; ///< of all elements, as init sets them
};

/// A tensor that `forward` leaves in the arena, for `--forward FILE.safetensors` to write.
struct Output {
  const char *name;
  DType dtype;
  Shape globalShape;
  Shape localShape;
  Splits splits;
  int64_t offset; ///< in the arena, valid when `forward` returns
  StageSet stages = {};
};

/// Returns "unknown" for a kind that a rank of another program sends.
const char *nameOf(CollectiveKind kind);

/// A row of the compiler's census: collectives that one rank issues during one train_step. The
/// runtime counts those actually issued, and programMain fails if the two differ.
struct CensusEntry {
  CollectiveKind kind;
  const char *group; ///< its name
  int64_t calls;     ///< per train_step
  int64_t bytes;     ///< per train_step, as counted by collectives.h
  const char *why;   ///< the name of the node that requires it
  Steps steps = {};  ///< that issue it
};

/// Messages that one rank of a stage sends or receives, depending on its end, over a channel during
/// one train_step; checked like the census. Rows of one channel are added up.
struct MessageEntry {
  int channel; ///< row of Program::channels
  int64_t messages, bytes;
  const char *why;
};

/// Bytes that one rank copies between device and host memory during one train_step; as with the
/// census, programMain fails if the runtime counts a different number.
struct TransferBytes {
  int64_t toHost = 0, toDevice = 0;
};

/// Hyperparameters that emitted code reads from Rank::hyper, never as literals, so that the command
/// line (--lr, --weight-decay, --beta1, --beta2, --epsilon, --momentum, --clip) can change them.
struct Hyper {
  double learningRate = 1e-3; ///< base rate; Rank::learningRate is the scheduled one
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weightDecay = 0;
  double momentum = 0;
  double gradientClip = 0; ///< max global norm of the gradients; 0 = no clipping
};

/// The hyperparameters that the emitted updates read. An option for any other is refused rather
/// than ignored.
struct HyperReads {
  bool beta1 = false;
  bool beta2 = false;
  bool epsilon = false;
  bool weightDecay = false;
  bool momentum = false;
  bool gradientClip = false;
};

/// A default for an option of a training run's command line.
struct RunDefault {
  const char *option; ///< "--print-every"
  const char *value;  ///< "" for a flag
};

/// Rows of zeros behind a parameter, which the program reads with it and never writes.
struct ZerosEntry {
  int64_t offset, bytes; ///< in persistent memory
};

/// The code and memory of the ranks of one pipeline stage; a program without pipeline parallelism
/// has one stage. Ranks of different stages may differ in all of this, but every stage has the same
/// entry points. A null function means that the program lacks that entry point; options that need
/// it are refused.
struct Stage {
  int64_t persistentBytes = 0; ///< parameters and states of one rank
  int64_t hostBytes = 0;       ///< those in host memory
  int64_t pinnedBytes = 0;     ///< host memory for values in transit; like arenaBytes
  int64_t scratchBytes = 0;    ///< scratch of a CUDA program's kernels (cuda/shapes.h)
  int64_t arenaBytes = 0;      ///< max over the entry points; contents undefined at entry
  /// arenaBytes of `forward`, if it differs: allocated only for a run with --forward.
  int64_t forwardArenaBytes = 0;
  Table<CensusEntry> census;
  Table<MessageEntry> messages;
  TransferBytes transfers;
  Table<ZerosEntry> zeros; ///< a CUDA program's

  void (*init)(Rank &) = nullptr; ///< initializes parameters and states
  void (*trainStep)(Rank &) = nullptr;
  void (*evalStep)(Rank &) = nullptr;
  void (*forward)(Rank &) = nullptr;
};

/// The default: one stage, without functions.
inline const Stage kEmptyStages[1] = {};

/// The constant description of a program: the model, and the stages that compute it.
struct Program {
  const char *name = "program";
  const char *compiler = "an unknown compiler"; ///< name and version
  const char *optimizer = "adamw";              ///< as printed; the update itself is emitted code
  /// The folder of the files that `init` names: absolute, or relative to the program's folder.
  const char *modelFolder = "";
  const char *model = "";  ///< the file it was compiled from, which no output may replace
  Table<Axis> mesh;        ///< empty: one rank
  Table<Group> groups;     ///< one for each purpose that ranks communicate for; at most kMaxGroups
  Table<Channel> channels; ///< at most kMaxChannels
  Table<Input> inputs;
  Table<ModelFile> modelFiles; ///< if empty, nothing is checked
  Table<Parameter> parameters;
  Table<OptimizerState> optimizerStates;
  Table<ScalarState> scalarStates;
  Table<Output> outputs;
  Table<RunDefault> defaults;
  /// In the order of coordinates along mesh axis number stageAxis; one stage if that is -1.
  Table<Stage> stages = kEmptyStages;
  int stageAxis = -1;

  int64_t accumulate = 1; ///< micro-batches per train_step

  /// The token that ends a document: rows are packed of whole documents (packed_rows.h), and what
  /// follows this token is no label. -1: rows are pieces of one stream.
  int64_t documentEnd = -1;

  /// FLOPs of a step's forward and backward passes, over all ranks and micro-batches: the
  /// compiler's count of matmuls and attention of the forward program, times 3, minus those for
  /// gradients that no trained parameter needs. 0: unknown.
  double modelFlops = 0;

  Hyper hyper;
  /// The learning rate's, unless a run sets another (lr_schedule_text.h).
  const char *lrSchedule = "constant";
  HyperReads reads;
  /// True if train_step calls exposeGradient for every trainable parameter; otherwise --grads is
  /// refused.
  bool exposesGradients = false;
  /// True if all functions but init call beginChanges before they change a parameter or state;
  /// otherwise no step begins while these are being copied for a checkpoint.
  bool announcesChanges = false;
  /// The compute capability that GPUs must have, times 10; 0 if any will do.
  int leastCapability = 0;

  /// Returns true if the program has the entry point, as in has(&Stage::trainStep). checkProgram
  /// checks that all stages have the same ones.
  bool has(void (*Stage::*entry)(Rank &)) const { return stages[0].*entry; }
};

/// The results of train_step and eval_step, equal on all ranks (the loss is already reduced).
struct StepReport {
  float loss = 0;          ///< mean over the unmasked tokens of the global batch
  float gradientNorm = -1; ///< global norm before clipping; -1 if it is not computed
  /// Unmasked tokens of the global batch (all micro-batches and ranks); -1 if the loss does not
  /// count them.
  int64_t tokenCount = -1;
  float lossScale = 0; ///< of this step's backward pass; 0 if the loss is not scaled
  /// Steps of the run so far that changed only the loss scale; they do not advance the schedule.
  int64_t skippedSteps = 0;
  /// The number of the first parameter whose gradient has an inf or a NaN; -1 if all are finite or
  /// unchecked.
  int firstNonfinite = -1;
  /// An overflow occurred at the smallest loss scale, so the run must end.
  bool scaleExhausted = false;
};

/// A rank's current slot in its pipeline stage's schedule (channel.h's beginSlot).
struct Slot {
  int64_t number = -1;     ///< in the stage's schedule; -1: between slots
  int64_t microBatch = -1; ///< -1: none
  const char *what = "";   ///< "forward of h.2"; a literal
  static constexpr int32_t kBeforeLayers = -1, kAfterLayers = -2, kNoLayer = -3;
  int32_t layer = kNoLayer; ///< of the model, or one of these; see beginLayer
};

/// A rank: everything that emitted code may touch. Ranks may be threads of one process, so emitted
/// code keeps no other state.
struct Rank {
  const Program *program = nullptr;
  int rank = 0;
  int ranks = 1;
  int coordinates[kMaxAxes] = {}; ///< position along each mesh axis
  const Stage *stage = nullptr;   ///< what this rank runs
  int stageNumber = 0;            ///< of Program::stages

  char *persistentBase = nullptr;    ///< stage->persistentBytes
  char *arenaBase = nullptr;         ///< stage->arenaBytes
  std::vector<char *> inFlightBases; ///< the current micro-batch's block of each ring (beginPass)
  char *hostBase = nullptr;          ///< stage->hostBytes
  char *pinnedBase = nullptr;        ///< stage->pinnedBytes
  void *const *inputs = nullptr;     ///< one per input of the program
  void *const *hostInputs = nullptr; ///< the runtime's own: where the host writes the inputs
  Communicator *groups[kMaxGroups] = {}; ///< by row; null if the rank is in no group
  Communicator *world = nullptr;         ///< all ranks
  /// By row of the program's channels; null if the rank is at neither end.
  ChannelEnd *const *channels = nullptr;

  Hyper hyper;
  float learningRate = 0; ///< for this step, by the schedule
  int64_t step = 0;       ///< number of the step, from 1
  int64_t update = 0;     ///< number of the current update, from 1 (AdamW's t): skipped
                          ///< steps do not count
  uint64_t seed = 1;      ///< for the data order and dropout
  StepReport report;      ///< written by train_step and eval_step
  GradientSink *gradientSink = nullptr;       ///< the runtime's own
  ChangeGuard *changes = nullptr;             ///< the runtime's own, until beginChanges (changes.h)
  InitialFiles *initialFiles = nullptr;       ///< the runtime's own, during init
  TransferEngine *transfers = nullptr;        ///< the runtime's own
  cuda::Device *device = nullptr;             ///< the GPU, in a CUDA program (cuda/device.h)
  WorkClock *clock = nullptr;                 ///< the runtime's own, with --breakdown (work.h)
  Slot slot;                                  ///< the current one, for reports (beginSlot)
  class RankWaits *waits = nullptr;           ///< the runtime's own
  struct RankPosition *position = nullptr;    ///< the runtime's own: what others see of the rank
  struct FlightRing *flight = nullptr;        ///< the runtime's own: what it did last
  const int *nodes = nullptr;                 ///< the runtime's own: by rank, its node's lowest
  const struct RunOptions *options = nullptr; ///< the runtime's own

  /// Persistent memory (parameters, optimizer states) at a byte offset.
  template <typename T = float> T *persistent(int64_t offset) const {
    return reinterpret_cast<T *>(persistentBase + offset);
  }
  /// Persistent host memory at a byte offset.
  template <typename T = float> T *host(int64_t offset) const {
    return reinterpret_cast<T *>(hostBase + offset);
  }
  /// Pinned host memory at a byte offset.
  template <typename T = float> T *pinned(int64_t offset) const {
    return reinterpret_cast<T *>(pinnedBase + offset);
  }
  /// Returns the memory of a parameter or state that this rank's stage holds.
  template <typename Tensor> void *dataOf(const Tensor &tensor) const {
    return tensor.home == Home::Host ? host(tensor.offset) : persistent(tensor.offset);
  }
  /// Arena memory (activations, gradients) at a byte offset.
  template <typename T = float> T *at(int64_t offset) const {
    return reinterpret_cast<T *>(arenaBase + offset);
  }
  /// The same; no memory at an offset below 0.
  template <typename T = float> T *atOrNull(int64_t offset) const {
    return offset < 0 ? nullptr : at<T>(offset);
  }
  /// Returns a value that the current micro-batch saves for later passes, at a byte offset in its
  /// block of a ring.
  template <typename T = float> T *inFlight(int64_t offset, int ring = 0) const {
    return reinterpret_cast<T *>(inFlightBases[ring] + offset);
  }
  /// Returns micro-batch `micro` of input number `index`.
  template <typename T = int64_t> const T *input(int index, int64_t micro = 0) const {
    return static_cast<const T *>(inputs[index]) +
           micro * program->inputs[index].localShape.elements();
  }
  /// Returns the rank's group of a row of the program's groups.
  Communicator &group(int row) const { return *groups[row]; }
  /// Calls `body(communicator)` for all groups that the rank is in.
  template <typename Body> void forGroups(Body body) const {
    for (Communicator *group : groups)
      if (group)
        body(*group);
  }
  /// Calls `body(end)` for all channel ends of the rank.
  template <typename Body> void forChannels(Body body) const {
    for (int64_t row = 0; channels && row < program->channels.size(); ++row)
      if (channels[row])
        body(*channels[row]);
  }
};

/// Passes a gradient to --grads; does nothing without that option. Emitted code calls it for each
/// trainable parameter once its gradient is complete (reduced over all ranks and micro-batches, not
/// clipped), before the memory may be reused. `gradient` has the parameter's local shape, or is a
/// flat shard of it over these mesh axes.
void exposeGradient(Rank &rank, int parameter, const float *gradient,
                    std::initializer_list<int> flatOver = {});
void exposeGradient(Rank &rank, int parameter, const Half *gradient,
                    std::initializer_list<int> flatOver = {});
void exposeGradient(Rank &rank, int parameter, const BFloat16 *gradient,
                    std::initializer_list<int> flatOver = {});

/// Does the same for the tensors of a table's column, which are gradients of the rows' parameters.
template <int kColumns, typename T>
void exposeGradients(Rank &rank, const TensorRows<kColumns> &rows, int column, const T *base,
                     std::initializer_list<int> flatOver = {}) {
  for (const TensorRow<kColumns> &row : rows)
    exposeGradient(rank, row.parameter, moved(base, row.offsets[column]), flatOver);
}

/// Implements main() of an emitted program: options, ranks, data, training loop, checkpoints,
/// summary. Returns the exit code: 0 only if everything requested was done.
int programMain(int argc, char **argv, const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_PROGRAM_H
