#include "simulator/timeline/console_log.h"

#include <charconv>
#include <cmath>
#include <string>

namespace tessera {
namespace {

constexpr std::string_view kStep = "step:", kBetween = " - ";
constexpr std::string_view kBefore = " m]\r";  // "step:"; a colour ends with m

std::optional<double> number_from(std::string_view text) {
  if (const auto open = text.find('('); text.starts_with("np.") && open != text.npos) {
    const auto close = text.find(')', open);
    if (close == text.npos) return std::nullopt;
    text = text.substr(open + 1, close - open - 1);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data() || !std::isfinite(value)) return std::nullopt;
  // Colours may follow the last number, nothing else.
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (!rest.empty() && rest.front() != '\x1b' && rest.front() != '\r') return std::nullopt;
  return value;
}

// Where "step:" begins a word, or follows a bar of progress (tqdm ends it without a line's end).
std::string_view from_step(std::string_view line) {
  for (auto at = line.find(kStep); at != line.npos; at = line.find(kStep, at + 1)) {
    if (at == 0 || kBefore.find(line[at - 1]) != kBefore.npos) return line.substr(at);
  }
  return {};
}

}  // namespace

std::optional<StepNumbers> parse_console_line(std::string_view line) {
  std::string_view rest = from_step(line);
  if (rest.empty()) return std::nullopt;
  StepNumbers step;
  bool first = true;
  while (!rest.empty()) {
    const auto end = rest.find(kBetween);
    const std::string_view part = rest.substr(0, end);
    rest = end == rest.npos ? std::string_view{} : rest.substr(end + kBetween.size());
    const auto colon = part.rfind(':');
    const auto value = colon == part.npos ? std::nullopt : number_from(part.substr(colon + 1));
    if (first) {
      if (!value || *value != std::floor(*value)) return std::nullopt;
      step.step = static_cast<std::int64_t>(*value);
      first = false;
    } else if (value) {
      step.data[std::string(part.substr(0, colon))] = *value;
    }
  }
  if (step.data.empty()) return std::nullopt;
  return step;
}

}  // namespace tessera
