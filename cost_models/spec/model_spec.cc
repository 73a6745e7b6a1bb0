// A Hugging Face config.json as a ModelSpec. Keys and defaults are those of transformers 5.17
// (models/*/configuration_*.py, modeling_rope_utils.py); both spellings of renamed keys are read
// (torch_dtype and dtype, rope_theta with rope_scaling and rope_parameters).
#include "cost_models/spec/model_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "cost_models/spec/object_reader.h"
#include "cost_models/spec/preset.h"
#include "cost_models/spec/strict_json.h"

namespace tessera {
namespace {

constexpr Whole kSize{.least = 1, .most = std::int64_t{1} << 31};

/// What distinguishes the families where a config.json does not say it.
struct FamilyFacts {
  std::string_view model_type;
  ModelFamily family;
  bool qkv_bias = false, qk_norm = false, window_needs_switch = false;
  std::int64_t default_window = 0;
  std::int64_t default_kv_heads = 0;  // 0 = as many as query heads
};

constexpr std::array<FamilyFacts, 4> kFamilies{{
    {"llama", ModelFamily::llama},
    {"mistral", ModelFamily::mistral, false, false, false, 4096, 8},
    {"qwen2", ModelFamily::qwen2, true, false, true, 4096, 32},
    {"qwen3", ModelFamily::qwen3, false, true, true, 4096, 32},
}};

class ConfigReader {
 public:
  ConfigReader(const Document& document, Problems& problems)
      : reader_(document, problems), problems_(problems), problems_before_(problems.size()) {}

  std::optional<ModelSpec> read() {
    const FamilyFacts* facts = family();
    if (facts == nullptr) return std::nullopt;
    spec_.family = facts->family;
    spec_.qkv_bias = facts->qkv_bias;
    spec_.qk_norm = facts->qk_norm;
    sizes(*facts);
    biases(*facts);
    window(*facts);
    rope();
    dtype();
    tokens();
    check();
    if (problems_.size() != problems_before_) return std::nullopt;
    return spec_;
  }

 private:
  const FamilyFacts* family() {
    std::string model_type;
    reader_.required("model_type", model_type);
    for (const FamilyFacts& facts : kFamilies) {
      if (facts.model_type == model_type) {
        head(facts);
        return &facts;
      }
    }
    if (!model_type.empty()) {
      reader_.refuse("model_type", "'" + model_type + "'", "llama, mistral, qwen2 or qwen3",
                     "no other architecture is known");
    }
    return nullptr;
  }

  /// `architectures` names the class that saved the folder; without it a language model.
  void head(const FamilyFacts&) {
    std::vector<std::string> classes;
    reader_.list("architectures", classes, false);
    if (classes.empty() || classes[0].ends_with("ForCausalLM")) return;
    if (classes[0].ends_with("ForTokenClassification") ||
        classes[0].ends_with("ForSequenceClassification")) {
      spec_.head = ModelHead::value;
    } else {
      reader_.refuse("architectures", "'" + classes[0] + "'",
                     "a ...ForCausalLM, ...ForTokenClassification or ...ForSequenceClassification",
                     "");
    }
  }

  void sizes(const FamilyFacts& facts) {
    reader_.required("num_hidden_layers", spec_.layers, kSize);
    reader_.required("hidden_size", spec_.hidden, kSize);
    reader_.required("num_attention_heads", spec_.query_heads, kSize);
    reader_.required("intermediate_size", spec_.ffn, kSize);
    reader_.required("vocab_size", spec_.vocab, kSize);
    spec_.kv_heads = facts.default_kv_heads > 0 ? facts.default_kv_heads : spec_.query_heads;
    reader_.optional("num_key_value_heads", spec_.kv_heads, kSize);
    reader_.optional("head_dim", spec_.head_dim, kSize);
    if (spec_.head_dim == 0 && spec_.query_heads > 0) {
      spec_.head_dim = spec_.family == ModelFamily::qwen3 ? 128 : spec_.hidden / spec_.query_heads;
      if (spec_.family != ModelFamily::qwen3 && spec_.hidden % spec_.query_heads != 0) {
        reader_.refuse("hidden_size", "a multiple of num_attention_heads where head_dim is absent");
      }
    }
    spec_.max_positions = 2048;
    reader_.optional("max_position_embeddings", spec_.max_positions, kSize);
    reader_.optional("rms_norm_eps", spec_.norm_epsilon, kAboveZero);
    reader_.optional("tie_word_embeddings", spec_.tied_embeddings);
    std::string activation = "silu";
    reader_.optional("hidden_act", activation);
    if (activation != "silu") reader_.refuse("hidden_act", "silu, as these families have");
  }

