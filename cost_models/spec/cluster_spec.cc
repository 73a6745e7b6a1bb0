#include "cost_models/spec/cluster_spec.h"

#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_yaml.h"
#include "cost_models/spec/node_groups.h"
#include "cost_models/spec/spec_document.h"

namespace tessera {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12, kBitsPerByte = 8;
// Wider than any machine by orders of magnitude, and narrow enough that what is computed from them
// stays finite.
constexpr Real kRate{.least = 1e-6, .most = 1e9};
constexpr Real kRateOrNone{.least = 0, .most = 1e9};
constexpr Real kMemory{.least = 1e-6, .most = 1 << 20};  // GiB
constexpr Real kOversubscription{.least = 1, .most = 1e9};
constexpr Real kPrice{.least = 0, .most = 1e9};

void read_version(ObjectReader& reader) {
  std::int64_t version = 1;
  reader.optional("version", version);
  if (version != 1) reader.refuse("version", "version 1", "this tessera reads version 1 only");
}

void read_device(ObjectReader& reader, DeviceSpec& device) {
  double memory = 0, peak = 0, hbm = 0;
  reader.required("gpu", device.name);
  reader.required("memory_gib", memory, kMemory);
  reader.required("peak_tflops_bf16", peak, kRate);
  reader.required("hbm_gb_s", hbm, kRate);
  device.memory = from_gib(memory);
  device.peak_bf16 = tflop_per_s(peak);
  device.hbm = gb_per_s(hbm);
}

/// The keys of a link that GPUs of a node share: how many, and how fast it is.
struct SharedKeys {
  const char *gpus, *rate;
  SharedLink ClusterSpec::*link;
};
constexpr SharedKeys kSharedLinks[] = {
    {"gpus_per_switch", "gb_s_per_switch_one_way", &ClusterSpec::pcie_switch},
    {"gpus_per_socket", "gb_s_per_socket_one_way", &ClusterSpec::socket}};

void read_shared_links(ObjectReader& intra, std::span<const SharedKeys> keys,
                       ClusterSpec& cluster) {
  for (const auto& [gpus, rate, member] : keys) {
    if (!intra.has(gpus) && !intra.has(rate)) continue;
    SharedLink& link = cluster.*member;
    double stated = 0;
    intra.required(gpus, link.gpus, Whole{.least = 1, .most = 1 << 10});
    intra.required(rate, stated, kRate);
    link.rate = gb_per_s(stated);
  }
}

void read_links(ObjectReader& reader, ClusterSpec& cluster, bool need_inter,
                std::span<const SharedKeys> shared) {
  if (auto intra = reader.object("intra_node")) {
    double rate = 0;
    intra->required("link", cluster.intra_link, true);
    intra->required("gb_s_per_gpu_one_way", rate, kRate);
    read_shared_links(*intra, shared, cluster);
    intra->refuse_unknown_keys();
    cluster.intra_per_gpu = gb_per_s(rate);
  }
  if (auto inter = reader.object("inter_node", need_inter)) {
    double rate = 0;
    const bool connected = cluster.nodes > 1;
    inter->required("fabric", cluster.inter_fabric, true);
    inter->required("nics_per_node", cluster.nics_per_node,
                    Whole{.least = connected ? 1 : 0, .most = 1 << 10});
    inter->required("gbit_s_per_nic", rate, connected ? kRate : kRateOrNone);
    inter->refuse_unknown_keys();
    cluster.nic = gb_per_s(rate / kBitsPerByte);
  }
}

// The types stand in the order of the nodes. `gpus_per_node` and what follows are the cluster's.
std::vector<NodeGroup> read_node_types(ObjectReader& reader, Whole most_nodes) {
  std::vector<NodeGroup> groups;
  for (ObjectReader& entry : reader.objects("node_types")) {
    ClusterSpec kind;
    read_device(entry, kind.device);
    entry.required("nodes", kind.nodes, most_nodes);
    read_links(entry, kind, true, {});
    entry.optional("price_per_gpu_hour", kind.price_per_gpu_hour, kPrice);
    entry.refuse_unknown_keys();
    groups.push_back({.device = kind.device,
                      .nodes = kind.nodes,
                      .intra_link = kind.intra_link,
                      .inter_fabric = kind.inter_fabric,
                      .intra_per_gpu = kind.intra_per_gpu,
                      .nics_per_node = kind.nics_per_node,
                      .nic = kind.nic,
                      .price_per_gpu_hour = kind.price_per_gpu_hour});
  }
  if (groups.size() < 2) {
    reader.refuse("node_types", "a list of two or more maps",
                  "one kind of node stands at the top level");
    groups.clear();
  } else if (groups.size() > kMostGroups) {
    reader.refuse("node_types", std::to_string(groups.size()) + " types",
                  "at most " + std::to_string(kMostGroups), "");
    groups.clear();
  }
  return groups;
}

// A plan's cluster states both: the figures of the types, and what they come to.
void check_summary(ObjectReader& reader, const ClusterSpec& stated) {
  ClusterSpec summary = stated;
  set_to_weakest(summary, {0, static_cast<int>(stated.groups.size()) - 1});
  if (summary != stated) {
    reader.refuse("node_types", "types whose weakest figures are not the cluster's",
                  "the weakest of each figure, all nodes and the mean price at the top level", "");
  }
}

}  // namespace

