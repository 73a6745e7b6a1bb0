// A ModelSpec as Megatron-LM's arguments.
#include <cmath>
#include <cstdio>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/spec/families.h"
#include "planner/interop/megatron/megatron_model.h"

namespace tessera {
namespace {

struct Scales {
  double mscale = 1, all_dim = 0;
};

// 0.1 m ln(s) + 1 of YaRN (_yarn_get_mscale).
double yarn_scale(double factor, double by) {
  return factor <= 1 ? 1.0 : 0.1 * by * std::log(factor) + 1.0;
}

// mscale and mscale_all_dim of the model's config.json.
std::optional<Scales> scales_in_file(const std::string& path) {
  Problems unread;
  auto where = find_config(path, "models", "", unread);
  if (!where) return std::nullopt;
  if (std::filesystem::is_directory(*where)) *where /= "config.json";
  const auto text = read_text_file(*where, std::size_t{1} << 24, unread);
  if (!text) return std::nullopt;
  const auto document = parse_json(*text, "config.json", unread);
  if (!document) return std::nullopt;
  for (const char* const key : {"rope_parameters", "rope_scaling"}) {
    const Node* const scaling = document->root.find(key);
    if (scaling == nullptr || !scaling->is(Node::Kind::map)) continue;
    const Node* const one = scaling->find("mscale");
    const Node* const all = scaling->find("mscale_all_dim");
    if (all == nullptr) return Scales{};
    return Scales{one == nullptr ? 1.0 : one->number, all->number};
  }
  return std::nullopt;
}

class Writer {
 public:
  Writer(const ModelSource& source, std::string place, std::vector<std::string>& notes,
         Problems& problems)
      : source_(source),
        model_(source.spec),
        place_(std::move(place)),
        notes_(notes),
        problems_(problems) {}

  std::vector<std::string> arguments() {
    sizes();
    if (model_.mla) latent();
    attention();
    mlp();
    positions();
    put("--normalization", model_.norm == NormKind::rms ? "RMSNorm" : "LayerNorm");
    if (model_.norm == NormKind::layer_norm_1p) flag("--apply-layernorm-1p");
    number("--norm-epsilon", model_.norm_epsilon);
    // Megatron-LM's own default is 0.1 for both.
    for (const char* name : {"--attention-dropout", "--hidden-dropout"}) number(name, 0);
    biases();
    if (!model_.tied_embeddings) flag("--untie-embeddings-and-output-weights");
    if (model_.moe) experts();
    others();
    return std::move(words_);
  }

 private:
  void flag(std::string name) { words_.push_back(std::move(name)); }
  void put(std::string name, std::string value) {
    words_.push_back(std::move(name));
    words_.push_back(std::move(value));
  }
  void put(std::string name, const char* value) { put(std::move(name), std::string(value)); }
  void put(std::string name, std::int64_t value) { put(std::move(name), std::to_string(value)); }
  void number(std::string name, double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    put(std::move(name), text);
  }
  void refuse(std::string found, std::string expected) {
    problems_.push_back({"plan", place_, std::move(found), std::move(expected),
                         "Megatron-LM's arguments cannot say it"});
  }

  void sizes() {
    put("--num-layers", model_.layers);
    put("--hidden-size", model_.hidden);
    put("--ffn-hidden-size", model_.ffn);
    put("--num-attention-heads", model_.query_heads);
    if (model_.kv_heads != model_.query_heads) {
      flag("--group-query-attention");
      put("--num-query-groups", model_.kv_heads);
    }
    if (!model_.mla) put("--kv-channels", model_.head_dim);
    put("--max-position-embeddings", model_.max_positions);
    put("--vocab-size", model_.vocab);
    put("--make-vocab-size-divisible-by", std::int64_t{1});
  }

  // Latent attention replaces the heads' own arguments. Without --qk-layernorm the norms of the
  // compressed queries and keys are identities (gpt_layer_specs.py).
  void latent() {
    const MlaSpec& mla = *model_.mla;
    flag("--multi-latent-attention");
    if (mla.q_lora_rank > 0) put("--q-lora-rank", mla.q_lora_rank);
    put("--kv-lora-rank", mla.kv_lora_rank);
    put("--qk-head-dim", mla.qk_nope_head_dim);
    put("--qk-pos-emb-head-dim", mla.qk_rope_head_dim);
    put("--v-head-dim", mla.v_head_dim);
    if (model_.qkv_bias || model_.output_bias) {
      refuse("latent attention with biases", "latent attention without biases");
    }
  }

  void attention() {
    if (model_.qk_norm || model_.mla) flag("--qk-layernorm");
    if (model_.attention_sinks) put("--softmax-type", "learnable");
    if (model_.sliding_window == 0) return;
    // A token and the window - 1 before it (HF's masking_utils.py; window_size counts those
    // before).
    put("--window-size", std::to_string(model_.sliding_window - 1) + ",0");
    if (!model_.full_attention_layers.empty()) {
      put("--window-attn-skip-freq",
          layers([&](std::int64_t i) { return window_of_layer(model_, i) > 0; }));
    }
  }

