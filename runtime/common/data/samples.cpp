// Windows of token files and columns of safetensors files (samples.h).

#include "common/data/samples.h"

#include "common/data/packed_rows.h"
#include "partita_rt/fingerprint.h"
#include "partita_rt/nearest.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace partita_rt {

namespace {

const Input *inputOf(const Program &program, InputRole role) {
  for (const Input &input : program.inputs)
    if (input.role == role)
      return &input;
  return nullptr;
}

bool isConstant(InputRole role) {
  return role == InputRole::PositionIds || role == InputRole::Ones || role == InputRole::Zeros;
}

/// "'a', 'b', 'c' and 4 more"
std::string listed(const std::vector<std::string> &names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i)
    text += (i ? ", " : "") + names[i];
  return names.size() > kMost ? text + " and " + std::to_string(names.size() - kMost) + " more"
                              : text;
}

/// " (did you mean 'labels'?)" if a name is close to one of these; else "".
std::string suggestionFor(const std::string &name, const std::vector<std::string> &known) {
  if (known.empty())
    return "";
  std::string nearest = nearestOf(name, known);
  bool isClose = 3 * size_t(editDistance(name, nearest)) <= std::max(name.size(), nearest.size());
  return isClose ? " (did you mean '" + nearest + "'?)" : "";
}

/// Writes the numbers that successive calls of `next` return, as `dtype`.
template <typename Next> void write(void *out, DType dtype, int64_t n, Next next) {
  auto all = [&](auto *to) {
    for (int64_t i = 0; i < n; ++i)
      to[i] = static_cast<std::remove_pointer_t<decltype(to)>>(next(i));
  };
  switch (dtype) {
  case DType::Int64:
    return all(static_cast<int64_t *>(out));
  case DType::Int32:
    return all(static_cast<int32_t *>(out));
  case DType::Float32:
    return all(static_cast<float *>(out));
  case DType::Bool:
    return all(static_cast<uint8_t *>(out));
  default:
    fail("an input cannot be filled as %s", nameOf(dtype));
  }
}

//===-- Windows of tokens -------------------------------------------------------------------===//

/// Fails if the program needs more than tokens: a token file fills ids and labels only.
static int64_t checkedVocabulary(const std::string &argument, const char *option,
                                 const Program &program) {
  std::string missing, columns, hint;
  auto append = [](std::string &list, const char *name) {
    list += (list.empty() ? "'" : ", '") + std::string(name) + "'";
  };
  int64_t vocabulary = vocabularyOf(program);
  for (const Input &input : program.inputs) {
    if (isConstant(input.role) || input.role == InputRole::Shifted)
      continue; // filled without data, or from the tokens
    append(columns, input.name);
    bool isData = input.role == InputRole::Data;
    if (isData || input.role == InputRole::Targets)
      append(missing, input.name);
    if (isData)
      hint = ", or compile with --input NAME=ones, zeros or positions for what these fill";
  }
  if (!missing.empty())
    fail("%s: %s has tokens alone, and this program reads %s too: give a .safetensors file with "
         "the columns %s, one row per sample%s",
         option, argument.c_str(), missing.c_str(), columns.c_str(), hint.c_str());
  return vocabulary;
}

class TokenWindows : public Samples {
public:
  TokenWindows(const std::string &argument, const char *option, const Program &program)
      : file(argument, option, checkedVocabulary(argument, option, program)) {
    sequence = inputOf(program, InputRole::TokenIds)->globalShape[1];
    windows = (file.tokens() - 1) / sequence;
  }

  int64_t count() const override { return windows; }
  std::string text() const override {
    return std::to_string(file.tokens()) + " tokens give " + std::to_string(windows) +
           " samples of " + std::to_string(sequence) + " + 1 tokens";
  }
  std::string identity() const override { return file.identity(); }
  bool provides(const Input &input) const override {
    return input.role == InputRole::TokenIds || input.role == InputRole::Labels ||
           input.role == InputRole::Shifted;
  }
  /// Labels start one token later than ids. Labels shifted by one are the window itself again, with
  /// the filler in place of the first token.
  void read(const Input &input, int64_t sample, int64_t first, int64_t n,
            void *out) const override {
    int64_t start = sample * sequence + first + (input.role == InputRole::Labels ? 1 : 0);
    bool fills = input.role == InputRole::Shifted && first == 0;
    write(out, input.dtype, n,
          [&](int64_t i) { return fills && i == 0 ? input.filler : file.token(start + i); });
  }

private:
  TokenFile file;
  int64_t sequence = 0, windows = 0;
};

//===-- Packed rows -------------------------------------------------------------------------===//

class PackedTokens : public Samples {
public:
  PackedTokens(const std::string &argument, const char *option, const Program &program)
      : file(argument, option, checkedVocabulary(argument, option, program)),
        sequence(inputOf(program, InputRole::TokenIds)->globalShape[1]), end(program.documentEnd),
        packed(file, option, dataPath(argument), sequence, end) {}

