// A program's tuning file, matmuls.json: the choices for each kind of device and version of cuBLASLt
// that the program was tuned for, a line per shape with its algorithm. Only the 64 bytes of
// `algorithm` are used; the rest is for readers.
//
//     {"tunings": [
//     {"device": "NVIDIA H200, 132 multiprocessors", "cublasLt": 130002, "matmuls": [
//     {"shape": "matmul ...", "nanoseconds": 81920, "untuned": 90112, "id": 66, "tile": 20, ...,
//      "algorithm": "4200000..."},
//     {"shape": "matmul ..., sums of b", "nanoseconds": 40960, "untuned": 71680,
//      "algorithm": "apart"},
//
// A file with a single device, version and matmuls at the top, as earlier programs wrote it, is read
// too.

#include "cuda/matmuls/matmuls.h"

#include "common/json.h"
#include "common/temporary_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace partita_rt::cuda {

namespace {

std::string hexOf(const cublasLtMatmulAlgo_t &algorithm) {
  unsigned char bytes[sizeof algorithm.data];
  std::memcpy(bytes, algorithm.data, sizeof bytes);
  std::string text;
  for (unsigned char byte : bytes)
    for (int digit : {byte >> 4, byte & 15})
      text += "0123456789abcdef"[digit];
  return text;
}

/// In place of an algorithm: separate kernels are faster.
constexpr const char *kApart = "apart";

/// Advice about a damaged file.
constexpr const char *kAgain = "; tune the program again, or remove the file";

/// Returns false if the text is not 64 bytes.
bool fromHex(cublasLtMatmulAlgo_t &algorithm, const std::string &text) {
  unsigned char bytes[sizeof algorithm.data];
  if (text.size() != 2 * sizeof bytes)
    return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char *digits = "0123456789abcdef", *digit = std::strchr(digits, text[i]);
    if (!digit || !*digit)
      return false;
    int value = int(digit - digits);
    bytes[i / 2] = (unsigned char)(i % 2 == 0 ? value << 4 : bytes[i / 2] | value);
  }
  std::memcpy(algorithm.data, bytes, sizeof bytes);
  return true;
}

/// Returns an attribute of the algorithm's configuration, for readers; -1 if it has none.
template <typename T>
int64_t configuration(const cublasLtMatmulAlgo_t &algorithm,
                      cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value{};
  size_t written = 0;
  if (cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written) !=
      CUBLAS_STATUS_SUCCESS)
    return -1;
  return int64_t(value);
}

std::string lineOf(const Choice &choice) {
  std::string line = "{\"shape\": " + quoteJson(choice.shape);
  auto add = [&](const char *name, int64_t value) {
    line += std::string(", \"") + name + "\": " + std::to_string(value);
  };
  const cublasLtMatmulAlgo_t &algorithm = choice.algorithm;
  add("nanoseconds", choice.nanoseconds);
  add("untuned", choice.first);
  if (choice.apart)
    return line + ", \"algorithm\": \"" + kApart + "\"}";
  add("id", configuration<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID));
  add("tile", configuration<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID));
  add("stages", configuration<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID));
  add("splitK", configuration<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
  add("reduction", configuration<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME));
  return line + ", \"algorithm\": \"" + hexOf(algorithm) + "\"}";
}

const Json &member(const Json &object, const char *name, Json::Kind kind, const std::string &from) {
  const Json *value = object.kind == Json::Object ? object.find(name) : nullptr;
  if (!value || value->kind != kind)
    fail("%s: not a file of algorithms for matmuls: '%s' is missing or of another kind%s",
         from.c_str(), name, kAgain);
  return *value;
}

