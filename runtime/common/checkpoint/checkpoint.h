// Checkpoints and other tensor files that a run writes. A checkpoint has, with global shapes and
// under the names of the program's tables, all parameters, optimizer states and scalar states; its
// metadata hold the updates done ("step") and the seed of the data order ("seed"), which together
// are the position in the data (data.h), and what the data were ("data"). It is one file where all
// ranks have everything, else every rank writes what it has (shards.h) and an index tells what that
// is (checkpoint_files.h); either is read by any program with these tensors, whatever its mesh.
// Files appear whole or not at all, and with them the folders that they need.

#ifndef PARTITA_RT_COMMON_CHECKPOINT_H
#define PARTITA_RT_COMMON_CHECKPOINT_H

#include "common/temporary_file.h"
#include "common/weights/safetensors.h"
#include "partita_rt/comm.h"

namespace partita_rt {

struct CheckpointInfo {
  int64_t step = 0;
  uint64_t seed = 0;
  std::string data; ///< TokenFile::identity(); "": not known
};

/// The file that makes the folder's checkpoint one when this program writes it.
std::string checkpointPath(const Program &program, const std::string &folder);

/// Of the checkpoint in `folder` (checkpoint_files.h: hasCheckpoint); throws Error when there is
/// none or it is not one.
CheckpointInfo readCheckpointInfo(const std::string &folder);
/// Throws Error when that checkpoint has other parameters than the program.
void checkSameModel(const Program &program, const std::string &folder);

/// This rank's pieces of everything, of the checkpoint after `step` updates. All ranks call it.
/// Throws Error when a tensor is missing or of another shape, or there is another checkpoint
/// meanwhile.
void readCheckpoint(Rank &rank, const std::string &folder, int64_t step);

/// Prints what CheckpointFiles::note() says.
void sayOfCheckpoint(const std::string &note);

/// All ranks call these. Rank 0 keeps other runs out of the checkpoints' folder, and writes the
/// other files.
void writeCheckpoint(Rank &rank, const std::string &folder, const CheckpointInfo &info,
                     FolderClaim &claim);
void writeParameters(Rank &rank, const std::string &path);
/// Outputs of `forward`, and the inputs that it ran on.
void writeOutputs(Rank &rank, const std::string &path);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_CHECKPOINT_H