  int64_t count() const override { return packed.rows(); }
  std::string text() const override {
    return std::to_string(file.tokens()) + " tokens of " + std::to_string(packed.documents()) +
           " documents" +
           (packed.emptyDocuments()
                ? " and " + std::to_string(packed.emptyDocuments()) + " of a single token"
                : "") +
           " give " + std::to_string(packed.rows()) + " samples of " + std::to_string(sequence) +
           " tokens, " + std::to_string(packed.padding()) + " of them padding";
  }
  std::string identity() const override { return file.identity(); }
  bool provides(const Input &input) const override {
    return input.role == InputRole::TokenIds || input.role == InputRole::Labels;
  }
  void read(const Input &input, int64_t sample, int64_t first, int64_t n,
            void *out) const override {
    std::vector<int64_t> tokens(static_cast<size_t>(n));
    bool isLabel = input.role == InputRole::Labels;
    packed.forTokens(sample, first, n, [&](int64_t i, int64_t position) {
      int64_t token = position < 0 ? end : file.token(position);
      bool hasLabel = token != end && position + 1 < file.tokens();
      tokens[size_t(i)] = !isLabel ? token : hasLabel ? file.token(position + 1) : input.filler;
    });
    write(out, input.dtype, n, [&](int64_t i) { return tokens[size_t(i)]; });
  }

private:
  TokenFile file;
  int64_t sequence, end;
  PackedRows packed;
};

//===-- Columns -----------------------------------------------------------------------------===//

class Columns : public Samples {
public:
  Columns(const std::string &path, const char *option, const Program &program)
      : option(option), file(path), documentEnd(program.documentEnd),
        ids(inputOf(program, InputRole::TokenIds)), targets(inputOf(program, InputRole::Targets)) {
    if (!targets)
      targets = inputOf(program, InputRole::Labels);
    if (const Input *shifted = inputOf(program, InputRole::Shifted); shifted && !targets) {
      implied = *shifted; // a program without targets, for inference only
      implied.name = "labels";
      implied.role = InputRole::Targets;
      implied.filler = -100;
      targets = &implied;
    }
    for (const Input &input : program.inputs) {
      noteName(input.name);
      if (file.find(input.name))
        checkColumn(input);
      else if (isConstant(input.role))
        constants.push_back(&input);
      else if (!derived(input))
        fail("%s: %s has no column '%s' (%s); it has %s", option, path.c_str(), input.name,
             toString(input.globalShape).c_str(), names().c_str());
    }
    if (targets == &implied)
      noteName(implied.name);
    if (rows == 0)
      fail("%s: %s has no samples", option, path.c_str());
    if (rows < 0)
      rows = 1; // no column has a batch dimension
  }

  int64_t count() const override { return rows; }
  std::string text() const override { return "the file has " + std::to_string(rows) + " samples"; }
  std::string identity() const override {
    const MappedFile &bytes = file.mapped();
    return std::to_string(rows) + " samples with fingerprint " +
           fingerprintText(fingerprint(bytes.data(), bytes.size(), kDataFingerprintBytes));
  }
  bool provides(const Input &input) const override {
    return file.find(input.name) || derived(input);
  }
  std::string warning() const override {
    std::vector<std::string> ignored, quoted, optional;
    for (const auto &[name, tensor] : file.tensors())
      if (std::find(columns.begin(), columns.end(), name) == columns.end())
        ignored.push_back("'" + name + "'" + suggestionFor(name, absent));
    if (ignored.empty())
      return "";
    for (const std::string &name : columns)
      quoted.push_back("'" + name + "'");
    for (const std::string &name : absent)
      optional.push_back("'" + name + "'");
    return option + ": nothing reads column" + (ignored.size() > 1 ? "s " : " ") + listed(ignored) +
           " of " + file.path() + "; the program reads " +
           (quoted.empty() ? "none" : listed(quoted)) +
           (optional.empty() ? "" : ", and " + listed(optional) + " if the file has such columns");
  }
  std::string filled() const override {
    std::string text;
    for (const Input *input : constants)
      text += (text.empty() ? option + ": " + file.path() + " has no column '" : "; no column '") +
              std::string(input->name) + "', which is filled with " +
              (input->role == InputRole::Ones    ? "ones"
               : input->role == InputRole::Zeros ? "zeros"
                                                 : "positions");
    return text;
  }

