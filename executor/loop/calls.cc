#include "executor/loop/calls.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/batching/schedule.h"
#include "executor/estimators/experience_math.h"
#include "executor/loop/loss_functions.h"
#include "executor/loop/share.h"
#include "executor/rollout/generate.h"
#include "executor/rollout/prompt_dealing.h"
#include "executor/run_state/generator_state.h"
#include "executor/run_state/stale_weights.h"
#include "executor/tensor/torch_memory_ops.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

/// `replay`: with the experts that they carry.
std::vector<TokenSequence> views_of(std::span<const Sequence> sequences, bool replay = false) {
  std::vector<TokenSequence> views;
  views.reserve(sequences.size());
  for (const Sequence& sequence : sequences) {
    views.push_back({sequence.prompt, sequence.response});
    if (replay) views.back().routed_experts = sequence.routed_experts;
  }
  return views;
}

void store_values(TokenValues values, std::vector<Sequence>& sequences,
                  std::vector<float> Sequence::*field) {
  for (size_t i = 0; i < sequences.size(); ++i) sequences[i].*field = std::move(values[i]);
}

/// Micro-batches are the role's, unless `asked` limits them.
LogProbs log_probs_of(RoleWorker& role, const RunConfig& config,
                      std::span<const TokenSequence> batch, InferOptions asked) {
  if (asked.token_limit == 0) asked.token_limit = role.plan->batching.log_prob_tokens;
  asked.temperature = config.rollout.sampling.temperature;
  LogProbs scores = role.trainer->log_probs(batch, asked);
  role.trainer->rest();
  return scores;
}

/// verl's agg_loss over all valid tokens at once.
double mean_entropy(const TokenValues& entropy, const Experience& experience,
                    const Aggregation& aggregation) {
  Array values;
  for (const std::vector<float>& row : entropy) values.insert(values.end(), row.begin(), row.end());
  return aggregate(rows_of(experience.sequences), values,
                   {.mode = aggregation.mode,
                    .batch_num_tokens = {},
                    .global_batch_size = {},
                    .loss_scale_factor = aggregation.loss_scale_factor});
}

/// Adds one update's numbers to running sums; means are taken by the number of updates.
void add_metrics(Metrics& sums, const Metrics& one) {
  for (const auto& [name, value] : one) sums[name] += value;
}

bool finite(const Metrics& numbers) {
  return std::ranges::all_of(numbers, [](const auto& n) { return std::isfinite(n.second); });
}

/// Runs `update(mini_batch, updates so far)` over all epochs and mini-batches and averages.
Metrics over_mini_batches(Worker& worker, const RolePlan& plan, std::int64_t epochs,
                          const Experience& experience, auto&& update) {
  const std::span<const Sequence> all = experience.sequences;
  const auto size = static_cast<std::size_t>(plan.batching.mini_batch);
  Metrics sums;
  std::int64_t updates = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::size_t first = 0; first < all.size(); first += size) {
      const Metrics numbers =
          update(all.subspan(first, std::min(size, all.size() - first)), updates);
      if (updates == 0 && !finite(numbers)) worker.began_not_finite = true;
      add_metrics(sums, numbers);
      ++updates;
    }
  }
  for (auto& [name, value] : sums) value /= static_cast<double>(updates);
  return sums;
}

void begin_reshard(Worker& worker) {
  map_rollout(worker.memory);
  worker.weight_reshard->begin();
}

}  // namespace

double rate_of_step(const OptimConfig& optim, const RunConfig& config, const Worker& worker,
                    std::int64_t step) {
  const LrSchedule schedule{.lr = optim.lr,
                            .decay = optim.decay,
                            .warmup_steps = optim.lr_warmup_steps,
                            .warmup_ratio = optim.lr_warmup_steps_ratio,
                            .total_steps = config.trainer.total_training_steps,
                            .min_lr_ratio = optim.min_lr_ratio};
  return worker.rules.lr_scale * learning_rate(schedule, step - 1);
}

