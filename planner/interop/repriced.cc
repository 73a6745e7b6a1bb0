#include "planner/interop/repriced.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "cost_models/spec/strict_json.h"
#include "planner/plan/certified.h"

namespace tessera {
namespace {

std::vector<StoredValue> values_of(const Prediction& stored, const Prediction& recomputed) {
  std::vector<StoredValue> values = {{"step_s", stored.step_s, recomputed.step_s},
                                     {"peak_bytes", static_cast<double>(stored.peak_bytes),
                                      static_cast<double>(recomputed.peak_bytes)}};
  for (const Phase phase : kEveryPhase) {
    const auto before = stored.phases_s.find(phase), now = recomputed.phases_s.find(phase);
    if (before == stored.phases_s.end() && now == recomputed.phases_s.end()) continue;
    values.push_back({"phases_s." + std::string(name_of(phase)),
                      before == stored.phases_s.end() ? 0 : before->second,
                      now == recomputed.phases_s.end() ? 0 : now->second});
  }
  return values;
}

// Bytes as GiB, the rest as it is.
std::string amount(const StoredValue& value, double number) {
  std::array<char, 40> text{};
  if (value.name == "peak_bytes") {
    std::snprintf(text.data(), text.size(), "%.2f GiB", number / (1LL << 30));
  } else {
    std::snprintf(text.data(), text.size(), "%.6g s", number);
  }
  return text.data();
}

}  // namespace

bool StoredValue::agrees() const {
  constexpr double kRounding = 1e-6;
  return std::abs(stored - recomputed) <=
         kRounding * std::max(std::abs(stored), std::abs(recomputed));
}

bool Repriced::agrees() const {
  return std::all_of(values.begin(), values.end(),
                     [](const StoredValue& value) { return value.agrees(); });
}

Repriced repriced(const Plan& stored, const Calibration& calibration) {
  Repriced result{.plan = stored, .why = why_not_certified(stored)};
  result.pricing = price(result.plan, calibration);
  result.values = values_of(stored.prediction, result.plan.prediction);
  // Figures that were edited come back as they were: still the file holds no certificate.
  if (certified(result.plan) == Certified::yes) result.plan.certificate.digest = "edited";
  return result;
}

std::string describe(const Repriced& plan) {
  std::string out = "the plan is " + plan.why + ": it was priced again by the cost model\n";
  for (const StoredValue& value : plan.values) {
    if (value.agrees()) continue;
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "  %-22s the file says %14s, computed %14s\n",
                  value.name.c_str(), amount(value, value.stored).c_str(),
                  amount(value, value.recomputed).c_str());
    out += line.data();
  }
  if (plan.agrees()) out += "  the file's times and peak are those computed\n";
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
