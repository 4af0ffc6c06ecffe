// One safetensors file, or an index of several (weights_file.h).

#include "common/init/weights_file.h"

#include "common/checkpoint/folder.h"
#include "common/checkpoint/sources.h"
#include "common/json.h"
#include "partita_rt/state_names.h"

#include <cstring>
#include <sys/stat.h>

namespace partita_rt {

static bool endsIn(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

WeightsFile::WeightsFile(const std::string &given) : name(given) {
  struct stat status;
  bool folder = stat(given.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  std::string path = folder ? newestCheckpoint(given) : given;
  if (endsIn(path, ".json")) {
    readIndex(path);
    return;
  }
  if (std::string index = path + ".index.json";
      stat(path.c_str(), &status) != 0 && stat(index.c_str(), &status) == 0)
    fail("weights %s: no such file, but its index is there; give %s", path.c_str(), index.c_str());
  auto &file = files[path] = std::make_unique<SafetensorsFile>(path);
  said = formatNote(file->metadata(), file->hasChecksums(), path);
  table = file->tensors();
  for (const auto &[key, value] : file->metadata()) {
    bool isCheckpoint = key == "format" && isUnshardedFormat(value);
    ofProgram |= isCheckpoint || (key == kHolds && value == "parameters");
    if (isCheckpoint)
      findStates(file->metadata());
  }
}

void WeightsFile::findStates(const std::map<std::string, std::string> &metadata) {
  states = scalarStatesIn(metadata);
  for (const auto &[tensor, stored] : table)
    if (isStateOfAnother(tensor, [&](const std::string &name) { return table.count(name) > 0; }))
      states.insert(tensor);
}

static Json parseIndex(const std::string &path) {
  MappedFile file(path, "index of safetensors files");
  try {
    return parseJson(std::string(reinterpret_cast<const char *>(file.data()), size_t(file.size())));
  } catch (const Error &error) {
    fail("index of safetensors files %s: %s", path.c_str(), error.what());
  }
}

void WeightsFile::readCheckpoint(const std::string &path) {
  checkpoint = std::make_unique<CheckpointFiles>(path);
  said = checkpoint->note();
  ofProgram = true;
  for (const auto &[tensor, logical] : checkpoint->tensors())
    table.emplace(tensor, StoredTensor{logical.dtype, logical.shape, nullptr});
  findStates(checkpoint->metadata());
}

void WeightsFile::readIndex(const std::string &path) {
  Json index = parseIndex(path);
  const Json *map = index.kind == Json::Object ? index.find("weight_map") : nullptr;
  if (!map && index.kind == Json::Object && index.find("tensors"))
    return readCheckpoint(path);
  if (!map || map->kind != Json::Object)
    fail("index of safetensors files %s: it has no \"weight_map\" of tensors to files",
         path.c_str());
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  for (const auto &[tensor, entry] : map->members) {
    const std::string &file = entry.string;
    if (entry.kind != Json::String || file.empty() || file.find('/') != std::string::npos)
      fail(
          "index of safetensors files %s: tensor '%s' is in '%s', and there is no such file beside it",
          path.c_str(), tensor.c_str(), file.c_str());
    std::unique_ptr<SafetensorsFile> &opened = files[file];
    if (!opened)
      opened = std::make_unique<SafetensorsFile>(folder + file);
    const StoredTensor *stored = opened->find(tensor);
    if (!stored)
      fail("index of safetensors files %s: tensor '%s' is not in '%s'", path.c_str(),
           tensor.c_str(), file.c_str());
    table.emplace(tensor, *stored);
  }
}

const unsigned char *WeightsFile::bytesOf(const std::string &tensor, const std::vector<Run> &runs,
                                          std::vector<unsigned char> &storage) const {
  const StoredTensor &stored = table.at(tensor);
  int64_t width = sizeOf(stored.dtype);
  if (stored.data || !checkpoint) {
    for (const Run &run : runs)
      stored.check(tensor, run.global * width, (run.global + run.count) * width);
    return stored.data;
  }
  storage.resize(size_t(stored.shape.elements() * width));
  checkpoint->forParts(tensor, runs, [&](const unsigned char *bytes, const Run &run) {
    std::memcpy(storage.data() + run.global * width, bytes, size_t(run.count * width));
  });
  return storage.data();
}

const StoredTensor *WeightsFile::find(const std::string &tensor) const {
  auto entry = table.find(tensor);
  return entry == table.end() ? nullptr : &entry->second;
}

} // namespace partita_rt
