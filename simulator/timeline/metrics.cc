#include "simulator/timeline/metrics.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>

#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "simulator/timeline/console_log.h"
#include "simulator/timeline/measured_phase.h"

namespace tessera {
namespace {

constexpr double kMostOfStep = 10;                           // times its step that a phase may take
constexpr double kMostSeconds = 1e7;                         // of a step: a third of a year
constexpr std::size_t kLongestLine = std::size_t{16} << 20;  // bytes; a step has ten thousand
constexpr std::size_t kMostLooked = std::size_t{64} << 20;   // bytes that may have no step

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == line.npos; }

/// A line's problems say "1:column" as every text's do; here the line is that of the file.
void number_lines(Problems& problems, std::size_t first, std::int64_t number) {
  for (std::size_t i = first; i < problems.size(); ++i) {
    std::string& place = problems[i].place;
    const bool has_line = place.starts_with("1:");
    place = std::to_string(number) + (has_line        ? place.substr(1)
                                      : place.empty() ? ""
                                                      : ": " + place);
  }
}

void read_data(ObjectReader& data, StepNumbers& step) {
  const std::vector<std::string> keys = data.keys();
  for (const std::string& key : keys) {
    const Node* node = data.find(key);
    if (node->is(Node::Kind::null)) continue;
    if (node->is(Node::Kind::integer) || node->is(Node::Kind::number)) {
      step.data[key] = node->number;
    } else {
      data.refuse(key, "a number or null");
    }
  }
}

// Phases whose time lies in the step's; a checkpoint's may last far longer than a short step.
bool lies_within_step(Phase phase) {
  return phase != Phase::load && phase != Phase::save_checkpoint;
}

void refuse_time(const std::string& file, std::int64_t number, const std::string& key,
                 double seconds, const char* expected, Problems& problems) {
  std::array<char, 48> found{};
  std::snprintf(found.data(), found.size(), "%g s", seconds);
  problems.push_back({file, std::to_string(number) + ": " + key, found.data(), expected, ""});
}

// Times that no run takes: `number` is the line's.
void check_times(const StepNumbers& step, const std::string& file, std::int64_t number,
                 Problems& problems) {
  for (const auto& [key, seconds] : step.data) {
    if (!key.starts_with("timing_s/") || (seconds >= 0 && seconds <= kMostSeconds)) continue;
    refuse_time(file, number, key, seconds, "seconds from 0 to 1e7", problems);
  }
  const double whole = number_of(step, "timing_s/step").value_or(0);
  if (!(whole > 0)) return;
  for (const Phase phase : kEveryPhase) {
    if (!lies_within_step(phase)) continue;
    const double seconds = measured_seconds(step, phase).value_or(0);
    if (seconds <= kMostOfStep * whole) continue;
    refuse_time(file, number, "timing_s/" + std::string(name_of(phase)), seconds,
                "no more than ten times timing_s/step", problems);
  }
}

// True where check_times finds nothing, which is the rule; false says nothing.
bool has_usual_times(const MetricLine& line) {
  constexpr double kUsualOfStep = 2;  // even of the parts of one phase, of which there are five
  static_assert(5 * kUsualOfStep <= kMostOfStep);
  double whole = kMostSeconds, most = 0;
  for (std::size_t i = 0; i < line.names.size(); ++i) {
    if (!line.names[i].starts_with("timing_s/") || std::isnan(line.values[i])) continue;
    if (line.values[i] < 0) return false;
    most = std::max(most, line.values[i]);
    if (line.names[i] == "timing_s/step") whole = line.values[i];
  }
  return most <= kMostSeconds && most <= kUsualOfStep * whole;
}

// `kept`: by the place of a name; all where it is empty.
StepNumbers numbers_of(const MetricLine& line, const std::vector<bool>& kept = {}) {
  StepNumbers step{line.step, {}};
  for (std::size_t i = 0; i < line.names.size(); ++i) {
    if (std::isnan(line.values[i]) || (!kept.empty() && !kept[i])) continue;
    step.data.emplace_hint(step.data.end(), line.names[i], line.values[i]);
  }
  return step;
}

// The beginning of what comes, as much of it as a line may have and one byte more: who writes a
// line that does not end fills no memory.
void append_bounded(std::string& line, std::string_view more) {
  line += more.substr(0, kLongestLine + 1 - std::min(line.size(), kLongestLine + 1));
}

void refuse_line(const std::string& file, std::int64_t number, Problems& problems) {
  problems.push_back({file, std::to_string(number), "a line of more bytes",
                      "at most " + std::to_string(kLongestLine) + " bytes in a line", ""});
}

// Its end is passed over, too.
bool next_line(std::istream& stream, std::string& line) {
  line.clear();
  std::array<char, 1 << 12> part;
  while (stream.getline(part.data(), part.size()) || stream.gcount() > 0) {
    const bool goes_on = stream.fail() && !stream.eof();
    append_bounded(line, part.data());
    if (!goes_on) return true;
    stream.clear();
  }
  return !line.empty();
}

// Whether a file is a console log; nullopt where its first line is not there so far. JSON lines may
// be broken, so that a file of their name has a step of a console as well.
std::optional<bool> is_console_log(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  bool first = true;
  for (std::string line; next_line(stream, line);) {
    if (is_blank(line)) continue;
    if (first && line.starts_with('{')) return false;
    if (first && file.extension() != ".jsonl") return true;
    first = false;
    if (parse_console_line(line)) return true;
  }
  return first ? std::nullopt : std::optional(false);
}

}  // namespace

