//===- Curves.cpp - draws values over a run's steps, as SVG -----------------------------------===//

#include "tools/partita/Report/Curves.h"
#include "runtime/include/partita_rt/scale_text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace partita::tool;

namespace {

constexpr int kWidth = 960, kHeight = 300, kLeft = 84, kRight = 34, kTop = 14, kBottom = 54;
constexpr int kAreaWidth = kWidth - kLeft - kRight, kAreaHeight = kHeight - kTop - kBottom;
/// Max number of points per curve; more would be finer than the screen.
constexpr size_t kMostPoints = 1200;

/// Returns a tick distance that divides the range into about `parts`: 1, 2 or 5 times a power of
/// ten.
double tickOf(double range, int parts) {
  double raw = std::max(range, 1e-300) / parts, power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power)
      return factor * power;
  return 10 * power;
}

/// Formats a number with `digits` digits; nine identify a float.
std::string numberText(double value, int digits = 9) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

/// Formats a power of 2 with a raised exponent.
std::string powerText(int exponent) {
  static constexpr const char *kRaised[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                            "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
  std::string text = exponent < 0 ? "2\u207b" : "2";
  for (char digit : std::to_string(std::abs(exponent)))
    text += kRaised[digit - '0'];
  return text;
}

class Chart {
public:
  Chart(raw_ostream &os, ArrayRef<Curve> curves, bool doubling)
      : os(os), curves(curves), doubling(doubling) {
    bool first = true;
    for (const Curve &curve : curves)
      for (auto [step, value] : curve.points) {
        double v = height(value);
        left = first ? step : std::min(left, step), right = first ? step : std::max(right, step);
        low = first ? v : std::min(low, v), high = first ? v : std::max(high, v);
        first = false;
      }
    if (right == left)
      right = left + 1;
    double alone = doubling ? 1 : high != 0 ? 0.5 * std::abs(high) : 0.5; // for a single value
    double pad = high > low ? 0.05 * (high - low) : alone;
    low -= pad, high += pad;
  }

  void draw() {
    os << formatv("<svg class=\"curves\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
                  "data-left=\"{2}\" data-first=\"{3}\" data-per-step=\"{4}\">\n",
                  kWidth, kHeight, kLeft, numberText(left),
                  numberText(kAreaWidth / (right - left)));
    drawValues();
    drawSteps();
    int legend = kLeft;
    for (const Curve &curve : curves) {
      if (curve.points.empty())
        continue;
      drawCurve(curve);
      os << formatv("<rect x=\"{0}\" y=\"{1}\" width=\"12\" height=\"12\" fill=\"{2}\"/>", legend,
                    kHeight - 18, curve.color);
      text(legend + 18, kHeight - 8, "start", curve.name);
      legend += 40 + 8 * int(curve.name.size());
    }
    os << "</svg>\n";
  }

private:
  double height(double value) const { return doubling ? std::log2(value) : value; }
  double x(double step) const { return kLeft + (step - left) * kAreaWidth / (right - left); }
  double y(double value) const {
    return kTop + kAreaHeight - (height(value) - low) * kAreaHeight / (high - low);
  }

  void text(double x, double y, StringRef anchor, StringRef words) {
    os << formatv("<text x=\"{0:f1}\" y=\"{1:f1}\" text-anchor=\"{2}\">{3}</text>\n", x, y, anchor,
                  words);
  }

  void drawValues() {
    double tick = doubling ? std::max(1.0, std::ceil((high - low) / 6)) : tickOf(high - low, 6);
    double at = std::ceil(low / tick) * tick;
    bool asPowers = high >= 20 || low < -6; // the axis has no room for all their digits
    // Use enough digits to distinguish two ticks.
    double most = std::max(std::abs(low), std::abs(high));
    int digits = std::clamp(1 + int(std::ceil(std::log10(most / tick))), 6, 9);
    // Count iterations: if the values hardly differ, a tick may be below their precision.
    for (int i = 0; i < 32 && at <= high; ++i, at += tick) {
      double line = y(doubling ? std::exp2(at) : at);
      os << formatv("<line x1=\"{0}\" y1=\"{2:f1}\" x2=\"{1}\" y2=\"{2:f1}\" stroke=\"#ddd\"/>",
                    kLeft, kLeft + kAreaWidth, line);
      text(kLeft - 8, line + 4, "end",
           doubling ? asPowers ? powerText(int(at)) : partita_rt::scaleText(std::exp2(at))
                    : numberText(std::abs(at) < 1e-12 * tick ? 0 : at, digits));
    }
  }

  void drawSteps() {
    double tick = std::max(1.0, tickOf(right - left, 10));
    double step = std::ceil(left / tick) * tick;
    for (int i = 0; i < 32 && step <= right; ++i, step += tick)
      text(x(step), kTop + kAreaHeight + 18, "middle", numberText(step));
    os << formatv("<line x1=\"{0}\" y1=\"{2}\" x2=\"{1}\" y2=\"{2}\" stroke=\"black\"/>\n", kLeft,
                  kLeft + kAreaWidth, kTop + kAreaHeight);
    text(kLeft + kAreaWidth, kTop + kAreaHeight + 34, "end", "step");
  }

  /// Returns the points to draw: each column's min and max, in their order, and both ends.
  std::vector<std::pair<double, double>> shown(const Curve &curve) const {
    if (curve.points.size() <= kMostPoints)
      return curve.points;
    std::vector<std::pair<double, double>> result;
    size_t columns = kMostPoints / 2, count = curve.points.size();
    for (size_t column = 0; column < columns; ++column) {
      auto begin = curve.points.begin() + ptrdiff_t(column * count / columns),
           end = curve.points.begin() + ptrdiff_t((column + 1) * count / columns);
      auto [least, most] =
          std::minmax_element(begin, end, [](auto &a, auto &b) { return a.second < b.second; });
      result.push_back(*std::min(least, most));
      if (least != most)
        result.push_back(*std::max(least, most));
    }
    if (result.front() != curve.points.front())
      result.insert(result.begin(), curve.points.front());
    if (result.back() != curve.points.back())
      result.push_back(curve.points.back());
    return result;
  }

  void drawCurve(const Curve &curve) {
    std::vector<std::pair<double, double>> points = shown(curve);
    std::string path, data;
    for (auto [i, point] : enumerate(points)) {
      double px = x(point.first), py = y(point.second);
      if (i && curve.steps)
        path += formatv("H{0:f1}", px).str();
      path += formatv("{0}{1:f1} {2:f1}", i ? "L" : "M", px, py).str();
      data += (i ? " " : "") + numberText(point.first) + "," +
              (doubling ? partita_rt::scaleText(point.second) : numberText(point.second));
    }
    os << formatv("<path data-name=\"{0}\" data-points=\"{1}\" fill=\"none\" stroke=\"{2}\" "
                  "stroke-width=\"1.5\" d=\"{3}\"/>\n",
                  curve.name, data, curve.color, path);
    for (auto point : points.size() <= 60 ? ArrayRef(points) : ArrayRef(points).take_front(0))
      os << formatv("<circle cx=\"{0:f1}\" cy=\"{1:f1}\" r=\"2\" fill=\"{2}\"/>", x(point.first),
                    y(point.second), curve.color);
    os << '\n';
  }

  raw_ostream &os;
  ArrayRef<Curve> curves;
  bool doubling;
  double left = 0, right = 1, low = 0, high = 1;
};

} // namespace

