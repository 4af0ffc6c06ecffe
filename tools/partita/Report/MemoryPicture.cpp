//===- MemoryPicture.cpp - memory over the ops of a step, as SVG ------------------------------===//

#include "tools/partita/Report/MemoryPicture.h"
#include "tools/partita/Options.h"
#include "tools/partita/Program.h"
#include "tools/partita/Report/MemoryText.h"
#include "tools/partita/Report/Svg.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace partita;
using namespace partita::tool;
using memory::kKinds;
using memory::Ledger;
using memory::Sums;

namespace {

/// The page in pixels: the axes' area and its margins.
constexpr int kPageWidth = 1000, kPageHeight = 560, kPageLeft = 90, kPageTop = 64, kPageRight = 20,
              kPageBottom = 96;
constexpr int kPageAreaWidth = kPageWidth - kPageLeft - kPageRight,
              kPageAreaHeight = kPageHeight - kPageTop - kPageBottom;
/// Max columns; more would be finer than the screen.
constexpr int64_t kColumns = 800;

/// The values that the picture shows from op `begin` on.
struct Column {
  int64_t begin;
  Sums sums;
};

class Picture : SvgPage {
public:
  Picture(raw_ostream &os, const Ledger &ledger)
      : SvgPage(os, kPageWidth, kPageHeight), ledger(ledger) {
    sample();
  }

  void draw(StringRef title) {
    text(kPageLeft, 24, "start", title, " font-size=\"15\"");
    text(kPageLeft, 44, "start",
         "Memory of a rank over the ops of " + ledger.function + ", in program order");
    drawBytes();
    drawStack();
    drawArena();
    drawPeak();
    drawOps();
    drawLegend();
  }

private:
  /// Samples memory at one op per column, so that kinds add up; a bucket shows its fullest op.
  void sample() {
    std::vector<Sums> live = ledger.live();
    int64_t width = (ledger.ops + kColumns - 1) / kColumns;
    for (int64_t begin = 0; begin < ledger.ops; begin += std::max<int64_t>(width, 1)) {
      int64_t end = std::min(begin + width, ledger.ops), fullest = begin;
      for (int64_t op = begin; op < end; ++op)
        if (memory::total(live[op]) > memory::total(live[fullest]))
          fullest = op;
      Column column{begin, live[fullest]};
      for (size_t kind = 0; kind < kKinds; ++kind)
        column.sums[kind] += ledger.persistent[kind];
      if (columns.empty() || columns.back().sums != column.sums)
        columns.push_back(std::move(column));
    }
    held = memory::total(ledger.persistent);
    int64_t most = std::max<int64_t>(held + std::max(ledger.arena, ledger.peak), 1);
    for (step = 1; most / step >= 8; step *= 2)
      ;
    top = (most + step - 1) / step * step;
  }

  double x(int64_t op) const {
    return kPageLeft + double(op) * kPageAreaWidth / double(std::max<int64_t>(ledger.ops, 1));
  }
  double y(int64_t bytes) const {
    return kPageTop + kPageAreaHeight - double(bytes) * kPageAreaHeight / double(top);
  }

  void drawBytes() {
    for (int64_t bytes = 0; bytes <= top; bytes += step) {
      line(kPageLeft, y(bytes), kPageLeft + kPageAreaWidth, y(bytes), "stroke=\"#dddddd\"");
      text(kPageLeft - 8, y(bytes) + 4, "end", bytes ? formatBytes(bytes) : "0 bytes");
    }
  }

  /// Draws the full stack first, so that each lower kind covers its part of the one above.
  void drawStack() {
    os << formatv("<g transform=\"translate({0} {1}) scale({2} {3})\">\n", kPageLeft,
                  kPageTop + kPageAreaHeight,
                  decimal(double(kPageAreaWidth) / double(std::max<int64_t>(ledger.ops, 1))),
                  decimal(-double(kPageAreaHeight) / double(top)));
    for (size_t above = kKinds; above > 0; --above)
      if (isUsed(above - 1))
        drawKind(above - 1);
    os << "</g>\n";
  }

