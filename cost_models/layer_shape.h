// The sizes that one layer's time and memory follow from, and which layers are alike.
//
// Plain values derived from a ModelSpec; elements of the whole model (no parallelism).
#pragma once

#include <cstdint>

#include "cost_models/spec/layer_kind.h"

namespace tessera {

struct LayerShape {
  std::int64_t hidden = 0;
  std::int64_t query_heads = 0, kv_heads = 0;
  std::int64_t key_dim = 0, value_dim = 0;  // of one head; equal but for latent attention
  /// Latent attention (DeepSeek-V2's MLA): ranks of the compressed query (0 = not compressed) and
  /// of the compressed keys and values, and the part of key_dim that carries the rotary embedding.
  std::int64_t query_rank = 0, kv_rank = 0, rope_dim = 0;
  std::int64_t window = 0;    // tokens that attention sees; 0 = all before
  bool chunked = false;       // it sees its chunk of so many tokens, up to itself
  double full_share = 0;      // part of the layers whose attention has no window all the same
  bool gated_output = false;  // attention's output is multiplied by a gate of its size
  int norms = 2;              // of the residual stream and of what is added to it
  bool mixes = true;          // a mixer of tokens stands in the layer, attention of whatever kind
  double rotary = 1;          // part of the layers whose queries and keys carry rotary positions
  /// Latent attention of the keys that an indexer chooses: its query heads and the elements of one,
  /// and of its key, keys that a query looks at.
  std::int64_t index_heads = 0, index_dim = 0, chosen = 0;
  /// DeepSeek-V4's attention: groups of heads of the output and elements that each is projected to,
  /// tokens of the window, and of the entries beside it (`chosen` of them, or all) the tokens that
  /// one stands for (0 = there are none) and the keys that each token adds to them.
  std::int64_t output_groups = 0, output_rank = 0, key_window = 0, entry_rate = 0, entry_keys = 0;
  /// Residual streams, and the weights that a token has at each place where they are mixed; 0 = one
  /// stream, which is added to.
  std::int64_t streams = 0, stream_weights = 0;
  /// Linear attention instead: elements of its queries (as many as of its keys) and values, value
  /// heads, elements of a head, tokens of its convolution (0 = none) and of a block of lightning
  /// attention (0 = a gated delta net).
  std::int64_t linear_keys = 0, linear_values = 0, linear_heads = 0, linear_key_dim = 0,
               linear_value_dim = 0, kernel = 0, linear_block = 0;
  /// A state-space mixer instead: heads and elements of one, groups and elements of a group's
  /// vector, tokens of a chunk (and `kernel` of its convolution).
  std::int64_t state_heads = 0, state_head_dim = 0, state_groups = 0, state_size = 0,
               state_chunk = 0;
  bool gated = true;     // gate and up projections, else one
  std::int64_t ffn = 0;  // columns of the dense MLP, or of all shared experts together
  std::int64_t experts = 0, experts_per_token = 0, expert_ffn = 0;  // experts 0 = dense layer
  std::int64_t expert_width = 0;  // elements of what experts take and give

  bool latent() const { return kv_rank > 0; }
  bool compressed() const { return output_groups > 0; }
  bool sparse() const { return experts > 0; }
  /// Experts take a projection of the hidden state.
  bool latent_experts() const { return sparse() && expert_width != hidden; }
  bool linear() const { return linear_heads > 0; }
  bool lightning() const { return linear_block > 0; }
  bool state_space() const { return state_heads > 0; }
  /// The layer is one block behind one norm, not attention and an MLP behind a norm each.
  bool one_block() const { return norms == 1; }
  /// Of a state-space mixer: elements of its gate, as many as of what its states take in, and of a
  /// vector of all groups.
  std::int64_t state_inner() const { return state_heads * state_head_dim; }
  std::int64_t state_vectors() const { return state_groups * state_size; }
  /// Elements of a token between two layers.
  std::int64_t stream() const { return hidden * (streams > 0 ? streams : 1); }
  /// Columns of the first MLP projection per column of the second's input.
  std::int64_t up_parts() const { return gated ? 2 : 1; }
};

LayerShape layer_shape(const ModelSpec& model, LayerKind kind);

}  // namespace tessera