std::optional<StepNumbers> parse_metrics_line(std::string_view line, const std::string& file,
                                              std::int64_t number, Problems& problems) {
  const std::size_t before = problems.size();
  StepNumbers step;
  if (const std::optional<Document> document = parse_json(line, file, problems)) {
    ObjectReader reader(*document, problems);
    reader.required("step", step.step, kNotNegative);
    if (std::optional<ObjectReader> data = reader.object("data")) read_data(*data, step);
    reader.refuse_unknown_keys();
  }
  number_lines(problems, before, number);
  if (problems.size() == before) check_times(step, file, number, problems);
  if (problems.size() != before) return std::nullopt;
  return step;
}

std::filesystem::path metrics_file(const std::filesystem::path& run) {
  std::error_code error;
  return std::filesystem::is_regular_file(run, error) ? run : run / "metrics.jsonl";
}

bool has_step(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  const bool console = is_console_log(file).value_or(false);
  std::ifstream stream(file, std::ios::binary);
  std::size_t bytes = 0;
  for (std::string line; bytes < kMostLooked && next_line(stream, line); bytes += line.size()) {
    if (is_blank(line)) continue;
    Problems unheard;
    if (!console) return parse_metrics_line(line, file.string(), 1, unheard).has_value();
    if (parse_console_line(line)) return true;
  }
  return false;
}

std::optional<std::vector<StepNumbers>> read_metrics(
    const std::filesystem::path& file, Problems& problems,
    const std::function<bool(std::string_view)>& wanted) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    const bool exists = std::filesystem::exists(file, error);
    problems.push_back({file.string(), "", exists ? "not a regular file" : "no such file",
                        "a run's metrics.jsonl", ""});
    return std::nullopt;
  }
  const std::size_t before = problems.size();
  MetricsTail tail(file);
  std::vector<StepNumbers> steps;
  std::vector<bool> kept;  // by the place of a line's name
  std::int64_t layout = -1;
  const MetricsTail::Take take = [&](const MetricLine& line) {
    if (std::exchange(layout, line.layout) != line.layout) {
      kept.assign(line.names.size(), true);
      for (std::size_t i = 0; wanted && i < kept.size(); ++i) kept[i] = wanted(line.names[i]);
    }
    steps.push_back(numbers_of(line, kept));
  };
  tail.read_new(take, problems);
  if (auto last = tail.half_step()) {
    if (wanted) std::erase_if(last->data, [&](const auto& each) { return !wanted(each.first); });
    steps.push_back(*std::move(last));
  }
  if (problems.size() != before) return std::nullopt;
  if (tail.is_console() && steps.empty()) {
    problems.push_back({file.string(), "", "no step", "lines of JSON, or verl's console log", ""});
    return std::nullopt;
  }
  return steps;
}

