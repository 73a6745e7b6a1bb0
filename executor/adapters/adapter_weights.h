// A rank's low-rank adapters: Weights of a table of their own (adapter_table of
// cost_models/adapters.h), drawn or read, and their place beside the weights of the model.
//
// Owned by the role's worker, as the model's weights are. One thread.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <filesystem>

#include "cost_models/adapters.h"
#include "cost_models/documents/problem_list.h"
#include "executor/weights/weights.h"

namespace tessera {

/// Adapters of the model whose weights the rank holds, alike in type and place of memory; zeros.
Weights make_adapters(const Weights& weights, const Lora& lora);

/// alpha / rank, by which adapters count; 0: there are none.
double adapter_scale(const Lora& lora);

/// As peft begins: A uniform in +- 1 / sqrt(in) (Kaiming's with a = sqrt(5)), B zero. An element
/// depends on the seed, its tensor's name and its place there only.
void draw_adapters(Weights& adapters, std::uint64_t seed);

/// The rank's parts of the tensors of a folder that peft has written (peft_folder.h). Appends what
/// is missing, misshapen or none of the adapters.
void load_adapters(Weights& adapters, const std::filesystem::path& folder, Problems& problems);

/// From now on the products of `weights` have the adapters added, which they share.
void attach_adapters(Weights& weights, const Weights& adapters, const Lora& lora);

}  // namespace tessera
