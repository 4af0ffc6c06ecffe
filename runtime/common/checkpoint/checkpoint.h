// Checkpoints and other tensor files that a run writes. A checkpoint holds all parameters,
// optimizer states and scalar states, with global shapes, under the names in the program's tables.
// Its metadata hold the number of updates ("step"), the seed of the data order ("seed") and whether
// the order is "shuffled" or the "file"'s ("order"), which together give the position in the data
// (data.h), and identify the data ("data"). If all ranks have everything, it is one file; otherwise
// every rank writes its shards (shards.h) and an index lists them (checkpoint_files.h). Any program
// with these tensors reads either form, whatever its mesh. A file appears complete or not at all,
// and so do the folders that it needs.

#ifndef PARTITA_RT_COMMON_CHECKPOINT_H
#define PARTITA_RT_COMMON_CHECKPOINT_H

#include "common/temporary_file.h"
#include "common/tensors/safetensors.h"
#include "partita_rt/comm.h"

namespace partita_rt {

struct CheckpointInfo {
  int64_t step = 0;
  uint64_t seed = 0;
  bool shuffle = true;
  std::string data; ///< TokenFile::identity(); "": unknown
};

/// Returns the path that completes a checkpoint of this program: the only file, or the index.
std::string checkpointPath(const Program &program, const std::string &folder);

/// Reads the metadata of the checkpoint in `folder` (checkpoint_files.h: findCheckpoint). Throws
/// Error if there is none or the file is not a checkpoint.
CheckpointInfo readCheckpointInfo(const std::string &folder);
/// Throws Error if the folder holds a checkpoint, which a new run would replace.
void checkNoCheckpoint(const Program &program, const std::string &folder);
/// Throws Error unless that checkpoint has exactly the program's parameters.
void checkSameModel(const Program &program, const std::string &folder);

/// Reads this rank's shards of everything from the checkpoint after `step` updates. All ranks call
/// it. Throws Error if a tensor is missing or has another shape or type, or if the checkpoint has
/// been replaced meanwhile.
void readCheckpoint(Rank &rank, const std::string &folder, int64_t step);

/// Prints CheckpointFiles::note(), if there is one, before the lines about the training.
void printCheckpointNote(const std::string &note);

/// Writes a checkpoint. All ranks call it. Rank 0 locks the checkpoints' folder against other runs
/// (`claim`), and writes the files that are not sharded.
void writeCheckpoint(Rank &rank, const std::string &folder, const CheckpointInfo &info,
                     FolderClaim &claim);
void writeParameters(Rank &rank, const std::string &path);
/// Writes the outputs of `forward`, and the inputs that it ran on.
void writeOutputs(Rank &rank, const std::string &path);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_CHECKPOINT_H
