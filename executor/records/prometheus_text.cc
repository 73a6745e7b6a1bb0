#include "executor/records/prometheus_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <set>

namespace tessera {
namespace {

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

/// A help line ends at a line feed: that and the backslash are escaped.
std::string escaped(const std::string& help) {
  std::string text;
  for (const char letter : help) {
    if (letter == '\\') {
      text += "\\\\";
    } else if (letter == '\n') {
      text += "\\n";
    } else {
      text += letter;
    }
  }
  return text;
}

std::string gauge(const std::string& name, const std::string& help, double value) {
  return "# HELP " + name + " " + escaped(help) + "\n# TYPE " + name + " gauge\n" + name + " " +
         spelled(value) + "\n";
}

}  // namespace

std::string prometheus_text(std::int64_t step, const std::map<std::string, double>& numbers) {
  std::set<std::string> named = {"tessera_step"};
  std::string text = gauge("tessera_step", "Number of the newest step.", static_cast<double>(step));
  for (const auto& [name, value] : numbers) {
    const std::string gauge_of = gauge_name(name);
    if (named.insert(gauge_of).second) text += gauge(gauge_of, name, value);
  }
  return text;
}

}  // namespace tessera
