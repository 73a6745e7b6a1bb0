#include "executor/loop/resume.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/adapters/adapter_weights.h"
#include "executor/checkpoint/base_digest.h"
#include "executor/loop/calls.h"
#include "executor/loop/share.h"
#include "executor/run_state/generator_state.h"
#include "executor/run_state/restore.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/rank_status.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// What a path names: a checkpoint, or a run's checkpoints.
std::vector<fs::path> checkpoints_at(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path / kManifestName, error)) return {path};
  return checkpoints_in(checkpoints_of(path));
}

/// That the checkpoint is not taken as it is ruined; nullopt: it is not, or it is meant.
std::optional<Problem> ruin_of(const fs::path& folder, const CheckpointConfig& config) {
  if (config.resume_ruined || folder == config.resume_from_path) return std::nullopt;
  const std::string how = ruined_by(folder);
  if (how.empty()) return std::nullopt;
  return Problem{.file = folder.string(),
                 .found = "a state that is ruined: " + how,
                 .expected = "a checkpoint that the step after it has not shown to be so",
                 .hint = "trainer.resume_ruined: true takes it all the same"};
}

std::string number_text(double number) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", number);
  return text;
}

std::string lines(const Problems& problems) {
  std::string text;
  for (const Problem& problem : problems) text += (text.empty() ? "" : "\n") + to_string(problem);
  return text;
}

/// Says where a learning rate is not that of the checkpoint's step: a schedule over another number
/// of steps, say, jumps.
void tell_rates(const CheckpointManifest& manifest, const Worker& worker, const RunConfig& config,
                const Note& note) {
  for (const Role role : {Role::actor, Role::critic}) {
    const auto found = manifest.metrics.find(rate_name(role));
    if (found == manifest.metrics.end()) continue;
    const OptimConfig& optim = role == Role::actor ? config.actor.optim : config.critic.optim;
    const double had = found->second, has = rate_of_step(optim, config, worker, manifest.step);
    if (std::abs(had - has) <= 1e-6 * std::max(std::abs(had), std::abs(has))) continue;
    note("[Resume] the " + std::string(name_of(role)) + "'s learning rate jumps: it was " +
         number_text(had) + " in step " + std::to_string(manifest.step) +
         ", where this run's schedule (" + std::string(name_of(optim.decay)) + ", " +
         std::to_string(config.trainer.total_training_steps) + " steps) has " + number_text(has));
  }
}

/// Says where the run's data or numbers are not those of the checkpoint's steps.
void tell_differences(const CheckpointManifest& manifest, const CheckpointData& data,
                      const Worker& worker, const RunConfig& config, const Note& note) {
  if (!note) return;
  tell_rates(manifest, worker, config, note);
  if (manifest.data != data) {
    const auto described = [](const CheckpointData& d) {
      return std::to_string(d.prompts) + " prompts (" + d.digest + "), " +
             std::to_string(d.per_step) + " a step" +
             (d.first > 0 ? " from position " + std::to_string(d.first) + ", " : ", ") +
             (d.shuffle ? "shuffled by seed " + std::to_string(d.seed) : "in order");
    };
    note("[Resume] the data is not the checkpoint's: " + described(data) + "; it had " +
         described(manifest.data));
  }
  if (manifest.seed != static_cast<std::int64_t>(config.rollout.seed)) {
    note("[Resume] tokens are drawn with seed " + std::to_string(config.rollout.seed) +
         ", the checkpoint's with " + std::to_string(manifest.seed));
  }
}

