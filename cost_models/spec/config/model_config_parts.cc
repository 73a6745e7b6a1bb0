// Experts and latent attention of a config.json.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "cost_models/spec/config/model_config.h"

namespace tessera {
namespace {

/// The first of `names`, which mean the same, that the file has, or the first. Others with another
/// value are refused: transformers' classes take now their own name, now the other.
const char* present(ObjectReader& reader, std::initializer_list<const char*> names) {
  const char* first = nullptr;
  for (const char* const name : names) {
    const Node* const node = reader.find(name);
    if (node == nullptr || node->is(Node::Kind::null)) continue;
    if (first == nullptr) {
      first = name;
      continue;
    }
    const std::string found = describe(*node), before = describe(*reader.find(first));
    if (found == before) continue;
    reader.refuse(name, found + " beside " + first + " = " + before, before,
                  "both name the same: leave one out");
  }
  return first != nullptr ? first : *names.begin();
}

/// Qwen: a layer has experts unless mlp_only_layers names it or decoder_sparse_step skips it.
void read_sparse_step(ObjectReader& reader, const ModelSpec& spec, MoeSpec& moe) {
  std::int64_t step = 1;
  reader.optional("decoder_sparse_step", step, kConfigSize);
  std::vector<std::int64_t> dense;
  const Node* node = reader.find("mlp_only_layers");
  if (node != nullptr && !node->is(Node::Kind::null)) {
    reader.list("mlp_only_layers", dense, Whole{.least = 0, .most = spec.layers - 1});
  }
  if (step < 1) return;
  std::vector<bool> plain(static_cast<std::size_t>(spec.layers), false);
  for (const std::int64_t layer : dense) {
    if (layer >= 0 && layer < spec.layers) plain[static_cast<std::size_t>(layer)] = true;
  }
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    if (plain[static_cast<std::size_t>(layer)] || (layer + 1) % step != 0) {
      moe.dense_layers.push_back(layer);
    }
  }
}

/// mlp_layer_types, or the first `dense` layers with a plain MLP.
void read_mlp_layers(ObjectReader& reader, std::int64_t dense, const ModelSpec& spec,
                     MoeSpec& moe) {
  std::vector<std::string> types;
  const Node* const node = reader.find("mlp_layer_types");
  if (node != nullptr && !node->is(Node::Kind::null)) reader.list("mlp_layer_types", types);
  if (!types.empty() && static_cast<std::int64_t>(types.size()) != spec.layers) {
    reader.refuse("mlp_layer_types", "one entry per layer");
    return;
  }
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    if (types.empty() ? layer < dense : types[static_cast<std::size_t>(layer)] == "dense") {
      moe.dense_layers.push_back(layer);
    } else if (!types.empty() && types[static_cast<std::size_t>(layer)] != "sparse") {
      reader.refuse("mlp_layer_types", "'" + types[static_cast<std::size_t>(layer)] + "'",
                    "dense or sparse", "");
      return;
    }
  }
}

void read_deepseek_experts(ObjectReader& reader, const ExpertFacts& facts, const ModelSpec& spec,
                           MoeSpec& moe) {
  std::int64_t shared = facts.default_shared, dense = facts.default_dense, frequency = 1;
  if (const Node* node = reader.find("n_shared_experts")) {
    if (node->is(Node::Kind::null)) shared = 0;
  }
  reader.optional("n_shared_experts", shared, Whole{.least = 0, .most = 1 << 16});
  moe.shared_ffn = shared * moe.expert_ffn;
  reader.optional("first_k_dense_replace", dense, kNotNegative);
  read_mlp_layers(reader, dense, spec, moe);
  reader.optional("moe_layer_freq", frequency);
  if (frequency != 1) reader.refuse("moe_layer_freq", "1: experts in every later layer");
  std::string score(name_of(moe.score));
  reader.optional("scoring_func", score);
  if (score != name_of(moe.score)) {
    reader.refuse("scoring_func", std::string(name_of(moe.score)) + ", as this architecture has");
  }
  reader.optional("norm_topk_prob", moe.normalised);
  moe.scale = facts.default_scale;
  reader.optional("routed_scaling_factor", moe.scale, kAboveZero);
  std::string method = facts.default_method;
  reader.optional("topk_method", method);
  if (method == "greedy") return;  // no groups
  moe.groups = facts.default_groups;
  moe.groups_per_token = facts.default_groups_per_token;
  reader.optional("n_group", moe.groups, kConfigSize);
  reader.optional("topk_group", moe.groups_per_token, kConfigSize);
}

