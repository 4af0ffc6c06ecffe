//===- SchedulePicture.cpp - a pipeline's schedule as SVG -----------------------------------------===//

#include "tools/partita/Report/SchedulePicture.h"
#include "tools/partita/Report/Svg.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace partita;
using namespace partita::tool;
using partita::stages::Slot;

namespace {

/// The page, in pixels.
constexpr int kScheduleWidth = 1000, kScheduleLeft = 90, kScheduleRight = 20, kScheduleTop = 64,
              kScheduleBottom = 64;
constexpr int kRowHeight = 26, kRowGap = 4;
constexpr int kScheduleAreaWidth = kScheduleWidth - kScheduleLeft - kScheduleRight;

int heightOf(const stages::Timeline &timeline) {
  return kScheduleTop + timeline.schedule.stages * (kRowHeight + kRowGap) + kScheduleBottom;
}

class SchedulePage : SvgPage {
public:
  SchedulePage(raw_ostream &os, const stages::Timeline &timeline)
      : SvgPage(os, kScheduleWidth, heightOf(timeline)), timeline(timeline) {}

  void draw(StringRef title) {
    text(kScheduleLeft, 24, "start", title, " font-size=\"15\"");
    text(
        kScheduleLeft, 44, "start",
        formatv(
            "The stages of a step by the costs of ops; bubble: {0:F1} % of what stage {1} computes",
            100 * timeline.report.bubbleShare(), timeline.slowest())
            .str());
    for (int stage : seq(0, timeline.schedule.stages))
      drawStage(stage);
    drawLegend();
  }

private:
  double x(double time) const {
    return kScheduleLeft + time * kScheduleAreaWidth / std::max(timeline.report.time, 1.);
  }

  void drawStage(int stage) {
    int y = kScheduleTop + stage * (kRowHeight + kRowGap);
    text(kScheduleLeft - 8, y + kRowHeight * 0.66, "end", "stage " + std::to_string(stage));
    os << formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" fill=\"#eeeeee\"/>\n",
                  kScheduleLeft, y, kScheduleAreaWidth, kRowHeight);
    for (auto [number, slot] : enumerate(timeline.schedule.slots[stage])) {
      double begin = timeline.begin(stage, number), end = timeline.end(stage, number);
      std::string name = partita::stages::slotText(slot);
      os << formatv(
          "<rect x=\"{0:f2}\" y=\"{1}\" width=\"{2:f2}\" height=\"{3}\" fill=\"{4}\" stroke=\"white\" "
          "stroke-width=\"0.5\"{5} data-stage=\"{6}\" data-slot=\"{7}\" data-begin=\"{8:f0}\" "
          "data-end=\"{9:f0}\"/>\n",
          x(begin), y, x(end) - x(begin), kRowHeight, partita::train::rowOf(slot.kind).color,
          slot.chunk % 2 ? " fill-opacity=\"0.6\"" : "", stage, name, begin, end);
      if (x(end) - x(begin) > 7. * static_cast<double>(name.size()) + 2)
        text((x(begin) + x(end)) / 2, y + kRowHeight * 0.66, "middle", name, " fill=\"white\"");
    }
  }

  void drawLegend() {
    int left = kScheduleLeft, bottom = heightOf(timeline) - 28;
    for (const partita::train::PassKindRow &row : timeline.schedule.kinds()) {
      os << formatv("<rect x=\"{0}\" y=\"{1}\" width=\"12\" height=\"12\" fill=\"{2}\"/>\n", left,
                    bottom, row.color);
      text(left + 18, bottom + 10, "start", row.title);
      left += 18 + 8 * static_cast<int>(row.title.size()) + 18;
    }
    text(kScheduleLeft + kScheduleAreaWidth, bottom + 10, "end",
         timeline.schedule.chunks > 1 ? "number: micro-batch, and chunk; paler: every other chunk"
                                      : "number: micro-batch");
  }

  const stages::Timeline &timeline;
};

} // namespace

void partita::tool::drawSchedule(raw_ostream &os, const stages::Timeline &timeline,
                                 StringRef title) {
  SchedulePage(os, timeline).draw(title);
}
