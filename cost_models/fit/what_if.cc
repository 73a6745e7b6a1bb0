#include "cost_models/fit/what_if.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/learned_constants.h"

namespace tessera {
namespace {

constexpr std::string_view kOfDevice = ": ";  // "H100: dispatch_s"

std::optional<double> number_from(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// The constants of one pool's view: what may be set of them, and what was.
struct Settable {
  Calibration* of = nullptr;
  std::vector<Adjustable> constants;
  std::vector<std::string> set;
};

std::vector<Settable> settables(Calibration& calibration) {
  std::vector<Settable> all = {{&calibration, adjustables(calibration), {}}};
  for (Calibration& view : calibration.views) all.push_back({&view, adjustables(view), {}});
  return all;
}

const Adjustable* find(const Settable& one, const std::string& name) {
  const auto found = std::find_if(one.constants.begin(), one.constants.end(),
                                  [&](const Adjustable& each) { return each.name == name; });
  return found == one.constants.end() ? nullptr : &*found;
}

// Those that have the constant, of a device only where `device` names one.
std::vector<Settable*> meant(std::vector<Settable>& all, const std::string& device,
                             const std::string& name) {
  std::vector<Settable*> result;
  for (Settable& each : all) {
    const bool of_device = device.empty() || each.of->device == device;
    if (of_device && find(each, name) != nullptr) result.push_back(&each);
  }
  return result;
}

std::vector<std::string> known_names(const std::vector<Settable>& all) {
  std::vector<std::string> names;
  for (const Settable& each : all) {
    for (const Adjustable& one : each.constants) {
      names.push_back(one.name);
      if (all.size() > 1) names.push_back(each.of->device + std::string(kOfDevice) + one.name);
    }
  }
  return names;
}

bool was_set(const Settable& one, const std::string& name) {
  return std::find(one.set.begin(), one.set.end(), name) != one.set.end();
}

}  // namespace

void set_constants(Calibration& calibration, std::span<const std::string> words,
                   Problems& problems) {
  std::vector<Settable> all = settables(calibration);
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    const std::string whole = word.substr(0, equals);
    const auto colon = whole.find(kOfDevice);
    const std::string device = colon == whole.npos ? "" : whole.substr(0, colon);
    const std::string name = colon == whole.npos ? whole : whole.substr(colon + kOfDevice.size());
    const std::vector<Settable*> targets = meant(all, device, name);
    if (equals == word.npos || targets.empty()) {
      problems.push_back({"--set", whole, "'" + word + "'",
                          "NAME=VALUE of a constant above 0 (tessera learn lists them)",
                          did_you_mean(whole, known_names(all))});
      continue;
    }
    const auto value = number_from(word.substr(equals + 1));
    if (!value || !(*value > 0)) {
      problems.push_back(
          {"--set", whole, "'" + word.substr(equals + 1) + "'", "a number above 0", ""});
      continue;
    }
    if (std::any_of(targets.begin(), targets.end(),
                    [&](const Settable* each) { return was_set(*each, name); })) {
      problems.push_back({"--set", whole, "'" + word + "'", "a constant that no --set before gave",
                          "one value for each"});
      continue;
    }
    for (Settable* each : targets) {
      const Adjustable& constant = *find(*each, name);
      constant.scale(*each->of, *value / constant.value(*each->of));
      each->set.push_back(name);
    }
  }
}

std::vector<std::string> set_nccl(const ClusterSpec& cluster, Calibration& calibration,
                                  std::span<const std::string> words, Problems& problems) {
  std::vector<std::string> others;
  NcclChoice asked;
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == word.npos ? "" : word.substr(equals + 1);
    const bool algorithm = name == "NCCL_ALGO";
    if (!algorithm && name != "NCCL_PROTO") {
      others.push_back(word);
      continue;
    }
    if (algorithm ? asked.algorithm.has_value() : asked.protocol.has_value()) {
      problems.push_back({"--set", name, "'" + word + "'", "a name that no --set before gave",
                          "one value for each"});
      continue;
    }
    if (algorithm) asked.algorithm = nccl_algorithm(value);
    if (!algorithm) asked.protocol = nccl_protocol(value);
    if (algorithm ? !asked.algorithm : !asked.protocol) {
      problems.push_back({"--set", name, "'" + value + "'",
                          algorithm ? "Ring, Tree, NVLS or NVLSTree" : "LL, LL128 or Simple", ""});
    }
  }
  if (asked.any() && !nccl_machine(cluster)) {
    problems.push_back({"--set", asked.algorithm ? "NCCL_ALGO" : "NCCL_PROTO",
                        "'" + cluster.device.name + "' over '" + cluster.intra_link + "'",
                        "NVLink between GPUs from A100 to GB300", "NCCL's model knows no others"});
  }
  calibration.nccl = asked;
  for (Calibration& view : calibration.views) view.nccl = asked;
  return others;
}

}  // namespace tessera
