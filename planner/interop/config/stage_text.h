// Megatron-LM's text of what each pipeline stage holds (--pipeline-model-parallel-layout;
// core/transformer/pipeline_parallel_layer_layout.py): E the embedding, t a decoder layer, m one
// that predicts further tokens, L the loss; | ends a stage, *n repeats what stands before it, a
// letter or what parentheses hold.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/spec/parallel_layout.h"

namespace tessera {

/// The decoder layers of each stage, of "Et*6|(t*5|)*3tL" 6, 5, 5, 5 and 1; nullopt where the text
/// cannot be read or has more than 65,536 letters.
std::optional<std::vector<std::int64_t>> stage_layers(std::string_view text);

/// Such a text of these stages, with so many layers of multi-token prediction in the last one.
std::string stage_text(const std::vector<LayerRange>& stages, std::int64_t mtp_layers);

/// Stages of as many layers each, in their order.
std::vector<LayerRange> stage_ranges(const std::vector<std::int64_t>& layers);

/// What tells the stages where those between the first and the last are alike: the layers of these
/// two where they have others (0 = as many as those between them). Of two stages the second is what
/// others are.
struct StageEnds {
  std::int64_t first = 0, last = 0;
  bool others_alike = true;
};
StageEnds stage_ends(const std::vector<LayerRange>& stages);

/// The layers of `stages` stages of which the first and the last have as many as is stated (0 = as
/// many as the others); nullopt where that does not come out.
std::optional<std::vector<std::int64_t>> even_but_for_ends(std::int64_t layers, std::int64_t stages,
                                                           std::int64_t first, std::int64_t last);

}  // namespace tessera
