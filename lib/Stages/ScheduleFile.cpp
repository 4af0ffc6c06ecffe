//===- ScheduleFile.cpp - a user's own schedule --------------------------------------------------===//

#include "partita/Stages/Schedule.h"
#include "partita/Support/ParseJson.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace partita::stages;
namespace json = llvm::json;

std::string partita::stages::slotText(const Slot &slot) {
  return train::rowOf(slot.kind).letter + std::to_string(slot.microBatch) +
         (slot.chunk > 0 ? "." + std::to_string(slot.chunk) : "");
}

std::optional<Slot> partita::stages::parseSlot(llvm::StringRef text) {
  const train::PassKindRow *row =
      llvm::find_if(train::kPassKinds, [&](const train::PassKindRow &each) {
        return text.starts_with(llvm::StringRef(&each.letter, 1));
      });
  if (row == std::end(train::kPassKinds))
    return std::nullopt;
  text = text.drop_front();
  Slot slot{{row->kind}};
  auto isWrong = [](llvm::StringRef digits, int64_t &number) {
    return digits.getAsInteger(10, number) || number < 0 || number >= 1 << 20 ||
           digits != std::to_string(number); // "01"
  };
  auto [microBatch, chunk] = text.split('.');
  if (isWrong(microBatch, slot.microBatch) || (text.contains('.') && isWrong(chunk, slot.chunk)))
    return std::nullopt;
  return slot;
}

std::optional<Schedule> partita::stages::parseSchedule(llvm::StringRef text, std::string &problem) {
  auto wrong = [&](const llvm::Twine &what) -> std::optional<Schedule> {
    problem = what.str();
    return std::nullopt;
  };
  llvm::Expected<json::Value> value = parseJson(text);
  if (!value)
    return wrong("the schedule cannot be read: " + llvm::toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  const json::Array *stages = object ? object->getArray("slots") : nullptr;
  if (!stages || stages->empty())
    return wrong("the schedule has no \"slots\", a list of slots for each stage");
  for (const auto &[key, member] : *object)
    if (key != "slots" && key != "chunks" && key != "wave")
      return wrong("the schedule has \"" + key.str() + "\", expected slots, chunks, wave");
  Schedule schedule;
  schedule.stages = static_cast<int>(stages->size());
  if (const json::Value *chunks = object->get("chunks")) {
    std::optional<int64_t> number = chunks->getAsInteger();
    if (!number || *number < 1 || *number > 1 << 10)
      return wrong("\"chunks\" is not an integer from 1 to 1024");
    schedule.chunks = static_cast<int>(*number);
  }
  if (const json::Value *wave = object->get("wave")) {
    if (!wave->getAsBoolean())
      return wrong("\"wave\" is neither true nor false");
    schedule.isWave = *wave->getAsBoolean();
    if (schedule.isWave && schedule.chunks == 1)
      return wrong("\"wave\" needs \"chunks\" of 2 or more: it is the order of a stage's chunks");
  }
  for (const auto &[number, list] : llvm::enumerate(*stages)) {
    std::vector<Slot> &slots = schedule.slots.emplace_back();
    if (!list.getAsArray())
      return wrong("stage " + llvm::Twine(number) + " has no list of slots");
    for (const json::Value &each : *list.getAsArray()) {
      std::optional<Slot> slot = parseSlot(each.getAsString().value_or(""));
      if (!slot)
        return wrong("stage " + llvm::Twine(number) + ", slot " + llvm::Twine(slots.size()) + ": " +
                     llvm::formatv("{0}", each).str() + " is not a slot; a string with " +
                     train::listPassKinds(
                         [](const train::PassKindRow &row) { return std::string(1, row.letter); }) +
                     " and a micro-batch is one, perhaps with a chunk: \"F3\", \"B0.1\"");
      slots.push_back(*slot);
    }
  }
  schedule.deriveFromSlots();
  return schedule;
}

bool partita::stages::isFile(llvm::StringRef schedule) { return schedule.ends_with(".json"); }

std::optional<Schedule> partita::stages::readSchedule(const std::string &path,
                                                      std::string &problem) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  std::optional<Schedule> table;
  if (file)
    table = parseSchedule((*file)->getBuffer(), problem);
  else
    problem = file.getError().message();
  if (!table)
    problem = path + ": " + problem;
  return table;
}

/// Returns "1 stage", "2 stages".
static std::string count(int64_t number, const std::string &what, const char *plural = "s") {
  return std::to_string(number) + " " + what + (number == 1 ? "" : plural);
}

static std::string text(const partita::pipe::Positions &layout) {
  return count(layout.chunks, "chunk") + " a stage" + (layout.isWave ? " in a wave" : "");
}

std::optional<Schedule> partita::stages::findSchedule(const std::string &schedule,
                                                      const pipe::Positions &layout,
                                                      int microBatches, std::string &problem) {
  std::optional<Schedule> table =
      isFile(schedule) ? readSchedule(schedule, problem)
                       : makeSchedule(schedule, static_cast<int>(layout.stages), microBatches,
                                      static_cast<int>(layout.chunks), problem);
  if (!table)
    return std::nullopt;
  if (table->stages != layout.stages)
    problem = schedule + " is for " + count(table->stages, "stage") + ", and the program has " +
              std::to_string(layout.stages);
  else if (table->layout() != layout)
    problem = schedule + " has " + text(table->layout()) + ", and the program " + text(layout);
  else if (table->microBatches != microBatches)
    problem = schedule + " is for " + count(table->microBatches, "micro-batch", "es") +
              ", and a step of the program has " + std::to_string(microBatches) +
              " (--accumulate " + std::to_string(microBatches) + ")";
  return problem.empty() ? table : std::nullopt;
}
