#include "executor/config/run_config_checkpoint.h"

#include <array>
#include <optional>

#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

constexpr std::array kResumeModes = {ResumeMode::disable, ResumeMode::automatic,
                                     ResumeMode::resume_path};
constexpr auto kResumeNames = enum_names<ResumeMode>({{ResumeMode::disable, "disable"},
                                                      {ResumeMode::automatic, "auto"},
                                                      {ResumeMode::resume_path, "resume_path"}});

enum class MonitorMode : std::uint8_t { max, min };
constexpr std::array kMonitorModes = {MonitorMode::max, MonitorMode::min};
constexpr auto kMonitorNames =
    enum_names<MonitorMode>({{MonitorMode::max, "max"}, {MonitorMode::min, "min"}});
std::string_view name_of(MonitorMode mode) { return kMonitorNames[mode]; }

/// Steps between two; -1, verl's word for never, and null may be said.
void read_freq(ObjectReader& reader, std::string_view key, std::int64_t& freq) {
  reader.optional(key, freq, Whole{.least = -1, .most = 1'000'000'000});
  if (freq == 0) reader.refuse(key, "1 or more, or -1 for never");
}

/// verl counts the actor's and the critic's checkpoints apart; here one holds both.
void read_newest(ObjectReader& reader, std::int64_t& newest) {
  std::optional<std::int64_t> actor, critic;
  reader.optional("max_actor_ckpt_to_keep", actor, kPositive);
  reader.optional("max_critic_ckpt_to_keep", critic, kPositive);
  if (critic && critic != actor) {
    reader.refuse("max_critic_ckpt_to_keep", "the same as max_actor_ckpt_to_keep",
                  "a checkpoint holds actor and critic");
  }
  newest = actor.value_or(0);
}

}  // namespace

std::string_view name_of(ResumeMode mode) { return kResumeNames[mode]; }

CheckpointConfig read_checkpoint(ObjectReader& trainer) {
  CheckpointConfig config;
  read_freq(trainer, "save_freq", config.save_freq);
  read_freq(trainer, "hf_save_freq", config.hf_save_freq);
  read_newest(trainer, config.keep.newest);
  trainer.optional("save_top_k", config.keep.best, kNotNegative);
  if (config.keep.best > 0 && config.keep.newest == 0) {
    trainer.refuse("save_top_k", "max_actor_ckpt_to_keep beside it",
                   "without it every checkpoint stays");
  }
  trainer.optional("monitor", config.keep.metric);
  MonitorMode mode = MonitorMode::max;
  trainer.optional("monitor_mode", mode, kMonitorModes);
  config.keep.higher_is_better = mode == MonitorMode::max;
  trainer.optional("resume_mode", config.resume_mode, kResumeModes);
  std::string from;
  trainer.optional("resume_from_path", from);
  config.resume_from_path = from;
  trainer.optional("resume_ruined", config.resume_ruined);
  if (config.resume_mode == ResumeMode::resume_path && from.empty()) {
    trainer.refuse("resume_from_path", "a checkpoint's folder");
  }
  if (config.resume_mode == ResumeMode::disable && !from.empty()) {
    trainer.refuse("resume_from_path", "resume_mode: resume_path (or auto) beside it");
  }
  return config;
}

RuleActionsConfig read_rule_actions(ObjectReader& trainer) {
  RuleActionsConfig config;
  auto reader = trainer.object("rule_actions", false);
  if (!reader) return config;
  constexpr Real kPart{.least = 0, .most = 1, .above = true};
  reader->optional("lr_factor", config.lr_factor, kPart);
  if (config.lr_factor == 1) reader->refuse("lr_factor", "less than 1");
  reader->optional("lr_floor", config.lr_floor, kPart);
  reader->optional("roll_backs", config.roll_backs, kNotNegative);
  reader->refuse_unknown_keys();
  return config;
}

}  // namespace tessera
