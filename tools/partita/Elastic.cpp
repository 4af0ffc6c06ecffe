//===- Elastic.cpp - one model compiled for several numbers of ranks --------------------------===//

#include "tools/partita/Elastic.h"
#include "dialects/Par/Par.h"
#include "partita/Emit/Emit.h"
#include "partita/Support/ParseJson.h"
#include "tools/partita/Program.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <numeric>

using namespace llvm;
using namespace partita;
using namespace partita::tool;

static constexpr StringLiteral kFile = "elastic.json";
static constexpr int64_t kMaxSize = 1 << 20, kMaxPrograms = 256;
/// The most samples of a step that a message suggests.
static constexpr int64_t kMostSamples = 1 << 20;

/// "2", "2 and 4", "2, 4 and 8".
static std::string joined(ArrayRef<int64_t> numbers, StringRef last) {
  std::string text;
  for (auto [i, number] : llvm::enumerate(numbers))
    text += (i == 0                    ? ""
             : i + 1 == numbers.size() ? (" " + last + " ").str()
                                       : ", ") +
            std::to_string(number);
  return text;
}

//===------------------------------------------------------------------------------------------===//
// Sizes
//===------------------------------------------------------------------------------------------===//

/// Returns the problem, or "".
static std::string parseSize(StringRef text, int64_t &size) {
  if (!text.getAsInteger(10, size) && size >= 1 && size <= kMaxSize)
    return {};
  return (": '" + text + "' is not a size, from 1 to " + Twine(kMaxSize)).str();
}

std::string ElasticSizes::parse(StringRef text) {
  auto [name, list] = text.split('=');
  auto usage = [&](const Twine &problem) {
    return ("'" + text + "'" + problem + "; write dp=2..8 or dp=2,4,8").str();
  };
  if (list.empty())
    return usage(" is not AXIS=SIZES");
  if (!par::findAxis(name) || !par::splitsBatch(name))
    return usage(": '" + name + "' is not an axis of data-parallel ranks");
  axis = name.str();
  sizes.clear();
  if (size_t dots = list.find(".."); dots != StringRef::npos) {
    int64_t low, high;
    for (auto [word, size] :
         {std::pair(list.take_front(dots), &low), {list.substr(dots + 2), &high}})
      if (std::string problem = parseSize(word, *size); !problem.empty())
        return usage(problem);
    if (low > high)
      return usage(" is not a range: " + Twine(low) + " is more than " + Twine(high));
    if (high - low >= kMaxPrograms)
      return usage(" are more than " + Twine(kMaxPrograms) + " sizes");
    for (int64_t size = low; size <= high; ++size)
      sizes.push_back(size);
    return {};
  }
  SmallVector<StringRef> words;
  list.split(words, ',');
  for (StringRef word : words)
    if (std::string problem = parseSize(word, sizes.emplace_back()); !problem.empty())
      return usage(problem);
  llvm::sort(sizes);
  sizes.erase(llvm::unique(sizes), sizes.end());
  return {};
}

std::string ElasticSizes::text() const {
  return axis + "=" +
         join(map_range(sizes, [](int64_t each) { return std::to_string(each); }), ",");
}

/// Returns the number of ranks over which the mesh's other axes split this.
static int64_t otherRanks(const ElasticSizes &elastic, const Plan &plan, par::Splits what) {
  int64_t ranks = 1;
  for (const auto &[axis, size] : plan.mesh())
    if (axis != elastic.axis && par::splits(axis, what))
      ranks *= size;
  return ranks;
}

std::string partita::tool::checkElastic(const ElasticSizes &elastic, const ElasticBatch &batch,
                                        const Plan &plan) {
  int64_t planned = 0, most = elastic.sizes.back(),
          others = otherRanks(elastic, plan, par::Splits::Batch),
          sharing = others * otherRanks(elastic, plan, par::Splits::Context);
  for (const auto &[axis, size] : plan.mesh())
    if (axis == elastic.axis)
      planned = size;
  if (planned != most) {
    std::string wanted = elastic.axis + "=" + std::to_string(most);
    return elastic.text() + ": the plan is that of the largest size, so --mesh must have " +
           wanted + (planned ? ", not " + elastic.axis + "=" + std::to_string(planned) : "");
  }
  if (most > 1 && elastic.sizes.front() == 1 && sharing == 1 && plan.get("zero-stage") != "0") {
    ElasticSizes larger = elastic;
    larger.sizes.erase(larger.sizes.begin());
    return elastic.text() + ": with " + elastic.axis +
           "=1, one rank holds everything, and --zero-stage has nothing to shard; use " +
           larger.text() + ", or leave --zero-stage out";
  }
  if (batch.microBatch == 0)
    return "the model's inputs have no batch dimension";
  // A model's own batch is split among the ranks as it is; else the accumulation makes up.
  int64_t shared = batch.dimNames.empty() ? batch.microBatch : batch.samples();
  std::vector<int64_t> good, bad;
  int64_t multiple = 1;
  for (int64_t size : elastic.sizes) {
    (shared % (size * others) == 0 ? good : bad).push_back(size);
    if (multiple <= kMostSamples)
      multiple = std::lcm(multiple, size * others);
  }
  if (bad.empty())
    return {};
  std::string all = others == 1 ? "" : " times the " + std::to_string(others) + " of other axes";
  std::string text =
      elastic.text() + ": " + joined(bad, "and") + " data-parallel ranks" + all +
      " do not divide the " + std::to_string(shared) + " samples of a " +
      (batch.dimNames.empty() ? "micro-batch, which the model fixes" : "training step");
  if (!good.empty())
    text += "; use " + ElasticSizes{elastic.axis, good}.text();
  if (!batch.dimNames.empty() && multiple <= kMostSamples)
    text += (good.empty() ? "; take " : ", or ") + std::string("a multiple of ") +
            std::to_string(multiple) + " samples";
  return text;
}

