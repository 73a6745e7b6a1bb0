#include "executor/config/run_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/documents/strict_yaml.h"
#include "executor/config/run_config_algorithm.h"
#include "executor/config/run_config_checkpoint.h"
#include "executor/config/run_config_invariant.h"
#include "executor/config/run_config_lora.h"
#include "executor/config/run_config_readers.h"
#include "executor/config/run_config_reshard.h"
#include "executor/config/run_config_reward.h"
#include "executor/config/run_config_routers.h"
#include "executor/config/run_config_validation.h"
#include "executor/config/run_config_vllm.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

class RunReader {
 public:
  RunReader(ObjectReader& root, const Plan& plan, const DefaultSeeds& seeds)
      : root_(root), plan_(plan), seeds_(seeds) {}

  RunConfig read() {
    std::int64_t version = 1;
    root_.optional("version", version);
    if (version != 1) root_.refuse("version", "version 1");
    trainer();  // first: its seed is the default of the others
    data();
    config_.algorithm = read_algorithm(root_, plan_);
    if (config_.algorithm.filter_groups.enable && !config_.trainer.rollout_replay.empty()) {
      root_.refuse("algorithm",
                   "no filter_groups with trainer.rollout_replay: a record holds the "
                   "groups that were kept");
    }
    if (const RolePlan* actor = role(Role::actor)) config_.actor.lora = actor->lora;
    actor_rollout_ref();
    apply_bypass_mode(root_, config_.algorithm, config_.actor.objective.policy);
    read_distillation(root_, plan_, config_.actor);
    critic();
    config_.reshard = read_reshard(root_, plan_);
    if (config_.rollout.engine == GenerationEngine::vllm) generated_by_vllm();
    check_router_replay(root_, config_);
    check_batch_invariance(root_, plan_, config_);
    check_lora(root_, plan_, config_);
    config_.reward = read_reward(root_, plan_);
    check_validation(root_, config_);
    refuse_unsupported(root_, Section::root);
    root_.refuse_unknown_keys();
    return std::move(config_);
  }

 private:
  const RolePlan* role(Role which) const { return plan_.find(which); }

