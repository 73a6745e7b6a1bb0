#include "cost_models/packing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/lengths.h"

namespace tessera {
namespace {

constexpr int kSample = 128;           // lengths that stand for all
constexpr double kManySequences = 16;  // of a micro-batch: what packing leaves free is small
constexpr double kDeviations = 2;      // of a batch's tokens, which 98 of 100 batches do not exceed

bool within_limit(const std::vector<PackedPart>& parts, std::int64_t limit) {
  return std::all_of(parts.begin(), parts.end(), [&](const PackedPart& part) {
    return part.responses.size() <= 1 || part.tokens <= limit;
  });
}

/// The length that `share` of the responses exceed.
std::int64_t length_beyond(const LengthSpec& lengths, double share, double horizon) {
  double low = 0, high = horizon;
  while (high - low > 0.5) {
    const double middle = (low + high) / 2;
    (survival(lengths, middle) > share ? low : high) = middle;
  }
  return std::max<std::int64_t>(1, std::llround(high));
}

}  // namespace

std::vector<PackedPart> longest_first(const std::vector<std::int64_t>& responses,
                                      std::int64_t prompt, int parts, std::size_t most) {
  std::vector<PackedPart> result(static_cast<std::size_t>(parts));
  using Load = std::pair<std::int64_t, std::size_t>;  // (tokens, part)
  std::priority_queue<Load, std::vector<Load>, std::greater<>> open;
  for (std::size_t i = 0; i < result.size(); ++i) open.emplace(0, i);
  for (const std::int64_t response : responses) {
    TESSERA_CHECK(!open.empty());
    const std::size_t least = open.top().second;
    open.pop();
    PackedPart& part = result[least];
    part.tokens += prompt + response;
    part.responses.push_back(response);
    if (part.responses.size() < most) open.emplace(part.tokens, least);
  }
  return result;
}

std::vector<PackedPart> in_micro_batches(const PackedPart& replica, std::int64_t prompt,
                                         int count) {
  std::vector<PackedPart> parts =
      longest_first(replica.responses, prompt, count, replica.responses.size());
  std::stable_sort(parts.begin(), parts.end(),
                   [](const PackedPart& a, const PackedPart& b) { return a.tokens > b.tokens; });
  return parts;
}

std::vector<PackedPart> packed(const PackedPart& replica, std::int64_t prompt, std::int64_t limit,
                               int count) {
  const auto sequences = static_cast<int>(replica.responses.size());
  if (sequences == 0) return {};
  if (limit > 0) {
    count = std::max<int>(count, static_cast<int>((replica.tokens + limit - 1) / limit));
  }
  count = std::min(count, sequences);
  std::vector<PackedPart> parts = in_micro_batches(replica, prompt, count);
  while (limit > 0 && count < sequences && !within_limit(parts, limit)) {
    parts = in_micro_batches(replica, prompt, ++count);
  }
  return parts;
}

int batches_of_round(InterleavedCount rule, int pp, int vpp) {
  return vpp > 1 && rule != InterleavedCount::any ? pp : 1;
}

bool fills_rounds(InterleavedCount rule, int pp, int vpp, std::int64_t sequences) {
  const int round = batches_of_round(rule, pp, vpp);
  if (round == 1) return true;
  return sequences >= round && (rule != InterleavedCount::equal || sequences % round == 0);
}

double whole_rounds(double count, double sequences, int round) {
  if (round == 1) return count;
  const double most = std::floor(sequences / round) * round;
  return std::max(count > most ? most : std::ceil(count / round) * round, 1.0);
}

ExpectedPacking::ExpectedPacking(const LengthSpec& responses, std::int64_t prompt)
    : prompt_(prompt), mean_(static_cast<double>(prompt) + mean_length(responses)) {
  if (responses.cv <= 0) return;
  const double response = mean_length(responses);
  const double variance = mean_square_length(responses) - response * response;
  deviation_ = std::sqrt(std::max(0.0, variance)) / mean_;
  const double horizon = length_horizon(responses, kSample);
  for (int i = 0; i < kSample; ++i) {
    const std::int64_t length = length_beyond(responses, (i + 0.5) / kSample, horizon);
    sample_.responses.push_back(length);
    sample_.tokens += prompt + length;
  }
}

double ExpectedPacking::sequences(std::int64_t limit) const {
  const double filled = static_cast<double>(limit) / mean_;
  if (filled >= kManySequences) return filled;
  if (sample_.responses.empty()) return filled < 1 ? filled : std::floor(filled);
  const auto parts = static_cast<double>(packed(sample_, prompt_, limit, 1).size());
  return std::min(filled, kSample / parts);
}

double ExpectedPacking::micro_batches(double sequences, int replicas, double held) const {
  const double batch = std::max(1.0, sequences * replicas);
  return std::ceil(sequences * (1 + kDeviations * deviation_ / std::sqrt(batch)) / held);
}

}  // namespace tessera
