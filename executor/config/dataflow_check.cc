#include "executor/config/dataflow_check.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

struct KnownCall {
  Phase phase;
  Role role;
  std::array<CallKind, 2> kinds;
};

/// Who carries a call out, and how (Loop::run_call).
constexpr std::array kCalls = {
    KnownCall{Phase::gen, Role::rollout, {CallKind::generate, CallKind::generate}},
    KnownCall{Phase::old_log_prob, Role::actor, {CallKind::infer, CallKind::infer}},
    KnownCall{Phase::ref, Role::reference, {CallKind::infer, CallKind::infer}},
    KnownCall{Phase::values, Role::critic, {CallKind::infer, CallKind::infer}},
    KnownCall{Phase::reward, Role::reward, {CallKind::compute, CallKind::infer}},
    KnownCall{Phase::adv, Role::actor, {CallKind::compute, CallKind::compute}},
    KnownCall{Phase::update_critic, Role::critic, {CallKind::train, CallKind::train}},
    KnownCall{Phase::update_actor, Role::actor, {CallKind::train, CallKind::train}}};

/// Without these there is nothing to train on, or nothing that is trained.
constexpr std::array kNeeded = {Phase::gen, Phase::reward, Phase::adv, Phase::update_actor};

/// The calls whose results the executor's function of `phase` reads under this run file.
std::vector<Phase> read_by(Phase phase, const RunConfig& config) {
  const AlgorithmConfig& algorithm = config.algorithm;
  const Estimator& estimator = *algorithm.advantage.estimator;
  const ActorOptions& objective = config.actor.objective;
  const bool corrects = algorithm.rollout_correction && !algorithm.bypass_mode;
  std::vector<Phase> read;
  const auto add = [&](Phase call, bool reads = true) {
    if (reads) read.push_back(call);
  };
  if (phase == Phase::gen) return read;
  add(Phase::gen);
  // In bypass mode generation itself makes the old policy's log-probs. PF-PPO draws in `adv` from
  // the sequences as they are then.
  const bool own_log_probs = !algorithm.bypass_mode, draws = algorithm.pf_ppo.enable;
  const bool kl_loss = objective.use_kl_loss || objective.distillation.enabled;
  if (phase == Phase::adv) {
    add(Phase::reward);
    add(Phase::values, estimator.reads_values);
    add(Phase::ref, algorithm.use_kl_in_reward || (draws && kl_loss));
    add(Phase::old_log_prob, own_log_probs && (algorithm.use_kl_in_reward || corrects || draws ||
                                               estimator.reads_sum_pi_squared));
  } else if (phase == Phase::update_critic) {
    add(Phase::values);
    add(Phase::adv);
  } else if (phase == Phase::update_actor) {
    add(Phase::adv);
    add(Phase::old_log_prob, own_log_probs);
    add(Phase::ref, kl_loss);
  }
  return read;
}

class Checker {
 public:
  Checker(const Plan& plan, const RunConfig& config, const std::string& file, Problems& problems)
      : plan_(plan), config_(config), file_(file), problems_(problems) {}

  void check() {
    for (const Call& call : plan_.workload.dataflow) check_kind(call);
    std::set<Phase> before;
    for (const ScheduledCall& scheduled : plan_.schedule) {
      check_reads(scheduled.phase, before);
      before.insert(scheduled.phase);
    }
    for (const Phase phase : kNeeded) {
      if (!before.contains(phase)) {
        refuse("no call " + in_quotes(phase), "a dataflow with it: a run trains the actor");
      }
    }
  }

 private:
  static std::string in_quotes(Phase phase) { return "'" + std::string(name_of(phase)) + "'"; }

  void refuse(std::string found, std::string expected) {
    problems_.push_back({file_, "/dataflow", std::move(found), std::move(expected), {}});
  }

  void check_kind(const Call& call) {
    const auto known = std::ranges::find(kCalls, call.phase, &KnownCall::phase);
    if (known == kCalls.end()) return;  // validate() has refused it
    const bool same_kind = std::ranges::find(known->kinds, call.kind) != known->kinds.end();
    if (call.role == known->role && same_kind) return;
    refuse(in_quotes(call.phase) + " of role " + std::string(name_of(call.role)) + " as " +
               std::string(name_of(call.kind)),
           "role " + std::string(name_of(known->role)) + " and kind " +
               std::string(name_of(known->kinds.front())) + ", as the executor carries it out");
  }

  void check_reads(Phase phase, const std::set<Phase>& before) {
    if (std::ranges::find(kCalls, phase, &KnownCall::phase) == kCalls.end()) return;
    for (const Phase read : read_by(phase, config_)) {
      if (before.contains(read)) continue;
      refuse(in_quotes(phase) + " without " + in_quotes(read) + " before it",
             "a dataflow in which " + in_quotes(phase) + " follows what it reads");
    }
  }

  const Plan& plan_;
  const RunConfig& config_;
  const std::string& file_;
  Problems& problems_;
};

}  // namespace

void check_dataflow(const Plan& plan, const RunConfig& config, const std::string& file,
                    Problems& problems) {
  Checker(plan, config, file, problems).check();
}

}  // namespace tessera
