//===- Plan.cpp - values of plan options, and a plan of them ----------------------------------===//

#include "partita/Phases/Plan.h"
#include "dialects/Par/Par.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "partita/Stages/ParseCuts.h"
#include "partita/Support/ParseBytes.h"
#include "partita/Support/Sparsity.h"
#include "runtime/include/partita_rt/lr_schedule_text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace partita;

static bool parseReal(StringRef text, double &value) {
  return !text.empty() && !text.getAsDouble(value) && std::isfinite(value);
}

/// As few digits as say what it is.
static std::string numberText(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.9g", value);
  return text;
}

static std::string checkMesh(StringRef text) {
  SmallVector<StringRef> items, seen;
  text.split(items, ',', -1, /*KeepEmpty=*/true);
  if (text.empty())
    return {};
  for (StringRef item : items) {
    auto [axis, size] = item.split('=');
    int64_t count;
    if (axis.empty() || size.empty() || size.getAsInteger(10, count))
      return ("'" + item + "' is not an axis with its size, such as dp=2").str();
    if (!par::findAxis(axis))
      return ("there is no mesh axis '" + axis + "'; there are " +
              llvm::join(llvm::map_range(par::kAxes,
                                         [](const par::AxisRow &each) {
                                           return (each.name + " (" + each.what + ")").str();
                                         }),
                         ", "))
          .str();
    if (count < 1 || count > 65536)
      return ("axis '" + axis + "' has size " + size + ", which is not within 1 to 65536").str();
    if (par::splits(axis, par::Splits::Program) && count > pipe::PipeDialect::kMaxStages)
      return ("axis '" + axis + "' has size " + size + "; there are at most " +
              Twine(pipe::PipeDialect::kMaxStages) + " pipeline stages")
          .str();
    if (llvm::is_contained(seen, axis))
      return ("axis '" + axis + "' is given twice").str();
    seen.push_back(axis);
  }
  return {};
}

static std::string checkCuts(const PlanOption &option, StringRef text) {
  SmallVector<StringRef> words;
  StringRef(option.value).split(words, '|');
  if (llvm::is_contained(words, text) && !text.contains(':'))
    return {};
  if (!text.consume_front("cuts:"))
    return ("'" + text + "' is not one of " + llvm::join(words, ", ")).str();
  std::string problem;
  (void)stages::parseCuts(text, problem);
  return problem;
}

/// Empty, or two numbers that `problem` finds nothing wrong with.
static std::string checkPair(StringRef text,
                             llvm::function_ref<std::string(double, double)> problem) {
  if (text.empty())
    return {};
  auto [first, second] = text.split(',');
  double a, b;
  if (!parseReal(first, a) || !parseReal(second, b))
    return ("'" + text + "' is not two numbers separated by a comma").str();
  return problem(a, b);
}

static std::string checkBetas(double first, double second) {
  for (double beta : {first, second})
    if (beta < 0 || beta >= 1)
      return llvm::formatv("{0} is not within [0, 1)", beta).str();
  return {};
}

static std::string checkBounds(double least, double most) {
  if (least < 0)
    return llvm::formatv("the lower bound is {0}, below 0", numberText(least));
  if (most < least)
    return llvm::formatv("the lower bound, {0}, is above the upper one, {1}", numberText(least),
                         numberText(most));
  if (most == 0)
    return "the upper bound is 0, with which no parameter would move";
  return {};
}

/// A name of the model, as far as it can stand in a pipeline's text.
static bool isName(StringRef text) {
  return !text.empty() && text.find_first_of(" \t\n{}(),\"'=") == StringRef::npos;
}

static std::string checkWords(const PlanOption &option, StringRef text) {
  SmallVector<StringRef> words;
  text.split(words, ',', -1, /*KeepEmpty=*/true);
  if (text.empty())
    return {};
  for (StringRef word : words) {
    auto [name, value] = word.rsplit('=');
    if (option.kind == PlanOption::List && !isName(word))
      return ("'" + word + "' is not a word without spaces, quotes and brackets").str();
    if (option.kind == PlanOption::Bindings && (!isName(name) || !isName(value)))
      return ("'" + word + "' is not of the form " + StringRef(option.value).split(',').first +
              ", without spaces, quotes and brackets")
          .str();
  }
  return {};
}

