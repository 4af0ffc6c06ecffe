// Checkpoints and other tensor files that a run writes. A checkpoint holds all parameters,
// optimizer states and scalar states, with global shapes, under the names in the program's tables.
// Its metadata name the program ("program"), its optimizer ("optimizer") and the samples of a step
// ("samples_per_step"), by which a run refuses another's checkpoint. They hold the number of updates
// ("step"), the seed of the data order ("seed") and whether the order is "shuffled" or the "file"'s
// ("order"), which together give the position in the data (data.h), identify the data ("data"), and
// name the scalar states ("scalar_states") and, if there are any, the number of steps that were
// skipped ("skipped_steps"). Any program of these parameters
// and this optimizer reads it, whatever its mesh and precision (sources.h). How it lies on disk:
// checkpoint_files.h; who writes it: shards.h; when: saver.h.

#ifndef PARTITA_RT_COMMON_CHECKPOINT_CHECKPOINT_H
#define PARTITA_RT_COMMON_CHECKPOINT_CHECKPOINT_H

#include "common/tensors/safetensors.h"
#include "partita_rt/comm.h"

#include <map>
#include <string>
#include <vector>

namespace partita_rt {

struct CheckpointInfo {
  int64_t step = 0;
  uint64_t seed = 0;
  bool shuffle = true;
  std::string data;      ///< TokenFile::identity(); "": unknown
  int64_t skipped = 0;   ///< steps so far without an update, if any program has counted them
  uint64_t identity = 0; ///< a hash of what its metadata say; 0: unknown
};

/// Reads the metadata of the checkpoint in the folder of one, such as DIR/step-12. Throws Error if
/// there is none, the file is not a checkpoint, or it is of another step than the folder's name says.
CheckpointInfo readCheckpointInfo(const std::string &folder);
/// Returns the metadata that a checkpoint of this program has.
std::map<std::string, std::string> metadataOf(const Program &program, const CheckpointInfo &info);
/// Throws Error if a run's folder holds a checkpoint, which a new run would replace.
void checkNoCheckpoint(const Program &program, const std::string &folder);
/// Throws Error unless that checkpoint has exactly the program's parameters.
void checkSameModel(const Program &program, const std::string &folder);

/// A checkpoint from which a run can go on.
struct ResumePoint {
  std::string folder;
  CheckpointInfo info;
};

/// Reads this rank's shards of everything from the first of these checkpoints that is not damaged,
/// and returns it. All ranks call it, and skip a checkpoint of which any rank finds its part damaged.
/// Rank 0 prints what it converts. Throws Error if all are damaged, if a tensor is missing or has
/// another shape or a type that is not converted, if a value does not fit the program's type, if
/// ranks see different checkpoints, or if one has been replaced meanwhile.
const ResumePoint &resumeFrom(Rank &rank, const std::vector<ResumePoint> &points);

/// "every checkpoint in DIR is damaged, the newest: ...".
std::string allDamagedText(const std::string &folder, const std::string &damage);
/// "DIR/step-12 cannot be used, taking the checkpoint before it: ...".
std::string skippedText(const std::string &folder, const std::string &damage);

/// Prints CheckpointFiles::note(), if there is one, before the lines about the training.
void printCheckpointNote(const std::string &note);

/// Writes all parameters, full and in the types they are trained in, into one safetensors file, which appears complete or
/// not at all. All ranks call it together: rank 0 gathers the shards tensor by tensor, and writes. Throws Error on rank 0 if the
/// file cannot be written.
void writeParameters(Rank &rank, const std::string &path);
/// Writes the outputs of `forward`, and the inputs that it ran on.
void writeOutputs(Rank &rank, const std::string &path);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_CHECKPOINT_CHECKPOINT_H
