// The trainer's passes without gradients: log-probs, values, scores.
#include <algorithm>
#include <optional>
#include <utility>

#include "executor/train/share_results.h"
#include "executor/train/trainer.h"

namespace tessera {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// Channels of values by sequence, from those of each replica's micro-batches: `largest` a replica,
/// count(s) of sequence s in every channel.
template <class Count>
std::vector<TokenValues> by_sequence(const std::vector<std::vector<std::vector<int>>>& plans,
                                     const std::vector<float>& all, std::size_t largest,
                                     std::vector<TokenValues> result, Count count) {
  for (std::size_t r = 0; r < plans.size(); ++r) {
    const float* next = all.data() + r * largest;
    for (const auto& sequences : plans[r])
      for (TokenValues& channel : result)
        for (const int s : sequences) {
          channel[index(s)].assign(next, next + count(s));
          next += count(s);
        }
  }
  return result;
}

/// Takes the adapters of weights off while it lives.
class WithoutAdapters {
 public:
  explicit WithoutAdapters(Weights& weights)
      : weights_(weights), adapters_(std::exchange(weights.adapters, {})) {}
  ~WithoutAdapters() { weights_.adapters = std::move(adapters_); }
  WithoutAdapters(const WithoutAdapters&) = delete;

 private:
  Weights& weights_;
  std::vector<LowRank> adapters_;
};

}  // namespace

LogProbs Trainer::log_probs(std::span<const TokenSequence> batch, const InferOptions& options) {
  std::optional<WithoutAdapters> without;
  if (!options.adapters) without.emplace(weights_);
  ExpertNotes notes(weights_, batch, options.note_experts);
  std::vector<TokenValues> channels = infer(batch, Wanted::log_probs, options, &notes);
  LogProbs result{.log_prob = std::move(channels[0])};
  if (options.entropy) result.entropy = std::move(channels[1]);
  if (options.sum_pi_squared) result.sum_pi_squared = std::move(channels.back());
  result.routed_experts = notes.shared(groups_);
  return result;
}

TokenValues Trainer::values(std::span<const TokenSequence> batch, const InferOptions& options) {
  return std::move(infer(batch, Wanted::values, options)[0]);
}

std::vector<float> Trainer::scores(std::span<const TokenSequence> batch,
                                   const InferOptions& options) {
  const TokenValues last_values = std::move(infer(batch, Wanted::last_value, options)[0]);
  std::vector<float> scores;
  for (const std::vector<float>& last : last_values) scores.push_back(last.front());
  return scores;
}

std::vector<TokenValues> Trainer::infer(std::span<const TokenSequence> batch, Wanted wanted,
                                        const InferOptions& options, ExpertNotes* notes) {
  const torch::NoGradGuard no_grad;
  const std::vector<MicroBatches> plans = plan(batch, options.token_limit);
  const MicroBatches& mine = plans[index(groups_.dp_rank)];
  const bool entropy = wanted == Wanted::log_probs && options.entropy;
  const bool squares = wanted == Wanted::log_probs && options.sum_pi_squared;
  std::vector<torch::Tensor> outputs;
  begin_pass(/*training=*/false);
  infer_pipeline(links_, shape(batch, mine), [&](int m, int chunk, const torch::Tensor& input) {
    const PackedMicroBatch packed = this->packed(batch, mine[index(m)]);
    StageOptions asked{.chunk = chunk,
                       .replay = replay_of(weights_, chunk, batch, mine[index(m)], packed, slice()),
                       .order = options.order};
    if (notes != nullptr) asked.replay.noted = notes->room(chunk, packed);
    const torch::Tensor hidden = forward(packed, input, asked);
    if (notes != nullptr) notes->take(asked.replay.noted, chunk, mine[index(m)], packed, slice());
    if (!is_last_chunk(weights_, chunk)) return hidden;
    if (mine[index(m)].empty()) return torch::Tensor();
    if (wanted == Wanted::log_probs) {
      const TokenScores scores = scored(hidden.index_select(0, packed.rows), packed,
                                        {.temperature = options.temperature,
                                         .entropy = entropy,
                                         .sum_pi_squared = squares,
                                         .order = options.order});
      for (const torch::Tensor& one : {scores.log_prob, scores.entropy, scores.sum_pi_squared}) {
        if (one.defined()) outputs.push_back(whole_values(groups_, one, packed.row_owners));
      }
    } else {
      const bool each = wanted == Wanted::values;
      const torch::Tensor& rows = each ? packed.rows : packed.last_rows;
      outputs.push_back(whole_values(groups_, token_values(weights_, hidden.index_select(0, rows)),
                                     each ? packed.row_owners : packed.last_owners));
    }
    return torch::Tensor();
  });
  end_pass();

  const std::size_t channels = 1 + (entropy ? 1 : 0) + (squares ? 1 : 0);
  const auto count = [&](int s) {
    return wanted == Wanted::last_value ? 1 : batch[index(s)].response.size();
  };
  std::size_t largest = 0;
  for (const MicroBatches& replica : plans) {
    std::size_t values = 0;
    for (const auto& sequences : replica)
      for (const int s : sequences) values += count(s) * channels;
    largest = std::max(largest, values);
  }
  const std::vector<float> all =
      share_results(groups_, outputs, static_cast<std::int64_t>(largest), weights_.device());
  return by_sequence(plans, all, largest, {channels, TokenValues(batch.size())}, count);
}

}  // namespace tessera
