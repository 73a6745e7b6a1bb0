#include "executor/records/run_trace.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/spec/workload.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

std::int64_t nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1e3);
}

/// An event of a rank's phases, a line of the file.
std::optional<Span> span_in(std::string_view line) {
  if (line.ends_with(',')) line.remove_suffix(1);
  const Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object() || event.value("ph", Json()) != "X") return std::nullopt;
  try {
    const auto phase = phase_from(event.at("cat").get<std::string>());
    if (!phase) return std::nullopt;
    const std::int64_t start_ns = nanoseconds(event.at("ts"));
    return Span{.start_ns = start_ns,
                .end_ns = start_ns + nanoseconds(event.at("dur")),
                .rank = event.at("pid").get<int>(),
                .stream = Stream::phases,
                .phase = *phase,
                .step = event.at("args").at("step").get<int>(),
                .name = event.at("name").get<std::string>()};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void for_each_span(const std::filesystem::path& file, const std::function<void(Span span)>& take) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (auto span = span_in(line)) take(*std::move(span));
  }
}

/// The first step of the newest ones that have no more than `most` spans together.
std::int64_t first_kept(const std::map<std::int64_t, std::size_t>& spans_of_step,
                        std::int64_t last_step, std::size_t most) {
  std::int64_t first = last_step + 1;
  std::size_t kept = 0;
  for (auto step = spans_of_step.rbegin(); step != spans_of_step.rend(); ++step) {
    kept += step->second;
    if (kept > most) break;
    first = step->first;
  }
  return first;
}

}  // namespace

Timeline spans_before(const std::filesystem::path& file, std::int64_t last_step, std::size_t most) {
  std::map<std::int64_t, std::size_t> spans_of_step;
  for_each_span(file, [&](const Span& span) {
    if (span.step <= last_step) ++spans_of_step[span.step];
  });
  const std::int64_t first = first_kept(spans_of_step, last_step, most);
  Timeline before{.source = "measured"};
  for_each_span(file, [&](Span span) {
    if (span.step >= first && span.step <= last_step) before.spans.push_back(std::move(span));
  });
  sort(before);
  return before;
}

void write_run_trace(const std::filesystem::path& file, Timeline measured,
                     std::int64_t first_step) {
  Timeline all = first_step > 0 ? spans_before(file, first_step) : Timeline{};
  all.source = measured.source;
  std::int64_t behind_ns = 0;
  for (const Span& span : all.spans) behind_ns = std::max(behind_ns, span.end_ns);
  for (Span& span : measured.spans) {
    span.start_ns += behind_ns;
    span.end_ns += behind_ns;
    all.spans.push_back(std::move(span));
  }
  sort(all);
  write_text_file(file, to_chrome_trace({&all}));
}

}  // namespace tessera
