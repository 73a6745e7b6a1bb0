#include "planner/engines/vllm_weights.h"

namespace tessera {
namespace {

/// DEFAULT_VOCAB_PADDING_SIZE of vllm/model_executor/layers/vocab_parallel_embedding.py.
constexpr std::int64_t kVocabPadding = 64;

void refuse_indivisible(std::vector<std::string>& reasons, std::int64_t count,
                        const std::string& what, std::int64_t tp) {
  if (count % tp == 0) return;
  reasons.push_back("vLLM divides its " + std::to_string(count) + " " + what + " evenly, which " +
                    std::to_string(tp) + " tensor-parallel workers cannot");
}

}  // namespace

std::int64_t vllm_padded_vocab(std::int64_t rows) {
  return (rows + kVocabPadding - 1) / kVocabPadding * kVocabPadding;
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
  refuse_indivisible(reasons, vllm_padded_vocab(model.vocab), "rows of the padded vocabulary", tp);
  return reasons;
}

}  // namespace tessera