/// DeepSeek-V4: experts in every layer, which a table names in those of mlp_layer_types' hash_moe
/// or in the first num_hash_layers; the shared one is as wide as a routed one.
void read_hashed_experts(ObjectReader& reader, const ExpertFacts& facts, const ModelSpec& spec,
                         MoeSpec& moe) {
  std::int64_t shared = facts.default_shared, hashed = 3;
  reader.optional("n_shared_experts", shared, kNotNegative);
  if (shared != 1) reader.refuse("n_shared_experts", "1, as every layer of the class has");
  moe.shared_ffn = moe.expert_ffn;
  moe.scale = facts.default_scale;
  reader.optional("routed_scaling_factor", moe.scale, kAboveZero);
  std::string score(name_of(moe.score));
  reader.optional("scoring_func", score);
  if (score != name_of(moe.score)) {
    reader.refuse("scoring_func",
                  std::string(name_of(moe.score)) + ", as DeepSeek-V4 was published");
  }
  reader.optional("num_hash_layers", hashed, kNotNegative);
  std::vector<std::string> types;
  const Node* const node = reader.find("mlp_layer_types");
  if (node != nullptr && !node->is(Node::Kind::null)) reader.list("mlp_layer_types", types);
  if (!types.empty() && static_cast<std::int64_t>(types.size()) != spec.layers) {
    return reader.refuse("mlp_layer_types", "one entry per layer");
  }
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    const std::string type = !types.empty()   ? types[static_cast<std::size_t>(layer)]
                             : layer < hashed ? "hash_moe"
                                              : "moe";
    if (type == "hash_moe") {
      moe.hash_layers.push_back(layer);
    } else if (type != "moe") {
      return reader.refuse("mlp_layer_types", "'" + type + "'", "moe or hash_moe", "");
    }
  }
}

/// Hy3: mlp_layer_types, or the first layer dense.
void read_hunyuan_experts(ObjectReader& reader, const ExpertFacts& facts, const ModelSpec& spec,
                          MoeSpec& moe) {
  std::int64_t shared = facts.default_shared;
  reader.optional("num_shared_experts", shared, Whole{.least = 1, .most = 1 << 16});
  moe.shared_ffn = shared * moe.expert_ffn;
  moe.scale = facts.default_scale;
  reader.optional("router_scaling_factor", moe.scale, kAboveZero);
  read_mlp_layers(reader, facts.default_dense, spec, moe);
}

/// Llama 4: moe_layers, or every interleave_moe_layer_step-th layer; the shared expert is as wide
/// as a routed one.
void read_llama4_experts(ObjectReader& reader, const ModelSpec& spec, MoeSpec& moe) {
  reader.required("intermediate_size", moe.expert_ffn, kConfigSize);
  moe.shared_ffn = moe.expert_ffn;
  std::int64_t step = 1;
  reader.optional("interleave_moe_layer_step", step, kConfigSize);
  const Node* const node = reader.find("moe_layers");
  const bool listed = node != nullptr && !node->is(Node::Kind::null);
  std::vector<std::int64_t> sparse;
  if (listed) reader.list("moe_layers", sparse, Whole{.least = 0, .most = spec.layers - 1});
  if (step < 1) return;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    const bool has = listed ? std::find(sparse.begin(), sparse.end(), layer) != sparse.end()
                            : (layer + 1) % step == 0;
    if (!has) moe.dense_layers.push_back(layer);
  }
}