/// What is trained must be what was saved, and adapters are differences to certain weights by a
/// certain scale. Rank 0 knows the weights' digest.
void check_trained(const Worker& worker, const OpenCheckpoint& checkpoint, const Lora& lora,
                   Problems& problems) {
  const auto refuse = [&](const std::string& place, std::string found, std::string expected,
                          const char* hint) {
    problems.push_back({.file = (checkpoint.folder / kManifestName).string(),
                        .place = "roles/" + place,
                        .found = std::move(found),
                        .expected = std::move(expected),
                        .hint = hint});
  };
  for (const auto& [name, saved] : checkpoint.manifest.roles) {
    const Role role = name == name_of(Role::actor) ? Role::actor : Role::critic;
    const RoleWorker* const own = worker.find(role);
    if (own == nullptr || !own->member()) continue;
    const std::int64_t trained = own->trained().table.elements();
    if (saved.parameters == trained) continue;
    refuse(name + "/parameters", std::to_string(saved.parameters) + " that were trained",
           std::to_string(trained) + ", as the run trains", "");
  }
  const auto actor = checkpoint.manifest.roles.find(std::string(name_of(Role::actor)));
  if (!lora.used() || actor == checkpoint.manifest.roles.end()) return;
  const CheckpointRole& saved = actor->second;  // of older ones neither is known
  const double scale = adapter_scale(lora);
  if (saved.adapter_scale != 0 && saved.adapter_scale != scale) {
    refuse("actor/adapter_scale", "adapters that are scaled by " + number_text(saved.adapter_scale),
           number_text(scale) + ", lora_alpha / rank of the run",
           "leave the scale as the run began; another begins anew with lora_adapter_path");
  }
  if (!saved.base.empty() && !worker.base.empty() && saved.base != worker.base) {
    refuse("actor/base", "adapters of other weights (" + saved.base + ")",
           "of those of the plan's model (" + worker.base + ")",
           "give the plan the model that the run began with");
  }
}

/// Restores what this rank holds of the checkpoint.
void restore(Worker& worker, const OpenCheckpoint& checkpoint, Problems& problems) {
  for (const Role role : {Role::actor, Role::critic}) {
    RoleWorker* const own = worker.find(role);
    if (own == nullptr || !own->member()) continue;
    restore_role(checkpoint, std::string(name_of(role)), own->trained(), *own->trainer, problems);
  }
  worker.kl_in_reward.coef = checkpoint.manifest.kl_coef;
  worker.prompts_taken = checkpoint.manifest.prompts_taken;
  worker.rules = checkpoint.manifest.rules;
  worker.owes_validation = checkpoint.manifest.owes_validation;
  for (const CheckpointLength& known : checkpoint.manifest.lengths) {
    worker.known_lengths[known.row] = {.mean = known.mean, .longest = known.longest};
  }
  const torch::Device device = worker.context.device;
  const GeneratorState generators{
      .states = saved_generators(checkpoint, worker.context.host->rank(), device, problems)};
  if (!generators.states.empty() && problems.empty()) restore_generators(generators, device);
}

/// An earlier run of the folder was asked to stop or to pause, this one was not. Where `tessera
/// run` is the parent it has removed both, before anybody could ask anew.
void forget_requests(const fs::path& folder) {
  forget_stop(folder);
  end_pause(folder);
}

constexpr double kLockPatience = 10;  // seconds: ranks of a run whose parent died are ending

}  // namespace

std::optional<RunLock> take_folder(const fs::path& folder, bool create, bool may_exist,
                                   Communicator& host) {
  std::optional<RunLock> lock;
  Problems problems;
  if (host.rank() == 0) {
    std::error_code error;
    const bool made = !create || fs::create_directory(folder, error) || (may_exist && !error);
    if (!made) {
      problems.push_back({.file = folder.string(),
                          .found = error ? error.message() : "it exists",
                          .expected = "a new folder for this run, or resume_mode: auto"});
    } else {
      lock = RunLock::take(folder / "lock", kLockPatience, problems);
    }
    if (lock) remove_leftovers(checkpoints_of(folder));
    if (lock && create) forget_requests(folder);
  }
  const std::string failure = problems.empty() ? "" : to_string(problems.front());
  for (const std::string& text : share_texts(host, failure)) {
    if (!text.empty()) throw Error(ExitCode::bad_input, text);
  }
  return lock;
}

std::string base_of(const Plan& plan, const ParameterTable& table, const RunConfig& config) {
  if (!config.actor.lora.used()) return {};
  const TrainerConfig& trainer = config.trainer;
  if (trainer.random_weights) return "drawn with seed " + std::to_string(trainer.seed);
  Problems problems;
  const std::string& folder = plan.models.at(plan.find(Role::actor)->model).path;
  auto digest = base_digest(folder, table, problems);
  if (!digest) throw Error(ExitCode::bad_input, std::move(problems));
  return *std::move(digest);
}

