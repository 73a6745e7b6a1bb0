#include "executor/loop/training_loop.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/estimators/experience_math.h"
#include "executor/loop/calls.h"
#include "executor/loop/reward_scores.h"
#include "executor/loop/share.h"
#include "executor/loop/step_rollout.h"
#include "executor/loop/step_rules.h"
#include "executor/loop/validation.h"
#include "executor/memory/phase_memory.h"
#include "executor/records/phase_clock.h"
#include "executor/records/step_health.h"
#include "executor/records/step_metrics.h"
#include "executor/rl/samples.h"
#include "executor/run_state/generator_state.h"
#include "planner/plan/call_limits.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

class Loop {
 public:
  Loop(Worker& worker, const Plan& plan, const RunConfig& config, const RunPrompts& prompts,
       const RunObserver& observer, RunSaver* saver)
      : worker_(worker),
        plan_(plan),
        config_(config),
        prompts_(prompts.train),
        validation_(prompts.validation),
        observer_(observer),
        saver_(saver),
        rules_(worker, config, observer, saver),
        clock_(worker.context.world->rank()),
        memory_(worker.context.device),
        rollout_options_(rollout_options(plan, config, prompts.train)) {
    if (plan.find(Role::reward) == nullptr) {
      worker.rewards = make_reward_workers(prompts_, config.reward.functions.programs, worker);
    }
    if (!config.trainer.rollout_replay.empty()) {
      Problems problems;
      recorded_ = read_samples(config.trainer.rollout_replay, problems);
      if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
    }
  }

  LoopResult run() {
    LoopResult result;
    result.stopped = agreed_stop();  // somebody may have asked while it loaded
    if (saver_ != nullptr) result.steps = saver_->first_step();
    const bool only = config_.validation.only, begins = only || result.steps == 0;
    const bool due = worker_.owes_validation || (begins && config_.validation.before_train);
    if (result.stopped == StopReason::none && validation_ != nullptr && due) validate(result.steps);
    const std::int64_t last = only ? 0 : config_.trainer.total_training_steps;
    note_state();
    while (result.steps < last && result.stopped == StopReason::none) {
      result.stopped = try_step(result.steps + 1);
      if (result.stopped != StopReason::none) break;
      ++result.steps;
      const RuleDecision rules = rules_.obey(result.steps);
      note_state();
      if (rules.stop) result.stopped = StopReason::stop;
      if (!rules.stop && rules.pause) result.stopped = wait_paused(result.steps);
    }
    if (worker_.owes_validation) result.stopped = std::max(result.stopped, agreed_stop());
    if (saver_ != nullptr && result.stopped != StopReason::none) saver_->release_reserve();
    if (result.stopped != StopReason::none) save_stopped(result.steps);
    if (saver_ != nullptr) saver_->finish();
    result.timeline = std::move(clock_.timeline());
    sort(result.timeline);
    return result;
  }

 private:
  Communicator& host() { return *worker_.context.host; }

  /// What the next step may change before it is asked to stop.
  void note_state() {
    kl_at_start_ = worker_.kl_in_reward.coef;
    taken_at_start_ = worker_.prompts_taken;
  }

  void announce(Phase phase, std::int64_t step) {
    if (observer_.phase_started) observer_.phase_started(phase, step);
  }

  /// As run_step. A step without a server to generate it ends the run; what was trained before is
  /// saved where the step has changed nothing of it.
  StopReason try_step(std::int64_t step) {
    try {
      return run_step(step);
    } catch (const ServerLost&) {
      note_servers(worker_, observer_.note);
      if (saver_ != nullptr && !updating_) {
        saver_->release_reserve();
        save_stopped(step - 1);
        saver_->finish();
      }
      throw;
    }
  }

  /// Why the run is to stop before the step has changed anything that is saved, or none.
  StopReason run_step(std::int64_t step) {
    const std::int64_t start_ns = clock_.now_ns();
    experience_ = {.step = step};
    numbers_.clear();
    updating_ = worker_.began_not_finite = false;
    if (worker_.vllm != nullptr) worker_.vllm->at_step(step);
    for (const ScheduledCall& call : plan_.schedule) {
      if (!updating_ && joins_all(call)) {
        if (const StopReason reason = agreed_stop(); reason != StopReason::none) return reason;
      }
      updating_ = updating_ || updates(call.phase);
      announce(call.phase, step);
      run_call(call.phase, step);
    }
    finish_step(step, start_ns);
    return StopReason::none;
  }

