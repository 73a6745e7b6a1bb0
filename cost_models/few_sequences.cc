#include "cost_models/few_sequences.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <random>
#include <span>
#include <utility>

#include "cost_models/lengths.h"

namespace tessera {
namespace {

constexpr double kFew = 16;            // sequences of a replica
constexpr std::size_t kPoints = 1024;  // lengths that stand for all, at least where these are fewer
constexpr double kSteps = 4;           // of a micro-batch; closer limits are not told apart
constexpr double kEven = 0.01;         // of a pass: less is not looked for

/// Tokens whose products take as long as as many squared ones do in attention: 6 times the width of
/// a 7B (verl 0.9.1's utils/seqlen_balancing.py, calculate_workload).
constexpr double kProducts = 24576;

struct Load {
  double tokens = 0, squared = 0, responses = 0;
  double work() const { return kProducts * tokens + squared; }
  Load& operator+=(const Load& other) {
    tokens += other.tokens;
    squared += other.squared;
    responses += other.responses;
    return *this;
  }
};

Load load_of(const PackedPart& part, std::int64_t prompt) {
  Load load;
  for (const std::int64_t response : part.responses) {
    const auto length = static_cast<double>(prompt + response);
    load += {length, length * length, static_cast<double>(response)};
  }
  return load;
}

std::vector<PackedPart> in_parts(const PackedPart& replica, std::int64_t prompt,
                                 std::size_t parts) {
  const std::size_t most = std::min(parts, replica.responses.size());
  return in_micro_batches(replica, prompt, static_cast<int>(most));
}

/// Of replicas that begin every micro-batch together: the slowest one's loads.
std::vector<Load> waited_for(std::span<const PackedPart> group, std::int64_t prompt,
                             std::size_t parts) {
  std::vector<Load> slowest(parts);
  for (const PackedPart& replica : group) {
    const std::vector<PackedPart> packed = in_parts(replica, prompt, parts);
    for (std::size_t m = 0; m < packed.size(); ++m) {
      const Load load = load_of(packed[m], prompt);
      if (load.work() > slowest[m].work()) slowest[m] = load;
    }
  }
  return slowest;
}

Load sum_of(const std::vector<Load>& loads) {
  Load sum;
  for (const Load& load : loads) sum += load;
  return sum;
}

/// Calls `with` the loads of each group of so many replicas.
template <class With>
void for_each_group(const std::vector<PackedPart>& replicas, int together, std::int64_t prompt,
                    std::size_t parts, const With& with) {
  const std::size_t size =
      std::min(static_cast<std::size_t>(std::max(together, 1)), replicas.size());
  for (std::size_t first = 0; first < replicas.size(); first += size) {
    const std::size_t here = std::min(size, replicas.size() - first);
    with(waited_for(std::span(replicas).subspan(first, here), prompt, parts));
  }
}

}  // namespace

FewSequences::FewSequences(const LengthSpec& responses, std::int64_t prompt, BatchOrder order)
    : responses_(responses), prompt_(prompt), order_(order) {}

bool FewSequences::are(const DealtSequences& dealt) const {
  return responses_.cv > 0 && dealt.sequences <= kFew && dealt.sequences * dealt.replicas >= 1;
}

// Of batches of `sequences` lengths: the middles of equally likely ranges, mixed by a fixed
// permutation. Where a batch stands for one of more, `of` sequences, its longest is theirs.
std::vector<std::vector<std::int64_t>> FewSequences::lengths(std::size_t sequences,
                                                             std::size_t of) const {
  const std::size_t batches = std::max<std::size_t>(1, kPoints / sequences);
  std::vector<std::int64_t> points(batches * sequences);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(points.size());
    points[i] = length_at(responses_, share);
  }
  if (of > sequences) {  // the expected rank of the longest (Blom 1958)
    const auto all = static_cast<double>(of);
    points.back() = length_at(responses_, (all - 0.375) / (all + 0.25));
  }
  std::mt19937 mixing(1);
  for (std::size_t i = points.size() - 1; i > 0; --i)
    std::swap(points[i], points[mixing() % (i + 1)]);
  std::vector<std::vector<std::int64_t>> result;
  for (auto first = points.begin(); first != points.end();) {
    const auto last = first + static_cast<std::ptrdiff_t>(sequences);
    result.emplace_back(first, last);
    std::sort(result.back().begin(), result.back().end(), std::greater<>());
    first = last;
  }
  return result;
}

FewSequences::Batches& FewSequences::batches(const DealtSequences& dealt) {
  auto [entry, added] = known_.try_emplace(dealt);
  Batches& made = entry->second;
  if (!added) return made;
  const auto most = static_cast<std::size_t>(std::ceil(dealt.sequences));
  const auto all = static_cast<std::size_t>(std::llround(dealt.sequences * dealt.replicas));
  const std::size_t replicas =
      std::min(static_cast<std::size_t>(dealt.replicas), std::max<std::size_t>(1, kPoints / most));
  const bool whole = replicas == static_cast<std::size_t>(dealt.replicas);
  for (const auto& batch : lengths(whole ? all : replicas * most, all)) {
    made.replicas.push_back(longest_first(batch, prompt_, static_cast<int>(replicas), most));
    std::int64_t fullest = 0;
    for (const PackedPart& one : made.replicas.back()) fullest = std::max(fullest, one.tokens);
    made.fullest.push_back(fullest);
  }
  return made;
}

