#include "executor/loop/run_saver.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "cost_models/adapters.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "executor/adapters/adapter_weights.h"
#include "executor/loop/calls.h"
#include "executor/loop/save_model.h"
#include "executor/loop/share.h"
#include "executor/loop/step_rollout.h"
#include "executor/run_state/finite_weights.h"
#include "executor/run_state/generator_state.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/run_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string described(const ParallelLayout& layout) {
  char text[120];
  std::snprintf(text, sizeof text, "tp %d cp %d pp %d dp %d x %d zero %d", layout.tp, layout.cp,
                layout.pp, layout.dp / layout.dp_shard, layout.dp_shard, layout.zero);
  return text;
}

constexpr std::int64_t kNone = -1;  // no step

std::string steps_name(std::int64_t step) {
  return std::string(kStepPrefix) + std::to_string(step);
}

}  // namespace

fs::path checkpoints_of(const fs::path& run) { return run / kCheckpointsFolder; }
fs::path exports_of(const fs::path& run) { return run / kExportsFolder; }

RunSaver::RunSaver(Worker& worker, const Plan& plan, const RunConfig& config,
                   const PromptSet& prompts, const fs::path& run, Note note,
                   std::int64_t first_step)
    : worker_(worker),
      plan_(plan),
      config_(config),
      run_(run),
      note_(std::move(note)),
      first_step_(first_step),
      last_(first_step),
      data_(data_of(prompts)),
      reserve_(checkpoints_of(run)),
      writer_(checkpoints_of(run), worker.context.host->rank(), worker.context.host->size(),
              config.trainer.checkpoint.keep) {
  for (const Role role : {Role::actor, Role::critic}) {
    if (plan.find(role) != nullptr) {
      const ParameterTable table = parameter_table(plan.model_of(role));
      const bool adapts = role == Role::actor && config.actor.lora.used();
      parameters_[role] = (adapts ? adapter_table(table, config.actor.lora) : table).elements();
    }
    RoleWorker* const own = worker.find(role);
    if (own == nullptr || !own->member()) continue;
    const auto made =
        snapshots_.try_emplace(role, std::string(name_of(role)), own->trained(), *own->trainer);
    if (config.trainer.checkpoint.save_freq > 0) made.first->second.prepare();
  }
}

TrainingOrigin RunSaver::origin(std::int64_t steps) const {
  return {.seed = static_cast<std::int64_t>(config_.trainer.seed),
          .steps = steps,
          .prompts = data_.first + first_prompt(worker_, steps + 1, data_.per_step),
          .data = data_};
}

bool RunSaver::checkpoint_due(std::int64_t step) const {
  const std::int64_t freq = config_.trainer.checkpoint.save_freq;
  return freq > 0 && (step % freq == 0 || step == config_.trainer.total_training_steps);
}

bool RunSaver::export_due(std::int64_t step) const {
  const std::int64_t freq = config_.trainer.checkpoint.hf_save_freq;
  return freq > 0 && step % freq == 0;
}

void RunSaver::save_due(std::int64_t step, const Metrics& numbers) {
  const bool last = step == config_.trainer.total_training_steps;
  if (last) release_reserve();
  if (checkpoint_due(step)) save(step, numbers);
  // The model's own folder has half of them at most.
  if (!last && worker_.context.host->rank() == 0) reserve_.keep(bytes_ + bytes_ / 2);
  if (export_due(step) && sound(step)) save_export(step);
}

