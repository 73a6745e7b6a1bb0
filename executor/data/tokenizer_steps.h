// The steps around a tokenizer's model in tokenizer.json: normalizer, pre-tokenizer and decoder.
//
// Internal to the tokenizer's reader. Two kinds of vocabulary are known: byte-level ones, and those
// of SentencePiece (Llama 2, Mistral), whose tokens are text with a mark for spaces.
#pragma once

#include "executor/data/tokenizer_nodes.h"
#include "executor/data/tokenizer_tables.h"

namespace tessera {

/// Fills the steps of `tables`, whose model has been read. What is of neither kind is refused.
void read_steps(const Node& root, TokenizerNodes& nodes, TokenizerTables& tables);

}  // namespace tessera
