#include "cost_models/pipeline/pipeline_time.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>

namespace tessera {
namespace {

// Sums over the stages up to one, and how long it is until its first backward pass begins if the
// path turns there, the way back to the first stage included; `drain` the other way round.
struct Turn {
  Seconds forward, backward;
  Seconds fill, drain;
};

// Few pipelines are deeper than it has room for.
using Turns = boost::container::small_vector<Turn, 32>;

Turns turns_of(std::span<const Seconds> forward, std::span<const Seconds> backward,
               double micro_batches) {
  Turns turns(forward.size());
  Turn sum;
  Seconds slowest_forward, slowest_backward;
  for (std::size_t q = 0; q < forward.size(); ++q) {
    slowest_forward = std::max(slowest_forward, forward[q]);
    slowest_backward = std::max(slowest_backward, backward[q]);
    sum.forward += forward[q];
    sum.backward += backward[q];
    const double ahead = std::min(micro_batches - 1, static_cast<double>(forward.size() - 1 - q));
    sum.fill = sum.forward + sum.backward + ahead * slowest_forward;
    sum.drain = sum.forward + sum.backward + ahead * slowest_backward;
    turns[q] = sum;
  }
  return turns;
}

}  // namespace

Seconds one_f_one_b_seconds(std::span<const Seconds> forward, std::span<const Seconds> backward,
                            double micro_batches) {
  const Turns turns = turns_of(forward, backward, micro_batches);
  Seconds longest, fill, drain;
  for (std::size_t s = turns.size(); s-- > 0;) {
    const Turn& own = turns[s];
    fill = std::max(fill, own.fill);
    drain = std::max(drain, own.drain);
    const double rounds = micro_batches - static_cast<double>(turns.size() - s);
    const Seconds ends =
        rounds >= 0 ? fill + drain + rounds * (forward[s] + backward[s]) : own.fill + own.drain;
    longest = std::max(longest, ends - own.forward - own.backward);
  }
  return longest;
}

}  // namespace tessera
