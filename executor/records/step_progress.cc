#include "executor/records/step_progress.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "planner/plan/call_limits.h"

namespace tessera {
namespace {

using Numbers = std::map<std::string, double>;

double value(const Numbers& numbers, const std::string& name) {
  const auto found = numbers.find(name);
  return found == numbers.end() ? 0.0 : found->second;
}

double divergence(const Numbers& numbers) {
  for (const char* name : {"actor/kl_loss", "actor/reward_kl_penalty"}) {
    if (numbers.contains(name)) return value(numbers, name);
  }
  return value(numbers, "actor/ppo_kl");
}

/// "step 20 of 200: reward 0.368, KL 0.0004, 35 ms a step, 6 s left"
std::string short_line(std::int64_t step, std::int64_t steps, const Numbers& numbers) {
  const double seconds = value(numbers, "timing_s/step");
  const double left = seconds * static_cast<double>(steps - step);
  char text[160];
  std::snprintf(text, sizeof text,
                "step %lld of %lld: reward %.3f, KL %.4f, %.4g %s a step, %.0f %s left",
                static_cast<long long>(step), static_cast<long long>(steps),
                value(numbers, "critic/score/mean"), divergence(numbers),
                seconds < 10 ? seconds * 1e3 : seconds, seconds < 10 ? "ms" : "s",
                left < 180 ? left : left / 60, left < 180 ? "s" : "min");
  return text;
}

}  // namespace

bool shown_on_terminal() {
  if (const char* said = std::getenv("TESSERA_TERMINAL")) return std::string_view(said) == "1";
  return ::isatty(STDERR_FILENO) != 0;
}

std::string step_line(std::int64_t step, const Numbers& numbers) {
  double update = 0;
  for (const Phase phase : kEveryPhase) {
    if (updates(phase)) update += value(numbers, "timing_s/" + std::string(name_of(phase)));
  }
  char text[240];
  std::snprintf(text, sizeof text,
                "step %lld: reward %.3f, KL %.4f, loss %.4f, grad norm %.3f, %.0f ms "
                "(gen %.0f, update %.0f, reshard %.2f)",
                static_cast<long long>(step), value(numbers, "critic/score/mean"),
                divergence(numbers), value(numbers, "actor/pg_loss"),
                value(numbers, "actor/grad_norm"), value(numbers, "timing_s/step") * 1e3,
                value(numbers, "timing_s/gen") * 1e3, update * 1e3,
                value(numbers, "timing_s/reshard") * 1e3);
  return text;
}

StepProgress::StepProgress(const std::filesystem::path& folder, std::int64_t steps, bool terminal)
    : steps_(steps), terminal_(terminal), log_(folder / "log.txt") {}

StepProgress::~StepProgress() {
  if (open_line_) std::fputc('\n', stderr);
}

void StepProgress::step(std::int64_t step, const Numbers& numbers) {
  const std::string line = step_line(step, numbers);
  detail(line);
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K%s", short_line(step, steps_, numbers).c_str());
    open_line_ = true;
  } else if (step <= 3 || step % 20 == 0 || step == steps_) {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
}

void StepProgress::note(const std::string& line) {
  detail(line);
  std::fprintf(stderr, "%s%s\n", open_line_ ? "\r\033[K" : "", line.c_str());
  open_line_ = false;
}

void StepProgress::detail(const std::string& line) { log_.append(line + "\n"); }

}  // namespace tessera