double in_unit(double value, double unit) {
  const auto inverse = [unit](double target) {
    const double quotient = target / unit;
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double candidate :
         {quotient, std::nextafter(quotient, -infinity), std::nextafter(quotient, infinity)}) {
      if (candidate * unit == target) return candidate;
    }
    return quotient;
  };
  return inverse(inverse(value) * unit);
}

void read_host(ObjectReader& reader, HostSpec& host) {
  auto object = reader.object("host", false);
  if (!object) return;
  double memory = 0;
  object->optional("cores", host.cores, Whole{.least = 1, .most = 1 << 16});
  object->optional("memory_gb_s", memory, kRate);
  object->refuse_unknown_keys();
  host.memory = gb_per_s(memory);
}

ClusterSpec cluster_from(ObjectReader& reader, Defaults defaults) {
  constexpr Whole kMostNodes{.least = 1, .most = kMostClusterGpus};
  constexpr Whole kMostGpus{.least = 1, .most = 1 << 10};
  const bool resolved = defaults == Defaults::refused;
  ClusterSpec cluster;
  if (!resolved) {
    read_version(reader);
    reader.find("stated_by_source");  // prose about the origin of the figures
    reader.find("assumed");
  }
  reader.required("name", cluster.name);
  reader.required("gpus_per_node", cluster.gpus_per_node, kMostGpus);
  if (!resolved && reader.has("node_types")) {
    cluster.groups = read_node_types(reader, kMostNodes);
    if (!cluster.groups.empty()) {
      set_to_weakest(cluster, {0, static_cast<int>(cluster.groups.size()) - 1});
    }
  } else {
    read_device(reader, cluster.device);
    reader.required("nodes", cluster.nodes, kMostNodes);
    read_links(reader, cluster, resolved || cluster.nodes > 1, kSharedLinks);
  }
  if (resolved) {
    reader.required("oversubscription", cluster.oversubscription, kOversubscription);
    reader.required("price_per_gpu_hour", cluster.price_per_gpu_hour, kPrice);
  } else {
    reader.optional("oversubscription", cluster.oversubscription, kOversubscription);
    if (!reader.has("node_types")) {
      reader.optional("price_per_gpu_hour", cluster.price_per_gpu_hour, kPrice);
    }
  }
  reader.optional("nodes_per_leaf", cluster.nodes_per_leaf, kMostNodes);
  reader.optional("rails", cluster.rails);
  read_host(reader, cluster.host);
  if (resolved && reader.has("node_types")) {
    const std::size_t before = reader.problems().size();
    cluster.groups = read_node_types(reader, kMostNodes);
    if (reader.problems().size() == before) check_summary(reader, cluster);
  }
  if (cluster.gpus() > kMostClusterGpus) {
    reader.refuse("gpus_per_node", std::to_string(cluster.gpus()) + " GPUs in all",
                  "at most " + std::to_string(kMostClusterGpus) + " GPUs altogether", "");
  }
  reader.refuse_unknown_keys();
  return cluster;
}