static std::string checkGroups(StringRef text) {
  SmallVector<StringRef> words;
  text.split(words, ',', -1, /*KeepEmpty=*/true);
  for (StringRef word : text.empty() ? ArrayRef<StringRef>() : ArrayRef(words))
    if (!word.contains(':') || !word.contains('=') ||
        word.find_first_of(" \t\n{}()\"'") != StringRef::npos)
      return ("'" + word +
              "' is not of the form PATTERN:KEY=NUMBER, without spaces, quotes and "
              "brackets")
          .str();
  return {};
}

static std::string checkChosen(const PlanOption &option, StringRef text) {
  SmallVector<StringRef> words, known, seen;
  StringRef(option.value).split(known, ',');
  text.split(words, ',', -1, /*KeepEmpty=*/true);
  for (StringRef word : text.empty() ? ArrayRef<StringRef>() : ArrayRef(words)) {
    if (!llvm::is_contained(known, word))
      return ("'" + word + "' is not one of " + llvm::join(known, ", ")).str();
    if (llvm::is_contained(seen, word))
      return ("'" + word + "' is given twice").str();
    seen.push_back(word);
  }
  return {};
}

static std::string checkNamed(const PlanOption &option, StringRef text) {
  auto [word, name] = text.split(':');
  SmallVector<StringRef> values;
  StringRef(option.value).split(values, '|');
  if (!llvm::is_contained(values, word))
    return ("'" + word + "' is not one of " + llvm::join(values, ", ")).str();
  if (text.contains(':') && !isName(name))
    return ("'" + name + "' is not a name without spaces, quotes and brackets").str();
  return {};
}

/// What PyTorch, DeepSpeed and Hugging Face call the types that a Choice is among.
static constexpr std::pair<StringLiteral, StringLiteral> kOtherNames[] = {{"fp32", "float32"},
                                                                          {"float", "float32"},
                                                                          {"bf16", "bfloat16"},
                                                                          {"fp16", "float16"},
                                                                          {"half", "float16"}};

static StringRef fullName(StringRef type) {
  for (auto [other, name] : kOtherNames)
    if (type == other)
      return name;
  return type;
}

static SmallVector<StringRef> choices(const PlanOption &option) {
  SmallVector<StringRef> values;
  StringRef(option.value).split(values, '|');
  return values;
}

static bool isChoice(const PlanOption &option, StringRef text) {
  return llvm::is_contained(choices(option), text);
}

/// "float32 (also fp32, float), bfloat16 (also bf16)"
static std::string choicesText(const PlanOption &option) {
  return llvm::join(llvm::map_range(choices(option),
                                    [](StringRef value) {
                                      std::string others;
                                      for (auto [other, name] : kOtherNames)
                                        if (name == value)
                                          others +=
                                              (others.empty() ? " (also " : ", ") + other.str();
                                      return value.str() + others + (others.empty() ? "" : ")");
                                    }),
                    ", ");
}

static bool isSize(const PlanOption &option) {
  return option.kind == PlanOption::Bytes || option.kind == PlanOption::Elements;
}

static std::optional<int64_t> parseSize(const PlanOption &option, StringRef text,
                                        std::string *problem = nullptr) {
  return option.kind == PlanOption::Bytes ? parseBytes(text, problem)
                                          : parseElements(text, problem);
}

std::string partita::plainPlanValue(const PlanOption &option, StringRef text) {
  if (option.kind == PlanOption::Choice && isChoice(option, fullName(text)))
    return fullName(text).str();
  if (isSize(option))
    if (std::optional<int64_t> size = parseSize(option, text))
      return std::to_string(*size);
  return text.str();
}

void Plan::set(StringRef name, StringRef value) {
  const PlanOption *option = findPlanOption(name);
  values[name] = option ? plainPlanValue(*option, value) : value.str();
}

