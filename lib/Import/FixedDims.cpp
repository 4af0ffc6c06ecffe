//===- FixedDims.cpp --------------------------------------------------------------------------===//

#include "lib/Import/FixedDims.h"
#include "lib/Import/File/Exporter.h"
#include "partita/Support/StableSort.h"
#include "llvm/ADT/SetVector.h"
#include <set>

using namespace mlir;

namespace partita::importer {
namespace {

using Dims = std::vector<std::pair<std::string, int64_t>>;

class Prober {
public:
  Prober(ModelFile &file, const ImportOptions &options, MLIRContext *context, Weights &weights)
      : file(file), options(options), context(context), weights(weights) {}

  /// The fixed dimensions with their sizes. They are found one after the other, or two at a time: the
  /// import gets further with the right size.
  Dims find(const Importer::Failure &failure) {
    Dims fixed;
    for (Importer::Failure now = failure; fixed.size() < mostDims;) {
      bool isFirst = fixed.empty();
      std::optional<Step> best = findStep(fixed, now, /*pairs=*/false);
      if (!best)
        best = findStep(fixed, now, /*pairs=*/true);
      if (!best)
        return {};
      hasMoved = true;
      fixed = best->fixed;
      now = best->failure;
      if (!best->complete)
        continue;
      if (!areFixed(fixed))
        return {};
      if (!isFirst)
        tryExchanged(fixed);
      return fixed;
    }
    return {};
  }

  /// Does the import get further with one of these sizes?
  bool getsFurther(const Dims &any, const Importer::Failure &failure) {
    return llvm::any_of(any, [&](const auto &dim) {
      Step step = attempt({}, {dim});
      return step.complete || step.failure.done > failure.done;
    });
  }
  /// Can the model be imported with other sizes too?
  bool isOneOfSeveral() const { return others.size() > 1; }
  /// Were there more to try than there is time for, so that others are not known?
  bool isSpent() const { return trials > mostTrials || nodes > mostNodes; }
  /// Did no size that the failure suggests get the import past it?
  bool isStuck() const { return !hasMoved && !isSpent(); }
  /// The names of all of them.
  llvm::SmallVector<std::string> candidates(const Dims &fixed) const {
    llvm::SmallVector<std::string> names;
    for (const auto &dim : options.dims)
      if (llvm::any_of(others, [&](const Dims &dims) { return has(dims, dim.first); }) ||
          has(fixed, dim.first))
        names.push_back(dim.first);
    return names;
  }

private:
  // An import that fails is fast, but a large model may fail late.
  static constexpr int64_t mostTrials = 1024, mostNodes = int64_t(1) << 17;
  static constexpr size_t mostOfPairs = 8, mostDims = 4;
  static constexpr int64_t mostSize = int64_t(1) << 20, mostFactored = 1 << 10;

  struct Step {
    Dims fixed;
    bool complete = false;
    Importer::Failure failure;
  };

  static llvm::SmallSetVector<int64_t, 16> sizesOf(const Importer::Failure &failure) {
    llvm::SmallSetVector<int64_t, 16> sizes;
    for (int64_t number : failure.numbers)
      if (number >= 1 && number <= mostSize)
        sizes.insert(number);
    // A number may also be a multiple of the size, as in [sequence, batch * heads, features].
    for (int64_t number : llvm::to_vector(sizes))
      for (int64_t factor = 2; factor < number && number <= mostFactored; ++factor)
        if (number % factor == 0)
          sizes.insert(factor);
    return sizes;
  }

  /// One more dimension fixed, or two: those with which the import completes, or gets furthest.
  std::optional<Step> findStep(const Dims &fixed, const Importer::Failure &now, bool pairs) {
    llvm::SmallSetVector<int64_t, 16> sizes = sizesOf(now);
    llvm::ArrayRef<int64_t> few = sizes.getArrayRef();
    if (pairs)
      few = few.take_front(mostOfPairs);
    llvm::SmallVector<std::string> names;
    for (const auto &dim : options.dims)
      if (llvm::none_of(fixed, [&](const auto &each) { return each.first == dim.first; }))
        names.push_back(dim.first);
    std::optional<Step> best;
    others.clear();
    auto consider = [&](Dims more) {
      Step step = attempt(fixed, std::move(more));
      if (step.complete && !hasOne(step.fixed))
        others.insert(sorted(step.fixed));
      bool isBetter =
          best && best->complete && step.complete && hasOne(best->fixed) && !hasOne(step.fixed);
      if (isBetter || !best || !best->complete)
        if (step.complete || step.failure.done > (best ? best->failure.done : now.done))
          best = std::move(step);
    };
    for (size_t first = 0; first < names.size(); ++first)
      for (int64_t size : few) {
        if (isSpent())
          return best;
        if (!pairs)
          consider({{names[first], size}});
        for (size_t second = first + 1; pairs && second < names.size(); ++second)
          for (int64_t other : few)
            consider({{names[first], size}, {names[second], other}});
      }
    return best;
  }

  /// Sizes that were found one after the other may be swapped.
  void tryExchanged(const Dims &fixed) {
    for (size_t i = 0; i < fixed.size(); ++i)
      for (size_t k = i + 1; k < fixed.size(); ++k) {
        Dims other = fixed;
        std::swap(other[i].second, other[k].second);
        if (other != fixed && !hasOne(other) && attempt(other, {}).complete)
          others.insert(sorted(other));
      }
  }