  void read(const Input &input, int64_t sample, int64_t first, int64_t n,
            void *out) const override {
    if (file.find(input.name))
      return write(out, input.dtype, n,
                   [&](int64_t i) { return number(input, sample, first + i); });
    // Labels are the next elements of `ids`; shifted inputs are the previous ones of `targets`.
    const Input &from = input.role == InputRole::Labels ? *ids : *targets;
    int64_t step = input.role == InputRole::Labels ? 1 : -1, size = from.globalShape[1];
    write(out, input.dtype, n, [&](int64_t i) {
      int64_t at = first + i + step;
      bool ends =
          step > 0 && documentEnd >= 0 && number(from, sample, at - 1) == double(documentEnd);
      double value =
          !ends && at >= 0 && at < size ? number(from, sample, at) : double(input.filler);
      bool ignored = step < 0 && value == double(from.filler);
      return ignored ? double(input.filler) : value;
    });
  }

private:
  bool derived(const Input &input) const {
    const Input *from = input.role == InputRole::Labels    ? ids
                        : input.role == InputRole::Shifted ? targets
                                                           : nullptr;
    return from && file.find(from->name) && input.globalShape.rank == 2 &&
           from->globalShape == input.globalShape;
  }

  void noteName(const std::string &name) { (file.find(name) ? columns : absent).push_back(name); }

  std::string names() const {
    std::string text;
    for (const auto &[name, tensor] : file.tensors())
      text += (text.empty() ? "" : ", ") + name + " " + toString(tensor.shape);
    return text.empty() ? "none" : text;
  }

  /// Checks for one row per sample or, for an input without a batch dimension, for the full input.
  void checkColumn(const Input &input) {
    const StoredTensor &column = *file.find(input.name);
    Shape wanted = input.globalShape;
    if (input.batched)
      wanted.dims[0] = column.shape.rank > 0 ? column.shape[0] : 0;
    if (column.shape != wanted)
      fail("%s: %s: column '%s' is %s, the program needs %s%s", option.c_str(), file.path().c_str(),
           input.name, toString(column.shape).c_str(), toString(input.globalShape).c_str(),
           input.batched ? " with any number of samples first" : "");
    if (isFloat(column.dtype) && input.dtype != DType::Float32)
      fail("%s: %s: column '%s' is %s, the program needs %s", option.c_str(), file.path().c_str(),
           input.name, nameOf(column.dtype), nameOf(input.dtype));
    if (!input.batched)
      return;
    if (rows >= 0 && rows != wanted[0])
      fail("%s: %s: column '%s' has %lld samples, the others have %lld", option.c_str(),
           file.path().c_str(), input.name, (long long)wanted[0], (long long)rows);
    rows = wanted[0];
  }

  /// Returns element `at` of a sample's row. Tokens and labels are checked: files are untrusted.
  double number(const Input &input, int64_t sample, int64_t at) const {
    const StoredTensor &column = *file.find(input.name);
    int64_t width = 1;
    for (int d = input.batched ? 1 : 0; d < input.globalShape.rank; ++d)
      width *= input.globalShape[d];
    double value = element(column, (input.batched ? sample * width : 0) + at);
    bool ignored = value == double(input.filler);
    if (input.vocabulary > 0 && !ignored && !(value >= 0 && value < double(input.vocabulary)))
      fail("%s: %s: '%s' of sample %lld is %.0f, which is not within 0 to %lld", option.c_str(),
           file.path().c_str(), input.name, (long long)sample, value,
           (long long)input.vocabulary - 1);
    return value;
  }

  static double element(const StoredTensor &column, int64_t index) {
    const unsigned char *at = column.data + index * sizeOf(column.dtype);
    auto as = [&](auto value) {
      std::memcpy(&value, at, sizeof(value));
      return double(value);
    };
    switch (column.dtype) {
    case DType::Int64:
      return as(int64_t());
    case DType::Int32:
      return as(int32_t());
    case DType::UInt32:
      return as(uint32_t());
    case DType::UInt16:
      return as(uint16_t());
    case DType::UInt8:
    case DType::Bool:
      return as(uint8_t());
    default:
      float value;
      convertToFloat(&value, at, column.dtype, 1);
      return double(value);
    }
  }

  std::string option;
  SafetensorsFile file;
  int64_t documentEnd;
  const Input *ids, *targets;
  Input implied{};
  int64_t rows = -1;
  std::vector<std::string> columns, absent; ///< names of inputs that the file has, and lacks
  std::vector<const Input *> constants;     ///< inputs that are filled by their role
};

} // namespace

std::unique_ptr<Samples> openSamples(const std::string &argument, const char *option,
                                     const Program &program) {
  const std::string ending = ".safetensors";
  if (argument.size() > ending.size() &&
      argument.compare(argument.size() - ending.size(), ending.size(), ending) == 0)
    return std::make_unique<Columns>(argument, option, program);
  if (program.documentEnd >= 0)
    return std::make_unique<PackedTokens>(argument, option, program);
  return std::make_unique<TokenWindows>(argument, option, program);
}

} // namespace partita_rt