MetricsTail::MetricsTail(std::filesystem::path file) : file_(std::move(file)) {}

std::vector<StepNumbers> MetricsTail::read_new(Problems& problems) {
  std::vector<StepNumbers> steps;
  const Take take = [&steps](const MetricLine& line) { steps.push_back(numbers_of(line)); };
  read_new(take, problems);
  return steps;
}

// A line without its end is no defect.
std::optional<StepNumbers> MetricsTail::half_step() const {
  if (is_blank(half_line_)) return std::nullopt;
  Problems unheard;
  if (!is_console()) return parse_metrics_line(half_line_, file_.string(), lines_ + 1, unheard);
  auto step = parse_console_line(half_line_);
  if (step) check_times(*step, file_.string(), lines_ + 1, unheard);
  return unheard.empty() ? step : std::nullopt;
}

// What the scanner holds then; false where the line is malformed, or of a console no step.
bool MetricsTail::read_line(std::string_view line, Problems& problems) {
  if (is_console()) {
    const auto printed = parse_console_line(line);
    if (!printed) return false;
    const std::size_t before = problems.size();
    check_times(*printed, file_.string(), lines_, problems);
    scanner_.set(*printed);
    return problems.size() == before;
  }
  if (scanner_.scan(line)) {
    if (has_usual_times(scanner_.line())) return true;
    const std::size_t before = problems.size();
    check_times(numbers_of(scanner_.line()), file_.string(), lines_, problems);
    return problems.size() == before;
  }
  const auto step = parse_metrics_line(line, file_.string(), lines_, problems);
  if (step) scanner_.set(*step);
  return step.has_value();
}

void MetricsTail::read_new(const Take& take, Problems& problems) {
  restarted_ = false;
  std::error_code error;
  const auto status = std::filesystem::status(file_, error);
  if (!std::filesystem::is_regular_file(status)) {
    // What is not there yet may come; what is there and cannot be read is told once.
    if (status.type() != std::filesystem::file_type::not_found && !std::exchange(told_, true)) {
      problems.push_back({file_.string(), "", "not a regular file", "a run's metrics.jsonl", ""});
    }
    return;
  }
  struct stat found {};
  if (::stat(file_.c_str(), &found) != 0) return;
  restarted_ = std::exchange(told_, false);
  const bool another = std::exchange(inode_, found.st_ino) != found.st_ino && offset_ > 0;
  if (found.st_size < offset_ || another) {
    offset_ = lines_ = 0;
    half_line_.clear();
    console_.reset();
    restarted_ = true;
  }
  if (!console_) console_ = is_console_log(file_);
  std::ifstream stream(file_, std::ios::binary);
  stream.seekg(offset_);
  std::array<char, 1 << 16> buffer;
  while (stream.read(buffer.data(), buffer.size()), stream.gcount() > 0) {
    std::string_view text(buffer.data(), static_cast<std::size_t>(stream.gcount()));
    offset_ += stream.gcount();
    for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      std::string_view line = text.substr(0, end);
      if (!half_line_.empty()) {
        append_bounded(half_line_, line);
        line = half_line_;
      }
      ++lines_;
      if (line.size() > kLongestLine) {
        if (!is_console()) refuse_line(file_.string(), lines_, problems);
      } else if (!is_blank(line) && read_line(line, problems)) {
        take(scanner_.line());
      }
      half_line_.clear();
    }
    append_bounded(half_line_, text);
  }
}

}  // namespace tessera
