// The tokens that end a model's responses, and whether its vocabulary holds all that prompts use.
//
// Pure functions; files are read where they are named.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

/// eos_token_id of `folder`/generation_config.json, a number or a list; empty where the folder has
/// no such file or it names none. nullopt-like on Problems: empty with something in `problems`.
std::vector<std::int32_t> end_tokens(const std::filesystem::path& folder, Problems& problems);

/// The token that eos_token of `folder`/tokenizer_config.json names, a text or a map with its
/// content; nothing where the folder has no such file, or it names none.
std::string end_token_of_tokenizer(const std::filesystem::path& folder, Problems& problems);

/// A Problem where an id of `prompts` or `ends` is not below `vocabulary`: the tokenizer is another
/// model's, or the embedding was not resized. `place_of` says where a prompt stands.
void check_vocabulary(const std::vector<std::vector<std::int32_t>>& prompts,
                      const std::vector<std::int32_t>& ends, std::int64_t vocabulary,
                      const std::filesystem::path& folder,
                      const std::function<std::string(std::size_t prompt)>& place_of,
                      Problems& problems);

}  // namespace tessera
