//===- DevicePlan.h - a program's placements as ONNX sharding annotations -----------*- C++ -*-===//
//
// Every node that reads a parameter says how it is split over the ranks (ShardingSpecProto); ONNX's
// inference rules, like Partita's, determine the values between nodes. Device i is rank i. Field
// numbers: ModelProto.configuration 26 {name 1, num_devices 2}; NodeProto.input 1,
// device_configurations 10 {configuration_id 1, sharding_spec 2}; ShardingSpecProto {tensor_name 1,
// device 2, index_to_device_group_map 3 {key 1, value 2}, sharded_dim 4 {axis 1, simple_sharding 2
// {dim_value 1, num_shards 3}}}.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_EXPORT_DEVICEPLAN_H
#define PARTITA_EXPORT_DEVICEPLAN_H

#include "dialects/Par/Placement.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace partita {

class DevicePlan {
public:
  /// Names the configuration after the mesh: dp2.tp4.
  explicit DevicePlan(par::MeshAttr mesh);

  /// Adds a parameter, by its symbol, and its placement.
  void add(llvm::StringRef parameter, const par::Layout &layout);

  llvm::StringRef name() const { return configuration; }
  /// Returns the fields of a DeviceConfigurationProto.
  std::string describe() const;
  /// Adds to a NodeProto the annotations of the parameters that it reads, and removes those of a
  /// configuration with the same name. Returns false, with the message unchanged, if it has
  /// neither; sets `problem` if it is damaged.
  bool annotate(llvm::StringRef node, std::string &annotated, std::string &problem) const;

private:
  std::string configuration;
  par::MeshAttr mesh;
  /// By symbol: the fields of a ShardingSpecProto without the tensor's name.
  llvm::StringMap<std::string> specs;
};

} // namespace partita

#endif // PARTITA_EXPORT_DEVICEPLAN_H
