// verl's keys as a plan: the way back of verl_settings.cc, with verl's defaults where a file is
// silent.
#include <algorithm>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/spec_document.h"
#include "planner/engines/read_plan.h"
#include "planner/interop/verl/verl.h"
#include "planner/interop/verl/verl_engines.h"
#include "planner/interop/verl/verl_import.h"
#include "planner/interop/verl/verl_keys.h"
#include "planner/pricing/iteration.h"
#include "planner/space/place_pools.h"

namespace tessera {
namespace {

constexpr Whole kLength{.least = 1, .most = 1 << 30};  // tokens
constexpr Whole kPrompts{.least = 1, .most = 1 << 30};
constexpr Whole kUpdates{.least = 1, .most = 1 << 14};

std::string most_gpus() {
  return "at most " + std::to_string(kMostClusterGpus) + " GPUs altogether";
}

void check_keys(VerlImport& in) {
  if (const std::string& engine = in.config.other_engine; !engine.empty()) {
    in.problems.push_back({in.config.file, in.config.engine_place,
                           "the training engine '" + engine.substr(0, 80) + "'",
                           std::string(kVerlEnginesInWords),
                           "verl's other engines are not planned"});
    return;  // whose keys are not known
  }
  for (IgnoredKey& one : ignored_keys(in.config)) in.out.ignored.push_back(std::move(one));
  for (Problem& problem : unknown_keys(in.config)) {
    if (!in.options.allow_unknown) {
      in.problems.push_back(std::move(problem));
    } else {
      in.note("unknown key " + problem.found + " at " + problem.place +
              (problem.hint.empty() ? "" : " (" + problem.hint + ")"));
    }
  }
}

void read_cluster(VerlImport& in) {
  const std::int64_t nodes =
      in.integer("trainer.nnodes", 1, {.least = 1, .most = kMostClusterGpus});
  const std::int64_t per_node =
      in.integer("trainer.n_gpus_per_node", 8, {.least = 1, .most = 1 << 10});
  in.world = nodes * per_node;
  if (in.world > kMostClusterGpus) {
    return in.refuse("trainer.nnodes", std::to_string(nodes), most_gpus());
  }
  ClusterSpec& cluster = in.plan().cluster;
  cluster = in.options.cluster;
  if (nodes == 1 && per_node <= cluster.gpus_per_node) return;  // a part of a node
  if (cluster.gpus_per_node != per_node) {
    in.note("the cluster's nodes have " + std::to_string(cluster.gpus_per_node) +
            " GPUs, the file's " + std::to_string(per_node) + ": the file's count.");
    cluster.gpus_per_node = per_node;
  }
  cluster.nodes = std::max(cluster.nodes, nodes);
}

void read_lengths(VerlImport& in) {
  Workload& work = in.work();
  const std::int64_t longest = in.integer("data.max_prompt_length", 512, kLength);
  set_prompts(work, mean_prompt(in.options, longest, in.problems), longest);
  work.response_tokens = response_lengths(
      in.options, in.integer("data.max_response_length", 512, kLength), in.out.notes, in.problems);
}

// Prompts of a step and its mini-batches. The fully asynchronous trainer knows no step: there it is
// the work between two weight updates.
void read_batches(VerlImport& in, std::int64_t mini) {
  Workload& work = in.work();
  work.samples_per_prompt = in.integer("actor_rollout_ref.rollout.n", 1, kPrompts);
  if (in.config.trainer == VerlTrainer::fully_async) {
    const std::int64_t updates =
        in.integer("async_training.require_batches", 1, kUpdates) *
        in.integer("async_training.trigger_parameter_sync_step", 4, kUpdates);
    work.mini_batches = updates;
    work.prompts_per_step = mini * updates;
    return in.note("a step of the plan is what is trained between two weight updates, " +
                   std::to_string(work.prompts_per_step) + " prompts.");
  }
  work.prompts_per_step = in.integer("data.train_batch_size", 1024, kPrompts);
  if (work.prompts_per_step % mini != 0) {
    in.refuse("actor_rollout_ref.actor.ppo_mini_batch_size", std::to_string(mini),
              "a divisor of data.train_batch_size = " + std::to_string(work.prompts_per_step),
              "both count prompts");
  }
  work.mini_batches = std::max<std::int64_t>(1, work.prompts_per_step / mini);
}

void check_critic(const VerlImport& in, const Workload& work, std::int64_t mini) {
  const std::int64_t critic_mini = in.integer("critic.ppo_mini_batch_size", mini);
  const std::int64_t critic_epochs = in.integer("critic.ppo_epochs", work.epochs);
  if (critic_mini != mini) {
    in.refuse("critic.ppo_mini_batch_size", std::to_string(critic_mini),
              std::to_string(mini) + ", the actor's", "a plan has one size of mini-batches");
  }
  if (critic_epochs != work.epochs) {
    in.refuse("critic.ppo_epochs", std::to_string(critic_epochs),
              std::to_string(work.epochs) + ", the actor's", "a plan has one number of epochs");
  }
}

void read_algorithm(VerlImport& in, std::int64_t mini) {
  Workload& work = in.work();
  const std::string estimator = in.text("algorithm.adv_estimator", "gae");
  work.algorithm = estimator == "gae" ? "ppo" : "grpo";
  if (estimator == "remax") {
    in.note(
        "ReMax generates a second, greedy response per prompt as its baseline, which the plan "
        "does not count.");
  } else if (estimator != "gae" && estimator != "grpo") {
    in.note("adv_estimator " + estimator + " is planned as grpo.");
  }
  work.epochs = in.integer("actor_rollout_ref.actor.ppo_epochs", 1);
  const bool loss = in.flag("actor_rollout_ref.actor.use_kl_loss", false);
  const bool reward = in.flag("algorithm.use_kl_in_reward", false);
  work.kl = loss ? KlPlace::loss : reward ? KlPlace::reward : KlPlace::none;
  if (loss && reward) in.note("KL is in the loss and in the reward; the plan keeps the loss.");
  // An entropy that only becomes a metric is kept beside the loss as one in it is.
  work.entropy = in.number("actor_rollout_ref.actor.entropy_coeff", 0) != 0 ||
                 in.flag("actor_rollout_ref.actor.calculate_entropy", false);
  if (!work.entropy && in.number("actor_rollout_ref.rollout.temperature", 1) != 1) {
    work.entropy = true;
    in.note(
        "a temperature other than 1 copies the logits; they are counted as with an entropy "
        "term.");
  }
  const bool critic = in.flag("critic.enable", estimator == "gae");
  if (critic != (work.algorithm == "ppo")) {
    in.refuse("critic.enable", critic ? "true" : "false",
              critic ? "false with adv_estimator " + estimator : "true with adv_estimator gae");
  }
  if (critic) check_critic(in, work, mini);
}

// GPUs of the rollout's own behind those that train, stated by `block`'s nnodes and
// n_gpus_per_node.
void add_rollout_pool(VerlImport& in, const std::string& block) {
  in.rollout_gpus = std::int64_t{in.degree(block + ".nnodes", 1)} *
                    std::int64_t{in.degree(block + ".n_gpus_per_node", 8)};
  if (in.rollout_gpus > kMostClusterGpus) {
    return in.refuse(block + ".nnodes", std::to_string(in.rollout_gpus) + " GPUs", most_gpus());
  }
  ClusterSpec& cluster = in.plan().cluster;
  const std::int64_t nodes =
      (in.world + in.rollout_gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  cluster.nodes = std::max(cluster.nodes, nodes);
}

void read_separate_async(VerlImport& in, std::int64_t mini) {
  const std::string block = "trainer.v1.separate_async";
  const std::int64_t sync = in.integer(block + ".parameter_sync_step", 4);
  if (in.work().prompts_per_step != sync * mini) {
    in.refuse(
        block + ".parameter_sync_step", std::to_string(sync),
        "data.train_batch_size / ppo_mini_batch_size = " + std::to_string(in.work().mini_batches),
        "verl asserts it");
  }
  if (in.flag(block + ".hybrid_rollout.enable_switch", false)) {
    in.refuse(block + ".hybrid_rollout.enable_switch", "true", "false",
              "a plan's GPUs do not change their role within a step");
  }
  if (in.flag("actor_rollout_ref.hybrid_engine", true)) {
    in.note(
        "actor_rollout_ref.hybrid_engine = true keeps rollout replicas on the trainer's GPUs, "
        "for validation; the plan does not have them.");
  }
  add_rollout_pool(in, "actor_rollout_ref.rollout");
}

/// The synchronous trainer, or those with GPUs of their own for the rollout.
void read_trainer(VerlImport& in, std::int64_t mini) {
  if (in.config.trainer != VerlTrainer::main_ppo) {
    const bool one = in.config.trainer == VerlTrainer::one_step_off;
    in.note(std::string(one ? "verl.experimental.one_step_off_policy"
                            : "verl.experimental.fully_async_policy") +
            ": planned as generation one step off on GPUs of its own; exported it is verl's "
            "trainer.v1.trainer_mode=separate_async.");
    return add_rollout_pool(in, "rollout");
  }
  const std::string key = "trainer.v1.trainer_mode", mode = in.text(key, "sync");
  if (mode == "separate_async") return read_separate_async(in, mini);
  if (mode == "sync") return;
  in.refuse(key, mode, "sync or separate_async",
            mode == "colocate_async"
                ? "a plan's calls on the same GPUs follow one another; this trainer generates "
                  "into a buffer between them"
                : "");
}

void read_workload(VerlImport& in) {
  const std::size_t before = in.problems.size();
  const std::int64_t mini =
      in.integer("actor_rollout_ref.actor.ppo_mini_batch_size", 256, kPrompts);
  read_lengths(in);
  read_batches(in, mini);
  read_algorithm(in, mini);
  if (in.problems.size() == before) read_trainer(in, mini);
}

// Of a path the last part tells the model, even where the folder is only known to a run.
std::string path_of(const VerlImport& in, const std::string& key) {
  const Node* const node = in.config.find(key);
  return node == nullptr || !node->is(Node::Kind::string) ? in.text(key, "") : node->text;
}

void read_models(VerlImport& in) {
  const auto add = [&](const char* role, const std::string& key, const std::string& name) {
    if (const auto model = find_model(name, in.config, key, in.out.notes, in.problems)) {
      in.plan().models.emplace(role, *model);
    }
  };
  const std::string actor_key = "actor_rollout_ref.model.path";
  const std::string actor = in.options.model.empty() ? path_of(in, actor_key) : in.options.model;
  if (actor.empty()) {
    in.refuse(actor_key, "nothing", "a model's folder", "or --model");
  } else {
    add("actor", actor_key, actor);
  }
  Workload& work = in.work();
  if (work.algorithm == "ppo") {
    const std::string key = "critic.model.path";
    const std::string critic = in.options.critic.empty() ? path_of(in, key) : in.options.critic;
    if (critic.empty()) {
      in.note("no critic.model.path: the critic is planned with the actor's architecture.");
    } else if (critic != actor) {
      add("critic", key, critic);
      work.critic_model = critic;
    }
  }
  if (!in.flag("reward.reward_model.enable", false)) return;
  const std::string key = "reward.reward_model.model_path";
  const std::string reward = in.options.reward.empty() ? path_of(in, key) : in.options.reward;
  if (reward.empty()) return in.refuse(key, "nothing", "a model's folder", "or --reward");
  add("reward", key, reward);
  work.reward_model = reward;
}

// What the data's images are is in no file of verl's.
void read_images(VerlImport& in) {
  const auto actor = in.plan().models.find("actor");
  if (actor == in.plan().models.end()) return;
  const bool sees = actor->second.spec.vision.has_value();
  Workload& work = in.work();
  if (!in.options.image_tokens) {
    if (sees) {
      in.note(
          "images of the prompts are not counted, as no key says how large they are; "
          "--image-tokens states the tokens of one in every prompt.");
    }
    return;
  }
  const std::int64_t tokens = *in.options.image_tokens;
  const auto refuse = [&](std::string expected) {
    in.problems.push_back({"--image-tokens", "", std::to_string(tokens), std::move(expected), ""});
  };
  if (!sees) return refuse("no images: the actor's model has no vision tower");
  if (tokens < 1 || tokens > work.prompt_tokens) {
    return refuse("1 to " + std::to_string(work.prompt_tokens) +
                  ", the tokens of a prompt, which hold its image's");
  }
  work.images = {.per_prompt = 1, .tokens = tokens};
}

PlannedReshard read_reshard(const VerlImport& in) {
  PlannedReshard pair;
  pair.mode = ReshardMode::full;  // verl gathers every tensor whole
  pair.keep = !in.flag("actor_rollout_ref.rollout.free_cache_engine", true);
  const std::int64_t mebibytes =
      in.integer("actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes",
                 2048, {.least = 1, .most = 1 << 20});
  pair.bucket_bytes = Bytes{mebibytes << 20};
  return pair;
}

}  // namespace

double VerlImport::number(const std::string& key, double otherwise) const {
  return config.number(key, otherwise, problems);
}

void VerlImport::refuse(const std::string& key, std::string found, std::string expected,
                        std::string hint) const {
  const auto value = config.values.find(key);
  problems.push_back({config.file, value == config.values.end() ? "" : value->second.place,
                      key + " = " + std::move(found), std::move(expected), std::move(hint)});
}

std::optional<Imported> import_verl(const ConfigValues& config, const ImportOptions& options,
                                    Problems& problems) {
  const std::size_t before = problems.size();
  std::vector<IgnoredKey> gone;
  std::vector<std::string> notes;
  const ConfigValues current = with_current_names(config, gone, notes);
  VerlImport in{.config = current, .options = options, .problems = problems, .out = {}};
  in.out.ignored = std::move(gone);
  in.out.notes = std::move(notes);
  Plan& plan = in.plan();
  plan.engine = keys_of(config.engine).plan_engine;
  check_keys(in);
  read_cluster(in);
  read_workload(in);
  read_models(in);
  read_images(in);
  if (problems.size() != before) return std::nullopt;
  read_verl_roles(in);
  if (problems.size() == before) place_pools(in);
  if (problems.size() == before) {
    note_stops(in);
    note_uncounted(in);
    note_padding(in);
  }
  if (problems.size() != before) return std::nullopt;
  plan.schedule =
      schedule_of(default_schedule(plan.workload), placement_of(plan), in.rollout_gpus > 0 ? 1 : 0);
  plan.reshard.push_back(read_reshard(in));
  in.out.memory_share = in.number("actor_rollout_ref.rollout.gpu_memory_utilization", 0.5);
  if (!(in.out.memory_share > 0 && in.out.memory_share <= 1)) {  // NaN compares false
    in.refuse("actor_rollout_ref.rollout.gpu_memory_utilization",
              describe(*config.find("actor_rollout_ref.rollout.gpu_memory_utilization")),
              "a share above 0, at most 1");
  }
  state_gpu_types(plan);
  validate(plan, config.file, problems);
  if (problems.size() != before) return std::nullopt;
  return std::move(in.out);
}

}  // namespace tessera
