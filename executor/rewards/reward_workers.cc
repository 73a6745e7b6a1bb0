#include "executor/rewards/reward_workers.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "executor/data/unicode.h"

namespace tessera {
namespace {

using Clock = WorkerProcess::Clock;
constexpr int kMostDeadStarts = 32;  // in a row: the program is broken, and others are not tried
constexpr std::size_t kLongestLine = std::size_t{1} << 20;  // bytes of an answer

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

std::string quoted(const std::string& text) { return json_line(node_of(valid_utf8(text))); }

std::string line_of(const RewardRequest& request, std::int64_t id) {
  return "{\"id\":" + std::to_string(id) + ",\"data_source\":" + quoted(request.data_source) +
         ",\"solution_str\":" + quoted(request.response) +
         ",\"ground_truth\":" + request.truth_json + ",\"extra_info\":" + request.extra_info_json +
         "}";
}

constexpr std::size_t kWords = 80, kException = 400, kTraceback = 8000;  // bytes that are told

std::string shortened(const std::string& text, std::size_t bytes = kWords) {
  return text.size() <= bytes ? text : valid_utf8(text.substr(0, bytes)) + "...";
}

/// Without control characters; line ends stay where it has `lines`.
std::string printable(std::string text, bool lines = false) {
  for (char& c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) c = lines && c == '\n' ? c : ' ';
  }
  return text;
}

/// What an answer says under a name, or nothing.
std::string text_at(const Node& answer, const char* name) {
  const Node* const found = answer.find(name);
  return found != nullptr && found->is(Node::Kind::string) ? found->text : "";
}

/// What a line says.
struct Said {
  bool ready = false;
  std::optional<StartRefusal> refusal;
  bool is_answer = false;
  RewardAnswer answer;
};

/// Nothing more of the error output can be read without waiting.
bool is_quiet(const WorkerProcess& process) {
  pollfd end{.fd = process.errors(), .events = POLLIN, .revents = 0};
  return ::poll(&end, 1, 0) <= 0;
}

/// Of a process whose output has ended.
std::string words_of_end(WorkerProcess& process) {
  while (process.errors() >= 0 && process.receive_errors() && !is_quiet(process)) {
  }
  const std::string words = process.last_words();
  return "the process ended" + (words.empty() ? "" : ": " + shortened(words));
}

/// That a process cannot score; `root` may be null.
std::optional<StartRefusal> refusal_of(const Node* root) {
  const Node* const why = root == nullptr ? nullptr : root->find("refused");
  if (why == nullptr || !why->is(Node::Kind::string)) return std::nullopt;
  const Node* const line = root->find("line");
  return StartRefusal{.file = text_at(*root, "file"),
                      .line = line != nullptr && line->is(Node::Kind::integer) ? line->integer : 0,
                      .found = why->text};
}

std::string in_words(const StartRefusal& refusal) {
  const std::string line = refusal.line > 0 ? ":" + std::to_string(refusal.line) : "";
  return (refusal.file.empty() ? "" : refusal.file + line + ": ") + refusal.found;
}

/// As Python and JavaScript write them, and C.
constexpr std::array kNoNumbers = {"NaN", "Infinity", "-Infinity", "nan", "-nan", "inf", "-inf"};

/// A number of JSON that no double holds: 1e999, an integer of 400 digits.
bool is_beyond_doubles(const std::string& word) {
  const bool numeral = !word.empty() && word.find_first_not_of("0123456789+-.eE") == word.npos;
  char* end = nullptr;
  return numeral && std::isinf(std::strtod(word.c_str(), &end)) && *end == '\0';
}

bool stands_for_no_number(const std::string& word) {
  return std::ranges::find(kNoNumbers, word) != kNoNumbers.end() || is_beyond_doubles(word);
}

/// The line with quotes about words that stand for numbers which JSON, or a double, does not have.
std::string with_quoted_words(const std::string& line) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto is_of_numeral = [](char c) {
    return std::string_view("0123456789+-.eE").find(c) != std::string_view::npos;
  };
  std::string out;
  bool in_text = false;
  for (std::size_t i = 0; i < line.size();) {
    std::size_t end = i + 1;
    if (in_text) {
      if (line[i] == '\\' && end < line.size()) ++end;
    } else if (is_letter(line[i]) ||
               (line[i] == '-' && end < line.size() && is_letter(line[end]))) {
      while (end < line.size() && is_letter(line[end])) ++end;
    } else if (is_of_numeral(line[i])) {
      while (end < line.size() && is_of_numeral(line[end])) ++end;
    }
    in_text ^= line[i] == '"';
    const std::string word = line.substr(i, end - i);
    const bool quotes = !in_text && stands_for_no_number(word);
    out += quotes ? '"' + word + '"' : word;
    i = end;
  }
  return out;
}