namespace {

/// Collective over the run's ranks, of whose replicas any may have lost its server.
GeneratedShare generate_by_servers(Worker& worker, std::int64_t step,
                                   std::span<const TokenPrompt> prompts,
                                   const RolloutOptions& options) {
  const RoleWorker& rollout = *worker.find(Role::rollout);
  VllmSamples samples;
  if (rollout.member()) {
    const ParallelGroups& groups = rollout.groups;
    samples = worker.vllm->generate(
        step, prompts_of_replica(prompts, groups.dp_size, groups.dp_rank), options);
  }
  worker.vllm->settle();
  if (worker.vllm->unproven()) verify_weights(worker, std::nullopt);
  if (!rollout.member()) return {};
  return {.sequences = std::move(samples.sequences),
          .metrics = {{"rollout/decode_tokens", static_cast<double>(samples.response_tokens)},
                      {"rollout/prefill_tokens", static_cast<double>(samples.prompt_tokens)}}};
}

}  // namespace

bool speaks_for_replica(const RoleWorker& rollout) {
  return rollout.member() && rollout.groups.coord.tp == 0 && rollout.groups.coord.pp == 0;
}

GeneratedShare generate_share(Worker& worker, RolloutEngine* engine, std::int64_t step,
                              std::span<const TokenPrompt> prompts, const RolloutOptions& options,
                              const AfterPass& after_pass) {
  const RoleWorker& role = *worker.find(Role::rollout);
  if (worker.vllm != nullptr) return generate_by_servers(worker, step, prompts, options);
  if (!role.member()) return {};
  const GeneratorState before = save_generators(worker.context.device);
  const std::vector<TokenPrompt> mine =
      prompts_of_replica(prompts, role.groups.dp_size, role.groups.dp_rank);
  const bool speaks = speaks_for_replica(role);
  Rollout rollout = engine->generate(step, mine, options, speaks ? after_pass : AfterPass{});
  restore_generators(before, worker.context.device);

  GeneratedShare share;
  const RolloutCounts& counts = rollout.counts;
  share.metrics = {{"rollout/decode_steps", static_cast<double>(counts.decode_steps)},
                   {"rollout/decode_tokens", static_cast<double>(counts.decode_tokens)},
                   {"rollout/tail_steps", static_cast<double>(counts.tail_steps)},
                   {"rollout/preemptions", static_cast<double>(counts.preemptions)},
                   {"rollout/dropped_tokens", static_cast<double>(counts.dropped_tokens)},
                   {"rollout/prefill_tokens", static_cast<double>(counts.prefill_tokens)},
                   {"rollout/kv_cache_bytes", static_cast<double>(rollout.kv_cache_bytes)}};
  share.order_cost = rollout.order_cost;
  if (speaks) share.sequences = std::move(rollout.sequences);
  return share;
}

Metrics compute_old_log_prob(Worker& worker, const RunConfig& config, Experience& experience) {
  RoleWorker* const role = worker.find(Role::actor);
  if (role == nullptr || !role->member()) return {};
  const bool squares = config.algorithm.advantage.estimator->reads_sum_pi_squared;
  const RouterReplayMode replay = config.actor.router_replay;
  const bool notes = replay == RouterReplayMode::r2;
  LogProbs scores =
      log_probs_of(*role, config, views_of(experience.sequences, replay == RouterReplayMode::r3),
                   {.entropy = true,
                    .sum_pi_squared = squares,
                    .note_experts = notes,
                    .order = sum_order(config.rollout)});
  const double entropy = mean_entropy(scores.entropy, experience, config.actor.aggregation);
  store_values(std::move(scores.log_prob), experience.sequences, &Sequence::old_log_prob);
  if (squares) {
    store_values(std::move(scores.sum_pi_squared), experience.sequences, &Sequence::sum_pi_squared);
  }
  for (std::size_t i = 0; i < scores.routed_experts.size(); ++i) {
    experience.sequences[i].routed_experts = std::move(scores.routed_experts[i]);
  }
  return role->leader() ? Metrics{{"actor/entropy", entropy}} : Metrics{};
}

void compute_ref_log_prob(Worker& worker, const RunConfig& config, Experience& experience) {
  RoleWorker* const role = worker.find(Role::reference);
  if (role == nullptr || !role->member()) return;
  // Without weights of its own it is the actor as it was before training.
  RoleWorker& holder = role->trainer != nullptr ? *role : *worker.find(Role::actor);
  LogProbs scores =
      log_probs_of(holder, config, views_of(experience.sequences),
                   {.token_limit = role->plan->batching.log_prob_tokens, .adapters = false});
  store_values(std::move(scores.log_prob), experience.sequences, &Sequence::ref_log_prob);
}