  void biases(const FamilyFacts& facts) {
    if (facts.family == ModelFamily::llama || facts.family == ModelFamily::qwen3) {
      bool attention = false;
      reader_.optional("attention_bias", attention);
      spec_.qkv_bias = spec_.output_bias = attention;
    }
    if (facts.family == ModelFamily::llama) reader_.optional("mlp_bias", spec_.mlp_bias);
  }

  /// Qwen slides only with use_sliding_window and from layer max_window_layers on; windows that
  /// some layers have and others not are refused.
  void window(const FamilyFacts& facts) {
    std::int64_t window = facts.default_window;
    if (reader_.has("sliding_window")) {
      const Node* node = reader_.find("sliding_window");
      if (node->is(Node::Kind::null)) {
        window = 0;
      } else {
        reader_.optional("sliding_window", window, kSize);
      }
    }
    bool slides = facts.default_window > 0 && !facts.window_needs_switch;
    std::int64_t first_sliding = 0;
    if (facts.window_needs_switch) {
      first_sliding = 28;
      reader_.optional("use_sliding_window", slides);
      reader_.optional("max_window_layers", first_sliding, kNotNegative);
    }
    std::vector<std::string> types;
    reader_.list("layer_types", types, false);
    if (!types.empty() && static_cast<std::int64_t>(types.size()) != spec_.layers) {
      reader_.refuse("layer_types", "one entry per layer");
    } else if (!types.empty()) {
      const auto sliding = static_cast<std::int64_t>(
          std::count(types.begin(), types.end(), std::string("sliding_attention")));
      if (sliding != 0 && sliding != spec_.layers) {
        reader_.refuse("layer_types", "full or sliding attention in all layers alike");
      }
      slides = slides && sliding > 0;
    } else if (slides && first_sliding >= spec_.layers) {
      slides = false;
    } else if (slides && first_sliding > 0) {
      reader_.refuse("max_window_layers", "0, or as many as there are layers",
                     "windows in some layers only are not supported");
    }
    if (slides) spec_.sliding_window = window;
  }

  void rope() {
    RopeSpec& rope = spec_.rope;
    reader_.optional("rope_theta", rope.theta, kAboveZero);
    const Node* parameters = reader_.find("rope_parameters");
    const char* key = parameters != nullptr && !parameters->is(Node::Kind::null) ? "rope_parameters"
                                                                                 : "rope_scaling";
    std::optional<ObjectReader> scaling = reader_.object(key, false);
    if (!scaling) return;
    scaling->optional("rope_theta", rope.theta, kAboveZero);
    double rotated = 1;
    scaling->optional("partial_rotary_factor", rotated);
    if (rotated != 1) scaling->refuse("partial_rotary_factor", "1: whole heads are rotated");
    std::string kind = "default";
    scaling->optional("type", kind);
    scaling->optional("rope_type", kind);
    if (kind == "default") return;
    if (kind == "linear") {
      rope.kind = RopeScalingKind::linear;
      scaling->required("factor", rope.factor, kAboveZero);
    } else if (kind == "llama3") {
      rope.kind = RopeScalingKind::llama3;
      scaling->required("factor", rope.factor, kAboveZero);
      scaling->required("low_freq_factor", rope.low_freq_factor, kAboveZero);
      scaling->required("high_freq_factor", rope.high_freq_factor, kAboveZero);
      rope.original_max_position_embeddings = spec_.max_positions;
      scaling->optional("original_max_position_embeddings", rope.original_max_position_embeddings,
                        kSize);
    } else if (kind == "yarn") {
      yarn(*scaling);
    } else {
      scaling->refuse(scaling->has("rope_type") ? "rope_type" : "type", "'" + kind + "'",
                      "default, linear, llama3 or yarn", "");
    }
  }

