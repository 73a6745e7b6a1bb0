// Valid plans that verl can express, any number of them, for exports and round trips.
#pragma once

#include <numeric>
#include <random>

#include "cost_models/documents/problem.h"
#include "planner/plan/plan.h"
#include "planner/pricing/iteration.h"

namespace tessera {

class RandomPlans {
 public:
  /// `engine`: "verl", "verl-megatron", "verl-veomni" or "verl-torchtitan".
  RandomPlans(std::string engine, unsigned seed) : engine_(std::move(engine)), random_(seed) {}

  Plan next() {
    Plan plan;
    Problems problems;
    // torchtitan has models by their sizes, Qwen2.5's not among them.
    model_name_ = titan() ? pick<std::string>({"qwen3-8b", "llama3.1-8b"})
                          : pick<std::string>({"qwen3-8b", "qwen2.5-7b", "llama3.1-8b"});
    const auto spec = read_model_spec(
        std::string(TESSERA_SOURCE_DIR) + "/configs/models/" + model_name_, problems);
    plan.models["actor"] = {*spec, model_name_, ""};
    plan.engine = engine_;
    plan.cluster = {.name = "random",
                    .device = {"H200-SXM-141GB", from_gib(131), tflop_per_s(989), gb_per_s(4800)},
                    .gpus_per_node = 8,
                    .nodes = 4,
                    .intra_link = "NVLink",
                    .intra_per_gpu = gb_per_s(450),
                    .inter_fabric = "IB",
                    .nics_per_node = 8,
                    .nic = gb_per_s(50)};
    world_ = pick<int>({1, 2, 4, 8, 16, 32});
    Workload& work = plan.workload;
    work.algorithm = titan() ? "grpo" : pick<std::string>({"ppo", "grpo"});  // it has no critic
    work.prompts_per_step = pick<int>({64, 128, 1024});
    work.samples_per_prompt = work.algorithm == "ppo" ? pick<int>({1, 4}) : pick<int>({4, 5, 16});
    work.prompt_tokens = pick<int>({256, 1000});
    work.response_tokens.max = pick<int>({1024, 7000});
    work.response_tokens.mean = static_cast<double>(work.response_tokens.max);
    work.mini_batches = pick<int>({1, 2});
    work.epochs = pick<int>({1, 2});
    work.kl = pick<KlPlace>({KlPlace::none, KlPlace::loss, KlPlace::reward});
    const bool reward = pick<int>({0, 0, 1}) == 1;
    if (reward) {
      const std::string name = titan() ? "qwen3-0.6b" : "qwen2.5-0.5b";
      work.reward_model = name;
      plan.models["reward"] = {
          *read_model_spec(std::string(TESSERA_SOURCE_DIR) + "/configs/models/" + name, problems),
          name, ""};
    }
    work.dataflow = preset_dataflow(work.algorithm, work.kl, reward);
    plan.schedule = default_schedule(work);
    for (const Role role : kEveryRole) {
      const bool present =
          role == Role::rollout ||
          std::any_of(work.dataflow.begin(), work.dataflow.end(), [&](const Call& call) {
            return call.role == role && call.kind != CallKind::compute;
          });
      if (present) plan.roles.push_back(make(role, plan));
    }
    // Without a further draw: the rollout keeps weights and cache, logits are never whole.
    plan.reshard.push_back({.mode = ReshardMode::full, .keep = work.mini_batches == 2});
    for (RolePlan& role : plan.roles) {
      role.host_optimizer = engine_ == "verl-megatron" && role.role == Role::actor &&
                            role.offload.optimizer && work.epochs == 2;
      const bool wrapped = role.role != Role::rollout && role.role != Role::reward;
      if (engine_ == "verl" && wrapped && work.samples_per_prompt == 4) role.fsdp = Fsdp::fsdp1;
      role.fused_loss =
          work.epochs == 2 && (role.role == Role::actor || role.role == Role::reference);
    }
    return plan;
  }

 private:
  bool titan() const { return engine_ == "verl-torchtitan"; }
  bool megatron() const { return engine_ == "verl-megatron"; }

  template <class T>
  T pick(std::initializer_list<T> all) {
    return *(all.begin() + static_cast<long>(random_() % all.size()));
  }

  RolePlan make(Role role, const Plan& plan) {
    RolePlan made;
    made.role = role;
    made.model = role == Role::reward ? "reward" : "actor";
    made.ranks.resize(static_cast<std::size_t>(world_));
    std::iota(made.ranks.begin(), made.ranks.end(), 0);
    const ModelSpec& model = plan.models.at(made.model).spec;
    ParallelLayout& layout = made.layout;
    if (role == Role::rollout || role == Role::reward) {
      layout.tp = std::gcd(world_, role == Role::reward ? pick<int>({1, 2}) : pick<int>({1, 2, 4}));
      layout.dp = world_ / layout.tp;
    } else if (titan()) {
      mesh(layout);
    } else if (!megatron()) {
      fsdp(layout);
    } else {
      megatron(layout, role == Role::reference);
      if (role != Role::actor) take_groups(plan.roles[0].layout, layout);
    }
    if (layout.stages.empty()) layout.stages = even_stages(model.layers, layout.pp, layout.vpp);
    const bool trained = role == Role::actor || role == Role::critic;
    made.no_sync = engine_ == "verl" && trained && plan.workload.mini_batches == 2;
    if (layout.pp > 1 && layout.vpp == 1 && pick<int>({0, 1}) == 1 && trained) {
      shift_stages(layout);
    }
    if (engine_ == "verl-megatron" && role == Role::reference) {
      const ParallelLayout& actor = plan.roles[0].layout;
      if (actor.stages != even_stages(model.layers, actor.pp, actor.vpp)) {
        layout = actor;  // verl's reference inherits uneven stages
        layout.zero = 0;
      }
    }
    if (engine_ == "verl-megatron" && role != Role::rollout && role != Role::reward) {
      made.rank_order = RankOrder::megatron;
    }
    fill_batching(made, plan.workload);
    return made;
  }