  static bool has(const Dims &dims, llvm::StringRef name) {
    return llvm::any_of(dims, [&](const auto &each) { return each.first == name; });
  }

  /// A size of 1 broadcasts: that it works does not show what the model was exported with.
  static bool hasOne(const Dims &dims) {
    return llvm::any_of(dims, [](const auto &each) { return each.second == 1; });
  }

  static Dims sorted(Dims dims) {
    partita::stableSort(dims, [](const auto &a, const auto &b) { return a.first < b.first; });
    return dims;
  }

  Step attempt(Dims fixed, Dims more) {
    fixed.insert(fixed.end(), more.begin(), more.end());
    Step step{fixed, false, {}};
    ImportOptions other = options;
    other.foldLimit = foldLimit(file, options); // trying a larger size must not take more memory
    for (const auto &[name, size] : fixed)
      for (auto &[known, value] : other.dims)
        if (known == name)
          value = size;
    if (other.dims == options.dims)
      return step;
    ++trials;
    if (isSpent())
      return step;
    ScopedDiagnosticHandler silent(context, [](Diagnostic &) { return success(); });
    Importer importer(file, other, context, &weights);
    bool isImported = succeeded(importer.run());
    step.complete = isImported && !importer.mixesSamples(); // else the sizes fit by chance
    step.failure = importer.whyFailed;
    nodes += step.failure.done + file.model().graph().initializer_size();
    if (isImported && !step.complete)
      step.failure = {};
    return step;
  }

  /// A model that works with one less or one more too is not fixed: it has a largest size. (A size of 1
  /// broadcasts, and shows nothing.)
  bool areFixed(const Dims &dims) {
    for (size_t i = 0; i < dims.size(); ++i)
      for (int64_t by : {-1, 1}) {
        Dims other = dims;
        other[i].second += by;
        if (other[i].second > 1 && attempt(other, {}).complete)
          return false;
      }
    return true;
  }

  ModelFile &file;
  const ImportOptions &options;
  MLIRContext *context;
  Weights &weights;      ///< do not depend on dimensions: decided once
  std::set<Dims> others; ///< all with which the last step completed
  int64_t trials = 0, nodes = 0;
  bool hasMoved = false; ///< has find() got past the first failure?
};

/// No dimension is known to clash.
std::string explainOtherClash(const ImportOptions &options, const Prober &prober) {
  std::string names;
  for (const auto &[i, dim] : llvm::enumerate(options.dims))
    names += (i == 0 ? "" : i + 1 == options.dims.size() ? " or " : ", ") + quoted(dim.first);
  if (names.empty() || !prober.isStuck())
    return "; the model may have been traced with fixed sizes: " + exportDynamically("it");
  return "; no size of " + names +
         " that these shapes suggest makes it fit, so the exporter has probably written a wrong "
         "constant: " +
         exportDynamically("the model");
}

/// If no size works: the dimension that clashes with a size in the file.
std::string explainClash(const ImportOptions &options, const Importer::Failure &failure,
                         Prober &prober) {
  std::string text;
  auto [here, inFile] = failure.clash;
  auto fixAll = [&](int64_t size, int64_t other) {
    Dims fixed;
    for (const auto &[name, value] : options.dims)
      if (value == size && size > 1) {
        text += (text.empty() ? "" : " or ") + quoted(name);
        fixed.push_back({name, other});
      }
    return fixed;
  };
  Dims fixed = fixAll(here, inFile), others = fixAll(inFile, here);
  if (fixed.empty() == others.empty()) // none, or the sizes of two
    return explainOtherClash(options, prober);
  if (fixed.empty()) {
    std::swap(here, inFile);
    fixed = others;
  }
  if (!prober.getsFurther(fixed, failure)) // the other is equal to it by chance
    return explainOtherClash(options, prober);
  return "; " + text + " is " + std::to_string(here) + " here and " + std::to_string(inFile) +
         " in the file, so tracing has fixed it, or the exporter has written a wrong constant: " +
         exportDynamically("the model");
}

} // namespace

std::string explainFixedDims(ModelFile &file, const ImportOptions &options, MLIRContext *context,
                             const Importer::Failure &failure, Weights &weights) {
  Prober prober(file, options, context, weights);
  Dims fixed = prober.find(failure);
  if (fixed.empty())
    return failure.shapesClash ? explainClash(options, failure, prober) : "";
  std::string text, way;
  if (prober.isOneOfSeveral()) {
    llvm::SmallVector<std::string> names = prober.candidates(fixed);
    for (const auto &[i, name] : llvm::enumerate(names))
      text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + quoted(name);
    return "; the export has fixed " + text +
           ", and several sizes would make it fit: declare each dimension that varies " +
           inDynamicShapes(/*isOne=*/true);
  }
  for (const auto &[name, size] : fixed) {
    text += (text.empty() ? "" : " and ") + quoted(name) + " at " + std::to_string(size);
    way += (way.empty() ? "--dim " : " --dim ") + name + "=" + std::to_string(size);
  }
  return std::string("; the export ") + (prober.isSpent() ? "may have fixed " : "has fixed ") +
         text + " (with " + way + " the model can be imported): declare " +
         (fixed.size() == 1 ? "it" : "them") + " " + inDynamicShapes(fixed.size() == 1);
}

} // namespace partita::importer
