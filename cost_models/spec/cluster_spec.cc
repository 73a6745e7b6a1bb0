#include "cost_models/spec/cluster_spec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cost_models/spec/preset.h"
#include "cost_models/spec/spec_document.h"
#include "cost_models/spec/strict_yaml.h"

namespace tessera {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12, kBitsPerByte = 8;

void read_version(ObjectReader& reader) {
  std::int64_t version = 1;
  reader.optional("version", version);
  if (version != 1) reader.refuse("version", "version 1", "this tessera reads version 1 only");
}

void read_device(ObjectReader& reader, DeviceSpec& device) {
  constexpr Real kMemory{.least = 0, .most = 1 << 20, .above = true};
  double memory = 0, peak = 0, hbm = 0;
  reader.required("gpu", device.name);
  reader.required("memory_gib", memory, kMemory);
  reader.required("peak_tflops_bf16", peak, kAboveZero);
  reader.required("hbm_gb_s", hbm, kAboveZero);
  device.memory = from_gib(memory);
  device.peak_bf16 = tflop_per_s(peak);
  device.hbm = gb_per_s(hbm);
}

void read_links(ObjectReader& reader, ClusterSpec& cluster, bool need_inter) {
  if (auto intra = reader.object("intra_node")) {
    double rate = 0;
    intra->required("link", cluster.intra_link, true);
    intra->required("gb_s_per_gpu_one_way", rate, kAboveZero);
    intra->refuse_unknown_keys();
    cluster.intra_per_gpu = gb_per_s(rate);
  }
  if (auto inter = reader.object("inter_node", need_inter)) {
    double rate = 0;
    const bool connected = cluster.nodes > 1;
    inter->required("fabric", cluster.inter_fabric, true);
    inter->required("nics_per_node", cluster.nics_per_node, connected ? kPositive : kNotNegative);
    inter->required("gbit_s_per_nic", rate, connected ? kAboveZero : kFromZero);
    inter->refuse_unknown_keys();
    cluster.nic = gb_per_s(rate / kBitsPerByte);
  }
}

// Several kinds of nodes: a step waits for its slowest rank and every rank must fit, so the cluster
// counts as that of the weakest GPU, memory, link and card among them; the price is the mean.
void read_node_types(ObjectReader& reader, ClusterSpec& cluster, Whole most_nodes) {
  double price = 0;
  const auto weaker = [](auto& mine, const auto& other) {
    if (other.value < mine.value) mine = other;
  };
  std::vector<ClusterSpec> kinds;
  for (ObjectReader& entry : reader.objects("node_types")) {
    ClusterSpec kind;
    read_device(entry, kind.device);
    entry.required("nodes", kind.nodes, most_nodes);
    read_links(entry, kind, true);
    entry.optional("price_per_gpu_hour", kind.price_per_gpu_hour, kFromZero);
    entry.refuse_unknown_keys();
    cluster.nodes += kind.nodes;
    price += static_cast<double>(kind.nodes) * kind.price_per_gpu_hour;
    kinds.push_back(std::move(kind));
  }
  if (kinds.size() < 2) {
    return reader.refuse("node_types", "a list of two or more maps",
                         "one kind of node stands at the top level");
  }
  const std::int64_t nodes = cluster.nodes;
  const auto slowest =
      std::min_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
        return a.device.peak_bf16.value < b.device.peak_bf16.value;
      });
  ClusterSpec weakest = *slowest;
  for (const ClusterSpec& kind : kinds) {
    weaker(weakest.device.memory, kind.device.memory);
    weaker(weakest.device.hbm, kind.device.hbm);
    weaker(weakest.intra_per_gpu, kind.intra_per_gpu);
    weaker(weakest.nic, kind.nic);
    weakest.nics_per_node = std::min(weakest.nics_per_node, kind.nics_per_node);
  }
  weakest.name = cluster.name;
  weakest.gpus_per_node = cluster.gpus_per_node;
  weakest.nodes = nodes;
  weakest.price_per_gpu_hour = price / static_cast<double>(nodes);
  cluster = std::move(weakest);
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
  object->optional("memory_gb_s", memory, kAboveZero);
  object->refuse_unknown_keys();
  host.memory = gb_per_s(memory);
}

ClusterSpec cluster_from(ObjectReader& reader, Defaults defaults) {
  constexpr Whole kMostNodes{.least = 1, .most = 1 << 20};
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
    read_node_types(reader, cluster, kMostNodes);
  } else {
    read_device(reader, cluster.device);
    reader.required("nodes", cluster.nodes, kMostNodes);
    read_links(reader, cluster, resolved || cluster.nodes > 1);
  }
  if (resolved) {
    reader.required("oversubscription", cluster.oversubscription, Real{.least = 1});
    reader.required("price_per_gpu_hour", cluster.price_per_gpu_hour, kFromZero);
  } else {
    reader.optional("oversubscription", cluster.oversubscription, Real{.least = 1});
    if (!reader.has("node_types")) {
      reader.optional("price_per_gpu_hour", cluster.price_per_gpu_hour, kFromZero);
    }
  }
  read_host(reader, cluster.host);
  reader.refuse_unknown_keys();
  return cluster;
}

Node to_node(const ClusterSpec& cluster) {
  Node intra = map_node();
  add(intra, "link", node_of(cluster.intra_link));
  add(intra, "gb_s_per_gpu_one_way", node_of(in_unit(cluster.intra_per_gpu.value, kGiga)));
  Node inter = map_node();
  add(inter, "fabric", node_of(cluster.inter_fabric));
  add(inter, "nics_per_node", node_of(cluster.nics_per_node));
  add(inter, "gbit_s_per_nic", node_of(in_unit(cluster.nic.value, kGiga) * kBitsPerByte));
  Node node = map_node();
  add(node, "name", node_of(cluster.name));
  add(node, "gpu", node_of(cluster.device.name));
  add(node, "memory_gib", node_of(gib(cluster.device.memory)));
  add(node, "peak_tflops_bf16", node_of(in_unit(cluster.device.peak_bf16.value, kTera)));
  add(node, "hbm_gb_s", node_of(in_unit(cluster.device.hbm.value, kGiga)));
  add(node, "gpus_per_node", node_of(cluster.gpus_per_node));
  add(node, "nodes", node_of(cluster.nodes));
  add(node, "intra_node", std::move(intra));
  add(node, "inter_node", std::move(inter));
  add(node, "oversubscription", node_of(cluster.oversubscription));
  add(node, "price_per_gpu_hour", node_of(cluster.price_per_gpu_hour));
  if (cluster.host != HostSpec{}) {
    Node host = map_node();
    if (cluster.host.cores > 0) add(host, "cores", node_of(cluster.host.cores));
    if (cluster.host.memory.value > 0) {
      add(host, "memory_gb_s", node_of(in_unit(cluster.host.memory.value, kGiga)));
    }
    add(node, "host", std::move(host));
  }
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