CheckpointManifest RunSaver::manifest(std::int64_t step, const Metrics& numbers) const {
  CheckpointManifest manifest{.step = step,
                              .created = utc_now(),
                              .tessera_version = TESSERA_VERSION,
                              .roles = {},
                              .kl_coef = worker_.kl_in_reward.coef,
                              .prompts_taken = worker_.prompts_taken,
                              .rules = worker_.rules,
                              .owes_validation = worker_.owes_validation,
                              .seed = static_cast<std::int64_t>(config_.rollout.seed),
                              .data = data_,
                              .lengths = {},
                              .metrics = {},
                              .files = {}};
  for (const auto& [row, known] : worker_.known_lengths) {
    manifest.lengths.push_back({row, known.mean, known.longest});
  }
  for (const std::string& name :
       {config_.trainer.checkpoint.keep.metric, rate_name(Role::actor), rate_name(Role::critic)}) {
    const auto found = numbers.find(name);
    if (found != numbers.end() && std::isfinite(found->second)) manifest.metrics.insert(*found);
  }
  // A stop saves before the step's numbers are known.
  for (const Role role : {Role::actor, Role::critic}) {
    if (plan_.find(role) == nullptr || step == 0) continue;
    const OptimConfig& optim = role == Role::actor ? config_.actor.optim : config_.critic.optim;
    manifest.metrics.try_emplace(rate_name(role), rate_of_step(optim, config_, worker_, step));
  }
  std::map<std::string, double> steps;  // rank 0 may be no member of a role
  for (const auto& [role, snapshot] : snapshots_) {
    steps[std::string(name_of(role))] =
        static_cast<double>(worker_.find(role)->trainer->optimizer().state().steps);
  }
  for (const auto& [name, count] : share_numbers(*worker_.context.host, steps)) {
    const Role role = name == name_of(Role::actor) ? Role::actor : Role::critic;
    const RolePlan& planned = *plan_.find(role);
    manifest.roles[name] = {
        .model = planned.model,
        .parameters = parameters_.at(role),
        .dtype = planned.dtypes.param,
        .optimizer_steps = static_cast<std::int64_t>(count),
        .layout = described(planned.layout),
        .base = role == Role::actor ? worker_.base : std::string(),
        .adapter_scale = role == Role::actor ? adapter_scale(config_.actor.lora) : 0};
  }
  return manifest;
}

/// A checkpoint is not ranked without the number that `monitor` names: told once, on rank 0.
void RunSaver::tell_unranked(std::int64_t step, const Metrics& numbers) {
  const CheckpointsToKeep& keep = config_.trainer.checkpoint.keep;
  if (keep.best <= 0 || numbers.empty() || numbers.contains(keep.metric)) return;
  if (!note_ || std::exchange(told_unranked_, true)) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : numbers) names.push_back(name);
  const std::string meant = did_you_mean(keep.metric, names);
  note_("[Checkpoint] step " + std::to_string(step) + " has no '" + keep.metric +
        "' (trainer.monitor), so that save_top_k does not keep it" +
        (meant.empty() ? "" : ": " + meant));
}

void RunSaver::judge(std::int64_t step, const Metrics& numbers) {
  const auto found = numbers.find("training/not_finite");
  not_finite_ = found != numbers.end() && found->second > 0 ? step : kNone;
  looked_at_ = kNone;
  const bool finite = not_finite_ != step;
  if (finite && last_ != kNone && last_ < step) writer_.prove(last_);
  if (finite && last_ == step - 1 && worker_.context.host->rank() == 0) {
    forget_ruined(checkpoint_path(checkpoints_of(run_), last_));
  }
  if (!finite && any_rank(*worker_.context.host, worker_.began_not_finite)) {
    ruined(step - 1,
           "numbers of the first update of step " + std::to_string(step) + " are NaN or infinite");
  }
}

void RunSaver::ruined(std::int64_t steps, const std::string& how) {
  settle();
  const fs::path folder = checkpoint_path(checkpoints_of(run_), steps);
  std::error_code error;
  if (!holds(steps) || !fs::exists(folder / kManifestName, error)) return;
  if (worker_.context.host->rank() == 0) note_ruined(folder, how);
  if (note_) {
    note_("[Checkpoint] that of step " + std::to_string(steps) + " is ruined: " + how +
          "; a run that goes on passes it over, unless trainer.resume_ruined says otherwise");
  }
}

bool RunSaver::sound(std::int64_t step) {
  if (step == looked_at_) return sound_;
  const std::string weight = weight_not_finite();
  looked_at_ = step;
  sound_ = step != not_finite_ && weight.empty();
  if (sound_) return true;
  settle();
  if (!note_) return false;
  note_("[Checkpoint] the state after step " + std::to_string(step) +
        " is neither saved nor exported: " +
        (weight.empty() ? "numbers of the step" : "weights, those of " + weight + " among them,") +
        " are NaN or infinite; " + newest_checkpoint());
  return false;
}

bool RunSaver::saved(std::int64_t step) const {
  if (holds(step)) return true;
  if (note_) {
    note_("[Checkpoint] the state after step " + std::to_string(step) + " is not saved; " +
          newest_checkpoint());
  }
  return false;
}

/// The name of a trained tensor, of any rank.
std::string RunSaver::weight_not_finite() const {
  std::string mine;
  for (const Role role : {Role::actor, Role::critic}) {
    RoleWorker* const own = worker_.find(role);
    if (own == nullptr || !own->member() || !mine.empty()) continue;
    mine = tensor_not_finite(own->trained(), own->trainer->optimizer());
  }
  for (std::string& name : share_texts(*worker_.context.host, mine)) {
    if (!name.empty()) return std::move(name);
  }
  return {};
}

