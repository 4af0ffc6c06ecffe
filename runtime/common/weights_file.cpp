// One safetensors file, or an index of several (weights_file.h).

#include "common/weights_file.h"

#include "common/json.h"

namespace partita_rt {

static bool endsIn(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

WeightsFile::WeightsFile(const std::string &path) : name(path) {
  if (endsIn(path, ".json")) {
    readIndex();
    return;
  }
  auto &file = files[path] = std::make_unique<SafetensorsFile>(path);
  table = file->tensors();
}

/// Which file has which tensor.
static Json parseIndex(const std::string &path) {
  MappedFile file(path, "index of safetensors files");
  try {
    Json index =
        parseJson(std::string(reinterpret_cast<const char *>(file.data()), size_t(file.size())));
    const Json *map = index.kind == Json::Object ? index.find("weight_map") : nullptr;
    if (!map || map->kind != Json::Object)
      fail("it has no \"weight_map\" of tensors to files");
    return *map;
  } catch (const Error &error) {
    fail("index of safetensors files %s: %s", path.c_str(), error.what());
  }
}

void WeightsFile::readIndex() {
  size_t slash = name.rfind('/');
  std::string folder = slash == std::string::npos ? "" : name.substr(0, slash + 1);
  for (const auto &[tensor, entry] : parseIndex(name).members) {
    const std::string &file = entry.string;
    if (entry.kind != Json::String || file.empty() || file.find('/') != std::string::npos)
      fail("index of safetensors files %s: tensor '%s' is in '%s', which is no file beside it",
           name.c_str(), tensor.c_str(), file.c_str());
    std::unique_ptr<SafetensorsFile> &opened = files[file];
    if (!opened)
      opened = std::make_unique<SafetensorsFile>(folder + file);
    const StoredTensor *stored = opened->find(tensor);
    if (!stored)
      fail("index of safetensors files %s: tensor '%s' is not in '%s'", name.c_str(),
           tensor.c_str(), file.c_str());
    table.emplace(tensor, *stored);
  }
}

const StoredTensor *WeightsFile::find(const std::string &tensor) const {
  auto entry = table.find(tensor);
  return entry == table.end() ? nullptr : &entry->second;
}

} // namespace partita_rt
