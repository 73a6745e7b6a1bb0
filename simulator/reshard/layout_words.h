// A layout as a command line writes it: "tp=8,pp=4", "fsdp", "tp=2,ep=8,order=megatron".
//
// A pure function; degrees count ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/parallel_layout.h"

namespace tessera {

struct WrittenLayout {
  ParallelLayout layout;
  RankOrder order = RankOrder::contiguous;
};

/// Keys are tp, cp, pp, vpp, dp, fsdp, ep, etp and order (contiguous, megatron); degrees that are
/// not written are 1, and dp is what is left of `gpus`. "fsdp" alone shards over all that is left.
/// nullopt and Problems where a word cannot be read or the layout is impossible for a model of so
/// many layers; `name` is how they call the text ("FROM").
std::optional<WrittenLayout> read_layout_words(const std::string& text, std::int64_t layers,
                                               std::int64_t gpus, const std::string& name,
                                               Problems& problems);

}  // namespace tessera