void compute_values(Worker& worker, Experience& experience) {
  RoleWorker* role = worker.find(Role::critic);
  if (role == nullptr || !role->member()) return;
  store_values(role->trainer->values(views_of(experience.sequences),
                                     {.token_limit = role->plan->batching.values_tokens}),
               experience.sequences, &Sequence::values);
  role->trainer->rest();
}

void compute_reward_scores(Worker& worker, Experience& experience) {
  RoleWorker* role = worker.find(Role::reward);
  if (role == nullptr || !role->member()) return;
  const std::vector<float> scores = role->trainer->scores(
      views_of(experience.sequences), {.token_limit = role->plan->batching.reward_tokens});
  role->trainer->rest();
  for (size_t i = 0; i < scores.size(); ++i) experience.sequences[i].score = scores[i];
}

Metrics update_actor(Worker& worker, const RunConfig& config, std::int64_t epochs,
                     const Experience& experience, bool overlap) {
  RoleWorker* role = worker.find(Role::actor);
  if (role == nullptr || !role->member()) {
    if (overlap) begin_reshard(worker);
    return {};
  }
  const double rate = rate_of_step(config.actor.optim, config, worker, experience.step);
  const bool replays = config.actor.router_replay != RouterReplayMode::disabled;
  const auto size = static_cast<std::size_t>(role->plan->batching.mini_batch);
  const auto batches = static_cast<std::int64_t>((experience.sequences.size() + size - 1) / size);
  const std::int64_t last = epochs * batches - 1;
  const auto update = [&](std::span<const Sequence> batch, std::int64_t done) {
    const Aggregation counts =
        mini_batch_counts(batch, config.actor.aggregation, role->groups.dp_size);
    RowsWritten written;
    if (overlap && done == last) {
      begin_reshard(worker);
      written = [&](std::span<const int> rows) { worker.weight_reshard->written(rows); };
    }
    UpdateResult result =
        role->trainer->update(views_of(batch, replays),
                              actor_loss_function(batch, config.actor.objective, counts,
                                                  {config.rollout.seed, experience.step}),
                              {.token_limit = role->plan->batching.update_tokens,
                               .temperature = config.rollout.sampling.temperature,
                               .entropy = true,
                               .router_aux_loss_coef = config.actor.router_aux_loss_coef,
                               .router_z_loss_coef = config.actor.router_z_loss_coef,
                               .learning_rate = rate,
                               .written = written});
    result.metrics["actor/grad_norm"] = result.grad_norm;
    result.metrics[rate_name(Role::actor)] = rate;
    result.metrics["actor/loss"] = result.loss;
    for (const char* const name :
         {"router_aux_loss", "router_z_loss", "router_replay_mismatch_fraction"}) {
      auto of_routers = result.metrics.extract(name);
      if (!of_routers) continue;
      of_routers.key() = std::string("actor/") + name;
      result.metrics.insert(std::move(of_routers));
    }
    result.metrics["actor/skipped_share"] = result.applied ? 0 : 1;
    return result.metrics;
  };
  Metrics metrics = over_mini_batches(worker, *role->plan, epochs, experience, update);
  role->trainer->rest();
  return role->leader() ? metrics : Metrics{};
}

SequenceFields old_log_prob_fields(const AlgorithmConfig& algorithm) {
  return SequenceField::old_log_prob |
         (algorithm.advantage.estimator->reads_sum_pi_squared ? SequenceField::sum_pi_squared
                                                              : SequenceField::old_log_prob);
}

Metrics shape_advantages(Worker& worker, const AlgorithmConfig& algorithm, Experience& experience) {
  Metrics metrics;
  place_scores(experience);
  if (algorithm.use_kl_in_reward) {
    metrics = subtract_kl(experience, algorithm.kl_penalty, worker.kl_in_reward);
  }
  if (algorithm.rollout_correction && !algorithm.bypass_mode) {
    metrics.merge(correct_rollout(experience, *algorithm.rollout_correction));
  }
  compute_advantages(experience, algorithm.advantage);
  return metrics;
}

void note_servers(Worker& worker, const std::function<void(const std::string&)>& note) {
  if (worker.vllm == nullptr) return;
  for (const std::string& line : worker.vllm->take_news()) {
    if (note) note(line);
  }
}