  // A Python list of 0 and 1.
  template <class Holds>
  std::string layers(const Holds& holds) const {
    std::string list = "[";
    for (std::int64_t i = 0; i < model_.layers; ++i) {
      list += (i > 0 ? "," : "") + std::string(holds(i) ? "1" : "0");
    }
    return list + "]";
  }

  void mlp() {
    switch (model_.mlp) {
      case MlpKind::swiglu:
        return flag("--swiglu");
      case MlpKind::clamped_swiglu:  // GptOssExperts: limit 7, alpha 1.702, up + 1
        flag("--quick-geglu");
        number("--glu-linear-offset", 1);
        return number("--activation-func-clamp-value", 7);
      case MlpKind::geglu:
        return refuse("an MLP gated by GELU", "an MLP gated by SiLU");
      case MlpKind::squared_relu:
        return flag("--squared-relu");
      case MlpKind::gelu:  // the default; with biases its fused kernel is the tanh form of GPT-2
        if (!model_.mlp_bias) refuse("GELU (tanh) without biases", "GELU with biases");
        return;
    }
  }

  void positions() {
    if (model_.learned_positions) return put("--position-embedding-type", "learned_absolute");
    const RopeSpec& rope = model_.rope;
    const bool yarn = rope.kind == RopeScalingKind::yarn;
    put("--position-embedding-type", yarn && !model_.mla ? "yarn" : "rope");
    if (model_.mla) put("--rope-type", yarn ? "yarn" : "rope");  // else latent attention takes yarn
    if (rope.theta != std::floor(rope.theta)) refuse("a broken rope_theta", "a whole one");
    put("--rotary-base", static_cast<std::int64_t>(std::llround(rope.theta)));
    if (rope.rotated_fraction != 1) number("--rotary-percent", rope.rotated_fraction);
    const bool plain = rope.kind == RopeScalingKind::none;
    if (!plain && (rope.rotated_fraction != 1 || (model_.mla && !yarn))) {
      return refuse("rope scaling '" + std::string(name_of(rope.kind)) + "' of parts of heads",
                    model_.mla ? "yarn" : "whole heads that are rotated");
    }
    if (rope.kind == RopeScalingKind::llama3) llama3();
    if (rope.kind == RopeScalingKind::linear) {
      if (rope.factor != std::floor(rope.factor)) refuse("a broken rope factor", "a whole one");
      put("--rotary-seq-len-interpolation-factor",
          static_cast<std::int64_t>(std::llround(rope.factor)));
    }
    if (yarn) scaled_by_yarn();
  }

  // rotary_pos_embedding.py, _apply_scaling: all but the factor is fixed.
  void llama3() {
    const RopeSpec& rope = model_.rope;
    if (rope.low_freq_factor != 1 || rope.high_freq_factor != 4 ||
        rope.original_max_position_embeddings != 8192) {
      refuse("llama3 rope scaling with other frequencies than Llama 3.1's",
             "low_freq_factor 1, high_freq_factor 4, original_max_position_embeddings 8192");
    }
    flag("--use-rope-scaling");
    number("--rope-scaling-factor", rope.factor);
  }

  void scaled_by_yarn() {
    const RopeSpec& rope = model_.rope;
    number("--rotary-scaling-factor", rope.factor);
    if (model_.mla) {
      put("--original-max-position-embeddings", rope.original_max_position_embeddings);
      number("--beta-fast", rope.beta_fast);
      number("--beta-slow", rope.beta_slow);
      if (!rope.truncate) refuse("yarn with truncate false", "truncate true in latent attention");
    } else {
      put("--yarn-original-max-position-embeddings", rope.original_max_position_embeddings);
      number("--yarn-beta-fast", rope.beta_fast);
      number("--yarn-beta-slow", rope.beta_slow);
      flag(rope.truncate ? "--yarn-correction-range-round-to-int"
                         : "--no-yarn-correction-range-round-to-int");
    }
    const Scales scales = scales_of_yarn();
    number("--mscale", scales.mscale);
    number("--mscale-all-dim", scales.all_dim);
  }

