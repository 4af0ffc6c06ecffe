//===- Curves.h - draws values over a run's steps, as SVG ---------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_CURVES_H
#define PARTITA_TOOLS_REPORT_CURVES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace partita::tool {

struct Curve {
  std::string name, color;
  std::vector<std::pair<double, double>> points; ///< step, value; finite, steps in order
  bool steps = false;                            ///< holds its value until the next one
};

/// Draws the curves into one area with axes, a legend and their data as attributes (the page's
/// script shows the point under the mouse). If there are too many points, each column shows the min
/// and the max. `doubling`: the value axis is logarithmic, with powers of two. Curves without
/// points are left out; returns false, without drawing, if none remain.
bool drawCurves(llvm::raw_ostream &os, llvm::ArrayRef<Curve> curves, bool doubling = false);

/// A share of a total, drawn in one bar with a legend: name, color, size.
struct Share {
  std::string name, color;
  double size;
};
void drawShares(llvm::raw_ostream &os, llvm::ArrayRef<Share> shares, llvm::StringRef unit);

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_CURVES_H