Metrics update_critic(Worker& worker, const RunConfig& config, std::int64_t epochs,
                      const Experience& experience) {
  RoleWorker* role = worker.find(Role::critic);
  if (role == nullptr || !role->member()) return {};
  const double rate = rate_of_step(config.critic.optim, config, worker, experience.step);
  const auto update = [&](std::span<const Sequence> batch, std::int64_t) {
    const Aggregation counts =
        mini_batch_counts(batch, config.critic.aggregation, role->groups.dp_size);
    UpdateResult result = role->trainer->update(
        views_of(batch), critic_loss_function(batch, config.critic.cliprange_value, counts),
        {.token_limit = role->plan->batching.update_tokens, .learning_rate = rate});
    result.metrics["critic/grad_norm"] = result.grad_norm;
    result.metrics[rate_name(Role::critic)] = rate;
    result.metrics["critic/skipped_share"] = result.applied ? 0 : 1;
    return result.metrics;
  };
  Metrics metrics = over_mini_batches(worker, *role->plan, epochs, experience, update);
  role->trainer->rest();
  return role->leader() ? metrics : Metrics{};
}

namespace {

/// Ends all ranks alike where some rank trains with what its optimizer did not write.
void refuse_stale_weights(const RoleWorker& actor, Communicator& host) {
  Problems mine;
  if (actor.member()) {
    find_stale_weights(actor.trained(), actor.trainer->optimizer(), host.rank(), mine);
  }
  std::string text;
  for (const Problem& problem : mine) text += to_string(problem) + "\n";
  std::string all;
  for (const std::string& each : share_texts(host, text)) all += each;
  if (all.empty()) return;
  all.pop_back();
  throw Error(ExitCode::check_failed, all);
}

void throw_differences(const WeightCertificate& certificate, const CertificateReport& report) {
  if (report.differing > 0) throw Error(ExitCode::check_failed, problems_of(certificate, report));
}

}  // namespace

CertificateReport verify_weights(Worker& worker, std::optional<DType> wire) {
  const RoleWorker &actor = *worker.find(Role::actor), &rollout = *worker.find(Role::rollout);
  const torch::Device device = worker.context.device;
  if (device.is_cuda() && worker.memory_ops == nullptr) {
    worker.memory_ops = make_torch_memory_ops(device.index());
  }
  HeldWeights training, generating;
  if (actor.member()) {
    actor.trainer->wake();
    const auto& shared = worker.memory.shared;
    training = {
        .places = shared ? &shared->training : worker.reshard->source(),
        .memory = shared ? worker.memory.actor->data() : actor.weights->storage.const_data_ptr()};
  }
  if (rollout.member() && worker.vllm == nullptr) {
    generating = {.places = &rollout.weights->arena,
                  .memory = rollout.weights->storage.const_data_ptr()};
  }
  refuse_stale_weights(actor, *worker.context.host);
  MemoryOps& ops = worker.memory_ops != nullptr ? *worker.memory_ops : host_memory_ops();
  CertificateReport report = worker.vllm != nullptr
                                 ? worker.vllm->certify(training, ops)
                                 : check_weights(*worker.certificate, training, generating, wire,
                                                 ops, *worker.context.host);
  std::optional<CertificateReport> of_adapters;
  if (worker.adapter_reshard != nullptr) {
    of_adapters = worker.adapter_reshard->check(actor.adapters.get(), rollout.adapters.get(), ops,
                                                *worker.context.host);
  }
  if (actor.member()) actor.trainer->rest();
  const WeightCertificate& certificate =
      worker.vllm != nullptr ? worker.vllm->certificate() : *worker.certificate;
  throw_differences(certificate, report);
  if (!of_adapters) return report;
  throw_differences(worker.adapter_reshard->certificate(), *of_adapters);
  report.compared += of_adapters->compared;
  report.shared += of_adapters->shared;
  report.seconds += of_adapters->seconds;
  return report;
}

Metrics metrics_of(const ReshardReport& report) {
  const bool reads = report.transport == ReshardTransport::copy_engine ||
                     report.transport == ReshardTransport::host;
  return {{"reshard/bytes", static_cast<double>(report.busiest)},
          {"reshard/lower_bound_bytes", static_cast<double>(report.lower_bound)},
          {"reshard/seconds", report.seconds},
          {"reshard/exposed_s", report.exposed_s},
          {"reshard/by_reading_peers", reads},
          {"reshard/spared_bytes", static_cast<double>(report.planned - report.busiest)},
          {"reshard/cast_error", report.cast_error},
          {"reshard/verified", report.verified}};
}

}  // namespace tessera