std::vector<fs::path> sound_checkpoints(const CheckpointConfig& config, const fs::path& run,
                                        const Note& note, Problems& problems) {
  std::vector<fs::path> found;
  if (config.resume_mode == ResumeMode::automatic) found = checkpoints_in(checkpoints_of(run));
  const bool elsewhere = found.empty() && !config.resume_from_path.empty();
  if (elsewhere) found = checkpoints_at(config.resume_from_path);
  if (found.empty() && config.resume_mode == ResumeMode::resume_path) {
    problems.push_back({.file = config.resume_from_path.string(),
                        .found = "no checkpoint",
                        .expected = "a folder global_step_N, or a run that has some"});
  }
  std::vector<fs::path> sound;
  for (const fs::path& folder : found) {
    Problems broken;
    const bool whole = read_manifest(folder, broken).has_value();
    if (auto ruin = whole ? ruin_of(folder, config) : std::nullopt) {
      broken.push_back(*std::move(ruin));
    }
    if (broken.empty()) {
      sound.push_back(folder);
      continue;
    }
    if (note) note("[Resume] not from " + folder.string() + ": " + lines(broken));
    problems.insert(problems.end(), broken.begin(), broken.end());
  }
  return sound;
}

std::vector<fs::path> resume_candidates(const CheckpointConfig& config, const fs::path& run,
                                        Communicator& host, const Note& note) {
  if (config.resume_mode == ResumeMode::disable) return {};
  Problems problems;
  std::string mine;
  if (host.rank() == 0) {
    for (const fs::path& folder : sound_checkpoints(config, run, note, problems)) {
      mine += folder.string() + "\n";
    }
  }
  std::vector<fs::path> candidates;
  std::istringstream in(share_texts(host, mine).front());
  for (std::string line; std::getline(in, line);) candidates.emplace_back(line);
  const std::string wrong = share_problems(host, problems);
  if (candidates.empty() && !wrong.empty()) throw Error(ExitCode::bad_input, wrong);
  return candidates;
}

std::int64_t step_of_checkpoint(const fs::path& folder) {
  Problems ignored;
  const auto manifest = read_manifest(folder, ignored);
  return manifest ? manifest->step : 0;
}

CheckpointManifest resume(Worker& worker, const std::vector<fs::path>& candidates,
                          const CheckpointData& data, const RunConfig& config, const Note& note) {
  Communicator& host = *worker.context.host;
  std::string all_wrong;
  for (const fs::path& folder : candidates) {
    Problems problems;
    const auto checkpoint = open_checkpoint(folder, problems);
    if (checkpoint) check_trained(worker, *checkpoint, config.actor.lora, problems);
    std::string wrong = share_problems(host, problems);
    if (wrong.empty()) {
      restore(worker, *checkpoint, problems);
      wrong = share_problems(host, problems);
    }
    if (wrong.empty()) {
      if (note) {
        note("[Resume] from step " + std::to_string(checkpoint->manifest.step) + ", " +
             folder.string());
      }
      tell_differences(checkpoint->manifest, data, worker, config, note);
      return checkpoint->manifest;
    }
    if (note) note("[Resume] not from " + folder.string() + ": " + wrong);
    all_wrong += (all_wrong.empty() ? "" : "\n") + wrong;
  }
  throw Error(ExitCode::bad_input, all_wrong);
}

std::int64_t roll_back(Worker& worker, const std::vector<fs::path>& candidates, std::int64_t step,
                       const RunConfig& config, RunSaver& saver, const Note& note) {
  // A reshard that went beside the last update reads the weights until it is finished.
  if (worker.weight_reshard != nullptr && worker.weight_reshard->begun()) move_weights(worker);
  const RuleState rules = worker.rules;
  const std::int64_t taken = worker.prompts_taken;
  const CheckpointManifest found = resume(worker, candidates, saver.data(), config, note);
  const std::int64_t skipped = (step - found.step) * saver.data().per_step;
  worker.rules = rules;
  worker.rules.prompts_skipped += skipped;
  worker.prompts_taken = taken;
  if (note) {
    note("[Rule] everything is as after step " + std::to_string(found.step) +
         ", but the next prompts are those that follow step " + std::to_string(step) + ": " +
         std::to_string(skipped) + " are left out");
  }
  saver.save(found.step, found.metrics);
  return found.step;
}

}  // namespace tessera
