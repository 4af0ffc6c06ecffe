//===- Devices.cpp - ONNX's own sharding annotations ------------------------------------------===//

#include "lib/Import/File/Devices.h"
#include "dialects/Train/Tensors.h"
#include "dialects/Tx/Tx.h"
#include "lib/Import/File/Node.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace partita::importer {

LogicalResult Devices::readConfigurations(const onnx::ModelProto &model) {
  constexpr int64_t firstVersion = 11;
  if (model.configuration_size() > 0 && model.ir_version() < firstVersion)
    return importer.error() << "device configuration " << quoted(model.configuration(0).name())
                            << ": the file is of ONNX IR version " << model.ir_version()
                            << ", device configurations need version " << firstVersion
                            << " or later; one of the two is wrong";
  for (const onnx::DeviceConfigurationProto &proto : model.configuration()) {
    auto error = [&] {
      return importer.error() << "device configuration " << quoted(proto.name()) << ": ";
    };
    if (proto.name().empty())
      return error() << "it has no name";
    if (proto.num_devices() < 1)
      return error() << "it has " << proto.num_devices() << " devices";
    if (proto.device_size() != 0 && proto.device_size() != proto.num_devices())
      return error() << "it names " << proto.device_size() << " of its " << proto.num_devices()
                     << " devices";
    auto name = StringAttr::get(importer.context(), symbolName(proto.name()));
    if (!configurations.insert({name, {proto.num_devices(), 0, {}}}).second)
      return error() << "there are two with this name";
  }
  return success();
}

namespace {

/// Reads one ShardingSpecProto, about a tensor of this shape.
class Spec {
public:
  Spec(Node &node, const onnx::ShardingSpecProto &proto, ArrayRef<int64_t> shape, int64_t devices)
      : node(node), proto(proto), shape(shape), deviceCount(devices) {}

  LogicalResult read() {
    for (const onnx::ShardedDimProto &dim : proto.sharded_dim())
      if (failed(readDim(dim)))
        return failure();
    return readDevices();
  }

  train::ShardingAttr attribute(StringAttr configuration) const {
    Builder builder(configuration.getContext());
    SmallVector<Attribute> groups;
    for (const std::vector<int64_t> &group : holders)
      groups.push_back(builder.getDenseI64ArrayAttr(group));
    return train::ShardingAttr::get(builder.getContext(), configuration,
                                    builder.getStringAttr(symbolName(node.name)),
                                    builder.getI64ArrayAttr(dims), builder.getI64ArrayAttr(blocks),
                                    builder.getI64ArrayAttr(shards), builder.getArrayAttr(groups));
  }

private:
  InFlightDiagnostic error() {
    return node.error() << "sharding of " << quoted(proto.tensor_name()) << " " << shapeText(shape)
                        << ": ";
  }

  LogicalResult readDim(const onnx::ShardedDimProto &dim) {
    int64_t rank = shape.size(), axis = dim.axis();
    if (!dim.has_axis() || axis < -rank || axis >= rank)
      return error() << (dim.has_axis() ? "axis " + std::to_string(axis) : "no axis")
                     << ", but a tensor of rank " << rank << " has axes from " << -rank << " to "
                     << rank - 1;
    axis += axis < 0 ? rank : 0;
    if (!seen.insert(axis).second)
      return error() << "axis " << axis << " is listed twice";
    if (dim.simple_sharding_size() == 0)
      return error() << "axis " << axis
                     << " has no simple_sharding, which says into how many parts";
    SmallVector<int64_t> factors;
    if (failed(readFactors(dim, axis, factors)))
      return failure();
    int64_t outer = 1;
    for (auto [factor, simple] : llvm::zip(factors, dim.simple_sharding())) {
      int64_t parts = simple.num_shards();
      if (parts < 1 || parts > factor)
        return error() << "axis " << axis << ": " << factor << " elements in " << parts
                       << " shards";
      if (parts > 1) {
        dims.push_back(axis);
        blocks.push_back(outer);
        shards.push_back(parts);
      }
      outer *= factor;
    }
    return success();
  }

