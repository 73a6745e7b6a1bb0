#include "executor/train/packing.h"

#include <algorithm>
#include <cstdint>

#include "cost_models/spec/problem.h"
#include "executor/model/to_device.h"

namespace tessera {

PackedMicroBatch pack_micro_batch(std::span<const TokenSequence> batch,
                                  std::span<const int> sequences, torch::Device device,
                                  std::int64_t multiple) {
  const auto count = static_cast<std::int64_t>(sequences.size());
  std::int64_t tokens = 0, responses = 0;
  for (const int s : sequences) {
    const TokenSequence& sequence = batch[static_cast<std::size_t>(s)];
    TESSERA_CHECK(!sequence.prompt.empty() && !sequence.response.empty());
    tokens += sequence.tokens();
    responses += static_cast<std::int64_t>(sequence.response.size());
  }
  const std::int64_t used = tokens;
  tokens = (std::max<std::int64_t>(used, 1) + multiple - 1) / multiple * multiple;
  const torch::Tensor host = torch::empty({2 * tokens + 2 * responses + count}, torch::kInt64);
  std::int64_t* ids = host.mutable_data_ptr<std::int64_t>();
  std::int64_t* positions = ids + tokens;
  std::int64_t* rows = positions + tokens;
  std::int64_t* targets = rows + responses;
  std::int64_t* last_rows = targets + responses;
  PackedMicroBatch packed;
  std::int64_t first = 0;
  for (const int s : sequences) {
    const TokenSequence& sequence = batch[static_cast<std::size_t>(s)];
    for (const std::int32_t id : sequence.prompt) *ids++ = id;
    for (const std::int32_t id : sequence.response) *ids++ = *targets++ = id;
    for (std::int64_t i = 0; i < sequence.tokens(); ++i) *positions++ = i;
    const std::int64_t predicting = first + static_cast<std::int64_t>(sequence.prompt.size()) - 1;
    for (std::size_t i = 0; i < sequence.response.size(); ++i)
      *rows++ = predicting + static_cast<std::int64_t>(i);
    packed.tokens.lengths.push_back(sequence.tokens());
    first += sequence.tokens();
    *last_rows++ = first - 1;
  }
  for (std::int64_t i = 0; i < tokens - used; ++i) {
    *ids++ = 0;
    *positions++ = i;
  }
  if (tokens > used) packed.tokens.lengths.push_back(tokens - used);
  const std::vector<torch::Tensor> parts =
      to_device(host, device).split_with_sizes({tokens, tokens, responses, responses, count});
  packed.tokens.ids = parts[0];
  packed.tokens.positions = parts[1];
  packed.rows = parts[2];
  packed.targets = parts[3];
  packed.last_rows = parts[4];
  return packed;
}

}  // namespace tessera
