#include "cost_models/spec/context_parallel.h"

namespace tessera {

std::string context_refusal(const ModelSpec& model, const ParallelLayout& layout) {
  if (layout.cp == 1) return {};
  if (!layout.ulysses) {
    if (model.sliding_window == 0) return {};
    return "a ring over keys (cp) does not know the model's sliding window; ulysses does";
  }
  const std::int64_t parts = static_cast<std::int64_t>(layout.tp) * layout.cp;
  if (model.query_heads % parts == 0) return {};
  return "ulysses deals the " + std::to_string(model.query_heads) +
         " query heads out evenly, and tp x cp = " + std::to_string(parts) +
         " does not divide them";
}

}  // namespace tessera
