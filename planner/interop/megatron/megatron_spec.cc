// Megatron-LM's arguments as a ModelSpec.
#include <algorithm>
#include <cmath>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/families.h"
#include "planner/interop/megatron/megatron_model.h"

namespace tessera {
namespace {

constexpr Whole kSize{1, std::int64_t{1} << 40};
constexpr std::int64_t kMostLayers = 1 << 16;

double yarn_scale(double factor, double by) {
  return factor <= 1 ? 1.0 : 0.1 * by * std::log(factor) + 1.0;
}

// "[0,1]", "[0]*2+[1]*3", "([1,1,0])*4": a Python list of 0 and 1; nullopt for anything else.
std::optional<std::vector<bool>> pattern(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '(' || c == ')'; });
  std::vector<bool> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find(']', at);
    if (text[at] != '[' || end == text.npos) return std::nullopt;
    std::vector<bool> part;
    for (std::size_t i = at + 1; i < end; i += 2) {
      const bool separated = i + 1 == end || text[i + 1] == ',';
      if ((text[i] != '0' && text[i] != '1') || !separated) return std::nullopt;
      part.push_back(text[i] == '1');
    }
    at = end + 1;
    std::int64_t times = 1;
    if (at < text.size() && text[at] == '*') {
      times = 0;
      for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
        times = std::min(times * 10 + (text[at] - '0'), kMostLayers);
      }
    }
    if (static_cast<std::int64_t>(all.size() + part.size() * static_cast<std::size_t>(times)) >
        kMostLayers) {
      return std::nullopt;
    }
    for (std::int64_t i = 0; i < times; ++i) all.insert(all.end(), part.begin(), part.end());
    if (at < text.size() && text[at++] != '+') return std::nullopt;
  }
  return all;
}

class SpecReader {
 public:
  SpecReader(const ConfigValues& config, Problems& problems)
      : config_(config), problems_(problems), before_(problems.size()) {}

  std::optional<ModelSpec> read() {
    for (const char* name : {"num-layers", "hidden-size", "num-attention-heads", "vocab-size"}) {
      if (config_.has(name)) continue;
      problems_.push_back({config_.file, "", "no --" + std::string(name) + " and no --model",
                           "the argument, or --model FOLDER",
                           "the model is built from --num-layers, --hidden-size, "
                           "--num-attention-heads and --vocab-size where there is no --model"});
    }
    if (failed()) return std::nullopt;
    sizes();
    if (failed()) return std::nullopt;
    activation();
    biases();
    norms();
    if (config_.has("num-experts")) experts();
    if (flag("multi-latent-attention")) latent();
    windows();
    positions();
    choose_family();
    if (failed()) return std::nullopt;
    return std::move(spec_);
  }

 private:
  bool failed() const { return problems_.size() != before_; }
  bool flag(const char* name) { return config_.boolean(name, false, problems_); }
  std::int64_t integer(const char* name, std::int64_t otherwise, Whole range = kSize) {
    return config_.integer(name, otherwise, problems_, range);
  }
  std::string text(const char* name, const char* otherwise) {
    return config_.has(name) ? config_.text(name, otherwise, problems_) : otherwise;
  }
  double number(const char* name, double otherwise) {
    const Node* const node = config_.find(name);
    if (node == nullptr) return otherwise;
    if (node->is(Node::Kind::integer) || node->is(Node::Kind::number)) return node->number;
    refuse(name, describe(*node), "a number");
    return otherwise;
  }
  void refuse(const std::string& name, const std::string& found, std::string expected) {
    const auto value = config_.values.find(name);
    problems_.push_back({config_.file, value == config_.values.end() ? "" : value->second.place,
                         "--" + name + " " + found, std::move(expected),
                         "--model FOLDER takes the model from its config.json"});
  }

  void sizes() {
    spec_.layers = integer("num-layers", 1, {1, kMostLayers});
    spec_.hidden = integer("hidden-size", 1);
    spec_.query_heads = integer("num-attention-heads", 1);
    spec_.kv_heads = integer("num-query-groups", spec_.query_heads);
    spec_.head_dim =
        integer("kv-channels", std::max<std::int64_t>(1, spec_.hidden / spec_.query_heads));
    const bool gated = flag("swiglu");  // validate_args: 2/3 of it, in multiples of 64
    spec_.ffn = integer(
        "ffn-hidden-size",
        gated ? std::max<std::int64_t>(64, spec_.hidden * 8 / 3 / 64 * 64) : 4 * spec_.hidden);
    spec_.vocab = integer("vocab-size", 1);
    spec_.max_positions = integer("max-position-embeddings", integer("seq-length", 4096));
    spec_.tied_embeddings = !flag("untie-embeddings-and-output-weights");
    if (spec_.query_heads % spec_.kv_heads != 0) {
      refuse("num-query-groups", std::to_string(spec_.kv_heads),
             "a divisor of the " + std::to_string(spec_.query_heads) + " heads");
    }
  }