/// What a program has written where it has no number that rewards can be computed with, which are
/// fp32: null, a word that stands for none, a number that is too large; empty for everything else.
std::string no_number(const Node* value) {
  if (value == nullptr) return {};
  if (value->is(Node::Kind::null)) return "null";
  const bool number = value->is(Node::Kind::integer) || value->is(Node::Kind::number);
  if (number && !std::isfinite(static_cast<float>(value->number))) {
    char text[40];
    std::snprintf(text, sizeof text, "%g", value->number);
    return text;
  }
  const bool word = value->is(Node::Kind::string) && stands_for_no_number(value->text);
  return word ? shortened(value->text) : "";
}

std::string not_finite(const std::string& found) {
  return "found " + found + ", expected a finite number";
}

bool is_number(const Node& value) {
  return (value.is(Node::Kind::integer) || value.is(Node::Kind::number)) &&
         no_number(&value).empty();
}

constexpr std::size_t kMostNumbers = 64;  // beside a score

/// verl's "acc" and "pred" of an answer, what other numbers it has and whether the function gave a
/// number alone; what is of another type is left out.
ScoreDetail detail_of(const Node& answer) {
  ScoreDetail detail;
  const Node* const accuracy = answer.find("acc");
  if (accuracy != nullptr && is_number(*accuracy)) detail.accuracy = accuracy->number;
  const Node* const more = answer.find("more");
  const bool has_more = more != nullptr && more->is(Node::Kind::map);
  for (std::size_t i = 0; has_more && i < std::min(more->items.size(), kMostNumbers); ++i) {
    if (is_number(more->items[i])) detail.more[more->keys[i]] = more->items[i].number;
  }
  const Node* const found = answer.find("pred");
  if (found != nullptr && found->is(Node::Kind::string)) detail.answer = found->text;
  const Node* const plain = answer.find("plain_number");
  detail.plain_number = plain != nullptr && plain->is(Node::Kind::boolean) && plain->boolean;
  return detail;
}

Said read_line(const std::string& line, std::int64_t id) {
  Problems problems;
  const ParseLimits limits{.bytes = kLongestLine};
  auto document = parse_python_json(line, "answer", problems, limits);
  if (!document) document = parse_python_json(with_quoted_words(line), "answer", problems, limits);
  const Node* root = document && document->root.is(Node::Kind::map) ? &document->root : nullptr;
  if (root != nullptr && root->find("ready") != nullptr) return {.ready = true};
  if (const auto refusal = refusal_of(root)) return {.refusal = refusal};
  const Node* const number = root == nullptr ? nullptr : root->find("id");
  if (number == nullptr || !number->is(Node::Kind::integer) || number->integer != id) return {};
  const Node* const score = root->find("score");
  if (const std::string found = no_number(score); !found.empty()) {
    return {.is_answer = true, .answer = {.score = {}, .failure = not_finite(found), .detail = {}}};
  }
  if (score != nullptr && (score->is(Node::Kind::integer) || score->is(Node::Kind::number))) {
    const std::string accuracy = no_number(root->find("acc"));
    const std::string left_out = accuracy.empty() || accuracy == "null"
                                     ? text_at(*root, "left_out")
                                     : "acc: " + not_finite(accuracy) + ": left out";
    return {.is_answer = true,
            .answer = {.score = score->number,
                       .failure = {},
                       .detail = detail_of(*root),
                       .left_out = shortened(printable(left_out))}};
  }
  const Node* const error = root->find("error");
  if (error == nullptr || !error->is(Node::Kind::string)) return {};
  return {
      .is_answer = true,
      .answer = {.score = {},
                 .failure = shortened(printable(error->text), kException),
                 .detail = {},
                 .kind = shortened(printable(text_at(*root, "kind")), kException),
                 .traceback = shortened(printable(text_at(*root, "traceback"), true), kTraceback)}};
}

}  // namespace

struct RewardWorkers::Worker {
  static void wait_for(const std::vector<Worker*>& busy, Clock::time_point until);

  WorkerProcess process;
  std::optional<std::size_t> request;  // that it works on
  std::int64_t id = 0;
  bool fresh = true;  // it has answered nothing and not said that it is ready
  Clock::time_point deadline;
};

/// Starts a process where there is none and sends it the next request. One that cannot be started
/// costs the request.
void RewardWorkers::give_work(Worker& worker) {
  while (!worker.request && next_ < requests_.size()) {
    if (dead_starts_ >= kMostDeadStarts) {
      settle(next_++, {.score = {}, .failure = last_failure_, .detail = {}});
      continue;
    }
    // What a process writes when it has been asked nothing cannot be told from an answer.
    if (worker.process.running() && !worker.fresh &&
        (!worker.process.receive() || worker.process.waiting() > 0)) {
      worker.process.stop();
    }
    worker.request = next_++;
    worker.id = next_id_++;
    if (!worker.process.running()) {
      worker.fresh = true;
      const std::string failure = worker.process.start(command_);
      if (!failure.empty()) {
        lose(worker, failure);
        continue;
      }
    }
    worker.process.queue(line_of(requests_[*worker.request], worker.id));
    worker.deadline =
        Clock::now() + seconds(limits_.timeout_s + (worker.fresh ? limits_.start_timeout_s : 0));
  }
}

