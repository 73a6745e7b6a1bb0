// A Hugging Face config.json as a ModelSpec. Keys and defaults are those of transformers 5.17
// (models/*/configuration_*.py); renamed keys are read under both names (torch_dtype and dtype).
#include "cost_models/spec/config/model_config.h"

#include <string>
#include <utility>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/spec/config/closest_family.h"

namespace tessera {
namespace {

std::string known_types() {
  std::string text;
  for (const ModelFamily family : kEveryFamily) {
    if (!text.empty()) text += family == kEveryFamily.back() ? " or " : ", ";
    text += name_of(family);
  }
  return text;
}

/// A multimodal config.json nests what describes the language model (text_config); before
/// transformers 5 it was flat. `root_` is the file's map, `reader_` the language model's.
class ConfigReader {
 public:
  ConfigReader(const Document& document, Problems& problems)
      : root_(document, problems),
        reader_(root_),
        problems_(problems),
        problems_before_(problems.size()) {}

  std::optional<ModelSpec> read() {
    facts_ = family();
    if (facts_ == nullptr) return std::nullopt;
    spec_.family = facts_->family;
    spec_.norm = facts_->norm;
    spec_.mlp = facts_->mlp;
    spec_.qk_norm = facts_->qk_norm;
    spec_.learned_positions = facts_->learned_positions;
    spec_.attention_sinks = facts_->attention_sinks;
    if (auto text = root_.object("text_config", false)) {
      reader_ = *text;
      nested_ = true;
    }
    if (facts_->keys == ConfigKeys::gpt2) {
      gpt2();
    } else {
      sizes();
      activation();
      biases();
      read_window(reader_, *facts_, spec_);
      if (!facts_->rope.none) read_rope(reader_, *facts_, spec_);
      read_moe(reader_, *facts_, spec_);
      read_mtp(reader_, *facts_, spec_);
      if (facts_->latent_attention) read_mla(reader_, spec_);
      if (facts_->sparse_attention) read_indexer(reader_, spec_);
      if (facts_->compressed_attention) read_compressed(reader_, spec_);
      if (facts_->linear_attention) read_linear(reader_, *facts_, spec_);
      if (facts_->state_space) read_state_space(reader_, spec_);
      if (facts_->vision != VisionTower::none) read_vision(root_, *facts_, spec_);
    }
    dtype();
    tokens();
    check();
    if (problems_.size() != problems_before_) return std::nullopt;
    return spec_;
  }

 private:
  const FamilyFacts* family() {
    std::string model_type;
    root_.required("model_type", model_type);
    const FamilyFacts* facts = facts_of(model_type);
    if (facts != nullptr) {
      head(*facts);
    } else if (!model_type.empty()) {
      root_.refuse("model_type", "'" + model_type + "'", known_types(),
                   "no other architecture is known; " + closest_family(model_type, root_));
    }
    return facts;
  }

  /// `architectures` names the class that saved the folder; without it a language model.
  void head(const FamilyFacts& facts) {
    std::vector<std::string> classes;
    root_.list("architectures", classes, false);
    if (classes.empty() || classes[0].ends_with("ForCausalLM") ||
        (!facts.language_model.empty() && classes[0] == facts.language_model) ||
        classes[0].ends_with("ForConditionalGeneration")) {
      return;
    }
    if (classes[0].ends_with("ForTokenClassification") ||
        classes[0].ends_with("ForSequenceClassification")) {
      spec_.head = ModelHead::value;
    } else {
      root_.refuse("architectures", "'" + classes[0] + "'",
                   "a ...ForCausalLM, ...ForTokenClassification or ...ForSequenceClassification",
                   "");
    }
  }

