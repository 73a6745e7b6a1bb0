#include "cost_models/spec/context_parallel.h"

namespace tessera {

std::string context_refusal(const ModelSpec& model, const ParallelLayout& layout) {
  if (layout.cp == 1) return {};
  if (model.state_space)
    return "the states of Mamba-2 layers are not passed between parts of a sequence";
  if (model.indexer && !model.compressed) {
    return "an indexer chooses among the keys of a whole sequence, of which cp holds parts";
  }
  if (!layout.ulysses) {
    if (model.linear) {
      return "a ring over keys (cp) does not pass on the state of linear attention; ulysses deals "
             "its heads out";
    }
    if (model.sliding_window == 0) return {};
    return "a ring over keys (cp) does not know the model's sliding window; ulysses does";
  }
  const std::int64_t parts = static_cast<std::int64_t>(layout.tp) * layout.cp;
  if (model.linear && model.linear->key_heads % parts != 0) {
    return "ulysses deals the " + std::to_string(model.linear->key_heads) +
           " key heads of linear attention out evenly, and tp x cp = " + std::to_string(parts) +
           " does not divide them";
  }
  if (model.query_heads % parts == 0) return {};
  return "ulysses deals the " + std::to_string(model.query_heads) +
         " query heads out evenly, and tp x cp = " + std::to_string(parts) +
         " does not divide them";
}

}  // namespace tessera
