//===- RunLog.cpp - the log of a run ----------------------------------------------------------===//

#include "tools/partita/Report/RunLog.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace partita::tool;

std::vector<std::optional<double>> RunLog::column(StringRef name) const {
  std::vector<std::optional<double>> cells;
  auto found = find(columns, name);
  if (found != columns.end())
    for (const auto &row : rows)
      cells.push_back(row[size_t(found - columns.begin())]);
  return cells;
}

/// Splits a line into cells. A comma in a quoted cell belongs to the cell.
static SmallVector<StringRef> cellsOf(StringRef line) {
  SmallVector<StringRef> cells;
  size_t begin = 0;
  bool quoted = false;
  for (size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"')
      quoted = !quoted;
    if (i == line.size() || (line[i] == ',' && !quoted)) {
      cells.push_back(line.slice(begin, i));
      begin = i + 1;
    }
  }
  return cells;
}

/// Reads a line's numbers (nothing for the one column of names); returns false if it is not a line
/// of a log. Step, loss, rate and speed are always present.
static bool readLine(StringRef line, ArrayRef<std::string> columns,
                     std::vector<std::optional<double>> &row) {
  SmallVector<StringRef> cells = cellsOf(line);
  if (cells.size() != columns.size())
    return false;
  for (auto [cell, name] : zip(cells, columns)) {
    double value = 0;
    if (name == "first_nonfinite")
      cell = "";
    if (!cell.empty() && cell.getAsDouble(value))
      return false;
    row.push_back(cell.empty() ? std::nullopt : std::optional(value));
  }
  int64_t step;
  return !cells[0].getAsInteger(10, step) && row[1] && row[3] && row[4];
}

std::string RunLog::read(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return (path + ": " + buffer.getError().message()).str();
  SmallVector<StringRef> lines, names;
  (*buffer)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  if (!lines.empty())
    lines[0] = lines[0].rtrim('\r');
  constexpr StringLiteral kFirst =
      "step,loss,gradient_norm,learning_rate,tokens_per_second,validation_loss";
  if (lines.empty() || !(lines[0] == kFirst || lines[0].starts_with((kFirst + ",").str())))
    return (path + ": is not the log of a run: its first line does not begin with '" + kFirst + "'")
        .str();
  lines[0].split(names, ',');
  for (StringRef name : names)
    columns.push_back(name.str());
  for (auto [index, line] : enumerate(ArrayRef(lines).drop_front()))
    if (!readLine(line.rtrim('\r'), columns, rows.emplace_back()))
      return (path + ":" + Twine(index + 2) + ": '" + line.take_front(200) +
              "' is not a line of a log with " + Twine(columns.size()) + " columns")
          .str();
  return {};
}

StringRef partita::tool::unitOf(const json::Object &manifest) {
  const json::Array *inputs = manifest.getArray("inputs");
  if (!inputs)
    return "tokens"; // older manifests lack the unit
  return any_of(*inputs,
                [](const json::Value &value) {
                  const json::Object *input = value.getAsObject();
                  const json::Array *shape = input ? input->getArray("shape") : nullptr;
                  return shape && input->getString("role") == "ids" && shape->size() == 2 &&
                         (*shape)[1].getAsInteger().value_or(0) > 1;
                })
             ? "tokens"
             : "samples";
}
