// Names of tensors in a safetensors file. The key "__metadata__" of a header is not a tensor, so a
// tensor of that name is written as "__metadata__.tensor", one of that name as
// "__metadata__.tensor.tensor", and so on: no two names collide. The compiler reads these files
// too, so this header includes no other header of the runtime.

#ifndef PARTITA_RT_SAFETENSORS_NAMES_H
#define PARTITA_RT_SAFETENSORS_NAMES_H

#include <string>

namespace partita_rt {

constexpr char kMetadataKey[] = "__metadata__";
constexpr char kTensorEnding[] = ".tensor";

/// Returns true for "__metadata__" with any number of ".tensor" suffixes.
inline bool isLikeMetadata(const std::string &name) {
  const std::string key = kMetadataKey, ending = kTensorEnding;
  if (name.compare(0, key.size(), key) != 0)
    return false;
  size_t at = key.size();
  while (name.compare(at, ending.size(), ending) == 0)
    at += ending.size();
  return at == name.size();
}

inline std::string storedName(const std::string &tensor) {
  return isLikeMetadata(tensor) ? tensor + kTensorEnding : tensor;
}

/// Returns the tensor's name for a key other than "__metadata__" itself.
inline std::string nameOfStored(const std::string &key) {
  return isLikeMetadata(key) ? key.substr(0, key.size() - sizeof(kTensorEnding) + 1) : key;
}

} // namespace partita_rt

#endif // PARTITA_RT_SAFETENSORS_NAMES_H