std::string partita::checkPlanValue(const PlanOption &option, StringRef text) {
  switch (option.kind) {
  case PlanOption::Named:
    return checkNamed(option, text);
  case PlanOption::Text:
    return text.empty() || isName(text)
               ? ""
               : ("'" + text + "' is not a name without spaces, quotes and brackets").str();
  case PlanOption::Words:
    return checkChosen(option, text);
  case PlanOption::List:
  case PlanOption::Bindings:
    return checkWords(option, text);
  case PlanOption::Mesh:
    return checkMesh(text);
  case PlanOption::Cuts:
    return checkCuts(option, text);
  case PlanOption::Groups:
    return checkGroups(text);
  case PlanOption::Betas:
    return checkPair(text, checkBetas);
  case PlanOption::Bounds:
    return checkPair(text, checkBounds);
  case PlanOption::Sparsity: {
    Sparsity sparsity;
    return text.empty() ? "" : parseSparsity(text, sparsity);
  }
  case PlanOption::Schedule: {
    partita_rt::LrSchedule schedule;
    return partita_rt::parseLrSchedule(text.str(), schedule);
  }
  case PlanOption::Flag:
    return text == "true" || text == "false" ? "" : ("'" + text + "' is not true or false").str();
  case PlanOption::Choice: {
    if (isChoice(option, fullName(text)))
      return {};
    return ("'" + text + "' is not one of " + choicesText(option)).str();
  }
  case PlanOption::Integer: {
    int64_t value;
    if (text.getAsInteger(10, value))
      return ("'" + text + "' is not an integer").str();
    if (value < option.low || value > option.high)
      return llvm::formatv("{0} is not within {1} to {2}", value, int64_t(option.low),
                           int64_t(option.high));
    return {};
  }
  case PlanOption::Bytes:
  case PlanOption::Elements: {
    std::string problem;
    std::optional<int64_t> size = parseSize(option, text, &problem);
    if (!size)
      return problem;
    if (*size > option.high)
      return ("'" + text + "' is more than " + numberText(option.high) +
              (option.kind == PlanOption::Bytes ? " bytes" : " elements"))
          .str();
    return {};
  }
  case PlanOption::Rate:
    return partita_rt::numberProblem(text.str(), option.low, option.high);
  case PlanOption::Real: {
    double value;
    if (text.empty() && option.initial.empty())
      return {};
    if (!parseReal(text, value))
      return ("'" + text + "' is not a number").str();
    if (value < option.low || value > option.high)
      return (text + " is not within " + numberText(option.low) + " to " + numberText(option.high))
          .str();
    return {};
  }
  }
  return {};
}

/// FSDP's strategies are stages by other names; zero-shard-parameters checks that both agree.
static StringRef stageOf(StringRef strategy) {
  return strategy == "full-shard" || strategy == "shard-grad-op" ? "3" : "0";
}

StringRef Plan::get(StringRef name) const {
  auto found = values.find(name);
  if (found != values.end())
    return found->second;
  if (name == "zero-stage" && isSet("fsdp-strategy"))
    return stageOf(get("fsdp-strategy"));
  const PlanOption *option = findPlanOption(name);
  return option ? StringRef(option->initial) : StringRef();
}

/// hpZ makes these of dp: between groups of ranks, and within them.
static constexpr StringLiteral kGroups = par::axisThatSplits(par::Splits::Batch), kGroup = "fsdp";

int64_t Plan::ofGroup() const {
  int64_t group = 1;
  return get(kHpz).getAsInteger(10, group) || group == 1 || groupProblem() ? 1 : group;
}

/// Returns the sizes of groups that so many ranks can be cut into: "2 or 3 would".
static std::string goodGroups(int64_t ranks) {
  SmallVector<std::string> sizes;
  for (int64_t size = 2; size < ranks; ++size)
    if (ranks % size == 0)
      sizes.push_back(std::to_string(size));
  return sizes.empty() ? llvm::formatv("no number but 1 (off) and {0} (all) would", ranks).str()
                       : llvm::join(sizes, " or ") + " would";
}