std::vector<RewardWorkers::Worker*> RewardWorkers::busy() const {
  std::vector<Worker*> found;
  for (const auto& worker : workers_) {
    if (worker->request) found.push_back(worker.get());
  }
  return found;
}

/// Waits until one of them has written or is late, or the time has come.
void RewardWorkers::Worker::wait_for(const std::vector<Worker*>& busy, Clock::time_point until) {
  std::vector<pollfd> ends;
  Clock::time_point first = until;
  for (const Worker* worker : busy) {
    first = std::min(first, worker->deadline);
    const WorkerProcess& process = worker->process;
    ends.push_back({.fd = process.output(), .events = POLLIN, .revents = 0});
    ends.push_back({.fd = process.errors(), .events = POLLIN, .revents = 0});
    if (process.has_unsent()) {
      ends.push_back({.fd = process.input(), .events = POLLOUT, .revents = 0});
    }
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now()).count();
  ::poll(ends.data(), ends.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
}

/// Takes what the worker has written, or its end.
void RewardWorkers::listen(Worker& worker) {
  WorkerProcess& process = worker.process;
  if (process.errors() >= 0) process.receive_errors();
  if (process.has_unsent()) process.send();  // of one that reads no more the output ends, too
  const bool open = process.receive();
  std::string line;
  while (worker.request && process.take_line(line)) {
    Said said = read_line(line, worker.id);
    if (said.ready && worker.fresh) {
      worker.fresh = false;
      worker.deadline = Clock::now() + seconds(limits_.timeout_s);
    } else if (said.is_answer && !process.has_unsent()) {
      worker.fresh = false;
      dead_starts_ = 0;
      settle(*std::exchange(worker.request, std::nullopt), std::move(said.answer));
    } else if (said.refusal) {
      return lose(worker, in_words(*said.refusal));
    } else {
      return lose(worker, "its answer is '" + shortened(valid_utf8(line)) + "'");
    }
  }
  if (!worker.request) return;
  if (process.waiting() > kLongestLine) return lose(worker, "its answer has no end");
  if (!open) return lose(worker, words_of_end(process));
  if (Clock::now() >= worker.deadline) lose(worker, "no answer in time");
}

/// The request has no score, and the process is ended.
void RewardWorkers::lose(Worker& worker, std::string failure) {
  dead_starts_ += worker.fresh ? 1 : 0;
  last_failure_ = failure;
  settle(*std::exchange(worker.request, std::nullopt),
         {.score = {}, .failure = std::move(failure), .detail = {}});
  worker.process.stop();
}

void RewardWorkers::settle(std::size_t request, RewardAnswer answer) {
  answers_[request] = std::move(answer);
  ++answered_;
}

std::optional<StartRefusal> refusal_of_start(const std::vector<std::string>& words,
                                             const WorkerLimits& limits) {
  WorkerProcess process;
  const std::string failure = process.start({.words = words, .memory_gib = limits.memory_gib});
  if (!failure.empty()) return StartRefusal{.found = failure};
  const Clock::time_point end = Clock::now() + seconds(limits.start_timeout_s);
  std::string line;
  while (Clock::now() < end) {
    pollfd ends[] = {{.fd = process.output(), .events = POLLIN, .revents = 0},
                     {.fd = process.errors(), .events = POLLIN, .revents = 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    ::poll(ends, 2, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (process.errors() >= 0) process.receive_errors();
    const bool open = process.receive();
    while (process.take_line(line)) {
      const Said said = read_line(line, -1);
      if (said.ready) return std::nullopt;
      if (said.refusal) return said.refusal;
    }
    if (!open) return StartRefusal{.found = words_of_end(process)};
  }
  char text[80];
  std::snprintf(text, sizeof text, "a process that is not ready after %.4g s",
                limits.start_timeout_s);
  return StartRefusal{.found = text, .late = true};
}

RewardWorkers::RewardWorkers(std::vector<std::string> command, const WorkerLimits& limits,
                             int count)
    : command_{.words = std::move(command), .memory_gib = limits.memory_gib, .log = limits.log},
      limits_(limits) {
  for (int i = 0; i < count; ++i) workers_.push_back(std::make_unique<Worker>());
}

RewardWorkers::~RewardWorkers() = default;

void RewardWorkers::submit(RewardRequest request) {
  requests_.push_back(std::move(request));
  answers_.emplace_back();
}

void RewardWorkers::poll() {
  for (Worker* worker : busy()) listen(*worker);
  for (const auto& worker : workers_) give_work(*worker);
}

bool RewardWorkers::wait(std::chrono::milliseconds most) {
  const Clock::time_point until = Clock::now() + most;
  for (poll(); answered_ < requests_.size() && Clock::now() < until; poll()) {
    Worker::wait_for(busy(), until);
  }
  return answered_ == requests_.size();
}

std::vector<RewardAnswer> RewardWorkers::finish() {
  while (!wait(std::chrono::minutes(1))) {
  }
  requests_.clear();
  next_ = answered_ = 0;
  dead_starts_ = 0;
  return std::exchange(answers_, {});
}

}  // namespace tessera