  /// The sizes of a dimension's factors; one may be missing and is derived from the others.
  LogicalResult readFactors(const onnx::ShardedDimProto &dim, int64_t axis,
                            SmallVectorImpl<int64_t> &factors) {
    int64_t known = 1, unknown = 0;
    for (const onnx::SimpleShardedDimProto &simple : dim.simple_sharding()) {
      factors.push_back(simple.has_dim_value() ? simple.dim_value() : 0);
      unknown += !simple.has_dim_value();
      if (!simple.has_dim_value())
        continue;
      if (factors.back() < 1 || shape[axis] % factors.back() != 0)
        return error() << "axis " << axis << " of size " << shape[axis] << " has no factor of "
                       << factors.back();
      if (__builtin_mul_overflow(known, factors.back(), &known))
        known = -1; // more than any size
    }
    if (unknown > 1)
      return error() << "axis " << axis << " has " << unknown
                     << " factors without a size; at most one can be derived";
    if (unknown == 0 ? known != shape[axis] : known < 1 || shape[axis] % known != 0)
      return error() << "the factors of axis " << axis << " do not amount to its size, "
                     << shape[axis];
    for (int64_t &factor : factors)
      if (factor == 0)
        factor = shape[axis] / known;
    return success();
  }

  LogicalResult readDevices() {
    llvm::DenseMap<int64_t, const onnx::IntIntListEntryProto *> groups;
    for (const onnx::IntIntListEntryProto &entry : proto.index_to_device_group_map())
      if (!groups.try_emplace(entry.key(), &entry).second)
        return error() << "the map has two groups " << entry.key();
    int64_t parts = 1;
    for (int64_t count : shards)
      if (__builtin_mul_overflow(parts, count, &parts))
        parts = -1; // more than any list
    if (parts != proto.device_size())
      return error() << "it lists " << proto.device_size()
                     << " devices or groups, but has as many shards as "
                     << llvm::join(
                            llvm::map_range(shards, [](int64_t n) { return std::to_string(n); }),
                            " x ")
                     << (shards.empty() ? "1" : "");
    llvm::DenseSet<int64_t> holding;
    for (int64_t entry : proto.device()) {
      std::vector<int64_t> &group = holders.emplace_back();
      if (const onnx::IntIntListEntryProto *list = groups.lookup(entry))
        group.assign(list->value().begin(), list->value().end());
      else
        group.push_back(entry);
      if (group.empty())
        return error() << "group " << entry << " is empty";
      for (int64_t device : group) {
        if (device < 0 || device >= deviceCount)
          return error() << "device " << device << ", but the configuration has devices from 0 to "
                         << deviceCount - 1;
        if (!holding.insert(device).second)
          return error() << "device " << device << " is listed twice";
      }
    }
    return success();
  }

  Node &node;
  const onnx::ShardingSpecProto &proto;
  ArrayRef<int64_t> shape;
  int64_t deviceCount;
  SmallVector<int64_t> dims, blocks, shards;
  std::vector<std::vector<int64_t>> holders;
  llvm::DenseSet<int64_t> seen;
};

} // namespace

LogicalResult Devices::annotate(Node &node) {
  llvm::StringSet<> seen;
  for (const onnx::NodeDeviceConfigurationProto &proto : node.proto.device_configurations()) {
    if (!seen.insert(proto.configuration_id()).second)
      return node.error() << "device configuration " << quoted(proto.configuration_id())
                          << " is listed twice";
    if (failed(annotate(node, proto)))
      return failure();
  }
  return success();
}

LogicalResult Devices::annotate(Node &node, const onnx::NodeDeviceConfigurationProto &proto) {
  auto name = StringAttr::get(importer.context(), symbolName(proto.configuration_id()));
  auto *found = configurations.find(name);
  if (found == configurations.end()) {
    InFlightDiagnostic error = node.error()
                               << "device configuration " << quoted(proto.configuration_id())
                               << " is not one of the model's: ";
    llvm::interleaveComma(configurations, error,
                          [&](auto &each) { error << quoted(each.first.getValue()); });
    return error << (configurations.empty() ? "it has none" : "");
  }
  Configuration &configuration = found->second;
  if (proto.has_pipeline_stage() && proto.pipeline_stage() < 0)
    return node.error() << "device configuration " << quoted(proto.configuration_id())
                        << ": pipeline stage " << proto.pipeline_stage() << "; the first one is 0";
  if (proto.has_pipeline_stage()) // the stages before it exist too, with or without nodes
    configuration.stages = std::max<int64_t>(configuration.stages, proto.pipeline_stage() + 1);
  for (const onnx::ShardingSpecProto &spec : proto.sharding_spec()) {
    const std::string &tensor = spec.tensor_name();
    if (tensor.empty() || (!llvm::is_contained(node.proto.input(), tensor) &&
                           !llvm::is_contained(node.proto.output(), tensor)))
      return node.error() << "sharding of " << quoted(tensor)
                          << ", which is neither an input nor an output of the node";
    Tensor *value = node.frame.scope.find(tensor);
    if (!value)
      continue; // an output that is not imported
    Spec reader(node, spec, value->shape, configuration.devices);
    if (failed(reader.read()))
      return failure();
    if (value->host && !value->value)
      continue; // every rank has the known values
    if (failed(attach(node, tensor, reader.attribute(name))))
      return failure();
  }
  return success();
}

