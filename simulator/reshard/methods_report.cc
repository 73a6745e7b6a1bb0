#include "simulator/reshard/methods_report.h"

#include <vector>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/printed.h"
#include "cost_models/documents/strict_json.h"
#include "planner/plan/amounts.h"

namespace tessera {
namespace {

std::string amount(Bytes bytes) { return bytes > 0 ? in_binary_units(bytes) : "0"; }
std::string time(Seconds seconds) { return seconds > 0 ? in_seconds(seconds) : "0"; }

std::string row_text(const MethodCost& cost) {
  const std::string name(name_of(cost.method));
  return printed("%-13s %11s %11s %11s %11s %10s %10s %10s  %s%s\n", name.c_str(),
                 amount(cost.received).c_str(), amount(cost.sent).c_str(),
                 amount(cost.redundant).c_str(), amount(cost.peak).c_str(), time(cost.wire).c_str(),
                 time(cost.software).c_str(), time(cost.total).c_str(),
                 std::string(cost.overlap).c_str(), cost.fits ? "" : "; DOES NOT FIT");
}

std::string curve_text(const ReshardComparison& comparison) {
  const std::vector<CurvePoint> curve = bucket_curve(comparison);
  std::string out = printed("\n%-13s", "bucket");
  for (const MethodCost& cost : curve.front().costs) {
    out += printed(" %23s", std::string(name_of(cost.method)).c_str());
  }
  out += "\n";
  for (const CurvePoint& point : curve) {
    out += printed("%-13s", amount(point.bucket).c_str());
    for (const MethodCost& cost : point.costs) {
      out += printed(" %11s %11s", time(cost.total).c_str(), amount(cost.peak).c_str());
    }
    out += "\n";
  }
  return out + "seconds that the rollout waits, and memory at the peak\n";
}

Node cost_node(const MethodCost& cost) {
  Node row = map_node();
  add(row, "method", node_of(name_of(cost.method)));
  if (!cost.unusable.empty()) {
    add(row, "unusable", node_of(cost.unusable));
    return row;
  }
  add(row, "received_bytes", node_of(cost.received.value));
  add(row, "sent_bytes", node_of(cost.sent.value));
  add(row, "total_received_bytes", node_of(cost.total_received.value));
  add(row, "redundant_bytes", node_of(cost.redundant.value));
  add(row, "peak_bytes", node_of(cost.peak.value));
  add(row, "fits", node_of(cost.fits));
  add(row, "bucket_bytes", node_of(cost.bucket.value));
  add(row, "wire_s", node_of(cost.wire.value));
  add(row, "software_s", node_of(cost.software.value));
  add(row, "total_s", node_of(cost.total.value));
  add(row, "overlaps", node_of(cost.overlap));
  return row;
}

std::vector<std::string> cost_cells(const MethodCost& cost) {
  if (!cost.unusable.empty()) {
    return {std::string(name_of(cost.method)),
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            cost.unusable};
  }
  const auto whole = [](Bytes bytes) { return std::to_string(bytes.value); };
  const auto exact = [](Seconds seconds) { return printed("%.9g", seconds.value); };
  return {std::string(name_of(cost.method)),
          whole(cost.received),
          whole(cost.sent),
          whole(cost.total_received),
          whole(cost.redundant),
          whole(cost.peak),
          cost.fits ? "true" : "false",
          whole(cost.bucket),
          exact(cost.wire),
          exact(cost.software),
          exact(cost.total),
          std::string(cost.overlap),
          ""};
}

}  // namespace

std::string reshard_text(const ReshardComparison& comparison, std::string_view model, bool curve) {
  const ReshardQuestion& question = comparison.question();
  std::string out = std::string(model) + ", " + amount(comparison.model_bytes()) + " of " +
                    std::string(name_of(question.weights)) +
                    " weights: " + describe(question.from.layout) + " -> " + describe(question.to) +
                    (comparison.apart() ? ", on GPUs of its own\n" : ", on the same GPUs\n");
  out += printed("%-13s %11s %11s %11s %11s %10s %10s %10s  %s\n", "method", "received", "sent",
                 "redundant", "peak", "wire", "software", "total", "meanwhile");
  std::string left_out;
  for (const MethodCost& cost : comparison.all()) {
    if (cost.unusable.empty()) {
      out += row_text(cost);
    } else {
      left_out +=
          printed("%-13s %s\n", std::string(name_of(cost.method)).c_str(), cost.unusable.c_str());
    }
  }
  return out + left_out + (curve ? curve_text(comparison) : "");
}

std::string reshard_json(const ReshardComparison& comparison, std::string_view model) {
  const ReshardQuestion& question = comparison.question();
  Node root = map_node(), methods = list_node(), curve = list_node();
  add(root, "model", node_of(model));
  add(root, "model_bytes", node_of(comparison.model_bytes().value));
  add(root, "from", node_of(describe(question.from.layout)));
  add(root, "to", node_of(describe(question.to)));
  add(root, "apart", node_of(comparison.apart()));
  for (const MethodCost& cost : comparison.all()) methods.items.push_back(cost_node(cost));
  for (const CurvePoint& point : bucket_curve(comparison)) {
    Node each = map_node(), costs = list_node();
    add(each, "bucket_bytes", node_of(point.bucket.value));
    for (const MethodCost& cost : point.costs) costs.items.push_back(cost_node(cost));
    add(each, "methods", std::move(costs));
    curve.items.push_back(std::move(each));
  }
  add(root, "methods", std::move(methods));
  add(root, "curve", std::move(curve));
  return json_text(root);
}

std::string reshard_csv(const ReshardComparison& comparison, bool curve) {
  CsvTable table{.file = "",
                 .header = {"method", "received_bytes", "sent_bytes", "total_received_bytes",
                            "redundant_bytes", "peak_bytes", "fits", "bucket_bytes", "wire_s",
                            "software_s", "total_s", "overlaps", "unusable"},
                 .rows = {}};
  if (curve) {
    for (const CurvePoint& point : bucket_curve(comparison)) {
      for (const MethodCost& cost : point.costs) table.rows.push_back({0, cost_cells(cost)});
    }
  } else {
    for (const MethodCost& cost : comparison.all()) table.rows.push_back({0, cost_cells(cost)});
  }
  return to_csv(table);
}

}  // namespace tessera