  /// Yarn's attention factor, resolved as _compute_yarn_parameters does.
  void yarn(ObjectReader& scaling) {
    RopeSpec& rope = spec_.rope;
    rope.kind = RopeScalingKind::yarn;
    rope.original_max_position_embeddings = spec_.max_positions;
    scaling.optional("original_max_position_embeddings", rope.original_max_position_embeddings,
                     kSize);
    rope.factor = static_cast<double>(spec_.max_positions) /
                  static_cast<double>(rope.original_max_position_embeddings);
    scaling.optional("factor", rope.factor, kAboveZero);
    scaling.optional("beta_fast", rope.beta_fast, kAboveZero);
    scaling.optional("beta_slow", rope.beta_slow, kAboveZero);
    scaling.optional("truncate", rope.truncate);
    std::optional<double> attention_factor, mscale, mscale_all_dim;
    scaling.optional("attention_factor", attention_factor, kAboveZero);
    scaling.optional("mscale", mscale);
    scaling.optional("mscale_all_dim", mscale_all_dim);
    const auto scale = [&](double by) {
      return rope.factor <= 1 ? 1.0 : 0.1 * by * std::log(rope.factor) + 1.0;
    };
    if (attention_factor) {
      rope.attention_factor = *attention_factor;
    } else if (mscale.value_or(0) != 0 && mscale_all_dim.value_or(0) != 0) {
      rope.attention_factor = scale(*mscale) / scale(*mscale_all_dim);
    } else {
      rope.attention_factor = scale(1.0);
    }
  }

  void dtype() {
    std::string name = "float32";
    const char* key = reader_.has("dtype") ? "dtype" : "torch_dtype";
    reader_.optional(key, name);
    const std::optional<DType> type = dtype_from(name);
    if (type && (*type == DType::fp32 || *type == DType::bf16 || *type == DType::fp16)) {
      spec_.dtype = *type;
    } else {
      reader_.refuse(key, "'" + name + "'", "float32, bfloat16 or float16", "");
    }
  }

  /// A list of ends of text (Llama 3.1) keeps its first.
  void token(const char* key, std::optional<std::int64_t>& out) {
    const Node* node = reader_.find(key);
    if (node != nullptr && node->is(Node::Kind::list)) {
      std::vector<std::int64_t> all;
      reader_.list(key, all, kNotNegative);
      if (!all.empty()) out = all[0];
    } else {
      reader_.optional(key, out, Whole{.least = -1});
      if (out && *out < 0) out.reset();  // old configs write -1 for none
    }
  }

  void tokens() {
    token("bos_token_id", spec_.bos_token);
    token("eos_token_id", spec_.eos_token);
    token("pad_token_id", spec_.pad_token);
  }

  void check() {
    if (spec_.kv_heads > 0 && spec_.query_heads % spec_.kv_heads != 0) {
      reader_.refuse("num_key_value_heads", "a divisor of num_attention_heads (" +
                                                std::to_string(spec_.query_heads) + ")");
    }
    if (reader_.has("quantization_config")) {
      reader_.refuse("quantization_config", "none: quantized checkpoints are not read");
    }
    if (spec_.head_dim % 2 != 0) reader_.refuse("head_dim", "an even number (rotary pairs)");
  }

  ObjectReader reader_;
  Problems& problems_;
  size_t problems_before_;
  ModelSpec spec_;
};

}  // namespace

std::optional<ModelSpec> parse_model_spec(std::string_view text, const std::string& file,
                                          Problems& problems) {
  const std::optional<Document> document = parse_json(text, file, problems);
  if (!document) return std::nullopt;
  return ConfigReader(*document, problems).read();
}

std::optional<ModelSpec> read_model_spec(const std::filesystem::path& where, Problems& problems) {
  std::optional<std::filesystem::path> file = find_config(where, "models", "", problems);
  if (!file) return std::nullopt;
  if (std::filesystem::is_directory(*file)) *file /= "config.json";
  const std::optional<std::string> text = read_text_file(*file, ParseLimits{}.bytes, problems);
  if (!text) return std::nullopt;
  return parse_model_spec(*text, file->string(), problems);
}

}  // namespace tessera