/// "axis 1 in 2 shards, on devices 0 | 1", "not split, on devices 0, 1".
static std::string inWords(train::ShardingAttr sharding) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto number = [](Attribute each) { return cast<IntegerAttr>(each).getInt(); };
  for (auto [dim, blocks, shards] :
       llvm::zip(sharding.getDims(), sharding.getBlocks(), sharding.getShards())) {
    os << (text.empty() ? "axis " : ", axis ") << number(dim);
    if (number(blocks) > 1)
      os << ", each of its " << number(blocks) << " blocks,";
    os << " in " << number(shards) << " shards";
  }
  os << (sharding.getDims().empty() ? "not split, on devices " : ", on devices ");
  llvm::interleave(
      sharding.getDevices().getAsRange<DenseI64ArrayAttr>(), os,
      [&](DenseI64ArrayAttr group) { llvm::interleaveComma(group.asArrayRef(), os); }, " | ");
  return text;
}

/// The parameter that an op reads, directly or transposed to the file's layout; null for other ops.
static train::ParameterOp parameterOf(Importer &importer, Operation *op) {
  auto transpose = dyn_cast_if_present<tx::TransposeOp>(op);
  auto read = dyn_cast_if_present<train::ReadOp>(transpose ? transpose.getX().getDefiningOp() : op);
  train::ParameterOp parameter = read ? importer.parameter(read.getSymbol()) : train::ParameterOp();
  bool isStored = parameter && (!transpose || train::isStoredTransposed(parameter));
  return isStored ? parameter : train::ParameterOp();
}

/// The sharding of the transposed matrix.
static train::ShardingAttr transposed(train::ShardingAttr sharding) {
  Builder b(sharding.getContext());
  SmallVector<Attribute> dims;
  for (Attribute dim : sharding.getDims())
    dims.push_back(b.getI64IntegerAttr(1 - cast<IntegerAttr>(dim).getInt()));
  return train::ShardingAttr::get(b.getContext(), sharding.getConfiguration(), sharding.getNode(),
                                  b.getArrayAttr(dims), sharding.getBlocks(), sharding.getShards(),
                                  sharding.getDevices());
}

LogicalResult Devices::attach(Node &node, const std::string &tensor, train::ShardingAttr sharding) {
  Tensor *value = node.frame.scope.find(tensor);
  Operation *target = value->value.getDefiningOp();
  if (train::ParameterOp parameter = parameterOf(importer, target)) {
    if (!isa<train::ReadOp>(target))
      sharding = transposed(sharding);
    target = parameter;
  }
  Configuration &configuration = configurations[sharding.getConfiguration()];
  if (!target || target->getNumResults() > 1) {
    ++configuration.tensors; // counted, so that it shows as not followed
    return success();
  }
  SmallVector<Attribute> all;
  if (auto before = target->getAttrOfType<ArrayAttr>(train::TrainDialect::kShardings))
    all.append(before.begin(), before.end());
  for (Attribute attribute : all) {
    auto other = cast<train::ShardingAttr>(attribute);
    if (other.getConfiguration() != sharding.getConfiguration())
      continue;
    bool same =
        other.getDims() == sharding.getDims() && other.getBlocks() == sharding.getBlocks() &&
        other.getShards() == sharding.getShards() && other.getDevices() == sharding.getDevices();
    if (same || !isa<train::ParameterOp>(target))
      return success(); // the first node decides; moves follow from the rules
    return node.error() << "sharding of " << quoted(tensor) << ": " << inWords(sharding)
                        << ", but node '" << other.getNode().getValue() << "' wants "
                        << inWords(other) << "; a parameter has one placement";
  }
  ++configuration.tensors;
  all.push_back(sharding);
  target->setAttr(train::TrainDialect::kShardings, ArrayAttr::get(importer.context(), all));
  return success();
}

void Devices::describe(ModuleOp module) {
  if (configurations.empty())
    return;
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> entries;
  for (auto &[name, configuration] : configurations) {
    auto number = [&](StringRef key, int64_t value) {
      return builder.getNamedAttr(key, builder.getI64IntegerAttr(value));
    };
    entries.emplace_back(name,
                         builder.getDictionaryAttr({number("devices", configuration.devices),
                                                    number("stages", configuration.stages),
                                                    number("tensors", configuration.tensors)}));
  }
  module->setAttr(train::TrainDialect::kConfigurations, builder.getDictionaryAttr(entries));
}

} // namespace partita::importer
