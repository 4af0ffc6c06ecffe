// A model's weights as a library saves them, in one safetensors file or an index of several,
//
//     {"metadata": {"total_size": 26953670656},
//      "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors", ...}}
//
// whose files lie beside it (Hugging Face's `model.safetensors.index.json`); or a checkpoint, given
// by its folder or its index.

#ifndef PARTITA_RT_COMMON_INIT_WEIGHTS_FILE_H
#define PARTITA_RT_COMMON_INIT_WEIGHTS_FILE_H

#include "common/checkpoint/checkpoint_files.h"

#include <set>

namespace partita_rt {

class WeightsFile {
public:
  /// Opens a checkpoint if the path is a folder, an index if it ends in ".json". Throws Error on a
  /// missing or broken file, a tensor that the index lists and its file lacks, or a file outside
  /// the index's folder.
  explicit WeightsFile(const std::string &path);
  const std::string &path() const { return name; }
  const std::map<std::string, StoredTensor> &tensors() const { return table; }
  /// Returns null if there is no such tensor.
  const StoredTensor *find(const std::string &tensor) const;
  /// Returns the tensor's bytes, valid and checked for these runs, which ascend: in its file, or
  /// assembled from shards in `storage`.
  const unsigned char *bytesOf(const std::string &tensor, const std::vector<Run> &runs,
                               std::vector<unsigned char> &storage) const;
  /// Does it hold a program's parameters (a checkpoint, or what --dump-parameters writes)?
  /// Otherwise it holds the model's, from which an exporter may have computed the program's.
  bool isOfProgram() const { return ofProgram; }
  /// Is it, by its name, what a checkpoint has beside parameters?
  bool isState(const std::string &tensor) const { return states.count(tensor) > 0; }
  /// Returns a note for the user about a checkpoint's format; "" if there is none.
  const std::string &note() const { return said; }

private:
  void readIndex(const std::string &path);
  void readCheckpoint(const std::string &path);
  void findStates(const std::map<std::string, std::string> &metadata);
  std::string name, said;
  bool ofProgram = false;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files; ///< by name, opened once
  std::unique_ptr<CheckpointFiles> checkpoint; ///< of shards: `data` of its tensors is null
  std::map<std::string, StoredTensor> table;
  std::set<std::string> states; ///< of a checkpoint
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_INIT_WEIGHTS_FILE_H
