//===- DevicePlan.cpp - a program's placements as ONNX sharding annotations -------------------===//

#include "partita/Export/DevicePlan.h"
#include "lib/Export/Wire.h"
#include "partita/Import/ModelFile.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace partita;

namespace {

/// A factor of a dimension and the axes that cut it, outermost first.
struct Factor {
  int64_t size = 1, parts = 1;
  SmallVector<mlir::StringAttr, 1> axes;
};

/// Splits a dimension into factors: `3 x 768 @tp` is 3 in one part, then 768 in as many parts as tp
/// has ranks.
SmallVector<Factor> factorsOf(int64_t size, const par::DimSplit &splits, par::MeshAttr mesh) {
  SmallVector<Factor> factors;
  int64_t done = 1; // the product of the factors before
  for (auto [i, split] : enumerate(splits)) {
    int64_t blocks = split.blocks.count;
    if (blocks > done)
      factors.push_back({blocks / done, 1, {}});
    bool joins = blocks <= done && !factors.empty() && !factors.back().axes.empty();
    int64_t end = i + 1 < splits.size() && splits[i + 1].blocks.count > blocks
                      ? splits[i + 1].blocks.count
                      : size;
    if (!joins)
      factors.push_back({end / blocks, 1, {}});
    factors.back().parts *= mesh.sizeOf(split.axis);
    factors.back().axes.push_back(split.axis);
    done = end;
  }
  return factors;
}

/// Writes the devices that hold a shard: a single device directly, several as a group of the map.
void putDevices(std::string &out, int64_t shard, ArrayRef<int64_t> ranks) {
  if (ranks.size() == 1)
    return wire::putInteger(out, 2, ranks.front());
  int64_t key = -shard - 1;
  wire::putInteger(out, 2, key);
  std::string group;
  wire::putInteger(group, 1, key);
  for (int64_t rank : ranks)
    wire::putInteger(group, 2, rank);
  wire::putBytes(out, 3, group);
}

} // namespace

DevicePlan::DevicePlan(par::MeshAttr mesh) : mesh(mesh) {
  for (auto [axis, size] : zip(mesh.getAxes(), mesh.getSizes()))
    configuration +=
        (configuration.empty() ? "" : ".") + axis.getValue().str() + std::to_string(size);
}

void DevicePlan::add(StringRef parameter, const par::Layout &layout) {
  std::string dims, devices;
  SmallVector<Factor> cut;
  for (auto [dim, splits] : enumerate(layout.splits)) {
    if (splits.empty())
      continue;
    std::string message;
    wire::putInteger(message, 1, dim);
    for (const Factor &factor : factorsOf(layout.shape[dim], splits, mesh)) {
      std::string simple;
      wire::putInteger(simple, 1, factor.size);
      wire::putInteger(simple, 3, factor.parts);
      wire::putBytes(message, 2, simple);
      if (factor.parts > 1)
        cut.push_back(factor);
    }
    wire::putBytes(dims, 4, message);
  }
  std::map<int64_t, SmallVector<int64_t>> holders; // by shard, row-major
  for (int64_t rank = 0; rank < mesh.rankCount(); ++rank) {
    int64_t shard = 0;
    for (const Factor &factor : cut)
      for (mlir::StringAttr axis : factor.axes)
        shard = shard * mesh.sizeOf(axis) + mesh.coordinate(rank, axis);
    holders[shard].push_back(rank);
  }
  for (auto &[shard, ranks] : holders)
    putDevices(devices, shard, ranks);
  specs[parameter] = devices + dims;
}

std::string DevicePlan::describe() const {
  std::string out;
  wire::putBytes(out, 1, configuration);
  wire::putInteger(out, 2, mesh.rankCount());
  return out;
}

bool DevicePlan::annotate(StringRef node, std::string &annotated, std::string &problem) const {
  std::string kept, own;
  StringSet<> seen;
  bool changed = false;
  wire::putBytes(own, 1, configuration);
  problem = wire::walk(node, [&](const wire::Field &field) {
    if (field.number == 10 && field.isBytes) {
      StringRef name;
      std::string bad = wire::walk(field.content, [&](const wire::Field &inner) {
        name = inner.number == 1 && inner.isBytes ? inner.content : name;
        return std::string();
      });
      if (!bad.empty() || name == configuration) {
        changed = true;
        return bad;
      }
    }
    kept += field.encoded;
    auto spec = field.number == 1 && field.isBytes ? specs.find(importer::symbolName(field.content))
                                                   : specs.end();
    if (spec != specs.end() && seen.insert(field.content).second) {
      std::string message;
      wire::putBytes(message, 1, field.content);
      wire::putBytes(own, 2, message + spec->second);
    }
    return std::string();
  });
  if (!problem.empty() || (seen.empty() && !changed))
    return false;
  annotated = std::move(kept);
  if (!seen.empty())
    wire::putBytes(annotated, 10, own);
  return true;
}
