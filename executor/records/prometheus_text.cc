#include "executor/records/prometheus_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace tessera {
namespace {

constexpr const char* kStep = "tessera_step";

std::string gauge_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char letter) { return letter > 127 || std::isalnum(letter) == 0; }, '_');
  return "tessera_" + name;
}

/// As the format spells it: numbers as Go reads them, and three words.
std::string spelled(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

/// Help lines escape backslashes and line feeds, labels their quotes as well.
std::string escaped(const std::string& plain, bool quotes = false) {
  std::string text;
  for (const char letter : plain) {
    if (letter == '\n') {
      text += "\\n";
      continue;
    }
    if (letter == '\\' || (quotes && letter == '"')) text += '\\';
    text += letter;
  }
  return text;
}

struct Gauge {
  std::string help, samples;
};

std::string text_of(const std::string& name, const Gauge& gauge) {
  return "# HELP " + name + " " + gauge.help + "\n# TYPE " + name + " gauge\n" + gauge.samples;
}

void add(Gauge& gauge, const std::string& series, const std::string& help, double value) {
  gauge.help += (gauge.help.empty() ? "" : ", ") + escaped(help);
  gauge.samples += series + " " + spelled(value) + "\n";
}

}  // namespace

std::string prometheus_text(std::int64_t step, const std::map<std::string, double>& numbers) {
  std::map<std::string, int> uses{{kStep, 1}};
  for (const auto& [metric, value] : numbers) ++uses[gauge_name(metric)];
  std::map<std::string, Gauge> gauges;
  add(gauges[kStep], kStep, "Number of the newest step.", static_cast<double>(step));
  for (const auto& [metric, value] : numbers) {
    const std::string name = gauge_name(metric);
    const std::string label = "{metric=\"" + escaped(metric, /*quotes=*/true) + "\"}";
    add(gauges[name], uses[name] > 1 ? name + label : name, metric, value);
  }
  std::string text = text_of(kStep, gauges[kStep]);
  for (const auto& [name, gauge] : gauges) {
    if (name != kStep) text += text_of(name, gauge);
  }
  return text;
}

}  // namespace tessera
