// A ModelSpec as plan.json writes it out.
#include <array>
#include <string>
#include <utility>

#include "cost_models/spec/families.h"
#include "cost_models/spec/spec_document.h"

namespace tessera {
namespace {

constexpr std::array kHeads{ModelHead::language_model, ModelHead::value};
constexpr std::array kScalings{RopeScalingKind::none, RopeScalingKind::linear,
                               RopeScalingKind::llama3, RopeScalingKind::yarn,
                               RopeScalingKind::longrope};
constexpr std::array kFloatTypes{DType::fp32, DType::bf16, DType::fp16};
constexpr Whole kSize{.least = 1, .most = std::int64_t{1} << 40};

RopeSpec rope_from(ObjectReader& reader) {
  RopeSpec rope;
  reader.required("theta", rope.theta, kAboveZero);
  reader.required("kind", rope.kind, kScalings);
  reader.required("factor", rope.factor, kAboveZero);
  reader.required("low_freq_factor", rope.low_freq_factor, kFromZero);
  reader.required("high_freq_factor", rope.high_freq_factor, kFromZero);
  reader.required("original_max_position_embeddings", rope.original_max_position_embeddings,
                  kNotNegative);
  reader.required("beta_fast", rope.beta_fast);
  reader.required("beta_slow", rope.beta_slow);
  reader.required("attention_factor", rope.attention_factor);
  reader.required("truncate", rope.truncate);
  reader.required("rotated_fraction", rope.rotated_fraction,
                  Real{.least = 0, .most = 1, .above = true});
  reader.refuse_unknown_keys();
  return rope;
}

Node to_node(const RopeSpec& rope) {
  Node node = map_node();
  add(node, "theta", node_of(rope.theta));
  add(node, "kind", node_of(name_of(rope.kind)));
  add(node, "factor", node_of(rope.factor));
  add(node, "low_freq_factor", node_of(rope.low_freq_factor));
  add(node, "high_freq_factor", node_of(rope.high_freq_factor));
  add(node, "original_max_position_embeddings", node_of(rope.original_max_position_embeddings));
  add(node, "beta_fast", node_of(rope.beta_fast));
  add(node, "beta_slow", node_of(rope.beta_slow));
  add(node, "attention_factor", node_of(rope.attention_factor));
  add(node, "truncate", node_of(rope.truncate));
  add(node, "rotated_fraction", node_of(rope.rotated_fraction));
  return node;
}

/// Written as null where the model has none; the key itself must be there.
void read_token(ObjectReader& reader, std::string_view key, std::optional<std::int64_t>& token) {
  if (!reader.has(key)) reader.refuse(key, "a token id or null");
  reader.optional(key, token, kNotNegative);
}

Node token_node(const std::optional<std::int64_t>& token) {
  return token ? node_of(*token) : Node{};
}

}  // namespace

ModelSpec model_from(ObjectReader& reader) {
  ModelSpec model;
  reader.required("family", model.family, kEveryFamily);
  reader.required("head", model.head, kHeads);
  reader.required("layers", model.layers, Whole{.least = 1, .most = 1 << 16});
  const Whole layers{.least = 0, .most = model.layers - 1};
  reader.required("hidden", model.hidden, kSize);
  reader.required("query_heads", model.query_heads, kSize);
  reader.required("kv_heads", model.kv_heads, kSize);
  reader.required("head_dim", model.head_dim, kSize);
  reader.required("ffn", model.ffn, kSize);
  reader.required("vocab", model.vocab, kSize);
  reader.required("max_positions", model.max_positions, kSize);
  reader.required("tied_embeddings", model.tied_embeddings);
  reader.required("qkv_bias", model.qkv_bias);
  reader.required("output_bias", model.output_bias);
  reader.required("mlp_bias", model.mlp_bias);
  reader.required("qk_norm", model.qk_norm);
  reader.required("norm_epsilon", model.norm_epsilon, kFromZero);
  reader.required("sliding_window", model.sliding_window, kNotNegative);
  reader.optional("chunked_attention", model.chunked_attention);
  reader.list("full_attention_layers", model.full_attention_layers, layers);
  reader.required("norm", model.norm, kEveryNorm);
  reader.required("mlp", model.mlp, kEveryMlp);
  reader.required("learned_positions", model.learned_positions);
  reader.required("attention_sinks", model.attention_sinks);
  read_model_parts(reader, model);
  reader.required("mtp_layers", model.mtp_layers, Whole{.least = 0, .most = 1 << 10});
  if (auto rope = reader.object("rope")) model.rope = rope_from(*rope);
  reader.required("dtype", model.dtype, kFloatTypes);
  read_token(reader, "bos_token", model.bos_token);
  read_token(reader, "eos_token", model.eos_token);
  read_token(reader, "pad_token", model.pad_token);
  reader.refuse_unknown_keys();
  if (model.kv_heads > 0 && model.query_heads % model.kv_heads != 0) {
    reader.refuse("kv_heads", "a divisor of query_heads = " + std::to_string(model.query_heads));
  }
  return model;
}

Node to_node(const ModelSpec& model) {
  Node node = map_node();
  add(node, "family", node_of(name_of(model.family)));
  add(node, "head", node_of(name_of(model.head)));
  add(node, "layers", node_of(model.layers));
  add(node, "hidden", node_of(model.hidden));
  add(node, "query_heads", node_of(model.query_heads));
  add(node, "kv_heads", node_of(model.kv_heads));
  add(node, "head_dim", node_of(model.head_dim));
  add(node, "ffn", node_of(model.ffn));
  add(node, "vocab", node_of(model.vocab));
  add(node, "max_positions", node_of(model.max_positions));
  add(node, "tied_embeddings", node_of(model.tied_embeddings));
  add(node, "qkv_bias", node_of(model.qkv_bias));
  add(node, "output_bias", node_of(model.output_bias));
  add(node, "mlp_bias", node_of(model.mlp_bias));
  add(node, "qk_norm", node_of(model.qk_norm));
  add(node, "norm_epsilon", node_of(model.norm_epsilon));
  add(node, "sliding_window", node_of(model.sliding_window));
  if (model.chunked_attention) add(node, "chunked_attention", node_of(true));
  add(node, "full_attention_layers", list_of(model.full_attention_layers));
  add(node, "norm", node_of(name_of(model.norm)));
  add(node, "mlp", node_of(name_of(model.mlp)));
  add(node, "learned_positions", node_of(model.learned_positions));
  add(node, "attention_sinks", node_of(model.attention_sinks));
  add_model_parts(node, model);
  add(node, "mtp_layers", node_of(model.mtp_layers));
  add(node, "rope", to_node(model.rope));
  add(node, "dtype", node_of(name_of(model.dtype)));
  add(node, "bos_token", token_node(model.bos_token));
  add(node, "eos_token", token_node(model.eos_token));
  add(node, "pad_token", token_node(model.pad_token));
  return node;
}

}  // namespace tessera
