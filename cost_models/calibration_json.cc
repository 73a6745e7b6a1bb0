// Calibration files, version 1: reading and writing.
#include <cmath>
#include <string>

#include "cost_models/calibration.h"
#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"

namespace tessera {
namespace {

constexpr std::string_view kVersionKey = "tessera_calibration";

struct NamedTable {
  std::string_view name;
  RatioTable Calibration::*member;
  std::array<std::string_view, 3> axes;  // an empty name ends the list
};
constexpr std::array<NamedTable, 3> kTables = {{
    {"matmul", &Calibration::matmul, {"m", "n", "k"}},
    {"prefill", &Calibration::prefill, {"sequence_heads", "length", ""}},
    {"decode", &Calibration::decode, {"heads_per_kv_head", "sequence_kv_heads", "context"}},
}};

constexpr std::array<Collective, 7> kCollectives = {
    Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
    Collective::all_to_all, Collective::broadcast,  Collective::send_receive,
    Collective::copy_engine};

Node list_of(const std::vector<double>& values) {
  Node list = list_node();
  for (const double value : values) list.items.push_back(node_of(value));
  return list;
}

Node node_of(const Constant& constant) {
  Node node = map_node();
  add(node, "value", tessera::node_of(constant.value));
  add(node, "error", tessera::node_of(constant.error));
  add(node, "measured", tessera::node_of(constant.measured));
  add(node, "origin", tessera::node_of(std::string_view(constant.origin)));
  return node;
}

Node node_of(const RatioTable& table, const NamedTable& named) {
  Node axes = map_node();
  for (std::size_t d = 0; d < table.axes.size(); ++d) {
    add(axes, named.axes[d], list_of(table.axes[d]));
  }
  Node node = map_node();
  add(node, "axes", std::move(axes));
  add(node, "ratio", list_of(table.ratio));
  add(node, "measured", tessera::node_of(table.measured));
  add(node, "origin", tessera::node_of(std::string_view(table.origin)));
  return node;
}

Node node_of(const CollectiveConstants& entry) {
  Node node = map_node();
  add(node, "collective", tessera::node_of(name_of(entry.collective)));
  add(node, "ranks", tessera::node_of(entry.ranks));
  add(node, "nodes", tessera::node_of(entry.nodes));
  add(node, "alpha_s", tessera::node_of(entry.alpha_s));
  add(node, "bytes_per_s", tessera::node_of(entry.bandwidth));
  add(node, "ramp_s", tessera::node_of(entry.ramp_s));
  add(node, "error", tessera::node_of(entry.error));
  add(node, "measured", tessera::node_of(entry.measured));
  add(node, "origin", tessera::node_of(std::string_view(entry.origin)));
  return node;
}

// Files of before a constant was known do not have it.
// What is computed from constants within them stays finite.
constexpr Real kConstant{.least = 1e-30, .most = 1e30};
constexpr Real kConstantOrNone{.least = 0, .most = 1e30};

bool is_later(const NamedConstant& named) {
  return named.member == &Calibration::overlap_slowdown ||
         named.member == &Calibration::grouped_rate || named.member == &Calibration::narrow_heads ||
         !is_stated(named, Calibration{});
}

void read_constants(ObjectReader& reader, Calibration& calibration) {
  for (const NamedConstant& named : kConstants) {
    if (is_later(named) && !reader.has(named.name)) continue;
    auto object = reader.object(named.name);
    if (!object) continue;
    Constant& constant = calibration.*named.member;
    object->required("value", constant.value, kConstantOrNone);
    object->required("error", constant.error, kConstantOrNone);
    object->required("measured", constant.measured);
    object->optional("origin", constant.origin);
    object->refuse_unknown_keys();
  }
  reader.refuse_unknown_keys();
}

// A table has all of its axes or none; axes ascend and ratios fill the grid.
void read_table(ObjectReader& reader, const NamedTable& named, RatioTable& table) {
  if (auto axes = reader.object("axes"); axes && !axes->keys().empty()) {
    for (const std::string_view name : named.axes) {
      if (name.empty()) continue;
      std::vector<double> axis;
      axes->list(name, axis, kConstant);
      for (std::size_t i = 1; i < axis.size(); ++i) {
        if (axis[i] <= axis[i - 1]) axes->refuse(name, "ascending numbers");
      }
      if (axis.empty()) axes->refuse(name, "at least one number");
      table.axes.push_back(std::move(axis));
    }
    axes->refuse_unknown_keys();
  }
  reader.list("ratio", table.ratio, kConstant);
  std::size_t cells = table.axes.empty() ? 0 : 1;
  for (const auto& axis : table.axes) cells *= axis.size();
  if (table.ratio.size() != cells) {
    reader.refuse("ratio", std::to_string(table.ratio.size()) + " numbers",
                  std::to_string(cells) + ", one per cell of the axes", "");
  }
  reader.required("measured", table.measured);
  reader.optional("origin", table.origin);
  reader.refuse_unknown_keys();
}

CollectiveConstants read_collective(ObjectReader& reader) {
  CollectiveConstants entry;
  reader.required("collective", entry.collective, kCollectives);
  reader.required("ranks", entry.ranks, at_least(2));
  reader.required("nodes", entry.nodes, kPositive);
  reader.required("alpha_s", entry.alpha_s.value, kConstantOrNone);
  reader.required("bytes_per_s", entry.bandwidth.value, kConstant);
  reader.required("ramp_s", entry.ramp_s.value, kConstantOrNone);
  reader.required("error", entry.error, kConstantOrNone);
  reader.required("measured", entry.measured);
  reader.optional("origin", entry.origin);
  reader.refuse_unknown_keys();
  return entry;
}

FitCovariance read_covariance(ObjectReader& reader) {
  FitCovariance covariance;
  reader.list("of", covariance.of);
  reader.list("relative", covariance.relative);
  if (covariance.relative.size() != covariance.of.size() * covariance.of.size()) {
    reader.refuse("relative", std::to_string(covariance.relative.size()) + " numbers",
                  "a square matrix over " + std::to_string(covariance.of.size()) + " names", "");
  }
  reader.refuse_unknown_keys();
  return covariance;
}

// Rates and shares by which the cost functions divide.
void check_rates(ObjectReader& root, const Calibration& calibration) {
  for (const auto member :
       {&Calibration::matmul_flops, &Calibration::memory_bandwidth, &Calibration::stream_bandwidth,
        &Calibration::inter_efficiency, &Calibration::host_bandwidth, &Calibration::fp32_factor,
        &Calibration::grouped_rate}) {
    if ((calibration.*member).value >= kConstant.least) continue;
    for (const NamedConstant& named : kConstants) {
      if (named.member == member) {
        root.refuse("constants", std::string(named.name) + " = 0", "a rate above zero", "");
      }
    }
  }
  if (calibration.fragmentation.value >= 1) {
    root.refuse("constants", "fragmentation >= 1", "a part of the memory below 1", "");
  }
}

}  // namespace

std::string to_json(const Calibration& calibration) {
  Node root = map_node();
  add(root, kVersionKey, node_of(kCalibrationVersion));
  add(root, "name", node_of(std::string_view(calibration.name)));
  add(root, "device", node_of(std::string_view(calibration.device)));
  add(root, "note", node_of(std::string_view(calibration.note)));
  add(root, "created", node_of(std::string_view(calibration.created)));
  add(root, "cores", node_of(calibration.cores));
  add(root, "ranks", node_of(calibration.ranks));
  add(root, "overlapped_dispatch", node_of(calibration.overlapped_dispatch));
  Node constants = map_node();
  for (const NamedConstant& named : kConstants) {
    if (is_stated(named, calibration)) {
      add(constants, named.name, node_of(calibration.*named.member));
    }
  }
  add(root, "constants", std::move(constants));
  Node tables = map_node();
  for (const NamedTable& named : kTables) {
    add(tables, named.name, node_of(calibration.*named.member, named));
  }
  add(root, "tables", std::move(tables));
  Node collectives = list_node();
  for (const auto& entry : calibration.collectives) collectives.items.push_back(node_of(entry));
  add(root, "collectives", std::move(collectives));
  if (!calibration.covariances.empty()) {
    Node covariances = list_node();
    for (const FitCovariance& each : calibration.covariances) {
      Node names = list_node();
      for (const std::string& name : each.of) {
        names.items.push_back(node_of(std::string_view(name)));
      }
      Node node = map_node();
      add(node, "of", std::move(names));
      add(node, "relative", list_of(each.relative));
      covariances.items.push_back(std::move(node));
    }
    add(root, "covariances", std::move(covariances));
  }
  return json_text(root);
}

std::optional<Calibration> parse_calibration(std::string_view text, const std::string& file,
                                             Problems& problems) {
  const std::size_t before = problems.size();
  const auto document = parse_json(text, file, problems);
  if (!document) return std::nullopt;
  Calibration calibration;
  ObjectReader root(*document, problems);
  std::int64_t version = 0;
  root.required(kVersionKey, version);
  if (problems.size() == before && version != kCalibrationVersion) {
    root.refuse(kVersionKey, std::to_string(version), std::to_string(kCalibrationVersion),
                "made by another version of tessera; run tessera calibrate again");
    return std::nullopt;
  }
  root.required("name", calibration.name);
  root.required("device", calibration.device);
  root.optional("note", calibration.note);
  root.optional("created", calibration.created);
  root.required("cores", calibration.cores, kNotNegative);
  root.required("ranks", calibration.ranks, kNotNegative);
  root.required("overlapped_dispatch", calibration.overlapped_dispatch);
  if (auto constants = root.object("constants")) read_constants(*constants, calibration);
  if (auto tables = root.object("tables")) {
    for (const NamedTable& named : kTables) {
      if (auto table = tables->object(named.name)) {
        read_table(*table, named, calibration.*named.member);
      }
    }
    tables->refuse_unknown_keys();
  }
  for (ObjectReader& entry : root.objects("collectives")) {
    calibration.collectives.push_back(read_collective(entry));
  }
  for (ObjectReader& entry : root.objects("covariances", false)) {
    calibration.covariances.push_back(read_covariance(entry));
  }
  if (problems.size() == before) check_rates(root, calibration);
  root.refuse_unknown_keys();
  if (problems.size() != before) return std::nullopt;
  return calibration;
}

std::optional<Calibration> read_calibration(const std::filesystem::path& file, Problems& problems) {
  const auto text = read_text_file(file, ParseLimits{}.bytes, problems);
  if (!text) return std::nullopt;
  return parse_calibration(*text, file.string(), problems);
}

std::optional<Calibration> find_calibration(const std::filesystem::path& where,
                                            Problems& problems) {
  const auto file = find_config(where, "calibrations", ".json", problems);
  if (!file) return std::nullopt;
  return read_calibration(*file, problems);
}

void write_calibration(const Calibration& calibration, const std::filesystem::path& file) {
  write_text_file(file, to_json(calibration));
}

}  // namespace tessera
