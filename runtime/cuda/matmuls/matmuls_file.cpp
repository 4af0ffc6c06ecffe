// A program's tuning file, matmuls.json: the device and the version of cuBLASLt that it is for,
// and a line per shape with its algorithm. Only the 64 bytes of `algorithm` are used; the rest is
// for readers.
//
//     {"device": "NVIDIA H200, 132 multiprocessors", "cublasLt": 130002, "matmuls": [
//     {"shape": "matmul ...", "nanoseconds": 81920, "untuned": 90112, "id": 66, "tile": 20, ...,
//      "algorithm": "4200000..."},
//     {"shape": "matmul ..., sums of b", "nanoseconds": 40960, "untuned": 71680,
//      "algorithm": "apart"},

#include "cuda/matmuls/matmuls.h"

#include "common/json.h"
#include "common/temporary_file.h"

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

std::string writeChoicesText(const ChoicesFile &file) {
  std::string text = "{\"device\": " + quoteJson(file.device) +
                     ", \"cublasLt\": " + std::to_string(file.version) + ", \"matmuls\": [";
  for (size_t i = 0; i < file.choices.size(); ++i)
    text += (i == 0 ? "\n" : ",\n") + lineOf(file.choices[i]);
  return text + "\n]}\n";
}

ChoicesFile parseChoicesText(const std::string &text, const std::string &from) {
  Json root;
  try {
    root = parseJson(text);
  } catch (const Error &error) {
    fail("%s: %s%s", from.c_str(), error.what(), kAgain);
  }
  ChoicesFile file;
  file.device = member(root, "device", Json::String, from).string;
  file.version = member(root, "cublasLt", Json::Integer, from).integer;
  for (const Json &item : member(root, "matmuls", Json::Array, from).items) {
    Choice choice{};
    choice.shape = member(item, "shape", Json::String, from).string;
    choice.nanoseconds = member(item, "nanoseconds", Json::Integer, from).integer;
    choice.first = member(item, "untuned", Json::Integer, from).integer;
    const std::string &algorithm = member(item, "algorithm", Json::String, from).string;
    choice.apart = algorithm == kApart;
    if (!choice.apart && !fromHex(choice.algorithm, algorithm))
      fail("%s: the algorithm of '%s' is not 64 bytes in hexadecimal digits%s", from.c_str(),
           choice.shape.c_str(), kAgain);
    file.choices.push_back(choice);
  }
  return file;
}

void Matmuls::writeChoices(const std::string &path) const {
  std::string text = choicesText();
  TemporaryFile file(path);
  file.write(text.data(), int64_t(text.size()));
  file.commit();
}

bool Matmuls::readChoices(const std::string &path) {
  File file(std::fopen(path.c_str(), "r"));
  if (!file && errno == ENOENT)
    return false;
  std::string text;
  char part[1 << 16];
  size_t count = 0;
  while (file && (count = std::fread(part, 1, sizeof part, file.get())) > 0)
    text.append(part, count);
  if (file && std::ferror(file.get()) && errno == EISDIR)
    fail("%s: is a folder; the choices for matmuls are a file", path.c_str());
  if (!file || std::ferror(file.get()))
    fail("%s: %s", path.c_str(), std::strerror(errno));
  useChoices(text, path);
  return true;
}

} // namespace partita_rt::cuda
