#include "planner/interop/repriced.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "cost_models/documents/strict_json.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

StoredValue bytes_value(std::string name, Traffic stored, Traffic recomputed) {
  return {std::move(name), stored, recomputed};
}

std::vector<StoredValue> values_of(const Prediction& stored, const Prediction& recomputed) {
  std::vector<StoredValue> values = {
      {"step_s", stored.step_s, recomputed.step_s},
      bytes_value("peak_bytes", stored.peak_bytes, recomputed.peak_bytes)};
  for (const Phase phase : kEveryPhase) {
    const auto before = stored.phases_s.find(phase), now = recomputed.phases_s.find(phase);
    if (before == stored.phases_s.end() && now == recomputed.phases_s.end()) continue;
    values.push_back({"phases_s." + std::string(name_of(phase)),
                      before == stored.phases_s.end() ? Seconds{} : before->second,
                      now == recomputed.phases_s.end() ? Seconds{} : now->second});
  }
  return values;
}

// What the reshards are said to move. Of an estimate (without a digest) only its time was priced.
void add_switches(const Plan& stored, const Plan& recomputed, std::vector<StoredValue>& values) {
  for (std::size_t i = 0; i < stored.reshard.size(); ++i) {
    const PlannedReshard &was = stored.reshard[i], &is = recomputed.reshard[i];
    if (!has_exact_reshard(was)) continue;
    const std::string place = "reshard." + std::to_string(i) + ".";
    values.push_back(bytes_value(place + "bytes_received", was.bytes_received, is.bytes_received));
    values.push_back(
        bytes_value(place + "lower_bound_bytes", was.lower_bound_bytes, is.lower_bound_bytes));
    values.push_back(bytes_value(place + "total_received_bytes", was.total_received_bytes,
                                 is.total_received_bytes));
  }
}

// The peak as GiB, what moves to the byte, the rest as it is.
std::string amount(const StoredValue& value, double number) {
  std::array<char, 40> text{};
  if (value.name == "peak_bytes") {
    std::snprintf(text.data(), text.size(), "%.2f GiB", number / (1LL << 30));
  } else if (value.name.starts_with("reshard.")) {
    std::snprintf(text.data(), text.size(), "%.0f bytes", number);
  } else {
    std::snprintf(text.data(), text.size(), "%.6g s", number);
  }
  return text.data();
}

}  // namespace

bool StoredValue::agrees() const {
  const double rounding = name.starts_with("reshard.") ? 0 : 1e-6;  // bytes are exact
  return std::abs(stored - recomputed) <=
         rounding * std::max(std::abs(stored), std::abs(recomputed));
}

bool Repriced::agrees() const {
  return std::all_of(values.begin(), values.end(),
                     [](const StoredValue& value) { return value.agrees(); });
}

Repriced repriced(const Plan& stored, const Calibration& calibration) {
  Repriced result{.plan = stored, .why = why_not_certified(stored)};
  result.pricing = price(result.plan, calibration);
  result.values = values_of(stored.prediction, result.plan.prediction);
  add_switches(stored, result.plan, result.values);
  // Figures that were edited come back as they were: still the file holds no certificate.
  if (certified(result.plan) == Certified::yes) result.plan.certificate.digest = "edited";
  return result;
}

std::string describe(const Repriced& plan) {
  std::string out = "the plan is " + plan.why + ": it was priced again by the cost model\n";
  for (const StoredValue& value : plan.values) {
    if (value.agrees()) continue;
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "  %-30s the file says %14s, computed %14s\n",
                  value.name.c_str(), amount(value, value.stored).c_str(),
                  amount(value, value.recomputed).c_str());
    out += line.data();
  }
  if (plan.agrees()) out += "  the file's times, peak and bytes are those computed\n";
  for (const std::string& note : plan.pricing.notes) out += "  " + note + "\n";
  return out;
}

std::string to_json(const Repriced& plan) {
  Node root = map_node();
  add(root, "certified", node_of(false));
  add(root, "why", node_of(plan.why));
  add(root, "fits", node_of(plan.pricing.fits));
  Node values = map_node();
  for (const StoredValue& value : plan.values) {
    Node both = map_node();
    add(both, "stored", node_of(value.stored));
    add(both, "recomputed", node_of(value.recomputed));
    add(values, value.name, std::move(both));
  }
  add(root, "values", std::move(values));
  Node notes = list_node();
  for (const std::string& note : plan.pricing.notes) notes.items.push_back(node_of(note));
  add(root, "notes", std::move(notes));
  return json_text(root);
}

}  // namespace tessera