/// Nemotron-H: which layers have experts its blocks say.
void read_block_experts(ObjectReader& reader, MoeSpec& moe) {
  reader.required("moe_shared_expert_intermediate_size", moe.shared_ffn, kConfigSize);
  std::int64_t shared = 1;
  reader.optional("n_shared_experts", shared, kNotNegative);
  if (shared != 1) reader.refuse("n_shared_experts", "1, as Nemotron-H has in every such layer");
  reader.optional("moe_latent_size", moe.latent, kConfigSize);
  reader.optional("norm_topk_prob", moe.normalised);
  reader.optional("routed_scaling_factor", moe.scale, kAboveZero);
  reader.optional("n_group", moe.groups, kConfigSize);
  reader.optional("topk_group", moe.groups_per_token, kConfigSize);
}

/// Ernie 4.5: every moe_layer_interval-th layer from the first to the last index.
void read_ernie_experts(ObjectReader& reader, const ExpertFacts& facts, const ModelSpec& spec,
                        MoeSpec& moe) {
  std::int64_t shared = facts.default_shared, first = facts.default_dense, last = -1, interval = 1;
  reader.optional("moe_num_shared_experts", shared, kNotNegative);
  moe.shared_ffn = shared * moe.expert_ffn;
  reader.optional("moe_layer_start_index", first, kNotNegative);
  reader.optional("moe_layer_end_index", last, Whole{.least = -1, .most = kConfigSize.most});
  reader.optional("moe_layer_interval", interval, kConfigSize);
  if (last < 0) last = spec.layers - 1;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    const bool has = layer >= first && layer <= last && (layer + 1) % interval == 0;
    if (!has) moe.dense_layers.push_back(layer);
  }
}

/// HunYuan V1: a number, or the same one for each layer.
void read_alike_count(ObjectReader& reader, const char* key, std::int64_t& count) {
  constexpr Whole kCount{.least = 1, .most = 1 << 16};
  const Node* const node = reader.find(key);
  if (node == nullptr || !node->is(Node::Kind::list)) return reader.required(key, count, kCount);
  std::vector<std::int64_t> each;
  reader.list(key, each, kCount);
  if (each.empty()) return;
  count = each.front();
  if (std::count(each.begin(), each.end(), count) != std::ssize(each)) {
    reader.refuse(key, "the same number for all layers");
  }
}

/// The key that counts the routed experts; renamed keys are read under all their names.
const char* experts_key(ObjectReader& reader, ExpertKeys keys) {
  switch (keys) {
    case ExpertKeys::mixtral:
    case ExpertKeys::llama4:
      return present(reader, {"num_local_experts", "num_experts"});
    case ExpertKeys::ernie:
      return present(reader, {"moe_num_experts", "num_experts"});
    case ExpertKeys::qwen:
    case ExpertKeys::olmoe:
    case ExpertKeys::hunyuan:
    case ExpertKeys::hunyuan_v1:
      return present(reader, {"num_experts", "num_local_experts"});
    case ExpertKeys::deepseek:
    case ExpertKeys::blocks:
    case ExpertKeys::hashed:
      break;
  }
  return present(reader, {"n_routed_experts", "num_local_experts", "num_experts"});
}

void check_experts(ObjectReader& reader, const ModelSpec& spec, const MoeSpec& moe,
                   const char* counted) {
  if (moe.experts_per_token > moe.experts) {
    reader.refuse("num_experts_per_tok",
                  "at most as many as there are experts (" + std::to_string(moe.experts) + ")");
  }
  if (moe.experts > 0 && moe.experts % moe.groups != 0) {
    reader.refuse("n_group", "a divisor of " + std::string(counted) + " (" +
                                 std::to_string(moe.experts) + ")");
  }
  if (moe.groups_per_token > moe.groups) {
    reader.refuse("topk_group", "at most n_group (" + std::to_string(moe.groups) + ")");
  }
  if (static_cast<std::int64_t>(moe.dense_layers.size()) == spec.layers && spec.layers > 0) {
    reader.refuse(counted, "experts in one layer at least",
                  "every layer of this config has a plain MLP");
  }
}

}  // namespace

