#include "executor/vllm/placement.h"

#include <map>

namespace tessera {
namespace {

/// DEFAULT_VOCAB_PADDING_SIZE of vllm/model_executor/layers/vocab_parallel_embedding.py.
constexpr std::int64_t kVocabPadding = 64;

std::int64_t padded_vocab(std::int64_t rows) {
  return (rows + kVocabPadding - 1) / kVocabPadding * kVocabPadding;
}

struct Held {
  Interval range;          // of the checkpoint's dim
  std::int64_t zeros = 0;  // behind it
};

/// QKVParallelLinear.__init__: where there are more workers than KV heads, each holds one of them.
Interval kv_heads(std::int64_t heads, std::int64_t tp, std::int64_t rank) {
  if (tp < heads) return split(heads, tp, rank);
  const std::int64_t head = rank / (tp / heads);
  return {head, head + 1};
}

/// VocabParallelEmbedding._get_indices, without added tokens.
Held vocab_rows(std::int64_t rows, std::int64_t tp, std::int64_t rank) {
  const std::int64_t each = padded_vocab(rows) / tp;
  const Interval held = intersect(Interval{rank * each, (rank + 1) * each}, Interval{0, rows});
  return {held.empty() ? Interval{} : held, each - held.size()};
}

Held held_of(const Parameter& row, std::int64_t tp, std::int64_t rank) {
  const auto units = [&](Interval range) {
    return Held{{range.lo * row.unit_size, range.hi * row.unit_size}};
  };
  switch (row.unit) {
    case SplitUnit::vocab_rows:
      return vocab_rows(row.units, tp, rank);
    case SplitUnit::kv_heads:
      return units(kv_heads(row.units, tp, rank));
    case SplitUnit::query_heads:
    case SplitUnit::ffn_columns:
      return units(split(row.units, tp, rank));
    case SplitUnit::none:
    case SplitUnit::expert_columns:  // no table of a dense decoder with attention has
    case SplitUnit::linear_heads:    // the last two
      break;
  }
  return {{0, row.shape.front()}};
}

void refuse_indivisible(std::vector<std::string>& reasons, std::int64_t count,
                        const std::string& what, std::int64_t tp) {
  if (count % tp == 0) return;
  reasons.push_back("vLLM divides its " + std::to_string(count) + " " + what + " evenly, which " +
                    std::to_string(tp) + " tensor-parallel workers cannot");
}

}  // namespace

std::vector<VllmPart> vllm_parts(const ParameterTable& table, int tp, int tp_rank) {
  std::vector<VllmPart> parts;
  std::map<std::string, std::int64_t> filled;  // of a parameter, by its parts so far
  for (std::size_t index = 0; index < table.rows.size(); ++index) {
    const Parameter& row = table.rows[index];
    const int dim = row.split_dim < 0 ? 0 : row.split_dim;
    const Held held = held_of(row, tp, tp_rank);
    const std::string parameter = row.storage.empty() ? row.name : row.storage;
    std::int64_t& at = filled[parameter];
    parts.push_back({.row = static_cast<int>(index),
                     .parameter = parameter,
                     .box = restricted(whole(row.shape), dim, held.range),
                     .dim = dim,
                     .at = at,
                     .zeros = held.zeros});
    at += held.range.size();
  }
  return parts;
}

std::vector<std::string> vllm_refusals(const ModelSpec& model, const ParallelLayout& layout) {
  std::vector<std::string> reasons;
  const std::int64_t tp = layout.tp;
  const auto refuse_if = [&](bool is, const char* reason) {
    if (is) reasons.emplace_back(reason);
  };
  refuse_if(model.moe.has_value(), "weights of routed experts are not brought to vLLM");
  refuse_if(model.mla.has_value(),
            "vLLM keeps products of latent attention's weights, which are not brought to it");
  refuse_if(model.vision.has_value(), "a vision tower's weights are not brought to vLLM");
  refuse_if(model.learned_positions, "models with learned positions are not brought to vLLM");
  refuse_if(model.head == ModelHead::value, "vLLM generates with a language model's head only");
  refuse_if(layout.pp > 1, "pipeline stages are not brought to vLLM");
  refuse_if(layout.cp > 1, "vLLM's workers have no context parallelism here");
  refuse_indivisible(reasons, model.query_heads, "query heads", tp);
  const std::int64_t kv = model.kv_heads;
  if (tp < kv ? kv % tp != 0 : tp % kv != 0) {
    reasons.push_back("vLLM gives each worker whole KV heads, or one head to equally many: " +
                      std::to_string(kv) + " heads and " + std::to_string(tp) +
                      " workers divide neither way");
  }
  refuse_indivisible(reasons, model.ffn, "columns of the MLP", tp);
  refuse_indivisible(reasons, padded_vocab(model.vocab), "rows of the padded vocabulary", tp);
  return reasons;
}

}  // namespace tessera
