// The weights of a model as a library saves them: one safetensors file, or an index of several,
//
//     {"metadata": {"total_size": 26953670656},
//      "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors", ...}}
//
// whose files lie beside it (Hugging Face's `model.safetensors.index.json`); or a checkpoint, its
// folder or its index.

#ifndef PARTITA_RT_COMMON_WEIGHTS_FILE_H
#define PARTITA_RT_COMMON_WEIGHTS_FILE_H

#include "common/checkpoint/checkpoint_files.h"

namespace partita_rt {

class WeightsFile {
public:
  /// A checkpoint when it is a folder, an index when the name ends in ".json". Throws Error: a file
  /// that is missing or broken, a tensor that the index names and its file lacks, a file outside
  /// the index's folder.
  explicit WeightsFile(const std::string &path);
  const std::string &path() const { return name; }
  const std::map<std::string, StoredTensor> &tensors() const { return table; }
  /// null when there is no such tensor.
  const StoredTensor *find(const std::string &tensor) const;
  /// Bytes of the whole tensor, of which these runs, which ascend, are there and as they were
  /// written: in its file, or put together from pieces, in `storage`.
  const unsigned char *bytesOf(const std::string &tensor, const std::vector<Run> &runs,
                               std::vector<unsigned char> &storage) const;
  /// Is it of a program's parameters, a checkpoint or what --dump-parameters writes? Else it is of a
  /// model's, which an exporter may have folded since.
  bool isOfProgram() const { return ofProgram; }
  /// What the user should know of a checkpoint; "" when there is nothing.
  const std::string &note() const { return said; }

private:
  void readIndex(const std::string &path);
  void readCheckpoint(const std::string &path);
  std::string name, said;
  bool ofProgram = false;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files; ///< by name, opened once
  std::unique_ptr<CheckpointFiles> checkpoint; ///< of pieces: `data` of its tensors are null
  std::map<std::string, StoredTensor> table;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_WEIGHTS_FILE_H