/// For people, on rank 0.
std::string RunSaver::newest_checkpoint() const {
  const std::vector<fs::path> found = checkpoints_in(checkpoints_of(run_));
  const auto step = found.empty() ? std::nullopt : step_named(found.front().filename().string());
  if (step) return "the newest checkpoint is of step " + std::to_string(*step);
  if (first_step_ == 0) return "there is no checkpoint";
  return "the run has none but that of step " + std::to_string(first_step_) + ", where it began";
}

void RunSaver::save(std::int64_t step, const Metrics& numbers) {
  if (!sound(step)) return;
  settle();
  std::vector<StateTensor> tensors;
  for (auto& [role, snapshot] : snapshots_) {
    snapshot.take();
    for (StateTensor& tensor : snapshot.tensors()) tensors.push_back(std::move(tensor));
  }
  generators_ = save_generators(worker_.context.device).states;
  for (StateTensor& tensor : generator_tensors(generators_)) tensors.push_back(std::move(tensor));
  if (!has_room(step, tensors)) return;
  tell_unranked(step, numbers);
  writer_.begin(manifest(step, numbers), std::move(tensors));
  last_ = step;
}

/// Rank 0 looks for all, before anybody writes. Collective.
bool RunSaver::has_room(std::int64_t step, const std::vector<StateTensor>& tensors) {
  Communicator& host = *worker_.context.host;
  std::int64_t bytes = 0;
  for (const StateTensor& tensor : tensors) bytes += tensor.spec.bytes();
  host.all_reduce(&bytes, 1, DType::int64, ReduceOp::sum);
  bytes_ = bytes;
  CheckpointEnd end{.step = step};
  const auto fits = [&] {
    end.problems.clear();
    return check_space(checkpoints_of(run_), bytes, end.problems);
  };
  bool room = host.rank() != 0 || fits();
  if (!room) {  // what an older one takes may be on its way out
    writer_.await_removed();
    room = fits();
  }
  if (!room) refused_.push_back(std::move(end));
  return !any_rank(host, !room);
}

void RunSaver::settle() {
  if (!writer_.pending()) return;
  Communicator& host = *worker_.context.host;
  const bool failed = any_rank(host, !writer_.await_own().empty());
  writer_.settle(!failed);
  const fs::path folder = checkpoints_of(run_) / steps_name(last_);
  const bool absent = host.rank() == 0 && !fs::exists(folder / kManifestName);
  if (any_rank(host, absent)) last_ = kNone;  // where the run stops here, it is tried once more
}

void RunSaver::finish() {
  settle();
  take_report();
}

Metrics RunSaver::take_report() {
  Metrics report;
  std::vector<CheckpointEnd> ends = std::exchange(refused_, {});
  for (CheckpointEnd& end : writer_.take_ends()) ends.push_back(std::move(end));
  for (const CheckpointEnd& end : ends) {
    char text[200];
    if (end.problems.empty()) {
      const double gb = static_cast<double>(end.bytes) * 1e-9;
      report["checkpoint/bytes"] = static_cast<double>(end.bytes);
      report["checkpoint/write_s"] = end.seconds;
      report["checkpoint/gbps"] = gb / end.seconds;
      std::snprintf(text, sizeof text, "[Checkpoint] step %lld: %.4g GB, written in %.3g s",
                    static_cast<long long>(end.step), gb, end.seconds);
      if (note_) note_(text);
      continue;
    }
    report["checkpoint/failed"] = 1;
    // Where the run stops after the step, it is tried once more.
    if (std::exchange(told_unsaved_, end.step) == end.step) continue;
    std::snprintf(text, sizeof text,
                  "[Checkpoint] step %lld was not saved, the run goes on and the checkpoints "
                  "before it stay: ",
                  static_cast<long long>(end.step));
    if (note_) note_(text + to_string(end.problems.front()));
  }
  return report;
}

/// A folder that cannot be written is told: the checkpoints hold the same model.
void RunSaver::save_export(std::int64_t step) {
  const fs::path folder = exports_of(run_) / steps_name(step);
  try {
    save_actor(worker_, plan_, config_, origin(step), folder);
  } catch (const Error& error) {
    if (error.code() != ExitCode::io) throw;
    if (note_) note_("[Checkpoint] " + folder.string() + " was not written: " + error.what());
  }
}

}  // namespace tessera