void read_moe(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec) {
  if (!facts.experts) return;
  if (facts.keys == ConfigKeys::blocks && block_count(spec, LayerBlock::experts) == 0) return;
  const ExpertFacts& experts = *facts.experts;
  constexpr Whole kCount{.least = 1, .most = 1 << 16};
  MoeSpec moe;
  const char* const counted = experts_key(reader, experts.keys);
  const bool first_hunyuan = experts.keys == ExpertKeys::hunyuan_v1;
  if (first_hunyuan) {
    read_alike_count(reader, counted, moe.experts);
    read_alike_count(reader, present(reader, {"moe_topk", "num_experts_per_tok"}),
                     moe.experts_per_token);
  } else {
    reader.required(counted, moe.experts, kCount);
    reader.required(present(reader, {"num_experts_per_tok", "experts_per_token", "moe_k"}),
                    moe.experts_per_token, kCount);
  }
  moe.expert_ffn = spec.ffn;
  if (first_hunyuan) moe.shared_ffn = spec.ffn;
  const bool wide_as_mlp = first_hunyuan || experts.keys == ExpertKeys::mixtral ||
                           experts.keys == ExpertKeys::llama4 || experts.keys == ExpertKeys::olmoe;
  if (!wide_as_mlp) reader.required("moe_intermediate_size", moe.expert_ffn, kConfigSize);
  moe.normalised = experts.normalised;
  moe.router_bias = experts.router_bias;
  moe.score = experts.score;
  moe.correction_bias = experts.correction_bias;
  if (experts.keys == ExpertKeys::qwen) {
    if (!experts.every_layer) {
      reader.optional("norm_topk_prob", moe.normalised);
      read_sparse_step(reader, spec, moe);
    }
  }
  if (experts.gated_shared) {
    reader.required("shared_expert_intermediate_size", moe.shared_ffn, kConfigSize);
    moe.shared_gate = true;
  }
  if (experts.keys == ExpertKeys::deepseek) read_deepseek_experts(reader, experts, spec, moe);
  if (experts.keys == ExpertKeys::olmoe) reader.optional("norm_topk_prob", moe.normalised);
  if (experts.keys == ExpertKeys::ernie) read_ernie_experts(reader, experts, spec, moe);
  if (experts.keys == ExpertKeys::hunyuan) read_hunyuan_experts(reader, experts, spec, moe);
  if (experts.keys == ExpertKeys::blocks) read_block_experts(reader, moe);
  if (experts.keys == ExpertKeys::llama4) read_llama4_experts(reader, spec, moe);
  if (experts.keys == ExpertKeys::hashed) read_hashed_experts(reader, experts, spec, moe);
  check_experts(reader, spec, moe, counted);
  spec.moe = std::move(moe);
}

void read_mtp(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec) {
  if (!facts.default_mtp_layers) return;
  spec.mtp_layers = *facts.default_mtp_layers;
  const char* const key =
      present(reader, {"num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers"});
  reader.optional(key, spec.mtp_layers, Whole{.least = 0, .most = 1 << 10});
}

void read_mla(ObjectReader& reader, ModelSpec& spec) {
  MlaSpec mla;
  const Node* compressed = reader.find("q_lora_rank");
  if (compressed == nullptr) {
    reader.refuse("q_lora_rank", "a size, or null where queries are not compressed");
  }
  reader.optional("q_lora_rank", mla.q_lora_rank, kConfigSize);
  reader.required("kv_lora_rank", mla.kv_lora_rank, kConfigSize);
  reader.required("qk_nope_head_dim", mla.qk_nope_head_dim, kConfigSize);
  reader.required("qk_rope_head_dim", mla.qk_rope_head_dim, kConfigSize);
  reader.required("v_head_dim", mla.v_head_dim, kConfigSize);
  if (mla.qk_rope_head_dim % 2 != 0) {
    reader.refuse("qk_rope_head_dim", "an even number (rotary pairs)");
  }
  spec.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  spec.kv_heads = spec.query_heads;
  spec.mla = mla;
}

}  // namespace tessera