  void activation() {
    spec_.mlp = flag("swiglu")         ? MlpKind::swiglu
                : flag("quick-geglu")  ? MlpKind::clamped_swiglu
                : flag("squared-relu") ? MlpKind::squared_relu
                                       : MlpKind::gelu;
    if (spec_.mlp != MlpKind::clamped_swiglu) return;
    const double offset = number("glu-linear-offset", 0);
    const double clamp = number("activation-func-clamp-value", 0);
    if (offset != 1 || clamp != 7) {
      refuse("quick-geglu", "with another offset or clamp",
             "--glu-linear-offset 1 --activation-func-clamp-value 7, as gpt-oss has");
    }
  }

  void biases() {
    const bool all = !flag("disable-bias-linear");
    spec_.qkv_bias = all || flag("add-qkv-bias");
    spec_.output_bias = spec_.mlp_bias = all;
  }

  void norms() {
    const std::string kind = text("normalization", "LayerNorm");
    spec_.norm = kind == "RMSNorm"            ? NormKind::rms
                 : flag("apply-layernorm-1p") ? NormKind::layer_norm_1p
                                              : NormKind::layer_norm;
    spec_.norm_epsilon = number("norm-epsilon", 1e-5);
    spec_.qk_norm = flag("qk-layernorm");
    spec_.attention_sinks = text("softmax-type", "vanilla") == "learnable";
  }

  /// Layers that a frequency or a list names; `period` says what an integer means.
  template <class Period>
  std::vector<bool> listed(const char* name, bool otherwise, const Period& period) {
    std::vector<bool> holds(static_cast<std::size_t>(spec_.layers), otherwise);
    const Node* const node = config_.find(name);
    if (node == nullptr) return holds;
    if (node->is(Node::Kind::integer) && node->integer > 0) {
      for (std::size_t i = 0; i < holds.size(); ++i) {
        holds[i] = period(static_cast<std::int64_t>(i), node->integer);
      }
      return holds;
    }
    const auto read = pattern(node->is(Node::Kind::string) ? node->text : "");
    if (!read || read->size() != holds.size()) {
      refuse(name, describe(*node), "a list of 0 and 1, one for each layer");
      return holds;
    }
    return *read;
  }

  void experts() {
    MoeSpec moe;
    moe.experts = integer("num-experts", 1, {1, 1 << 20});
    moe.experts_per_token = integer("moe-router-topk", 2, {1, moe.experts});
    moe.expert_ffn = integer("moe-ffn-hidden-size", spec_.ffn);
    moe.shared_ffn = integer("moe-shared-expert-intermediate-size", 0, {0, kSize.most});
    moe.shared_gate = flag("moe-shared-expert-gate");
    const auto routed =
        listed("moe-layer-freq", true, [](std::int64_t i, std::int64_t n) { return i % n == 0; });
    for (std::int64_t i = 0; i < spec_.layers; ++i) {
      if (!routed[static_cast<std::size_t>(i)]) moe.dense_layers.push_back(i);
    }
    const bool sigmoid = text("moe-router-score-function", "softmax") == "sigmoid";
    moe.score = sigmoid ? RouterScore::sigmoid : RouterScore::softmax;
    moe.normalised = sigmoid || !flag("moe-router-pre-softmax");
    moe.router_bias = spec_.mlp_bias;
    moe.correction_bias = flag("moe-router-enable-expert-bias");
    moe.scale = number("moe-router-topk-scaling-factor", 1);
    moe.groups = integer("moe-router-num-groups", 1);
    moe.groups_per_token = integer("moe-router-group-topk", 1, {1, moe.groups});
    spec_.moe = std::move(moe);
  }

  void latent() {
    MlaSpec mla;
    mla.q_lora_rank = integer("q-lora-rank", 0, {0, kSize.most});
    mla.kv_lora_rank = integer("kv-lora-rank", 32);
    mla.qk_nope_head_dim = integer("qk-head-dim", 128);
    mla.qk_rope_head_dim = integer("qk-pos-emb-head-dim", 64);
    mla.v_head_dim = integer("v-head-dim", 128);
    spec_.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
    if (!spec_.qk_norm) {
      refuse("multi-latent-attention", "without --qk-layernorm",
             "--qk-layernorm: DeepSeek's queries and keys have norms");
    }
    spec_.qk_norm = false;  // those of the compressed ones belong to latent attention
    spec_.mla = mla;
  }

  void windows() {
    if (!config_.has("window-size")) return;
    const std::string window = text("window-size", "");
    std::int64_t before = 0;
    std::size_t at = window.starts_with('(') ? 1 : 0;
    for (; at < window.size() && window[at] >= '0' && window[at] <= '9'; ++at) {
      before = std::min(before * 10 + (window[at] - '0'), kSize.most);
    }
    std::string rest = window.substr(at);
    std::erase_if(rest, [](char c) { return c == ' ' || c == ')'; });
    if (rest != ",0") return refuse("window-size", window, "tokens before a token, and 0 after it");
    spec_.sliding_window = before + 1;
    const auto slides = listed("window-attn-skip-freq", true,
                               [](std::int64_t i, std::int64_t n) { return (i + 1) % n != 0; });
    for (std::int64_t i = 0; i < spec_.layers; ++i) {
      if (!slides[static_cast<std::size_t>(i)]) spec_.full_attention_layers.push_back(i);
    }
  }

