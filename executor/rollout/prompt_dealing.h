// Which prompts a replica of the rollout takes, and in which order they enter, by how long their
// responses are expected to be.
//
// Expected lengths are those of earlier responses to the same prompt, or limits of single samples
// (a replay). Every replica gets as many prompts as by the split rule; long responses are spread
// over the replicas, and a replica begins with its longest, so that few are left at the end. Where
// nothing is known prompts stay in their order. Alike on every rank; what a sequence says depends
// on none of it (sampling.h). Pure functions; no torch.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "executor/rl/experience.h"
#include "executor/rollout/request_queue.h"

namespace tessera {

/// What is known of the responses to single prompts, by their rows of the data.
using KnownLengths = std::map<std::int64_t, ExpectedTokens>;

/// The row of the data that a group's uid names: digits before the first other character.
std::int64_t row_of(std::string_view uid);

/// Replaces what is known of the prompts of these sequences.
void remember_lengths(std::span<const Sequence> sequences, KnownLengths& known);
/// Moves what is newly known over what was known before.
void keep_lengths(KnownLengths& fresh, KnownLengths& known);
/// Fills `expected` of prompts that are known.
void expect_lengths(const KnownLengths& known, std::span<TokenPrompt> prompts);

/// The share of a data-parallel replica in the order in which it enters: where lengths are known
/// the prompt with most tokens left goes to the replica with fewest that may have one more (longest
/// processing time first, Graham 1969), else consecutive prompts. Prompts of unknown length count
/// as the mean of the others.
std::vector<TokenPrompt> prompts_of_replica(std::span<const TokenPrompt> prompts, int replicas,
                                            int replica);

}  // namespace tessera
