#include "executor/commands/run_records.h"

#include <cstdio>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "executor/records/prometheus_text.h"
#include "executor/rl/samples.h"
#include "executor/rl/validation_metrics.h"
#include "planner/plan/certified.h"
#include "simulator/timeline/rank_status.h"
#include "simulator/timeline/step_order.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string line_of(std::int64_t step, const PromptSet& prompts, const Sequence& sequence,
                    bool experts = false) {
  const SequenceText text = text_of(prompts, sequence);
  return sample_line(step, sequence, {text.prompt, text.response, text.truth}, experts);
}

}  // namespace

RunRecords::RunRecords(const fs::path& run, const RunConfig& config, const Plan& plan,
                       bool on_processors)
    : log_(run),
      progress_(run, config.trainer.total_training_steps, shown_on_terminal()),
      run_(run),
      answers_(config.validation.samples_folder.empty() ? run / "validation"
                                                        : config.validation.samples_folder),
      steps_(config.validation.only ? 0 : config.trainer.total_training_steps),
      record_experts_(config.actor.record_experts),
      plan_number_(run_number(plan)) {
  if (!config.trainer.rules.empty()) rules_.emplace(config.trainer.rules, plan, on_processors);
  if (config.trainer.prometheus_port > 0) serve(config.trainer.prometheus_port);
}

void RunRecords::begin_after(std::int64_t step, bool from_checkpoint) {
  std::error_code error;
  const auto written = fs::file_size(run_ / "metrics.jsonl", error);
  if (!from_checkpoint && !error && written > 0) {
    note("[Resume] " + run_.string() +
         " has no checkpoint (trainer.save_freq writes them): it begins again");
  }
  log_.forget_after(step);
  if (!from_checkpoint || steps_ == 0 || step < steps_) return;
  note("[Resume] " + std::to_string(step) +
       " steps are done, all of trainer.total_training_steps: " + std::to_string(steps_) +
       "; --set trainer.total_training_steps=" + std::to_string(2 * step) + " trains on");
}

void RunRecords::serve(int port) {
  try {
    prometheus_.emplace(port, kPrometheusPath, kPrometheusType);
  } catch (const Error& error) {
    note(std::string("[Prometheus] ") + error.what() + "; the run goes on without it");
  }
}

AskedActions RunRecords::judge(std::int64_t step, const Metrics& numbers) {
  const double skipped = numbers.at("training/skipped_updates");
  if (skipped > 0) {
    char text[120];
    std::snprintf(text, sizeof text, "step %lld: %.0f updates skipped: the gradient is not finite",
                  static_cast<long long>(step), skipped);
    note(text);
  }
  RunRules::Judgement judgement;
  if (rules_) judgement = rules_->judge(step, numbers);
  for (const std::string& line : judgement.lines) note(line);
  if (pause_requested(run_)) {
    judgement.asked.add_pause_of_person();
  } else if (!judgement.pausing.empty()) {
    request_pause(run_, judgement.pausing);
  }
  return judgement.asked;
}

void RunRecords::paused(std::int64_t step) {
  const std::string who = pause_requester(run_);
  note("[Pause] saved after step " + std::to_string(step) + ", as " +
       (who.empty() ? "RUN/pause" : who) +
       " asks: `tessera signal RUN go` goes on, `stop` ends it");
}

void RunRecords::rolled_back(std::int64_t step) {
  log_.keep_apart_after(step);
  if (rules_) rules_->forget();
}

void RunRecords::step(std::int64_t step, Metrics numbers, const PromptSet& prompts,
                      std::span<const Sequence> sequences) {
  numbers[kStepsSinceStart] = static_cast<double>(++steps_since_start_);
  numbers[kPlanNumber] = plan_number_;
  log_.add_step(step, numbers);
  if (prometheus_) prometheus_->set(prometheus_text(step, numbers));
  for (const Sequence& sequence : sequences) {
    log_.add_sample(line_of(step, prompts, sequence, record_experts_));
  }
  progress_.step(step, numbers);
}

void RunRecords::validation(std::int64_t step, const Metrics& numbers, bool alone,
                            const PromptSet& prompts, std::span<const Sequence> answers) {
  if (alone) log_.add_to_step(step, numbers);
  std::string lines;
  for (const Sequence& sequence : answers) lines += line_of(step, prompts, sequence) + "\n";
  std::error_code ignored;
  fs::create_directories(answers_, ignored);
  try {
    write_text_file(answers_ / (std::to_string(step) + ".jsonl"), lines);
  } catch (const Error& error) {
    note(std::string("[Validation] answers were not written: ") + error.what());
  }
  note(validation_line(step, numbers));
}

}  // namespace tessera