  void sizes() {
    if (facts_->keys == ConfigKeys::blocks) {
      read_blocks(reader_, spec_);
    } else {
      reader_.required("num_hidden_layers", spec_.layers, kConfigLayers);
    }
    reader_.required("hidden_size", spec_.hidden, kConfigSize);
    stated_or("num_attention_heads", facts_->default_query_heads, spec_.query_heads);
    ffn();
    stated_or("vocab_size", facts_->default_vocab, spec_.vocab);
    spec_.kv_heads = facts_->default_kv_heads > 0 ? facts_->default_kv_heads : spec_.query_heads;
    const Node* const kv_heads = reader_.find("num_key_value_heads");
    if (kv_heads != nullptr && kv_heads->is(Node::Kind::null)) {
      unstated_kv_heads();
    } else {
      reader_.optional("num_key_value_heads", spec_.kv_heads, kConfigSize);
    }
    if (facts_->head_dim_key) reader_.optional("head_dim", spec_.head_dim, kConfigSize);
    if (spec_.head_dim == 0) default_head_dim();
    spec_.max_positions = facts_->default_positions;
    reader_.optional("max_position_embeddings", spec_.max_positions, kConfigSize);
    spec_.norm_epsilon = facts_->default_epsilon;
    reader_.optional(facts_->epsilon_key, spec_.norm_epsilon, kAboveZero);
    tied();
  }

  /// Where every layer has experts no key states a plain MLP: the shared expert's stands for it.
  void ffn() {
    const bool sparse = facts_->experts && facts_->experts->every_layer;
    reader_.required(sparse ? "shared_expert_intermediate_size" : facts_->ffn_key, spec_.ffn,
                     kConfigSize);
  }

  /// A size that the file must state where the class has no default.
  void stated_or(std::string_view key, std::int64_t otherwise, std::int64_t& size) {
    size = otherwise;
    if (otherwise > 0) {
      reader_.optional(key, size, kConfigSize);
    } else {
      reader_.required(key, size, kConfigSize);
    }
  }

  /// null is not the class's default: __post_init__ takes as many as there are query heads, and
  /// some classes take no null.
  void unstated_kv_heads() {
    spec_.kv_heads = spec_.query_heads;
    if (!facts_->null_kv_heads) {
      reader_.refuse("num_key_value_heads", "a whole number of at least 1");
    }
  }

  void default_head_dim() {
    if (facts_->default_head_dim > 0) {
      spec_.head_dim = facts_->default_head_dim;
    } else if (spec_.query_heads > 0) {
      spec_.head_dim = spec_.hidden / spec_.query_heads;
      if (spec_.hidden % spec_.query_heads != 0) {
        reader_.refuse("hidden_size", "a multiple of num_attention_heads where head_dim is absent");
      }
    }
  }

  void tied() {
    if (facts_->tied) spec_.tied_embeddings = true;
    const TieKey where = nested_ ? facts_->tie_key : TieKey::outside;
    if (where != TieKey::inside) {
      root_.optional("tie_word_embeddings", spec_.tied_embeddings);
    }
    bool within = false;
    if (where != TieKey::outside) reader_.optional("tie_word_embeddings", within);
    spec_.tied_embeddings = spec_.tied_embeddings || within;
  }

  void activation() {
    const std::string expected = spec_.mlp == MlpKind::squared_relu ? "relu2"
                                 : spec_.mlp == MlpKind::geglu      ? "gelu_pytorch_tanh"
                                                                    : "silu";
    std::string activation = expected;
    reader_.optional(facts_->activation_key, activation);
    if (activation != expected) {
      reader_.refuse(facts_->activation_key, expected + ", as this architecture has");
    }
    if (!facts_->qk_norm_key.empty()) reader_.optional(facts_->qk_norm_key, spec_.qk_norm);
  }

  void biases() {
    const BiasFacts& facts = facts_->biases;
    spec_.qkv_bias = facts.qkv;
    spec_.output_bias = facts.output;
    spec_.mlp_bias = facts.mlp;
    if (facts.attention_key) {
      reader_.optional("attention_bias", spec_.qkv_bias);
      spec_.output_bias = spec_.qkv_bias;
    }
    if (!facts.qkv_key.empty()) reader_.optional(facts.qkv_key, spec_.qkv_bias);
    if (!facts.output_key.empty()) reader_.optional(facts.output_key, spec_.output_bias);
    if (facts.mlp_key) reader_.optional("mlp_bias", spec_.mlp_bias);
    if (facts.mlp_refused != nullptr && spec_.mlp_bias) {
      reader_.refuse("mlp_bias", facts.mlp_refused);
    }
    bool all = false;
    if (!facts.all_refused.empty()) reader_.optional(facts.all_refused, all);
    if (all) reader_.refuse(facts.all_refused, "false, as every model of it was published");
  }