  StopReason agreed_stop() {
    const StopReason mine = observer_.should_stop ? observer_.should_stop() : StopReason::none;
    return static_cast<StopReason>(largest_of(host(), static_cast<std::int32_t>(mine)));
  }

  /// The state after `steps` steps, whatever of the next one has been computed.
  void save_stopped(std::int64_t steps) {
    worker_.kl_in_reward.coef = kl_at_start_;
    worker_.prompts_taken = taken_at_start_;
    if (saver_ == nullptr || saver_->holds_whole(steps)) return;
    announce(Phase::save_checkpoint, steps);
    clock_.time(Phase::save_checkpoint, static_cast<int>(steps), [&] { saver_->save(steps, {}); });
  }

  /// Saved, until somebody says that the run may go on, or is to stop.
  StopReason wait_paused(std::int64_t steps) {
    save_stopped(steps);
    if (saver_ != nullptr) saver_->settle();
    return rules_.wait(steps, [this] { return agreed_stop(); });
  }

  /// Whether every rank takes part. Calls of roles with ranks of their own go on at once: nobody
  /// waits for the others to ask whether the run is to stop.
  bool joins_all(const ScheduledCall& call) const {
    const RolePlan* role = plan_.find(call.role);
    const bool exchanges = call.phase == Phase::gen || call.phase == Phase::adv;
    return exchanges || role == nullptr ||
           role->ranks.size() == static_cast<std::size_t>(plan_.world_size());
  }

  void run_call(Phase phase, std::int64_t step) {
    const auto timed = [&](auto&& body) {
      const PhaseMemory::Part part(memory_, phase);
      return clock_.time(phase, static_cast<int>(step), std::forward<decltype(body)>(body));
    };
    // What `role` computes without the others, and the fields of its sequences that it fills.
    const auto scored = [&](Role role, auto fields, auto&& body) {
      if (member(role)) timed(body);
      unshared(role, fields);
    };
    if (phase == Phase::adv || updates(phase)) unshared_.share(host(), experience_);
    switch (phase) {
      case Phase::reshard:
        return timed([&] { reshard(step); });
      case Phase::gen:
        return timed([&] { generate(step); });
      case Phase::reward:
        return timed([&] { reward(); });
      case Phase::old_log_prob:
        return scored(Role::actor, old_log_prob_fields(config_.algorithm), [&] { old_log_prob(); });
      case Phase::ref:
        return scored(Role::reference, SequenceField::ref_log_prob,
                      [&] { compute_ref_log_prob(worker_, config_, experience_); });
      case Phase::values:
        return scored(Role::critic, SequenceField::values,
                      [&] { compute_values(worker_, experience_); });
      case Phase::adv:
        return timed([&] { advantages(); });
      case Phase::update_critic:
        if (!member(Role::critic)) return;
        return timed(
            [&] { add(update_critic(worker_, config_, plan_.workload.epochs, trained())); });
      case Phase::update_actor:
        if (config_.reshard.preload) map_rollout_in_background(worker_.memory);
        return member(Role::actor) ? timed([&] { improve_actor(step); }) : improve_actor(step);
      case Phase::load:
      case Phase::save_checkpoint:
        return;  // no calls of a schedule
    }
  }

  bool member(Role role) const {
    const RoleWorker* worker = worker_.find(role);
    return worker != nullptr && worker->member();
  }

  void add(const Metrics& metrics) { numbers_.insert(metrics.begin(), metrics.end()); }

  void reshard(std::int64_t step) {
    const std::int64_t start_ns = clock_.now_ns();
    map_rollout(worker_.memory);
    numbers_["reshard/map_s"] = static_cast<double>(clock_.now_ns() - start_ns) * 1e-9;
    const std::uint64_t generators = save_generators(worker_.context.device).digest;
    const ReshardReport report = move_weights(worker_);
    if (save_generators(worker_.context.device).digest != generators) {
      throw Error(ExitCode::internal, "the reshard has drawn random numbers");
    }
    numbers_["reshard/generators_digest"] = static_cast<double>(generators >> 32);
    add(metrics_of(report));
    if (observer_.weights_moved) observer_.weights_moved(step, report);
    verify(step, report);
  }