bool partita::tool::drawCurves(raw_ostream &os, ArrayRef<Curve> curves, bool doubling) {
  if (all_of(curves, [](const Curve &curve) { return curve.points.empty(); }))
    return false;
  Chart(os, curves, doubling).draw();
  return true;
}

void partita::tool::drawShares(raw_ostream &os, ArrayRef<Share> shares, StringRef unit) {
  double all = 0;
  for (const Share &share : shares)
    all += share.size;
  os << formatv("<svg class=\"shares\" viewBox=\"0 0 {0} 40\" width=\"{0}\" height=\"40\">\n",
                kWidth);
  double at = kLeft;
  for (const Share &share : shares) {
    double width = all > 0 ? share.size / all * kAreaWidth : 0;
    os << formatv("<rect data-name=\"{0}\" x=\"{1:f1}\" y=\"4\" width=\"{2:f1}\" height=\"32\" "
                  "fill=\"{3}\"><title>{0}: {4:f3} {5}</title></rect>\n",
                  share.name, at, width, share.color, share.size, unit);
    at += width;
  }
  os << "</svg>\n<table>\n";
  for (const Share &share : shares)
    os << formatv("<tr><td><span class=\"box\" style=\"background:{0}\"></span>{1}</td>"
                  "<td class=\"number\">{2:f3} {3}</td><td class=\"number\">{4:f1} %</td></tr>\n",
                  share.color, share.name, share.size, unit, all > 0 ? 100 * share.size / all : 0);
  os << "</table>\n";
}