  /// GPT-2's own key names.
  void gpt2() {
    reader_.required("n_layer", spec_.layers, kConfigLayers);
    reader_.required("n_embd", spec_.hidden, kConfigSize);
    reader_.required("n_head", spec_.query_heads, kConfigSize);
    reader_.required("n_positions", spec_.max_positions, kConfigSize);
    reader_.required("vocab_size", spec_.vocab, kConfigSize);
    spec_.ffn = 4 * spec_.hidden;
    reader_.optional("n_inner", spec_.ffn, kConfigSize);
    spec_.kv_heads = spec_.query_heads;
    if (spec_.query_heads > 0) spec_.head_dim = spec_.hidden / spec_.query_heads;
    if (spec_.query_heads > 0 && spec_.hidden % spec_.query_heads != 0) {
      reader_.refuse("n_embd", "a multiple of n_head");
    }
    spec_.norm_epsilon = facts_->default_epsilon;
    reader_.optional("layer_norm_epsilon", spec_.norm_epsilon, kAboveZero);
    spec_.tied_embeddings = true;
    tied();
    std::string activation = "gelu_new";
    reader_.optional("activation_function", activation);
    if (!activation.starts_with("gelu")) {
      reader_.refuse("activation_function", "a gelu, as GPT-2 has");
    }
    bool cross = false;
    reader_.optional("add_cross_attention", cross);
    if (cross) reader_.refuse("add_cross_attention", "false: a decoder alone");
    biases();
  }

  void dtype() {
    std::string name = "float32";
    ObjectReader& where =
        nested_ && !root_.has("dtype") && !root_.has("torch_dtype") ? reader_ : root_;
    const char* key = where.has("dtype") ? "dtype" : "torch_dtype";
    where.optional(key, name);
    const std::optional<DType> type = dtype_from(name);
    if (type && (*type == DType::fp32 || *type == DType::bf16 || *type == DType::fp16)) {
      spec_.dtype = *type;
    } else {
      where.refuse(key, "'" + name + "'", "float32, bfloat16 or float16", "");
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
    padding();
  }

  /// torch counts a negative row of an embedding from its end, and has no other one.
  void padding() {
    if (facts_->learned_positions || facts_->state_space) return;  // their embeddings pad nothing
    reader_.optional("pad_token_id", spec_.pad_token);
    if (!spec_.pad_token || spec_.vocab <= 0) return;
    if (*spec_.pad_token < 0) *spec_.pad_token += spec_.vocab;
    if (*spec_.pad_token >= 0 && *spec_.pad_token < spec_.vocab) return;
    spec_.pad_token.reset();
    reader_.refuse("pad_token_id", "null, or a token of the " + std::to_string(spec_.vocab) +
                                       " of vocab_size: transformers' embedding takes no other");
  }

  void check() {
    if (!spec_.mla && spec_.kv_heads > 0 && spec_.query_heads % spec_.kv_heads != 0) {
      reader_.refuse("num_key_value_heads", "a divisor of num_attention_heads (" +
                                                std::to_string(spec_.query_heads) + ")");
    }
    check_stored_weights(root_);
    const bool rotary = !spec_.learned_positions && !spec_.mla;
    if (rotary && spec_.head_dim % 2 != 0) {
      reader_.refuse("head_dim", "an even number (rotary pairs)");
    }
  }

  ObjectReader root_, reader_;
  Problems& problems_;
  size_t problems_before_;
  const FamilyFacts* facts_ = nullptr;
  bool nested_ = false;
  ModelSpec spec_;
};

}  // namespace

std::optional<ModelSpec> parse_model_spec(std::string_view text, const std::string& file,
                                          Problems& problems) {
  const std::size_t before = problems.size();
  const std::optional<Document> document = parse_json_as_far(text, file, problems);
  if (!document) return std::nullopt;
  auto spec = ConfigReader(*document, problems).read();
  return problems.size() == before ? std::move(spec) : std::nullopt;
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