const std::vector<std::int64_t>& FewSequences::least_limit(Batches& batches,
                                                           std::size_t micro_batches) const {
  while (batches.least_limit.size() < micro_batches) {
    const std::size_t parts = batches.least_limit.size() + 1;
    std::vector<std::int64_t>& limits = batches.least_limit.emplace_back();
    for (const std::vector<PackedPart>& replicas : batches.replicas) {
      std::int64_t most = 0;
      for (const PackedPart& replica : replicas) {
        for (const PackedPart& part : in_parts(replica, prompt_, parts)) {
          if (part.responses.size() > 1) most = std::max(most, part.tokens);
        }
      }
      limits.push_back(most);
    }
  }
  return batches.least_limit[micro_batches - 1];
}

double FewSequences::micro_batches(const DealtSequences& dealt, std::int64_t limit) {
  Batches& made = batches(dealt);
  const auto [entry, added] = made.counts.try_emplace(limit, 1.0);
  if (!added || limit <= 0) return entry->second;
  const auto most = static_cast<std::int64_t>(std::ceil(dealt.sequences));
  double sum = 0;
  for (std::size_t batch = 0; batch < made.fullest.size(); ++batch) {
    std::int64_t count = std::min(most, (made.fullest[batch] + limit - 1) / limit);
    while (count < most && least_limit(made, static_cast<std::size_t>(count))[batch] > limit) {
      ++count;
    }
    sum += static_cast<double>(count);
  }
  const double mean = sum / static_cast<double>(made.fullest.size());
  return entry->second = std::round(mean * kSteps) / kSteps;
}

SlowestShare FewSequences::slowest(const DealtSequences& dealt, int together, int micro_batches) {
  if (dealt.replicas == 1) return {};
  return waited(dealt, together, together > 1 ? micro_batches : 1).share;
}

const FewSequences::Waited& FewSequences::waited(const DealtSequences& dealt, int together,
                                                 int micro_batches) {
  Batches& made = batches(dealt);
  const auto [entry, added] = made.waited.try_emplace({std::max(together, 1), micro_batches});
  Waited& found = entry->second;
  if (!added) return found;
  const auto parts = static_cast<std::size_t>(micro_batches);
  found.loads.resize(parts);
  Load all, slowest;
  double priced = 0;
  for (const std::vector<PackedPart>& replicas : made.replicas) {
    Load most;
    std::vector<Load> longest;
    double length = 0, own = 0;
    for_each_group(replicas, together, prompt_, parts, [&](const std::vector<Load>& loads) {
      const Load sum = sum_of(loads);
      if (sum.work() > most.work()) most = sum;
      // Deep pipelines have about as many stages as micro-batches.
      const double here = sum.work() + static_cast<double>(parts) * loads.front().work();
      if (here <= length) return;
      length = here;
      own = sum.work();
      longest = loads;
    });
    slowest += most;
    priced += are(dealt) ? most.work() : own;
    for (std::size_t m = 0; m < longest.size(); ++m) found.loads[m] += longest[m].work();
    for (const PackedPart& replica : replicas) all += load_of(replica, prompt_);
  }
  for (double& load : found.loads) load *= static_cast<double>(parts) / priced;
  const auto replicas = static_cast<double>(made.replicas.front().size());
  found.share = {slowest.tokens * replicas / all.tokens, slowest.squared * replicas / all.squared,
                 slowest.responses * replicas / all.responses};
  return found;
}

// The longest sequence of all decides where it is more than a micro-batch holds on average; where
// it is not, or adds hardly anything to a pass forward, micro-batches are packed evenly.
bool FewSequences::even(const DealtSequences& dealt, int micro_batches,
                        const StagedPass& pass) const {
  if (pass.stages == 1 || micro_batches < 2 || responses_.cv <= 0) return true;
  if (dealt.sequences <= kFew) return !are(dealt);
  const auto prompt = static_cast<double>(prompt_);
  const double all = dealt.sequences * dealt.replicas;
  const auto longest = static_cast<double>(length_at(responses_, 1 - 0.5 / all));
  const double mean = dealt.sequences * (prompt + mean_length(responses_)) / micro_batches;
  const double added = (pass.stages - 1) * ((prompt + longest) / mean - 1);
  return added < kEven * (micro_batches + pass.stages - 1);
}

double FewSequences::spread(const DealtSequences& dealt, int together, int micro_batches,
                            const StagedPass& pass) {
  if (even(dealt, micro_batches, pass)) return 1;
  const auto [entry, added] = spreads_.try_emplace({dealt, together, micro_batches, pass}, 1.0);
  if (!added) return entry->second;
  const auto [equal, fresh] = equal_lengths_.try_emplace({pass, micro_batches});
  if (fresh) equal->second = schedule_length(pass, micro_batches);
  const std::vector<double> loads = in_order(waited(dealt, together, micro_batches).loads, order_);
  const double times = schedule_length(pass, loads) / equal->second;
  return entry->second = std::max(1.0, times);
}

}  // namespace tessera
