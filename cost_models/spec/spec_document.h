// Models, clusters and workloads as parts of a parsed document: what a YAML file and plan.json
// share.
//
// In a YAML file absent keys take the documented defaults; in a plan (`Defaults::refused`) every
// value must be written out. Units stand in the keys.
#pragma once

#include <cstdint>

#include "cost_models/documents/object_reader.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/workload.h"

namespace tessera {

/// GPUs of the largest cluster that is read: some times the largest that exist, and a plan on all
/// of them takes seconds.
inline constexpr std::int64_t kMostClusterGpus = std::int64_t{1} << 18;

enum class Defaults { allowed, refused };

/// Reads every key of the map, refuses unknown ones and checks the values against each other.
/// Problems are appended to the reader's list; the result then holds what could be read.
ClusterSpec cluster_from(ObjectReader& reader, Defaults defaults);
Workload workload_from(ObjectReader& reader, Defaults defaults);

/// A model with every field written out (a plan's `spec`, not a config.json).
ModelSpec model_from(ObjectReader& reader);

/// Its keys "moe", "mla", "indexer", "compressed_attention", "hyper_connections",
/// "linear_attention", "state_space", "blocks" and "vision", which model_from reads and to_node
/// writes: a map, or null where the model has none. Parts that the family has and the file lacks,
/// or the other way round, are Problems.
void read_model_parts(ObjectReader& reader, ModelSpec& model);
void add_model_parts(Node& node, const ModelSpec& model);
/// Layers of a list.
Node list_of(const std::vector<std::int64_t>& layers);

/// The calls of a list below `key`, in its order.
Dataflow dataflow_from(ObjectReader& reader, std::string_view key);

/// Trees that model_from, cluster_from, workload_from and dataflow_from read back as equal values.
Node to_node(const ModelSpec& model);
Node to_node(const ClusterSpec& cluster);
Node to_node(const Workload& workload);  // without the dataflow
Node to_node(const Dataflow& dataflow);

/// x such that the reader's x * unit is `value` again; where no double does that, the nearest one
/// that a second round trip reproduces.
double in_unit(double value, double unit);

}  // namespace tessera
