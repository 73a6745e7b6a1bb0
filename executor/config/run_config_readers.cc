#include "executor/config/run_config_readers.h"

#include <array>
#include <string>
#include <vector>

namespace tessera {
namespace {

constexpr std::array kDecays{LrDecay::constant, LrDecay::cosine};
constexpr std::array kAggregations{
    AggregationMode::token_mean, AggregationMode::token_sum, AggregationMode::seq_mean_token_sum,
    AggregationMode::seq_mean_token_mean, AggregationMode::seq_mean_token_sum_norm};

}  // namespace

void refuse_unsupported(ObjectReader& reader, std::initializer_list<Refusal> refusals) {
  for (const Refusal& refusal : refusals) {
    if (reader.find(refusal.key) == nullptr) continue;
    reader.refuse(refusal.key, "verl's key '" + std::string(refusal.key) + "'",
                  "keys that tessera supports", refusal.reason);
  }
}

void fixed(ObjectReader& reader, std::string_view key, std::int64_t planned,
           const std::string& where) {
  std::int64_t value = planned;
  reader.optional(key, value);
  if (value != planned) {
    reader.refuse(key, std::to_string(planned) + ", the plan's " + where,
                  "plan again, or leave the key out");
  }
}

void fixed_flag(ObjectReader& reader, std::string_view key, bool planned,
                const std::string& where) {
  bool value = planned;
  reader.optional(key, value);
  if (value != planned) {
    reader.refuse(key, std::string(planned ? "true" : "false") + ", as the plan's " + where,
                  "plan again, or leave the key out");
  }
}

void fixed(ObjectReader& reader, std::string_view key, const std::string& planned,
           const std::string& where) {
  std::string value = planned;
  reader.optional(key, value);
  if (value != planned) {
    reader.refuse(key, "\"" + planned + "\", the plan's " + where,
                  "plan again, or leave the key out");
  }
}

void read_seed(ObjectReader& reader, std::string_view key, std::uint64_t& seed) {
  auto value = static_cast<std::int64_t>(seed);
  reader.optional(key, value, kNotNegative);
  seed = static_cast<std::uint64_t>(value);
}

void read_clip(ObjectReader& reader, std::string_view key, std::optional<double>& bound) {
  const Node* const given = reader.find(key);
  if (given != nullptr && given->is(Node::Kind::null)) bound.reset();
  reader.optional(key, bound, kFromZero);
}

void read_kl_type(ObjectReader& reader, std::string_view key, KlPenalty& penalty) {
  std::string name;
  reader.optional(key, name);
  if (name.empty()) return;
  if (const auto known = kl_penalty_from(name)) {
    penalty = *known;
  } else {
    reader.refuse(key, "kl, k1, abs, mse, k2, low_var_kl or k3, each with an optional +",
                  name == "full" ? "verl documents it but does not implement it" : "");
  }
}

void read_aggregation(ObjectReader& reader, std::int64_t response_tokens,
                      Aggregation& aggregation) {
  reader.optional("loss_agg_mode", aggregation.mode, kAggregations);
  reader.optional("loss_scale_factor", aggregation.loss_scale_factor, kAboveZero);
  if (!aggregation.loss_scale_factor) {
    aggregation.loss_scale_factor = static_cast<double>(response_tokens);
  }
}

void read_optim(ObjectReader& parent, OptimConfig& optim) {
  auto reader = parent.object("optim", false);
  if (!reader) return;
  reader->optional("lr", optim.lr, kFromZero);
  reader->optional("lr_scheduler_type", optim.decay, kDecays);
  reader->optional("lr_warmup_steps", optim.lr_warmup_steps);
  reader->optional("lr_warmup_steps_ratio", optim.lr_warmup_steps_ratio, kFraction);
  reader->optional("min_lr_ratio", optim.min_lr_ratio, kFraction);
  reader->optional("weight_decay", optim.weight_decay, kFromZero);
  reader->optional("eps", optim.eps, kAboveZero);
  std::vector<double> betas{optim.beta1, optim.beta2};
  reader->list("betas", betas, Real{.least = 0, .most = 1}, false);
  if (betas.size() != 2 || betas[0] >= 1 || betas[1] >= 1) {
    reader->refuse("betas", "two numbers from 0 to below 1");
  } else {
    optim.beta1 = betas[0];
    optim.beta2 = betas[1];
  }
  refuse_unsupported(*reader, {{"optimizer", "the optimizer is AdamW"},
                               {"num_cycles", "cosine takes half a wave"},
                               {"override_optimizer_config", "the optimizer is AdamW"},
                               {"total_training_steps", "it follows from trainer and the plan"}});
  reader->refuse_unknown_keys();
}

}  // namespace tessera