  /// Token limits of the role's calls, what is offloaded between them and what is recomputed.
  void fill_batching(RolePlan& made, const Workload& work) {
    const Role role = made.role;
    const std::int64_t longest = work.prompt_tokens + work.response_tokens.max;
    const auto tokens = [&] {
      return longest * (titan() ? made.layout.tp : made.layout.cp) * pick<int>({1, 2, 7});
    };
    Batching& batching = made.batching;
    if (role == Role::actor || role == Role::critic) {
      batching.mini_batch = work.sequences() / work.mini_batches;
      batching.update_tokens = tokens();
      made.offload.parameters = made.offload.gradients = pick<int>({0, 1}) == 1;
      made.offload.optimizer = pick<int>({0, 1}) == 1;
      made.recompute =
          engine_ == "verl" || engine_ == "verl-veomni"
              ? pick<Recompute>({Recompute::none, Recompute::full})
              : pick<Recompute>({Recompute::none, Recompute::selective, Recompute::full});
    }
    if (role == Role::actor) batching.log_prob_tokens = tokens();
    if (role == Role::critic) batching.values_tokens = batching.update_tokens;
    if (role == Role::reference) {
      batching.log_prob_tokens = tokens();
      made.offload.parameters = engine_ == "verl" || titan() || pick<int>({0, 1}) == 1;
    }
    if (role == Role::reward) {
      batching.reward_tokens = tokens();
      made.offload.parameters = pick<int>({0, 1}) == 1;  // it sleeps between its calls
    }
    if (role == Role::rollout) {
      batching.max_sequences = pick<int>({16, 64, 256});
      batching.prefill_tokens = batching.max_sequences * pick<int>({64, 256});
      made.memory[Phase::gen] = {.weights = Bytes{20LL << 30}, .kv_cache = Bytes{30LL << 30}};
    }
  }

  // verl has one set of Megatron's process groups in a process.
  static void take_groups(const ParallelLayout& actor, ParallelLayout& layout) {
    const int zero = layout.zero;
    layout = actor;
    layout.zero = zero;
    layout.stages.clear();
  }

  void fsdp(ParallelLayout& layout) {
    layout.cp = std::gcd(world_, pick<int>({1, 1, 2, 4}));
    layout.ulysses = layout.cp > 1;
    const int dp = world_ / layout.cp;
    layout.zero = pick<int>({0, 2, 3});
    if (world_ == 1) layout.zero = 0;
    layout.dp = dp;
    // VeOmni's shards lie over Ulysses' ranks, too.
    if (engine_ == "verl-veomni" && layout.cp > 1 && layout.zero == 0) layout.zero = 3;
    if (layout.zero == 3) {
      const int replicas = dp >= 4 ? pick<int>({1, 2}) : 1;
      layout.dp_shard = dp / replicas;
    }
  }

  // torchtitan's: shards and replicas of tensor-parallel ranks.
  void mesh(ParallelLayout& layout) {
    layout.tp = std::gcd(world_, pick<int>({1, 2, 4}));
    layout.sequence_parallel = layout.tp > 1;
    layout.dp = world_ / layout.tp;
    layout.zero = layout.dp == 1 ? 0 : pick<int>({0, 2, 3});
    if (layout.zero == 3) layout.dp_shard = layout.dp / (layout.dp >= 4 ? pick<int>({1, 2}) : 1);
  }

  void megatron(ParallelLayout& layout, bool reference) {
    layout.tp = std::gcd(world_, pick<int>({1, 2, 4}));
    layout.pp = std::gcd(world_ / layout.tp, pick<int>({1, 2, 4}));
    layout.cp = std::gcd(world_ / layout.tp / layout.pp, pick<int>({1, 2}));
    layout.dp = world_ / layout.tp / layout.pp / layout.cp;
    layout.sequence_parallel = layout.tp > 1 && pick<int>({0, 1}) == 1;
    if (!reference) layout.zero = pick<int>({0, 1});
    // 28 and 32 layers: two chunks per stage divide both on two stages.
    if (layout.pp == 2 && model_name_ != "qwen3-8b" && pick<int>({0, 1}) == 1) layout.vpp = 2;
  }

  // The first stage gives a layer to the last.
  static void shift_stages(ParallelLayout& layout) {
    for (std::size_t i = 0; i + 1 < layout.stages.size(); ++i) {
      layout.stages[i].last -= 1;
      layout.stages[i + 1].first -= 1;
    }
  }

  std::string engine_, model_name_;
  int world_ = 1;
  std::mt19937 random_;
};

/// The plan with its rollout on as many GPUs of its own, one step off; the reward model, too, has
/// its own.
inline Plan with_rollout_apart(Plan plan) {
  const auto world = static_cast<int>(plan.find(Role::actor)->ranks.size());
  for (RolePlan& role : plan.roles) {
    const int shift = role.role == Role::rollout  ? world
                      : role.role == Role::reward ? 2 * world
                                                  : 0;
    for (int& rank : role.ranks) rank += shift;
    if (role.role == Role::reward) role.offload = {};
  }
  plan.cluster.nodes = 12;
  plan.schedule = schedule_of(default_schedule(plan.workload), placement_of(plan), 1);
  plan.reshard[0].keep = true;
  return plan;
}

}  // namespace tessera
