// Matches tensors to parameters by name and shape (weights.h).

#include "common/init/weights.h"

#include "partita_rt/state_names.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace partita_rt {

namespace {

/// Advice on how to export so that names are kept.
constexpr char kKeepNames[] = "exporters that fold constants lose names; torch.onnx.export keeps "
                              "them with optimize=False (dynamo) or do_constant_folding=False";

bool endsInName(const std::string &text, const std::string &end) {
  return text.size() > end.size() + 1 && text[text.size() - end.size() - 1] == '.' &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Returns the length of the shorter name if the longer one ends in it, else 0.
size_t commonEnd(const std::string &a, const std::string &b) {
  return endsInName(a, b) ? b.size() : endsInName(b, a) ? a.size() : 0;
}

bool isTransposed(const Shape &a, const Shape &b) {
  return a.rank == 2 && b.rank == 2 && a[0] == b[1] && a[1] == b[0];
}

class Matcher {
public:
  Matcher(const WeightsFile &file, const Program &program)
      : file(file), program(program), matches(program.parameters.size()) {
    for (const Parameter &parameter : program.parameters)
      parameters.insert(parameter.name);
  }

  std::vector<WeightMatch> run() {
    for (int64_t i = 0; i < program.parameters.size(); ++i)
      if (program.parameters[i].folded == Folded::Computed)
        checkComputed(program.parameters[i]);
    for (int64_t i = 0; i < program.parameters.size(); ++i)
      if (file.find(program.parameters[i].name))
        takeNamed(i, unrounded(program.parameters[i].name));
    matchSuffixes();
    for (int64_t i = 0; i < program.parameters.size(); ++i)
      if (!matches[i].tensor)
        matchShape(i);
    return std::move(matches);
  }

private:
  using Names = std::vector<const std::string *>;
  struct Pair {
    int64_t parameter;
    const std::string *name; ///< of a tensor
  };

  /// Fails for a computed parameter unless the file is a program's own and has its name. A tensor of
  /// the model with the same name or shape would match by accident.
  void checkComputed(const Parameter &parameter) const {
    if (!file.isOfProgram() || !file.find(parameter.name))
      fail(
          "weights %s: parameter '%s' is not one of the model's: the exporter has computed it from them, "
          "and a file of the model's weights does not hold it; start from the values in the ONNX file "
          "(without --init), or export the model unfolded (torch.onnx.export: optimize=False, or "
          "do_constant_folding=False) and compile that",
          file.path().c_str(), parameter.name);
  }

  /// May a parameter of another name take the tensor?
  bool isFree(const std::string &name) const {
    auto isParameter = [this](const std::string &each) { return parameters.count(each) > 0; };
    bool isState =
        file.isState(name) || (file.isOfProgram() && isStateOfAnother(name, isParameter));
    return !used.count(name) && !isState;
  }

  bool fits(int64_t parameter, const StoredTensor &tensor) const {
    const Shape &wanted = program.parameters[parameter].globalShape;
    return tensor.shape == wanted || isTransposed(tensor.shape, wanted);
  }

  bool fitsByShape(int64_t parameter, const StoredTensor &tensor) const {
    bool isKept = program.parameters[parameter].folded == Folded::No;
    return fits(parameter, tensor) &&
           (isKept || tensor.shape != program.parameters[parameter].globalShape);
  }

  void take(int64_t parameter, const std::string &name) {
    auto entry = file.tensors().find(name);
    used.insert(name);
    matches[parameter].name = &entry->first;
    matches[parameter].tensor = &entry->second;
    matches[parameter].transposed =
        entry->second.shape != program.parameters[parameter].globalShape;
  }

  /// Returns the name of the master, if a checkpoint has one for this 16-bit tensor; else the name
  /// itself.
  std::string unrounded(const std::string &name) {
    std::string masterName =
        masterIn(name, [&](const std::string &each) { return file.find(each); });
    const StoredTensor *tensor = file.find(name), *master = file.find(masterName);
    bool isShort = isShortFloat(tensor->dtype);
    if (!isShort || !master || master->dtype != DType::Float32 || master->shape != tensor->shape)
      return name;
    used.insert(name);
    return masterName;
  }

  void takeNamed(int64_t i, const std::string &name) {
    if (!fits(i, *file.find(name)))
      fail("weights %s: tensor '%s' is %s, the program needs %s", file.path().c_str(), name.c_str(),
           toString(file.find(name)->shape).c_str(),
           toString(program.parameters[i].globalShape).c_str());
    take(i, name);
  }

  static std::string listed(const Names &names) {
    std::string text;
    for (const std::string *name : names)
      text += (text.empty() ? "'" : ", '") + *name + "'";
    return text;
  }

  [[noreturn]] void ambiguous(int64_t i, const Names &candidates) const {
    fail("weights %s: parameter '%s' %s could be %s; rename the one that it is to the "
         "parameter's name; %s",
         file.path().c_str(), program.parameters[i].name,
         toString(program.parameters[i].globalShape).c_str(), listed(candidates).c_str(),
         kKeepNames);
  }

  [[noreturn]] void ambiguousTensor(const std::string &name, int64_t i, int64_t j) const {
    fail("weights %s: tensor '%s' %s could be parameter '%s' or '%s'; rename it to "
         "that which it is; %s",
         file.path().c_str(), name.c_str(), toString(file.find(name)->shape).c_str(),
         program.parameters[i].name, program.parameters[j].name, kKeepNames);
  }

  /// Matches the longest common ends first: 'model.encoder.norm' is 'encoder.norm', not 'norm'.
  void matchSuffixes() {
    std::map<size_t, std::vector<Pair>, std::greater<>> byLength;
    for (int64_t i = 0; i < program.parameters.size(); ++i)
      if (!matches[i].tensor)
        for (const auto &[name, tensor] : file.tensors())
          if (size_t length = commonEnd(program.parameters[i].name, name);
              length && isFree(name) && fits(i, tensor))
            byLength[length].push_back({i, &name});
    for (auto &entry : byLength) {
      std::vector<Pair> &pairs = entry.second;
      auto isTaken = [&](const Pair &pair) {
        return matches[pair.parameter].tensor || used.count(*pair.name);
      };
      pairs.erase(std::remove_if(pairs.begin(), pairs.end(), isTaken), pairs.end());
      checkUnique(pairs);
      for (const Pair &pair : pairs)
        take(pair.parameter, *pair.name);
    }
  }

  /// Fails if a pair is ambiguous. Pairs are in the order of parameters.
  void checkUnique(const std::vector<Pair> &pairs) const {
    for (size_t first = 0, next; first < pairs.size(); first = next) {
      Names candidates;
      for (next = first; next < pairs.size() && pairs[next].parameter == pairs[first].parameter;
           ++next)
        candidates.push_back(pairs[next].name);
      if (candidates.size() > 1)
        ambiguous(pairs[first].parameter, candidates);
    }
    std::map<const std::string *, int64_t> parameters;
    for (const Pair &pair : pairs)
      if (auto [other, isNew] = parameters.emplace(pair.name, pair.parameter); !isNew)
        ambiguousTensor(*pair.name, other->second, pair.parameter);
  }

  void matchShape(int64_t i) {
    const Shape &shape = program.parameters[i].globalShape;
    Names candidates;
    for (const auto &[name, tensor] : file.tensors())
      if (isFree(name) && fitsByShape(i, tensor))
        candidates.push_back(&name);
    bool isKept = program.parameters[i].folded == Folded::No;
    auto isOther = [&](const auto &entry) { return isFree(entry.first); };
    if (candidates.empty())
      fail("weights %s has no tensor '%s', and none of its other %lld tensors, which no "
           "parameter has taken by name, is %s%s%s; %s",
           file.path().c_str(), program.parameters[i].name,
           (long long)std::count_if(file.tensors().begin(), file.tensors().end(), isOther),
           isKept ? "" : "the transpose of ", toString(shape).c_str(),
           isKept ? "" : ", as which the exporter would have changed its name", kKeepNames);
    if (candidates.size() > 1)
      ambiguous(i, candidates);
    for (int64_t j = 0; j < program.parameters.size(); ++j)
      if (j != i && !matches[j].tensor && fitsByShape(j, *file.find(*candidates.front())))
        ambiguousTensor(*candidates.front(), i, j);
    if (shape.rank == 2 && shape[0] == shape[1] && shape[0] > 1)
      fail(
          "weights %s: parameter '%s' %s could be '%s' as it is or transposed, which a square matrix "
          "does not show; rename the tensor to the parameter's name, transposed if need be; %s",
          file.path().c_str(), program.parameters[i].name, toString(shape).c_str(),
          candidates.front()->c_str(), kKeepNames);
    take(i, *candidates.front());
    matches[i].byShape = true;
  }

  const WeightsFile &file;
  const Program &program;
  std::vector<WeightMatch> matches;
  std::set<std::string> parameters, used;
};

} // namespace

std::vector<WeightMatch> matchWeights(const WeightsFile &file, const Program &program) {
  return Matcher(file, program).run();
}

} // namespace partita_rt