  void trainer() {
    auto reader = root_.object("trainer");
    if (!reader) return;
    TrainerConfig& trainer = config_.trainer;
    constexpr Whole kSteps{.least = 1, .most = 1'000'000'000};
    reader->required("total_training_steps", trainer.total_training_steps, kSteps);
    trainer.seed = seeds_.run;
    trainer.seed_stated = reader->find("seed") != nullptr;
    read_seed(*reader, "seed", trainer.seed);
    reader->optional("deterministic", trainer.deterministic);
    reader->optional("memory_limit_gib", trainer.memory_limit_gib, kAboveZero);
    constexpr Whole kPort{.least = 1, .most = 65535};
    std::int64_t port = 0;
    reader->optional("prometheus_port", port, kPort);
    trainer.prometheus_port = static_cast<std::uint16_t>(port);
    reader->optional("allocator", trainer.allocator);
    reader->optional("random_weights", trainer.random_weights);
    reader->optional("rules", trainer.rules);
    trainer.rule_actions = read_rule_actions(*reader);
    std::string replay;
    reader->optional("rollout_replay", replay);
    trainer.rollout_replay = replay;
    trainer.checkpoint = read_checkpoint(*reader);
    read_validation_times(*reader, config_.validation);
    fixed(*reader, "nnodes", plan_.cluster.nodes, "cluster.nodes");
    fixed(*reader, "n_gpus_per_node", plan_.cluster.gpus_per_node, "cluster.gpus_per_node");
    refuse_unsupported(*reader, Section::trainer);
    reader->refuse_unknown_keys();
  }

  void data() {
    DataConfig& data = config_.data;
    data.max_prompt_length = plan_.workload.longest_prompt();
    data.seed = config_.rollout.seed = config_.trainer.seed;
    if (!config_.trainer.seed_stated) data.seed = seeds_.order;
    auto reader = root_.object("data");
    if (!reader) return;
    std::vector<std::string> files;
    const Node* const given = reader->find("train_files");
    if (given != nullptr && given->is(Node::Kind::string) && !given->text.empty()) {
      files.push_back(given->text);
    } else {
      reader->list("train_files", files);
      if (given != nullptr && given->is(Node::Kind::list) && files.empty()) {
        reader->refuse("train_files", "at least one file");
      }
    }
    data.train_files.assign(files.begin(), files.end());
    reader->list("train_weights", data.train_weights, kAboveZero, false);
    if (!data.train_weights.empty() && data.train_weights.size() != data.train_files.size()) {
      reader->refuse("train_weights", "one number for each of train_files");
    }
    // Longer ones are neither planned for nor within what memory holds.
    const std::int64_t longest = plan_.workload.longest_prompt();
    reader->optional("max_prompt_length", data.max_prompt_length, {.least = 1});
    if (data.max_prompt_length > longest) {
      reader->refuse("max_prompt_length",
                     "at most " + std::to_string(longest) +
                         ", the plan's workload.prompt_tokens (plan again for longer ones)");
    }
    reader->optional("filter_overlong_prompts", data.filter_overlong_prompts);
    reader->optional(
        "truncation", data.truncation,
        std::array{Truncation::error, Truncation::left, Truncation::right, Truncation::middle});
    if (const Node* options = reader->find("apply_chat_template_kwargs")) {
      options->is(Node::Kind::map) ? void(data.chat_template_options = json_line(*options))
                                   : reader->refuse("apply_chat_template_kwargs", "a map");
    }
    reader->optional("shuffle", data.shuffle);
    read_validation_files(*reader, config_.validation);
    read_seed(*reader, "seed", data.seed);
    fixed(*reader, "train_batch_size", plan_.workload.prompts_per_step,
          "workload.prompts_per_step");
    fixed(*reader, "max_response_length", plan_.workload.response_tokens.max,
          "workload.response_tokens.max");
    refuse_unsupported(*reader, Section::data);
    reader->refuse_unknown_keys();
  }

  void actor_rollout_ref() {
    config_.actor.objective.use_kl_loss = plan_.workload.kl == KlPlace::loss;
    set_planned_generation(plan_, config_.rollout);
    auto reader = root_.object("actor_rollout_ref", false);
    if (!reader) return;
    model(*reader, Role::actor);
    if (auto actor = reader->object("actor", false)) this->actor(*actor);
    if (auto rollout = reader->object("rollout", false)) this->rollout(*rollout);
    if (auto ref = reader->object("ref", false)) {
      log_prob_limit(*ref, Role::reference);
      refuse_unsupported(*ref, Section::engine);
      ref->refuse_unknown_keys();
    }
    reader->optional("nccl_timeout", config_.trainer.timeout_s, kAboveZero);
    refuse_unsupported(*reader, Section::roles);
    reader->refuse_unknown_keys();
  }

  void model(ObjectReader& parent, Role which) {
    auto reader = parent.object("model", false);
    if (!reader) return;
    if (const RolePlan* planned = role(which)) {
      const auto source = plan_.models.find(planned->model);
      if (source != plan_.models.end()) {
        fixed(*reader, "path", source->second.path, "models." + planned->model + ".path");
      }
      fixed_flag(*reader, "enable_gradient_checkpointing", planned->recompute == Recompute::full,
                 "recompute");
    }
    fixed_flag(*reader, "use_remove_padding", true, "packed batches");
    which == Role::actor ? read_lora(*reader, plan_, config_.actor) : refuse_lora(*reader);
    refuse_unsupported(*reader, Section::model);
    reader->refuse_unknown_keys();
  }

  /// FSDP keeps each layer's weights after its forward pass where memory allows it.
  void fsdp_config(ObjectReader& parent, Role which, bool& reshard_after_forward) {
    auto reader = parent.object("fsdp_config", false);
    if (!reader) return;
    reader->optional("reshard_after_forward", reshard_after_forward);
    const RolePlan* planned = role(which);
    if (!reshard_after_forward && planned != nullptr && planned->layout.dp_shard == 1) {
      reader->refuse("reshard_after_forward", "true: the plan's layout has no FSDP");
    }
    if (planned != nullptr) {
      fixed_flag(*reader, "param_offload", planned->offload.parameters, "offload.parameters");
      fixed_flag(*reader, "optimizer_offload", planned->offload.optimizer, "offload.optimizer");
    }
    constexpr std::array<std::string_view, 3> kRead{"reshard_after_forward", "param_offload",
                                                    "optimizer_offload"};
    for (const std::string& key : reader->keys()) {
      if (std::ranges::find(kRead, key) == kRead.end()) {
        reader->refuse(key, "only reshard_after_forward here",
                       "the plan's layout, offload and dtypes say the rest");
      }
    }
  }

  void log_prob_limit(ObjectReader& reader, Role which) {
    fixed_flag(reader, "log_prob_use_dynamic_bsz", true, "token limits");
    if (const RolePlan* planned = role(which)) {
      fixed(reader, "log_prob_max_token_len_per_gpu", planned->batching.log_prob_tokens,
            std::string(name_of(which)) + " batching.tokens_per_call.log_prob");
    }
  }

  /// Reads the keys that actor and critic have in common in the plan.
  void update_keys(ObjectReader& reader, Role which) {
    const Workload& work = plan_.workload;
    fixed(reader, "ppo_mini_batch_size", work.prompts_per_step / work.mini_batches,
          "prompts_per_step / mini_batches");
    fixed(reader, "ppo_epochs", work.epochs, "workload.epochs");
    fixed_flag(reader, "use_dynamic_bsz", true, "token limits");
    if (const RolePlan* planned = role(which)) {
      fixed(reader, "ppo_max_token_len_per_gpu", planned->batching.update_tokens,
            std::string(name_of(which)) + " batching.tokens_per_call.update");
    }
    refuse_unsupported(reader, Section::engine);
    refuse_unsupported(reader, Section::update);
  }

  void actor(ObjectReader& reader) {
    ActorConfig& actor = config_.actor;
    read_optim(reader, actor.optim);
    read_policy_loss(reader, actor.objective.policy);
    reader.optional("entropy_coeff", actor.objective.entropy_coeff);
    fixed_flag(reader, "use_kl_loss", actor.objective.use_kl_loss, "workload.kl");
    reader.optional("kl_loss_coef", actor.objective.kl_loss_coef, kFromZero);
    read_kl_type(reader, "kl_loss_type", actor.objective.kl_loss_type);
    read_aggregation(reader, plan_.workload.response_tokens.max, actor.aggregation);
    reader.optional("grad_clip", actor.grad_clip, kAboveZero);
    read_routers(reader, plan_, actor);
    fsdp_config(reader, Role::actor, actor.reshard_after_forward);
    update_keys(reader, Role::actor);
    reader.refuse_unknown_keys();
  }

  void rollout(ObjectReader& reader) {
    RolloutConfig& rollout = config_.rollout;
    reader.optional("temperature", rollout.sampling.temperature, kAboveZero);
    reader.optional("top_p", rollout.sampling.top_p, Real{.least = 0, .most = 1, .above = true});
    reader.optional("top_k", rollout.sampling.top_k, Whole{.least = -1});
    reader.optional("min_p", rollout.sampling.min_p, Real{.least = 0, .most = 1});
    read_seed(reader, "seed", rollout.seed);
    reader.optional("verify_weights", rollout.verify_weights, kNotNegative);
    reader.optional("batch_invariant", rollout.batch_invariant);
    fixed(reader, "n", plan_.workload.samples_per_prompt, "workload.samples_per_prompt");
    fixed(reader, "prompt_length", plan_.workload.longest_prompt(), "workload.prompt_tokens");
    fixed(reader, "response_length", plan_.workload.response_tokens.max,
          "workload.response_tokens.max");
    if (const RolePlan* planned = role(Role::rollout)) {
      fixed(reader, "tensor_model_parallel_size", planned->layout.tp, "rollout layout.tp");
      fixed(reader, "pipeline_model_parallel_size", planned->layout.pp, "rollout layout.pp");
      fixed(reader, "data_parallel_size", planned->layout.dp, "rollout data parallelism");
      fixed(reader, "max_num_seqs", planned->batching.max_sequences,
            "rollout batching.max_sequences");
      fixed(reader, "max_num_batched_tokens", planned->batching.prefill_tokens,
            "rollout batching.tokens_per_call.prefill");
    }
    read_generation_engine(reader, plan_, rollout);
    read_validation_sampling(reader, config_.validation);
    log_prob_limit(reader, Role::actor);
    refuse_unsupported(reader, Section::engine);
    refuse_unsupported(reader, Section::rollout);
    reader.refuse_unknown_keys();
  }

  void generated_by_vllm() {
    refuse_reshard_options_of_vllm(root_);
    if (config_.trainer.rollout_replay.empty()) return;
    root_.refuse("trainer", "rollout_replay " + config_.trainer.rollout_replay.string(),
                 "engine tessera with rollout_replay: responses come from the record", {});
  }

  void critic() {
    CriticConfig& critic = config_.critic;
    critic.aggregation = config_.actor.aggregation;
    auto reader = root_.object("critic", false);
    if (!reader) return;
    fixed_flag(*reader, "enable", role(Role::critic) != nullptr, "roles");
    if (role(Role::critic) == nullptr) {
      const bool only_disabled = reader->keys() == std::vector<std::string>{"enable"};
      if (!only_disabled) root_.refuse("critic", "no 'critic'", "the plan has no critic");
      return;
    }
    model(*reader, Role::critic);
    read_optim(*reader, critic.optim);
    reader->optional("cliprange_value", critic.cliprange_value, kAboveZero);
    reader->optional("grad_clip", critic.grad_clip, kAboveZero);
    read_aggregation(*reader, plan_.workload.response_tokens.max, critic.aggregation);
    fsdp_config(*reader, Role::critic, critic.reshard_after_forward);
    update_keys(*reader, Role::critic);
    reader->refuse_unknown_keys();
  }

  ObjectReader& root_;
  const Plan& plan_;
  DefaultSeeds seeds_;
  RunConfig config_;
};

}  // namespace

std::optional<RunConfig> parse_run_config(std::string_view text, const std::string& file,
                                          const Plan& plan, Problems& problems,
                                          const DefaultSeeds& seeds) {
  const std::size_t before = problems.size();
  const auto document = parse_yaml_as_far(text, file, problems);
  if (!document) return std::nullopt;
  const std::size_t told = problems.size();  // of single values
  ObjectReader root(*document, problems);
  if (problems.size() != told) return std::nullopt;
  RunConfig config = RunReader(root, plan, seeds).read();
  if (problems.size() != before) return std::nullopt;
  return config;
}

std::optional<RunConfig> read_run_config(const std::filesystem::path& where, const Plan& plan,
                                         Problems& problems, const DefaultSeeds& seeds) {
  const auto file = find_config(where, "runs", ".yaml", problems);
  if (!file) return std::nullopt;
  const auto text = read_text_file(*file, kMostYaml, problems);
  return text ? parse_run_config(*text, file->string(), plan, problems, seeds) : std::nullopt;
}

}  // namespace tessera
