#include "executor/loop/step_rules.h"

#include <chrono>
#include <thread>
#include <utility>

#include "executor/loop/resume.h"
#include "executor/loop/share.h"

namespace tessera {

bool StepRules::judge(std::int64_t step, Metrics& numbers) {
  const auto add_own = [&] {
    for (const auto& [name, value] : rule_metrics(worker_.rules)) numbers[name] = value;
  };
  Communicator& host = *worker_.context.host;
  if (saver_ != nullptr) saver_->judge(step, numbers);
  count_step(numbers, worker_.rules);
  add_own();
  const std::int32_t mine = observer_.judged ? observer_.judged(step, numbers).bits() : 0;
  const AskedActions asked(largest_of(host, mine));
  candidates_.clear();
  if (asked.has(RuleAction::roll_back) && saver_ != nullptr) {
    CheckpointConfig newest = config_.trainer.checkpoint;
    newest.resume_mode = ResumeMode::automatic;
    newest.resume_ruined = true;  // other prompts follow, and they may have been the cause
    candidates_ = resume_candidates(newest, saver_->run(), host, observer_.note);
  }
  decision_ = decide(
      asked,
      {.step = step, .can_roll_back = !candidates_.empty(), .config = config_.trainer.rule_actions},
      worker_.rules);
  add_own();
  return !decision_.roll_back;
}

RuleDecision StepRules::obey(std::int64_t& steps) {
  RuleDecision decision = std::exchange(decision_, {});
  for (const std::string& line : decision.lines) {
    if (observer_.note) observer_.note(line);
  }
  if (decision.roll_back) {
    steps = roll_back(worker_, candidates_, steps, config_, *saver_, observer_.note);
    if (observer_.rolled_back) observer_.rolled_back(steps);
  }
  return decision;
}

StopReason StepRules::wait(std::int64_t steps, const std::function<StopReason()>& stopped) {
  if (observer_.pauses) observer_.pauses(steps);
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
    if (const StopReason reason = stopped(); reason != StopReason::none) return reason;
    const bool mine = observer_.paused && observer_.paused();
    if (!any_rank(*worker_.context.host, mine)) return StopReason::none;
  }
}

}  // namespace tessera