  /// In every k-th step that the run makes; the failure of any rank ends all of them.
  void verify(std::int64_t step, const ReshardReport& moved) {
    const std::int64_t every = config_.rollout.verify_weights;
    if (worker_.vllm == nullptr && !worker_.certificate) return;
    if (!digests_alone(config_) && (every <= 0 || (step - 1) % every != 0)) return;
    const CertificateReport report = verify_weights(worker_, moved.wire);
    numbers_["rollout/verify_weights_s"] = report.seconds;
    numbers_["rollout/verified_bytes"] = static_cast<double>(report.compared);
    numbers_["rollout/shared_bytes"] = static_cast<double>(report.shared);
    if (observer_.weights_verified) observer_.weights_verified(step, report);
  }

  void generate(std::int64_t step) {
    StepRollout rollout =
        drawn_after(step - 1, saver_, [&] { return roll_out(rollout_setting(prompts_), step); });
    experience_ = std::move(rollout.experience);
    greedy_ = std::move(rollout.greedy);
    scored_ = rollout.scored;
    add(rollout.metrics);
    note_servers(worker_, observer_.note);
    rest_rollout();
  }

  /// The rollout's memory is free for the other phases.
  void rest_rollout() {
    unmap_rollout(worker_.memory);
    if (worker_.vllm != nullptr) worker_.vllm->sleep();
  }

  RolloutSetting rollout_setting(const PromptSet& prompts) {
    return {.worker = worker_,
            .plan = plan_,
            .config = config_,
            .prompts = prompts,
            .options = rollout_options_,
            .recorded = recorded_,
            .stop = [this] { return agreed_stop() != StopReason::none; },
            .note = observer_.note};
  }

  /// A reward model's scores are shared later where nothing needs them before.
  void reward() {
    if (scored_) return;
    const bool needed = config_.reward.overlong.enable || !greedy_.sequences.empty();
    if (worker_.find(Role::reward) != nullptr && !needed) {
      compute_reward_scores(worker_, experience_);
      unshared(Role::reward, SequenceField::score);
      return;
    }
    add(score_step(rollout_setting(prompts_), experience_, greedy_));
  }

  /// In bypass mode the rollout's log-probs stand for them already.
  void old_log_prob() {
    if (config_.algorithm.bypass_mode) return;
    add(compute_old_log_prob(worker_, config_, experience_));
  }

  /// Notes that `role`'s leader holds results that others lack.
  template <class Fields>
  void unshared(Role role, Fields fields) {
    const RoleWorker* worker = worker_.find(role);
    if (worker != nullptr) unshared_.add(SequenceFields{} | fields, worker->leader());
  }

  void advantages() {
    add(shape_advantages(worker_, config_.algorithm, experience_));
    const PfPpo& pf_ppo = config_.algorithm.pf_ppo;
    if (pf_ppo.enable) drawn_ = resampled(experience_, pf_ppo, config_.rollout.seed);
  }

  /// What actor and critic are updated with.
  const Experience& trained() const {
    return config_.algorithm.pf_ppo.enable ? drawn_ : experience_;
  }

  /// Of ranks without the actor, too: they may begin the next reshard beside it.
  void improve_actor(std::int64_t step) {
    const bool overlap = config_.reshard.overlap && step < config_.trainer.total_training_steps;
    add(update_actor(worker_, config_, plan_.workload.epochs, trained(), overlap));
  }

