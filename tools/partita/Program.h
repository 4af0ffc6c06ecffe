//===- Program.h - a compiled program's folder --------------------------------------*- C++ -*-===//

// manifest.json, written by the emit phase; all sizes in bytes, of one rank:
//
//     "program":     name of the executable beside it
//     "model":       the ONNX file that was compiled, as an absolute path
//     "target":      "cpu" or "cuda" (dialects/Rt/Target.h)
//     "plan":        object, plan option -> value as text
//     "mesh":        [{"axis": "dp", "size": 2}], outermost first; "ranks": their product
//     "accumulate":  micro-batches per step
//     "parameters":  [{"name", "shape": full, "local": one rank's, "placement": text, "bytes"}]
//     "communicators": [{"name", "axes": [over which its groups extend], "ranks": of a group, "stages":
//                      where only some of a pipeline take part, "streams": of collectives that begin here}]
//     "channels":    of a pipeline: [{"name", "axis", "from", "to", "number"}]
//     "collectives": [{"function": "train_step", "kind": "all_reduce", "communicator", "axis": its
//                      axes, "ranks": of a group, "calls": per step, "bytes": per step,
//                      "tensors": [names], "name"}]
//     "explained":   the same one by one, with their reasons: see
//     partita/Analysis/Collectives.h, Collective::toJson
//     "work":        [{"place": layer, -1 in front of them, -2 after, -3 beside the micro-batches,
//                      "matmuls", "elementwise": FLOPs of a step's forward pass, "backward":
//                      products of its backward pass, "parameters"}]
//     "stages":      of a pipeline, one by one: [{"stage", "chunks": [{"first_layer", "layers"}],
//                     "messages": [{"function", "from", "to", "number", "direction", "messages",
//                     "bytes", "name"}], "transfers", "memory",
//                     "schedule": {"runs": [{"times", "slots": ["F1", "B0"], the first time}, or
//                     {"times", "step": micro-batches, "runs": the same, the first time}],
//                     "costs": {"forward": [per chunk], "backward", "weights"}, "wave": does every
//                     other row of chunks run backward?}}]; parameters and collectives then name
//                     their stages; "memory" below is that of "memory_stage", the fullest
//     "limited":     if the memory limit decided the cuts: {"limit", "cuts": those that balance work,
//                     "stage", "bytes": what it would need, "tried": number of others compiled}
//     "memory":      {"persistent", "arena", "inputs", on GPUs "scratch" and "matmul_workspace":
//                     a rank's total; "parameters", "optimizer_states", "kinds",
//                     "functions", "ledger_of", "ledger"}; sums round each buffer up to
//                     64 bytes; "forward_arena" if a run with --forward has a larger arena
//       "kinds":     persistent memory: [{"kind", "title", "buffers", "bytes",
//                     "parts": [{"name", "buffers", "bytes"}]}]; kind: parameter, state
//       "functions": name -> {"arena", "peak": the max alive at once,
//                     "fragmentation": the difference, "ops": their number,
//                     "at": the peak's {"op", "node", "name", "place", "place_number",
//                     "direction"}, "kinds": [{"kind", "title", "at_peak", "largest",
//                     "largest_at"}], "activations": [{"place", "place_number", "forward",
//                     "backward": at the peak, "largest"}], "holders": the ten largest buffers
//                     alive there, as in "ledger"}
//       "ledger":    persistent memory, [{"name", "kind", "bytes", "offset"}], and the arena of the
//                     function "ledger_of", [{..., "function", "begin", "end", "place",
//                     "place_number", "direction"}]; kind: gathered, secondary, gradient, activation,
//                     communication, workspace; begin and end are the numbers of the first and last op during
//                     which the bytes are in use

#ifndef PARTITA_TOOLS_PROGRAM_H
#define PARTITA_TOOLS_PROGRAM_H

#include "dialects/Rt/Target.h"
#include "tools/partita/Options.h"
#include "llvm/Support/JSON.h"

namespace partita::tool {

/// Returns the path of a file in a folder.
std::string inFolder(llvm::StringRef folder, llvm::StringRef name);

/// Reads the manifest in a compiled program's folder. Returns null, with `problem` set, if the
/// folder does not contain a compiled program or the manifest lacks one of `keys`.
std::optional<llvm::json::Object> readManifest(llvm::StringRef folder, std::string &problem,
                                               llvm::ArrayRef<llvm::StringRef> keys = {"program"});

/// A key's number, or 0.
int64_t numberIn(const llvm::json::Object &object, llvm::StringRef key);
/// The objects of an array, without entries of any other kind; none of a null array.
std::vector<const llvm::json::Object *> objectsIn(const llvm::json::Array *array);

/// Returns the target that the manifest names; the default one if it names no known target.
const rt::Target &targetOf(const llvm::json::Object &manifest);

/// "gpt2: 2 ranks (dp = 2), 1 micro-batch per step, target cpu".
std::string describeProgram(const llvm::json::Object &manifest);

/// Returns "3,000,000 persistent, 1,234,567 arena" for the manifest's entry "memory".
std::string partsText(const llvm::json::Object &memory, llvm::StringRef separator);
/// "4,234,567 bytes per rank: 3,000,000 persistent, 1,234,567 arena".
std::string describeMemory(const llvm::json::Object &manifest);

/// Checks that `output`, which `option` names, is not a file of the program in `folder` or of the
/// model that it was compiled from. Returns the problem, or "".
std::string checkNotProgram(llvm::StringRef output, llvm::StringRef folder,
                            const llvm::json::Object &manifest, llvm::StringRef option);

/// Formats 1234567 as "1,234,567".
std::string grouped(int64_t value);

/// Returns the executable in a compiled program's folder; "", with `problem` set, if there is none.
std::string findProgram(llvm::StringRef folder, std::string &problem);

} // namespace partita::tool

#endif // PARTITA_TOOLS_PROGRAM_H