Request partita::tool::requestFor(int64_t size, const ElasticSizes &elastic,
                                  const ElasticBatch &batch, const Request &request) {
  Request result = request;
  std::string mesh;
  for (const auto &[axis, planned] : request.plan.mesh())
    mesh += (mesh.empty() ? "" : ",") + axis + "=" +
            std::to_string(axis == elastic.axis ? size : planned);
  result.plan.set("mesh", mesh);
  if (batch.dimNames.empty())
    return result;
  int64_t ranks = size * otherRanks(elastic, request.plan, par::Splits::Batch);
  int64_t ofRank = batch.samples() / ranks;
  int64_t ofMicroBatch = std::max<int64_t>(
      1, batch.microBatch / (ranks / size * elastic.sizes.back())); // as in the plan
  while (ofRank % ofMicroBatch != 0)
    --ofMicroBatch;
  erase_if(result.dims,
           [&](StringRef dim) { return is_contained(batch.dimNames, dim.split('=').first); });
  for (const std::string &name : batch.dimNames)
    result.dims.push_back(name + "=" + std::to_string(ofMicroBatch * ranks));
  result.plan.set("accumulate", std::to_string(ofRank / ofMicroBatch));
  return result;
}

//===------------------------------------------------------------------------------------------===//
// The folder
//===------------------------------------------------------------------------------------------===//

std::string ElasticFolder::toJson() const {
  json::Array list;
  for (const ElasticProgram &program : programs)
    list.push_back(json::Object{{"size", program.size},
                                {"ranks", program.ranks},
                                {"folder", sys::path::filename(program.folder).str()}});
  json::Object all{{"axis", axis}, {"samples", samples}, {"programs", std::move(list)}};
  return formatv("{0:2}\n", json::Value(std::move(all))).str();
}

std::string ElasticFolder::ranksText() const {
  auto ranks = map_to_vector(programs, [](const ElasticProgram &each) { return each.ranks; });
  return joined(ranks, "or") + (ranks.size() == 1 && ranks[0] == 1 ? " rank" : " ranks");
}

bool partita::tool::isElastic(StringRef folder) {
  return sys::fs::exists(inFolder(folder, kFile)) &&
         !sys::fs::exists(inFolder(folder, "manifest.json"));
}

std::optional<ElasticFolder> partita::tool::readElastic(StringRef folder, std::string &problem) {
  std::string path = inFolder(folder, kFile);
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer) {
    problem = path + ": " + buffer.getError().message();
    return std::nullopt;
  }
  Expected<json::Value> value = parseJson((*buffer)->getBuffer());
  if (!value) {
    problem = path + ": " + toString(value.takeError());
    return std::nullopt;
  }
  const json::Object *object = value->getAsObject();
  const json::Array *list = object ? object->getArray("programs") : nullptr;
  ElasticFolder result;
  result.axis = object ? object->getString("axis").value_or("").str() : "";
  result.samples = object ? object->getInteger("samples").value_or(0) : 0;
  for (const json::Value &each : list ? *list : json::Array()) {
    const json::Object *program = each.getAsObject();
    StringRef name = program ? program->getString("folder").value_or("") : "";
    int64_t ranks = program ? program->getInteger("ranks").value_or(0) : 0;
    if (name.empty() || name.contains('/') || name == ".." || ranks < 1 ||
        (!result.programs.empty() && ranks <= result.programs.back().ranks)) {
      result.programs.clear();
      break;
    }
    result.programs.push_back(
        {program->getInteger("size").value_or(1), ranks, inFolder(folder, name)});
  }
  if (!result.programs.empty())
    return result;
  problem = path + ": does not list programs, smallest first; compile the model again";
  return std::nullopt;
}

std::string partita::tool::checkElasticTarget(StringRef folder) {
  if (!sys::fs::exists(folder))
    return {};
  std::error_code error;
  bool empty = sys::fs::is_directory(folder) &&
               sys::fs::directory_iterator(folder, error) == sys::fs::directory_iterator();
  if (empty)
    return {};
  std::string problem, foreign;
  std::optional<ElasticFolder> known = readElastic(folder, problem);
  for (sys::fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    StringRef name = sys::path::filename(entry->path());
    bool isOwn = known && (name == kFile || any_of(known->programs, [&](const auto &program) {
                             return sys::path::filename(program.folder) == name;
                           }));
    if (!isOwn)
      foreign = name.str();
  }
  if (known && foreign.empty()) {
    for (const ElasticProgram &program : known->programs)
      if (std::string inner = checkProgramTarget(program.folder); !inner.empty())
        return inner;
    return {};
  }
  return (folder + ": exists and is not a folder that --elastic made" +
          (foreign.empty() ? "" : ", it has '" + foreign + "'") + "; remove it or choose another")
      .str();
}