  void finish_step(std::int64_t step, std::int64_t start_ns) {
    add(data_metrics(experience_, {.prompt = plan_.workload.longest_prompt(),
                                   .response = plan_.workload.response_tokens.max}));
    if (observer_.measured) add(observer_.measured());
    settle(step);
    keep_lengths(worker_.new_lengths, worker_.known_lengths);
    for (const auto& [name, seconds] : clock_.take_seconds()) numbers_[name] = seconds;
    add(memory_.take());
    add(host_memory_metrics());
    if (saver_ != nullptr) add(saver_->take_report());
    Metrics all = share_numbers(host(), numbers_);
    worker_.owes_validation = false;
    if (validation_due(step)) all.merge(validate(step));
    all["training/global_step"] = static_cast<double>(step);
    all["training/epoch"] = static_cast<double>(epoch_of(step));
    const auto so_far = [&] { return static_cast<double>(clock_.now_ns() - start_ns) * 1e-9; };
    add_step_numbers(plan_, experience_, so_far(), all);
    if (rules_.judge(step, all)) save(step, all);
    add_step_numbers(plan_, experience_, so_far(), all);
    if (observer_.step_finished) observer_.step_finished(step, all, experience_);
    if (saver_ != nullptr) saver_->recorded();
  }

  /// From 0, as verl counts: the pass over the prompts from which the step took its first one.
  std::int64_t epoch_of(std::int64_t step) const {
    const auto per_step = plan_.workload.prompts_per_step, skipped = worker_.rules.prompts_skipped;
    const std::int64_t first = std::max(taken_at_start_, (step - 1) * per_step + skipped);
    return (first + prompts_.source.begin()) / (prompts_.source.steps_per_epoch() * per_step);
  }

  bool validation_due(std::int64_t step) const {
    const std::int64_t freq = config_.validation.freq;
    return validation_ != nullptr && freq > 0 &&
           (step % freq == 0 || step == config_.trainer.total_training_steps);
  }

  /// Of the weights after `step` steps, which move into the rollout for it; none where it is owed.
  Metrics validate(std::int64_t step) {
    const std::int64_t start_ns = clock_.now_ns();
    announce(Phase::reshard, step);
    move_weights(worker_);
    announce(Phase::gen, step);
    Validation made = drawn_after(
        step, saver_, [&] { return tessera::validate(rollout_setting(*validation_), step); });
    rest_rollout();
    worker_.owes_validation = !made.whole;
    if (!made.whole) return {};
    made.metrics["timing_s/testing"] = static_cast<double>(clock_.now_ns() - start_ns) * 1e-9;
    if (observer_.validated) observer_.validated(step, made.metrics, made.sequences);
    return std::move(made.metrics);
  }

  /// The step counts once the checkpoint of the one before it is complete.
  void settle(std::int64_t step) {
    if (saver_ == nullptr || !saver_->pending()) return;
    clock_.time(Phase::save_checkpoint, static_cast<int>(step), [&] { saver_->settle(); });
  }

  /// What is due after the step; the time that it takes is the step's.
  void save(std::int64_t step, Metrics& all) {
    if (saver_ == nullptr || !saver_->due(step)) return;
    announce(Phase::save_checkpoint, step);
    clock_.time(Phase::save_checkpoint, static_cast<int>(step),
                [&] { saver_->save_due(step, all); });
    for (const auto& [name, seconds] : share_numbers(host(), clock_.take_seconds())) {
      all[name] += seconds;
    }
  }

  Worker& worker_;
  const Plan& plan_;
  const RunConfig& config_;
  const PromptSet& prompts_;
  const PromptSet* validation_;  // nullptr: the run does not validate
  const RunObserver& observer_;
  RunSaver* saver_;  // nullptr: nothing is saved
  StepRules rules_;
  double kl_at_start_ = 0;           // the coefficient in the reward, of the step that runs
  std::int64_t taken_at_start_ = 0;  // prompts_taken, likewise
  PhaseClock clock_;
  PhaseMemory memory_;
  RolloutOptions rollout_options_;
  std::vector<Experience> recorded_;
  Experience experience_;
  Experience greedy_;      // answers to the step's prompts, where the estimator reads their scores
  Experience drawn_;       // of experience_, by PF-PPO
  bool scored_ = false;    // generation has scored experience_
  bool updating_ = false;  // the step has begun to change what is saved
  Metrics numbers_;
  UnsharedFields unshared_;
};

}  // namespace

LoopResult run_training(Worker& worker, const Plan& plan, const RunConfig& config,
                        const RunPrompts& prompts, const RunObserver& observer, RunSaver* saver) {
  return Loop(worker, plan, config, prompts, observer, saver).run();
}

}  // namespace tessera