struct CloseFile {
  void operator()(std::FILE *file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

} // namespace

static DeviceChoices parseTuning(const Json &from, const std::string &path) {
  DeviceChoices tuning;
  tuning.device = member(from, "device", Json::String, path).string;
  tuning.version = member(from, "cublasLt", Json::Integer, path).integer;
  for (const Json &item : member(from, "matmuls", Json::Array, path).items) {
    Choice choice{};
    choice.shape = member(item, "shape", Json::String, path).string;
    choice.nanoseconds = member(item, "nanoseconds", Json::Integer, path).integer;
    choice.first = member(item, "untuned", Json::Integer, path).integer;
    const std::string &algorithm = member(item, "algorithm", Json::String, path).string;
    choice.apart = algorithm == kApart;
    if (!choice.apart && !fromHex(choice.algorithm, algorithm))
      fail("%s: the algorithm of '%s' is not 64 bytes in hexadecimal digits%s", path.c_str(),
           choice.shape.c_str(), kAgain);
    tuning.choices.push_back(choice);
  }
  return tuning;
}

std::string writeTunings(const std::vector<DeviceChoices> &tunings) {
  std::string text = "{\"tunings\": [";
  for (size_t i = 0; i < tunings.size(); ++i) {
    const DeviceChoices &tuning = tunings[i];
    text += std::string(i == 0 ? "" : ",") + "\n{\"device\": " + quoteJson(tuning.device) +
            ", \"cublasLt\": " + std::to_string(tuning.version) + ", \"matmuls\": [";
    for (size_t j = 0; j < tuning.choices.size(); ++j)
      text += (j == 0 ? "\n" : ",\n") + lineOf(tuning.choices[j]);
    text += "\n]}";
  }
  return text + "\n]}\n";
}

std::vector<DeviceChoices> parseTunings(const std::string &text, const std::string &from) {
  Json root;
  try {
    root = parseJson(text);
  } catch (const Error &error) {
    fail("%s: %s%s", from.c_str(), error.what(), kAgain);
  }
  if (root.kind == Json::Object && root.find("device"))
    return {parseTuning(root, from)};
  std::vector<DeviceChoices> tunings;
  for (const Json &item : member(root, "tunings", Json::Array, from).items)
    tunings.push_back(parseTuning(item, from));
  return tunings;
}

/// Returns false if there is no such file.
static bool readText(const std::string &path, std::string &text) {
  File file(std::fopen(path.c_str(), "r"));
  if (!file && errno == ENOENT)
    return false;
  char part[1 << 16];
  size_t count = 0;
  while (file && (count = std::fread(part, 1, sizeof part, file.get())) > 0)
    text.append(part, count);
  if (file && std::ferror(file.get()) && errno == EISDIR)
    fail("%s: is a folder; the choices for matmuls are a file", path.c_str());
  if (!file || std::ferror(file.get()))
    fail("%s: %s", path.c_str(), std::strerror(errno));
  return true;
}

/// Returns the tunings of other devices and versions in the file; none if it is absent or damaged.
/// Messages about a damaged file say that tuning replaces it.
std::vector<DeviceChoices> Matmuls::othersIn(const std::string &path) const {
  std::string text;
  if (!readText(path, text))
    return {};
  std::vector<DeviceChoices> found;
  try {
    found = parseTunings(text, path);
  } catch (const Error &) {
    return {};
  }
  auto ours = [this](const DeviceChoices &each) { return isHere(each); };
  found.erase(std::remove_if(found.begin(), found.end(), ours), found.end());
  return found;
}

void Matmuls::writeChoices(const std::string &path) const {
  std::vector<DeviceChoices> tunings = othersIn(path);
  tunings.insert(tunings.begin(), ours());
  std::string text = writeTunings(tunings);
  TemporaryFile file(path);
  file.write(text.data(), int64_t(text.size()));
  file.commit();
}

std::string Matmuls::choicesText() const { return writeTunings({ours()}); }

bool Matmuls::useChoices(const std::string &text, const std::string &from) {
  std::vector<DeviceChoices> tunings = parseTunings(text, from);
  std::string others;
  for (const DeviceChoices &each : tunings) {
    if (isHere(each)) {
      use(each, from);
      return true;
    }
    others += (others.empty() ? "" : "; ") + each.device + " with cuBLASLt " +
              std::to_string(each.version);
  }
  DeviceChoices here = ours();
  mismatch = from + " is for " + (others.empty() ? "no GPU" : others) + ", and this is " +
             here.device + " with cuBLASLt " + std::to_string(here.version);
  return false;
}

bool Matmuls::readChoices(const std::string &path) {
  std::string text;
  return readText(path, text) && useChoices(text, path);
}

} // namespace partita_rt::cuda
