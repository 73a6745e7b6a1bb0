// Experience: one rollout, sequence by sequence, and everything later phases add to it.
//
// A plain value in host memory, one entry per response token in every per-token vector (or empty:
// not computed yet). Log-probs are natural logarithms at the sampling temperature. Sequences are
// kept in the order (prompt_index, sample_index); that pair identifies a sequence within a step,
// on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera {

class Communicator;

struct Sequence {
  std::int32_t prompt_index = 0;               // within the step's prompts
  std::int32_t sample_index = 0;               // within the prompt's samples
  std::string uid;                             // sequences with equal uid form one group (GRPO)
  std::vector<std::int32_t> prompt, response;  // token ids; the response holds its eos
  bool finished = false;                       // ended with an eos, not cut off
  std::vector<std::uint8_t> response_mask;     // empty = all ones; 0 = a hole (tool output)
  std::vector<std::uint8_t> rejected;          // empty = none; 1 = left out by rollout correction

  /// Which experts the first tokens of prompt and response went to, by token, layer with experts
  /// and choice; empty = not noted. The last token of a rollout goes nowhere.
  std::vector<std::int16_t> routed_experts;

  double score = 0;                // of the whole response
  std::vector<double> components;  // scores of single rewards, where an estimator reads them
  double greedy_score = 0;         // of the greedy answer to the prompt, likewise
  std::vector<float> rollout_log_prob, old_log_prob, ref_log_prob;
  std::vector<float> sum_pi_squared;      // over the vocabulary, of the old policy
  std::vector<float> rollout_is_weights;  // of rollout correction
  std::vector<float> values;              // of the critic, before the update
  std::vector<float> token_rewards;       // scores placed on tokens, KL subtracted if asked
  std::vector<float> advantages, returns;

  bool operator==(const Sequence&) const = default;
};

struct Experience {
  std::int64_t step = 0;
  std::vector<Sequence> sequences;

  bool operator==(const Experience&) const = default;
};

/// Parts of a Sequence that travel together; the identity pair always travels.
enum class SequenceField : std::uint32_t {
  tokens = 1u << 0,  // uid, prompt, response, finished, response_mask
  score = 1u << 1,
  rollout_log_prob = 1u << 2,
  old_log_prob = 1u << 3,
  ref_log_prob = 1u << 4,
  values = 1u << 5,
  token_rewards = 1u << 6,
  advantages = 1u << 7,
  returns = 1u << 8,
  sum_pi_squared = 1u << 9,
  routed_experts = 1u << 10,
};
using SequenceFields = std::uint32_t;
constexpr SequenceFields operator|(SequenceField a, SequenceField b) {
  return static_cast<SequenceFields>(a) | static_cast<SequenceFields>(b);
}
constexpr SequenceFields operator|(SequenceFields a, SequenceField b) {
  return a | static_cast<SequenceFields>(b);
}
inline constexpr SequenceFields kAllFields = (1u << 11) - 1;

/// Sorts by (prompt_index, sample_index).
void sort_sequences(Experience& experience);

/// Number of response tokens of all sequences (holes included).
std::int64_t response_tokens(const Experience& experience);

/// The chosen fields of `sequences` as bytes of this machine's byte order.
std::vector<std::byte> pack(std::span<const Sequence> sequences, SequenceFields fields);

/// Merges packed fields into `into`: a known sequence gets these fields, a new one is added; the
/// order is restored. Throws Error{internal} on bytes that pack() did not make.
void unpack(std::span<const std::byte> packed, Experience& into);

/// Every member contributes `mine` and receives the blocks of all members in rank order. `group`
/// works on host memory. Collective.
std::vector<std::vector<std::byte>> all_gather_bytes(Communicator& group,
                                                     std::span<const std::byte> mine);

}  // namespace tessera