namespace {

// A ClusterSpec or a NodeGroup: its device and links, `middle` between them.
template <class Machines, class Middle>
void add_machines(Node& node, const Machines& machines, const Middle& middle) {
  add(node, "gpu", node_of(machines.device.name));
  add(node, "memory_gib", node_of(gib(machines.device.memory)));
  add(node, "peak_tflops_bf16", node_of(in_unit(machines.device.peak_bf16.value, kTera)));
  add(node, "hbm_gb_s", node_of(in_unit(machines.device.hbm.value, kGiga)));
  middle();
  add(node, "nodes", node_of(machines.nodes));
  Node intra = map_node();
  add(intra, "link", node_of(machines.intra_link));
  add(intra, "gb_s_per_gpu_one_way", node_of(in_unit(machines.intra_per_gpu.value, kGiga)));
  if constexpr (std::is_same_v<Machines, ClusterSpec>) {
    for (const auto& [gpus, rate, member] : kSharedLinks) {
      const SharedLink& link = machines.*member;
      if (link.gpus == 0) continue;
      add(intra, gpus, node_of(link.gpus));
      add(intra, rate, node_of(in_unit(link.rate.value, kGiga)));
    }
  }
  Node inter = map_node();
  add(inter, "fabric", node_of(machines.inter_fabric));
  add(inter, "nics_per_node", node_of(machines.nics_per_node));
  add(inter, "gbit_s_per_nic", node_of(in_unit(machines.nic.value, kGiga) * kBitsPerByte));
  add(node, "intra_node", std::move(intra));
  add(node, "inter_node", std::move(inter));
}

}  // namespace

Node to_node(const ClusterSpec& cluster) {
  Node node = map_node();
  add(node, "name", node_of(cluster.name));
  add_machines(node, cluster, [&] { add(node, "gpus_per_node", node_of(cluster.gpus_per_node)); });
  add(node, "oversubscription", node_of(cluster.oversubscription));
  add(node, "price_per_gpu_hour", node_of(cluster.price_per_gpu_hour));
  if (cluster.nodes_per_leaf != 1) add(node, "nodes_per_leaf", node_of(cluster.nodes_per_leaf));
  if (cluster.rails) add(node, "rails", node_of(cluster.rails));
  if (cluster.host != HostSpec{}) {
    Node host = map_node();
    if (cluster.host.cores > 0) add(host, "cores", node_of(cluster.host.cores));
    if (cluster.host.memory.value > 0) {
      add(host, "memory_gb_s", node_of(in_unit(cluster.host.memory.value, kGiga)));
    }
    add(node, "host", std::move(host));
  }
  if (cluster.groups.empty()) return node;
  Node types = list_node();
  for (const NodeGroup& group : cluster.groups) {
    Node type = map_node();
    add_machines(type, group, [] {});
    add(type, "price_per_gpu_hour", node_of(group.price_per_gpu_hour));
    types.items.push_back(std::move(type));
  }
  add(node, "node_types", std::move(types));
  return node;
}

std::optional<ClusterSpec> parse_cluster_spec(std::string_view text, const std::string& file,
                                              Problems& problems) {
  const std::size_t before = problems.size();
  const auto document = parse_yaml_as_far(text, file, problems);
  if (!document) return std::nullopt;
  ObjectReader reader(*document, problems);
  ClusterSpec cluster = cluster_from(reader, Defaults::allowed);
  if (problems.size() != before) return std::nullopt;
  return cluster;
}

std::optional<ClusterSpec> read_cluster_spec(const std::filesystem::path& where,
                                             Problems& problems) {
  const auto file = find_config(where, "clusters", ".yaml", problems);
  if (!file) return std::nullopt;
  const auto text = read_text_file(*file, std::size_t{1} << 20, problems);
  return text ? parse_cluster_spec(*text, file->string(), problems) : std::nullopt;
}

}  // namespace tessera