  static std::string decimal(double value) { return formatv("{0:e9}", value).str(); }

  bool isUsed(size_t kind) const {
    return any_of(columns, [&](const Column &column) { return column.sums[kind] > 0; });
  }

  void drawKind(size_t kind) {
    const memory::KindRow &row = memory::kinds()[kind];
    os << formatv("<path data-kind=\"{0}\" fill=\"{1}\" d=\"M0 0",
                  rt::stringifyMemoryKind(static_cast<memory::Kind>(kind)), row.color);
    int64_t last = 0;
    for (auto [i, column] : enumerate(columns)) {
      int64_t height = 0;
      for (size_t below = 0; below <= kind; ++below)
        height += column.sums[below];
      if (i > 0 && height == last)
        continue;
      if (column.begin > 0)
        os << 'H' << column.begin;
      os << 'V' << height;
      last = height;
    }
    os << 'H' << ledger.ops << "V0Z\"/>\n";
  }

  /// Draws the arena beyond the peak, which is lost to fragmentation.
  void drawArena() {
    int64_t bytes = held + ledger.arena;
    line(kPageLeft, y(bytes), kPageLeft + kPageAreaWidth, y(bytes),
         "stroke=\"#444444\" stroke-dasharray=\"6 4\"");
    text(kPageLeft + 4, y(bytes) - 5, "start", "persistent + arena: " + grouped(bytes) + " bytes");
  }

  void drawPeak() {
    double at = (x(ledger.at.op) + x(ledger.at.op + 1)) / 2;
    line(at, y(held + ledger.peak), at, kPageTop + kPageAreaHeight,
         "stroke=\"black\" stroke-dasharray=\"2 2\"");
    os << formatv(
        "<circle cx=\"{0:f1}\" cy=\"{1:f1}\" r=\"4\" data-op=\"{2}\" data-bytes=\"{3}\"/>\n", at,
        y(held + ledger.peak), ledger.at.op, held + ledger.peak);
    text(kPageLeft, kPageHeight - 44, "start",
         "Peak: " + grouped(held + ledger.peak) + " bytes at " + momentText(ledger));
  }

  void drawOps() {
    int64_t every = 1; // 2, 5, 10, 20, ...
    for (int i = 0; ledger.ops / every > 10; ++i)
      every = i % 3 == 1 ? every / 2 * 5 : every * 2;
    for (int64_t op = 0; op <= ledger.ops; op += every) {
      line(x(op), kPageTop + kPageAreaHeight, x(op), kPageTop + kPageAreaHeight + 5,
           "stroke=\"black\"");
      text(x(op), kPageTop + kPageAreaHeight + 18, "middle", std::to_string(op));
    }
    line(kPageLeft, kPageTop + kPageAreaHeight, kPageLeft + kPageAreaWidth,
         kPageTop + kPageAreaHeight, "stroke=\"black\"");
    text(kPageLeft + kPageAreaWidth, kPageTop + kPageAreaHeight + 34, "end", "op");
  }

  void drawLegend() {
    int left = kPageLeft;
    for (size_t kind = 0; kind < kKinds; ++kind) {
      if (!isUsed(kind))
        continue;
      const memory::KindRow &row = memory::kinds()[kind];
      os << formatv("<rect x=\"{0}\" y=\"{1}\" width=\"12\" height=\"12\" fill=\"{2}\"/>\n", left,
                    kPageHeight - 28, row.color);
      text(left + 18, kPageHeight - 18, "start", row.title);
      left += 18 + 8 * static_cast<int>(row.title.size()) + 18;
    }
  }

  const Ledger &ledger;
  std::vector<Column> columns;
  int64_t held = 0, top = 1, step = 1; ///< persistent bytes; of the axis
};

} // namespace

void partita::tool::drawMemory(raw_ostream &os, const Ledger &ledger, StringRef title) {
  Picture(os, ledger).draw(title);
}