  // The factor on cos and sin is scale(mscale) / scale(mscale_all_dim); latent attention scales its
  // softmax by scale(mscale_all_dim)^2 besides, which the factor does not tell.
  Scales scales_of_yarn() {
    const RopeSpec& rope = model_.rope;
    if (rope.factor <= 1) return {};
    const Scales resolved{(rope.attention_factor - 1) / (yarn_scale(rope.factor, 1) - 1), 0};
    if (!model_.mla) return resolved;
    const auto stated = scales_in_file(source_.path);
    const auto factor_of = [&](const Scales& scales) {
      return yarn_scale(rope.factor, scales.mscale) / yarn_scale(rope.factor, scales.all_dim);
    };
    if (stated && std::abs(factor_of(*stated) - rope.attention_factor) < 1e-9) return *stated;
    notes_.push_back(
        "config.json of '" + source_.path +
        "' was not found: --mscale and --mscale-all-dim, which scale the softmax of latent "
        "attention, stand for its rope factor alone. Set them to the file's mscale and "
        "mscale_all_dim.");
    return resolved;
  }

  void biases() {
    const bool all = model_.qkv_bias && model_.output_bias && model_.mlp_bias;
    if (all) return;  // the default
    flag("--disable-bias-linear");
    if (model_.qkv_bias) flag("--add-qkv-bias");
    if (model_.output_bias || model_.mlp_bias) {
      refuse(
          model_.output_bias ? "a bias of the attention's output alone" : "a bias of the MLP alone",
          "biases of all linear layers, of queries, keys and values, or none");
    }
  }

  void experts() {
    const MoeSpec& moe = *model_.moe;
    put("--num-experts", moe.experts);
    put("--moe-ffn-hidden-size", moe.expert_ffn);
    put("--moe-router-topk", moe.experts_per_token);
    if (moe.shared_ffn > 0) put("--moe-shared-expert-intermediate-size", moe.shared_ffn);
    if (moe.shared_gate) flag("--moe-shared-expert-gate");
    if (!moe.dense_layers.empty()) {
      put("--moe-layer-freq", layers([&](std::int64_t i) { return is_moe_layer(model_, i); }));
    }
    router(moe);
    flag("--moe-grouped-gemm");
    if (model_.mlp_bias) flag("--no-bias-dropout-fusion");  // moe/experts.py demands it
    put("--moe-token-dispatcher-type", "alltoall");
    // A router and experts have biases where the linear layers have, shared experts never
    // (moe/router.py, shared_experts.py).
    if (moe.router_bias != model_.mlp_bias || (model_.mlp_bias && moe.shared_ffn > 0)) {
      refuse("biases of some parts of the experts' layers",
             "biases of router and experts, or none");
    }
  }

  // Scores of the chosen sum to 1 where softmax follows the choice; sigmoids are always normalised.
  void router(const MoeSpec& moe) {
    const bool sigmoid = moe.score == RouterScore::sigmoid;
    if (sigmoid) put("--moe-router-score-function", "sigmoid");
    if (!sigmoid && !moe.normalised) flag("--moe-router-pre-softmax");
    if (sigmoid && !moe.normalised) {
      refuse("sigmoid scores that are not normalised", "norm_topk_prob true");
    }
    if (moe.correction_bias) flag("--moe-router-enable-expert-bias");
    if (moe.scale != 1) number("--moe-router-topk-scaling-factor", moe.scale);
    if (moe.groups > 1) {
      put("--moe-router-num-groups", moe.groups);
      put("--moe-router-group-topk", moe.groups_per_token);
    }
  }

  // Parts of a layer that are facts of its family.
  void family_parts() {
    const FamilyFacts& facts = facts_of(model_.family);
    if (facts.norms != LayerNorms::before) {
      refuse("norms after attention and MLP", "norms before them alone");
    }
    if (facts.whole_qk_norm && model_.qk_norm) {
      refuse("norms of the queries and keys of all heads together", "norms of each head");
    }
    if (facts.gated_attention) refuse("a gate on attention's output", "attention without a gate");
    if (model_.linear) refuse("layers of linear attention", "attention in every layer");
    if (model_.rope.kind == RopeScalingKind::longrope) {
      refuse("longrope scaling", "linear, llama3 or yarn scaling, or none");
    }
  }

  void others() {
    family_parts();
    if (model_.vision) refuse("a vision tower", "a language model alone");
    if (held_mtp_layers(model_) > 0) {
      put("--mtp-num-layers", std::to_string(model_.mtp_layers));
    } else if (model_.mtp_layers > 0) {
      notes_.push_back("The model's " + std::to_string(model_.mtp_layers) +
                       " multi-token-prediction layers are left out, as in the plan; "
                       "--mtp-num-layers would train them.");
    }
    if (model_.head == ModelHead::value) {
      notes_.emplace_back(
          "Megatron-LM's arguments have no value head: the training script replaces the output "
          "layer by one value per token.");
    }
  }

  const ModelSource& source_;
  const ModelSpec& model_;
  std::string place_;
  std::vector<std::string>& notes_;
  Problems& problems_;
  std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> megatron_model_arguments(const ModelSource& model,
                                                  const std::string& place,
                                                  std::vector<std::string>& notes,
                                                  Problems& problems) {
  return Writer(model, place, notes, problems).arguments();
}

}  // namespace tessera
