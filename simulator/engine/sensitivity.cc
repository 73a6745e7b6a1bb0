#include "simulator/engine/sensitivity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "cost_models/documents/strict_json.h"
#include "planner/plan/plan.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/pricing/uncertainty.h"
#include "planner/request/plan_request.h"

namespace tessera {
namespace {

constexpr std::size_t kMost = 12;  // rows of the table

// The errors by the names that sensitivities have: "all_gather/8x1" for the parts of a curve.
std::map<std::string, double> errors_of(const Calibration& calibration, const std::string& prefix) {
  std::map<std::string, double> errors;
  for (const auto& [name, member] : kConstants) {
    errors[prefix + std::string(name)] = (calibration.*member).error;
  }
  for (const CollectiveConstants& curve : calibration.collectives) {
    errors[prefix + name_of(curve)] = curve.error;
  }
  return errors;
}

}  // namespace

std::vector<StepSensitivity> step_sensitivities(const Plan& plan, const Calibration& calibration) {
  const PlanRequest request = priced_request_of(plan, calibration);
  const auto parts = step_sensitivities(request, solution_of(plan), deal_of(plan, request));
  std::map<std::string, double> errors = errors_of(calibration, "");
  for (const Calibration& view : calibration.views) {
    errors.merge(errors_of(view, view.device + ": "));
  }
  std::map<std::string, double> seconds;  // for one per cent, of a curve's whole time
  for (const Sensitivity& part : parts) {
    // Names of curves end in the part: ".alpha_s", ".ramp_s", and a rate, which works against them.
    const auto dot = part.of.rfind('.');
    const double sign = part.of.ends_with(".bytes_per_s") ? -1 : 1;
    const std::string name = part.of.substr(0, dot);
    seconds[name] += (dot == part.of.npos ? 1 : sign) * part.seconds.value / 100;
  }
  std::vector<StepSensitivity> result;
  for (const auto& [name, percent] : seconds) {
    const auto error = errors.find(name);
    const double relative = error == errors.end() ? 0 : error->second;
    result.push_back({name, percent, relative, std::abs(percent) * 100 * relative});
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return std::abs(a.percent_s) > std::abs(b.percent_s);
  });
  return result;
}

std::string to_text(const std::vector<StepSensitivity>& sensitivities) {
  std::array<char, 160> row{};
  std::snprintf(row.data(), row.size(), "%-24s %16s %10s %16s\n", "constant, 1 % more", "step",
                "its error", "step by that");
  std::string text = row.data();
  for (std::size_t i = 0; i < std::min(kMost, sensitivities.size()); ++i) {
    const StepSensitivity& each = sensitivities[i];
    std::snprintf(row.data(), row.size(), "%-24s %+13.3f ms %9.1f%% %13.3f ms\n",
                  each.constant.c_str(), each.percent_s * 1e3, each.error * 100,
                  each.error_s * 1e3);
    text += row.data();
  }
  return text;
}

std::string to_json(const std::vector<StepSensitivity>& sensitivities) {
  Node list = list_node();
  for (const StepSensitivity& each : sensitivities) {
    Node node = map_node();
    add(node, "constant", node_of(std::string_view(each.constant)));
    add(node, "percent_s", node_of(each.percent_s));
    add(node, "error", node_of(each.error));
    add(node, "error_s", node_of(each.error_s));
    list.items.push_back(std::move(node));
  }
  Node root = map_node();
  add(root, "sensitivities", std::move(list));
  return json_text(root);
}

}  // namespace tessera