std::optional<std::string> Plan::groupProblem() const {
  int64_t group = 1, ranks = 1, sharing = 1;
  (void)get(kHpz).getAsInteger(10, group); // checked with the option
  for (const auto &[axis, size] : mesh()) {
    ranks = axis == kGroups ? size : ranks;
    sharing = axis == kGroup ? size : sharing;
  }
  if (sharing > 1)
    return llvm::formatv(
        "fsdp={0} keeps the state within groups of {0} ranks already, which no gather leaves; leave one of "
        "them out, and give all {1} data-parallel ranks as dp",
        sharing, ranks * sharing);
  if (ranks == 1)
    return "has no effect without data parallelism (--mesh dp=4): no gather leaves a group of one rank";
  if (ranks % group != 0)
    return llvm::formatv("{0} does not divide the {1} ranks of dp into groups; {2}", group, ranks,
                         goodGroups(ranks));
  if (ranks == group)
    return llvm::formatv(
        "has no effect on the {0} ranks of dp, which are one group of {0}: no gather leaves it",
        ranks);
  return std::nullopt;
}

/// The number of stages, the place of their axis among the axes, and the other axes as text: the
/// mesh of the program, which is that of one stage.
static std::tuple<int64_t, int64_t, std::string> splitMesh(const Plan &plan) {
  int64_t stages = 1, place = 0;
  SmallVector<std::string> others;
  int64_t group = plan.ofGroup();
  for (const auto &[axis, size] : plan.mesh()) {
    if (group > 1 && axis == kGroups) {
      others.push_back(axis + "=" + std::to_string(size / group));
      others.push_back(kGroup.str() + "=" + std::to_string(group));
      continue;
    }
    if (group > 1 && axis == kGroup) // of one rank
      continue;
    if (!par::splits(axis, par::Splits::Program)) {
      others.push_back(axis + "=" + std::to_string(size));
      continue;
    }
    stages = size;
    place = others.size();
  }
  return {stages, place, llvm::join(others, ",")};
}

/// The ranks that may share a sequence in a ring. That is a hint, for a phase after which the mesh may still be chosen.
static int64_t ringRanks(const Plan &plan) {
  int64_t ranks = 1;
  for (const auto &[axis, size] : plan.mesh())
    if (plan.get("context-parallel") != "all-to-all" && axis == par::kContextAxis)
      ranks *= size;
  return ranks;
}

std::string Plan::textFor(StringRef placeholder) const {
  if (placeholder == "ring-ranks")
    return std::to_string(ringRanks(*this));
  auto [option, part] = placeholder.split('.');
  if (part.empty())
    return get(option).str();
  auto [stages, place, others] = splitMesh(*this);
  return part == "stages" ? std::to_string(stages)
         : part == "axis" ? std::to_string(place)
                          : others;
}

std::vector<std::pair<std::string, int64_t>> Plan::mesh() const {
  std::vector<std::pair<std::string, int64_t>> axes;
  SmallVector<StringRef> items;
  get("mesh").split(items, ',', -1, /*KeepEmpty=*/false);
  for (StringRef item : items) {
    auto [axis, size] = item.split('=');
    int64_t count = 1;
    (void)size.getAsInteger(10, count); // checked with the option
    axes.push_back({axis.str(), count});
  }
  return axes;
}

int64_t Plan::stages() const { return std::get<0>(splitMesh(*this)); }

void Plan::setUnpartitioned() {
  for (const PlanOption &option : planOptions())
    if (option.unpartitioned)
      set(option.name, option.unpartitioned);
}

Attribute Plan::toAttribute(MLIRContext *context) const {
  SmallVector<NamedAttribute> entries;
  for (const PlanOption &option : planOptions())
    entries.push_back(
        {StringAttr::get(context, option.name), StringAttr::get(context, get(option.name))});
  return train::PlanAttr::get(context, DictionaryAttr::get(context, entries));
}

std::string Plan::fromAttribute(Attribute attribute) {
  auto plan = dyn_cast_or_null<train::PlanAttr>(attribute);
  if (!plan)
    return "the module's train.plan is not a #train.plan";
  for (NamedAttribute entry : plan.getOptions()) {
    const PlanOption *option = findPlanOption(entry.getName());
    auto value = dyn_cast<StringAttr>(entry.getValue());
    if (!option || !value)
      return ("there is no plan option '" + entry.getName().getValue() + "'").str();
    if (std::string problem = checkPlanValue(*option, value); !problem.empty())
      return (entry.getName().getValue() + ": " + problem).str();
    set(option->name, value.getValue());
  }
  return {};
}
