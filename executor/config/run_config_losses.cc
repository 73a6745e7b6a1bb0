#include <algorithm>
#include <string>

#include "executor/config/run_config_algorithm.h"
#include "executor/config/run_config_readers.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

void read_clip_ratios(ObjectReader& reader, PolicyLossOptions& policy) {
  reader.optional("clip_ratio", policy.clip_ratio, kFromZero);
  read_clip(reader, "clip_ratio_low", policy.clip_ratio_low);
  read_clip(reader, "clip_ratio_high", policy.clip_ratio_high);
}

void read_teacher(ObjectReader& parent, ActorConfig& actor) {
  auto models = parent.object("teacher_models", false);
  if (!models) return;
  if (auto model = models->object("teacher_model", false)) {
    std::string path;
    model->optional("model_path", path);
    actor.teacher = path;
    refuse_unsupported(*model, {{"inference", "the plan's role reference computes its log-probs"},
                                {"num_replicas", "the plan's role reference says it"},
                                {"key", "there is one teacher"}});
    model->refuse_unknown_keys();
  }
  models->refuse_unknown_keys();
}

void read_distillation_loss(ObjectReader& parent, DistillationOptions& distillation) {
  auto reader = parent.object("distillation_loss", false);
  if (!reader) return;
  const Node* const mode = reader->find("loss_mode");
  if (mode != nullptr && mode->is(Node::Kind::string) && mode->text == "forward_kl_topk") {
    reader->refuse("loss_mode",
                   "an estimator such as k3: the teacher's most likely tokens do not "
                   "travel in a run");
  } else {
    read_kl_type(*reader, "loss_mode", distillation.loss_mode);
  }
  reader->optional("use_task_rewards", distillation.use_task_rewards);
  reader->optional("distillation_loss_coef", distillation.distillation_loss_coef);
  reader->optional("loss_max_clamp", distillation.loss_max_clamp, kAboveZero);
  reader->optional("use_policy_gradient", distillation.use_policy_gradient);
  read_clip_ratios(*reader, distillation.policy);
  const bool plain_k1 = distillation.loss_mode.estimator == KlEstimator::k1 &&
                        !distillation.loss_mode.straight_through;
  if (plain_k1 && !distillation.use_policy_gradient) {
    reader->refuse("loss_mode",
                   "another one, or use_policy_gradient: the gradient of k1 does not "
                   "depend on the teacher");
  }
  refuse_unsupported(*reader, {{"topk", "forward_kl_topk does not run"},
                               {"log_prob_min_clamp", "forward_kl_topk does not run"},
                               {"policy_loss_mode", "it is vanilla"}});
  reader->refuse_unknown_keys();
}

}  // namespace

void read_policy_loss(ObjectReader& actor, PolicyLossOptions& policy) {
  read_clip_ratios(actor, policy);
  actor.optional("clip_ratio_c", policy.clip_ratio_c, Real{.least = 1, .above = true});
  actor.optional("tau_pos", policy.tau_pos, kAboveZero);
  actor.optional("tau_neg", policy.tau_neg, kAboveZero);
  auto loss = actor.object("policy_loss", false);
  if (!loss) return;
  loss->optional("loss_mode", policy.loss, kPolicyLosses);
  for (const PolicyLoss* each : kPolicyLosses) {
    for (const PolicyLossOption& option : each->options) {
      if (option.above_zero) loss->optional(option.key, policy.*option.above_zero, kAboveZero);
      if (option.number) loss->optional(option.key, policy.*option.number);
    }
  }
  for (const PolicyLossOption& option : policy.loss->options) {
    if (!option.above_zero || policy.*option.above_zero > 0) continue;
    loss->refuse(option.key, "a number above 0 with loss_mode " + std::string(policy.loss->name));
  }
  loss->refuse_unknown_keys();
}

void apply_bypass_mode(ObjectReader& root, const AlgorithmConfig& algorithm,
                       PolicyLossOptions& policy) {
  if (!algorithm.bypass_mode) {
    if (policy.loss != &kBypass) return;
    return root.refuse("actor_rollout_ref",
                       "algorithm.rollout_correction.bypass_mode true with loss_mode bypass_mode");
  }
  policy.loss = &kBypass;
  policy.correction = *algorithm.rollout_correction;
  policy.bypass = algorithm.bypass_loss;
}

void read_distillation(ObjectReader& root, const Plan& plan, ActorConfig& actor) {
  auto reader = root.object("distillation", false);
  if (!reader) return;
  DistillationOptions& distillation = actor.objective.distillation;
  reader->optional("enabled", distillation.enabled);
  read_distillation_loss(*reader, distillation);
  read_teacher(*reader, actor);
  if (distillation.enabled && plan.find(Role::reference) == nullptr) {
    reader->refuse("enabled", "false: the plan has no role reference, which holds the teacher");
  }
  if (!distillation.enabled && !actor.teacher.empty()) {
    reader->refuse("teacher_models", "enabled true with a teacher");
  }
  refuse_unsupported(*reader, {{"nnodes", "the plan's role reference says it"},
                               {"n_gpus_per_node", "the plan's role reference says it"},
                               {"teacher_key", "there is one teacher"}});
  reader->refuse_unknown_keys();
}

namespace {}  // namespace

}  // namespace tessera