  void positions() {
    std::string kind = text("position-embedding-type", "learned_absolute");
    if (flag("use-rotary-position-embeddings")) kind = "rope";
    if (kind == "learned_absolute") {
      spec_.learned_positions = true;
      return;
    }
    if (kind != "rope" && kind != "yarn") {
      return refuse("position-embedding-type", kind, "learned_absolute, rope or yarn");
    }
    RopeSpec& rope = spec_.rope;
    rope.theta = number("rotary-base", 10000);
    rope.rotated_fraction = number("rotary-percent", 1);
    const bool latent = spec_.mla.has_value();
    if (kind == "yarn" || (latent && text("rope-type", "yarn") == "yarn")) {
      yarn(latent);
    } else if (flag("use-rope-scaling")) {
      rope.kind = RopeScalingKind::llama3;
      rope.factor = number("rope-scaling-factor", 8);
      rope.low_freq_factor = 1;
      rope.high_freq_factor = 4;
      rope.original_max_position_embeddings = 8192;
    } else if (config_.has("rotary-seq-len-interpolation-factor")) {
      rope.kind = RopeScalingKind::linear;
      rope.factor = number("rotary-seq-len-interpolation-factor", 1);
    }
  }

  void yarn(bool latent) {
    RopeSpec& rope = spec_.rope;
    rope.factor = number("rotary-scaling-factor", 1);
    if (latent && rope.factor == 1) return;  // its frequencies are plain
    rope.kind = RopeScalingKind::yarn;
    const std::string before = latent ? "" : "yarn-";
    const auto named = [&](const char* name) { return before + name; };
    rope.original_max_position_embeddings =
        integer(named("original-max-position-embeddings").c_str(), 4096);
    rope.beta_fast = number(named("beta-fast").c_str(), 32);
    rope.beta_slow = number(named("beta-slow").c_str(), 1);
    rope.truncate = latent || !flag("no-yarn-correction-range-round-to-int");
    rope.attention_factor = yarn_scale(rope.factor, number("mscale", 1)) /
                            yarn_scale(rope.factor, number("mscale-all-dim", 0));
  }

  void choose_family() {
    if (failed()) return;
    if (const auto found = family_with_parts_of(spec_)) {
      spec_.family = *found;
      return;
    }
    std::string stated = std::string(name_of(spec_.norm)) + " norms, " +
                         std::string(name_of(spec_.mlp)) + ", " +
                         (spec_.learned_positions ? "learned positions" : "rotary positions") +
                         (spec_.output_bias ? ", biases" : "") + (spec_.moe ? ", experts" : "") +
                         (spec_.mla ? ", latent attention" : "");
    refuse("num-layers", "of " + stated,
           "the parts of a known family: Llama's are --swiglu --normalization RMSNorm "
           "--position-embedding-type rope --disable-bias-linear");
  }

  const ConfigValues& config_;
  Problems& problems_;
  std::size_t before_;
  ModelSpec spec_;
};

}  // namespace

std::optional<ModelSpec> megatron_model(const ConfigValues& config, Problems& problems) {
  return SpecReader(config, problems).read();
}

std::vector<std::string> unlike(const ModelSpec& one, const ModelSpec& other) {
  std::vector<std::string> names;
  const auto compare = [&](const char* name, bool same) {
    if (!same) names.emplace_back(name);
  };
  const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); };
  const auto rope = [](RopeSpec value) {
    value.attention_factor = 1;
    return value;
  };
  compare("layers", one.layers == other.layers);
  compare("hidden size", one.hidden == other.hidden);
  compare("heads", one.query_heads == other.query_heads && one.kv_heads == other.kv_heads &&
                       one.head_dim == other.head_dim);
  compare("columns of the MLP", one.ffn == other.ffn);
  compare("vocabulary", one.vocab == other.vocab);
  compare("positions", one.max_positions == other.max_positions &&
                           one.learned_positions == other.learned_positions &&
                           rope(one.rope) == rope(other.rope) &&
                           near(one.rope.attention_factor, other.rope.attention_factor));
  compare("tied embeddings", one.tied_embeddings == other.tied_embeddings);
  compare("biases", one.qkv_bias == other.qkv_bias && one.output_bias == other.output_bias &&
                        one.mlp_bias == other.mlp_bias);
  compare("norms", one.norm == other.norm && one.qk_norm == other.qk_norm &&
                       near(one.norm_epsilon, other.norm_epsilon));
  compare("activation", one.mlp == other.mlp);
  compare("sliding window", one.sliding_window == other.sliding_window &&
                                one.full_attention_layers == other.full_attention_layers);
  compare("attention sinks", one.attention_sinks == other.attention_sinks);
  compare("latent attention", one.mla == other.mla);
  compare("experts", one.moe == other.moe);
  return names;
}

}  // namespace tessera
