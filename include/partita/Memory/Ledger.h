//===- Ledger.h - what a rank's memory is used for, op by op ------------------------*- C++ -*-===//
//
// `plan-memory` records every buffer of the arena on the module. The ledger is read from there, or
// from the manifest of a compiled program, and adds up: by kind, by layer, at the peak and at every
// other op. Text, JSON and picture are made from it, so they agree.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_MEMORY_LEDGER_H
#define PARTITA_MEMORY_LEDGER_H

#include "dialects/Rt/Rt.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <array>
#include <optional>

namespace partita::memory {

/// What memory is used for: a case there, a row in `kinds()` here. A buffer is an activation unless
/// the pass that makes or plans it says otherwise; the result of a sequence-parallel gather is an
/// activation of its layer, since the next matmul reads it like any other. Communication is for
/// buffers that exist only for collectives: copies that are summed in place.
using Kind = rt::MemoryKind;
constexpr size_t kKinds = rt::getMaxEnumValForMemoryKind() + 1;

struct KindRow {
  llvm::StringLiteral title; ///< for the kind as a whole
  llvm::StringLiteral color; ///< in the picture
  bool persistent;           ///< lives as long as the program
};
/// In the order of Kind, which is that of the picture's stack, from below.
llvm::ArrayRef<KindRow> kinds();
inline const KindRow &rowOf(Kind kind) { return kinds()[static_cast<size_t>(kind)]; }

/// Every offset in the arena (and in pinned memory) is a multiple of this, for vector loads. All
/// sums include this padding.
constexpr int64_t kAlignment = 64;
inline int64_t align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// The same for persistent memory, where a thousandth of a small tensor is a few bytes: as much as
/// copies and vectors of four need. Tensors that fill full lines come first and stay aligned.
constexpr int64_t kPersistentAlignment = 16;
inline int64_t alignPersistent(int64_t bytes) {
  return (bytes + kPersistentAlignment - 1) / kPersistentAlignment * kPersistentAlignment;
}

/// Bytes by kind.
using Sums = std::array<int64_t, kKinds>;
int64_t total(const Sums &sums);

struct Buffer {
  std::string name;
  Kind kind = Kind::Activation;
  int64_t bytes = 0, offset = 0;
  int64_t begin = 0, end = 0; ///< numbers of ops, both included
  int64_t place = 0;          ///< of the op that it was made for: analysis::Place
  bool backward = false;

  bool livesAt(int64_t op) const { return begin <= op && op <= end; }
};

/// Which memory is reported: persistent memory and arena of the device, or persistent and pinned
/// memory of the host.
enum class Side { Device, Host };

/// One function's use of the arena, or of pinned memory.
struct Ledger {
  struct Moment {
    int64_t op = 0;
    std::string node, name; ///< of the model; of the op
    int64_t place = 0;
    bool backward = false;
  };
  std::string function;
  int64_t arena = 0, peak = 0, ops = 0;
  Moment at;                   ///< of the peak
  Sums persistent{};           ///< outside the arena
  std::vector<Buffer> buffers; ///< of the arena

  /// Returns the live bytes at each op.
  std::vector<Sums> live() const;

  struct KindUse {
    Kind kind;
    int64_t atPeak = 0, largest = 0, largestAt = 0;
  };
  /// Returns the kinds of which the arena has buffers.
  std::vector<KindUse> byKind() const;
  struct PlaceUse {
    int64_t place = 0, forward = 0, backward = 0, largest = 0; ///< at the peak; ever
  };
  /// Returns activations by layer, in the order of the model.
  std::vector<PlaceUse> byPlace() const;
  /// Returns the largest buffers that live at the peak.
  std::vector<const Buffer *> holders(size_t most) const;

  /// The function whose buffers are reported one by one: train_step, or forward if there is none.
  static std::optional<Ledger> of(mlir::ModuleOp module, llvm::StringRef function = "",
                                  Side side = Side::Device);
  /// Reads what `describe` wrote, or its entry "host"; none if that is not a ledger.
  static std::optional<Ledger> fromJson(const llvm::json::Object &memory);
  /// Omits the buffers.
  llvm::json::Object toJson() const;
};

/// The device memory of a rank, for as long as the program lives, is the sum of these entries of
/// `describe`: announced by compile and run, and compared with limits. On GPUs CUDA's context and
/// NCCL's buffers come on top (runtime/cuda/README.md).
struct Part {
  llvm::StringLiteral key, title;
  bool always; ///< reported even if the entry is missing
};
llvm::ArrayRef<Part> deviceParts();
/// Returns the total of these entries.
int64_t deviceBytes(const llvm::json::Object &memory);
/// Returns only these entries, for a module after phase `memory`. The scratch memory of GPU kernels
/// is known once they are chosen, in phase `lower`.
llvm::json::Object deviceSizes(mlir::ModuleOp module);

/// Describes a module's memory after phase `memory`: the manifest's entry "memory"
/// (tools/partita/Program.h). If anything is offloaded, its entry "host" describes host memory,
/// with pinned memory as "arena".
llvm::json::Object describe(mlir::ModuleOp module);

/// Returns the pipeline stage whose ranks need the most memory.
mlir::ModuleOp fullestOf(llvm::ArrayRef<mlir::ModuleOp> stages);

} // namespace partita::memory

#endif // PARTITA_MEMORY_LEDGER_H
