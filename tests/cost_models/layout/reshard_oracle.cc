#include "tests/cost_models/layout/reshard_oracle.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tessera {
namespace {

using Element = std::vector<std::int64_t>;

bool inside(const Box& box, const Element& at) {
  for (size_t d = 0; d < at.size(); ++d) {
    if (at[d] < box.dims[d].lo || at[d] >= box.dims[d].hi) return false;
  }
  return true;
}

std::vector<Element> elements_of(const std::vector<std::int64_t>& shape) {
  std::vector<Element> all{{}};
  for (const std::int64_t side : shape) {
    std::vector<Element> longer;
    for (const Element& prefix : all) {
      for (std::int64_t i = 0; i < side; ++i) {
        longer.push_back(prefix);
        longer.back().push_back(i);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<std::int64_t> flat(const Box& box) {
  std::vector<std::int64_t> sides;
  for (int d = 0; d < box.rank; ++d) {
    sides.push_back(box.dims[static_cast<size_t>(d)].lo);
    sides.push_back(box.dims[static_cast<size_t>(d)].hi);
  }
  return sides;
}

struct Expected {
  std::map<int, Bytes> needed, kept;                       // by rank
  std::map<unsigned, Bytes> demand;                        // by set of holders
  std::map<std::tuple<size_t, Element, int>, int> source;  // what the transfers say
};

/// max over sets X of senders of ceil(bytes that only X holds / |X|).
Bytes min_max_by_subsets(const std::map<unsigned, Bytes>& demand) {
  unsigned all = 0;
  for (const auto& [holders, bytes] : demand) all |= holders;
  Bytes best;
  for (unsigned x = all; x != 0; x = (x - 1) & all) {
    Bytes bytes;
    for (const auto& [holders, amount] : demand) {
      if ((holders & ~x) == 0) bytes += amount;
    }
    const std::int64_t members = __builtin_popcount(x);
    best = std::max(best, (bytes + Bytes{members - 1}) / members);
  }
  return best;
}

std::string check_order(const std::vector<ShardedTensor>& tensors, const ReshardPlan& plan) {
  const auto key = [](const Transfer& t) {
    return std::tuple(t.destination, t.source, t.tensor, flat(t.box));
  };
  for (size_t i = 0; i < plan.transfers.size(); ++i) {
    const Transfer& transfer = plan.transfers[i];
    if (volume(transfer.box) <= 0) return "an empty transfer";
    if (static_cast<size_t>(transfer.tensor) >= tensors.size()) return "an unknown tensor";
    if (i > 0 && !(key(plan.transfers[i - 1]) < key(transfer))) return "transfers out of order";
  }
  return {};
}

std::string check_elements(const std::vector<ShardedTensor>& tensors, const ReshardPlan& plan,
                           Expected& expected) {
  std::vector<std::vector<Element>> elements;
  for (const ShardedTensor& tensor : tensors) elements.push_back(elements_of(tensor.shape));
  for (const Transfer& transfer : plan.transfers) {
    const auto t = static_cast<size_t>(transfer.tensor);
    for (const Element& at : elements[t]) {
      if (!inside(transfer.box, at)) continue;
      const bool fresh =
          expected.source.emplace(std::tuple(t, at, transfer.destination), transfer.source).second;
      if (!fresh) return "an element arrives twice";
    }
  }
  size_t wanted = 0;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const ShardedTensor& tensor = tensors[t];
    for (const Element& at : elements[t]) {
      unsigned holders = 0, needs = 0;
      for (const Holding& h : tensor.source) {
        if (inside(h.box, at)) holders |= 1u << h.rank;
      }
      for (const Holding& h : tensor.destination) {
        if (inside(h.box, at)) needs |= 1u << h.rank;
      }
      for (int rank = 0; rank < 20; ++rank) {
        if (!(needs >> rank & 1)) continue;
        ++wanted;
        const auto found = expected.source.find({t, at, rank});
        if (found == expected.source.end()) return "an element is missing";
        if (!(holders >> found->second & 1)) return "a source does not hold what it sends";
        const bool held = holders >> rank & 1;
        if (held && found->second != rank) return "a rank fetches what it holds";
        (held ? expected.kept : expected.needed)[rank] += tensor.element_bytes;
        if (!held) expected.demand[holders] += tensor.element_bytes;
      }
    }
  }
  return wanted == expected.source.size() ? "" : "an element arrives where nobody needs it";
}

std::string check_traffic(const std::vector<ShardedTensor>& tensors, const ReshardPlan& plan,
                          Expected& expected) {
  std::map<int, Bytes> sent;
  for (const Transfer& t : plan.transfers) {
    if (t.source == t.destination) continue;
    sent[t.source] += volume(t.box) * tensors[static_cast<size_t>(t.tensor)].element_bytes;
  }
  Bytes received, total, busiest;
  for (size_t r = 0; r < plan.traffic.size(); ++r) {
    const int rank = static_cast<int>(r);
    const RankTraffic is{expected.kept[rank], expected.needed[rank], sent[rank]};
    if (!(is == plan.traffic[r])) return "traffic of rank " + std::to_string(rank);
    received = std::max(received, is.received);
    busiest = std::max(busiest, is.sent);
    total += is.received;
  }
  if (plan.bytes_received != received) return "bytes_received";
  if (plan.lower_bound != received) return "lower_bound";
  if (plan.total_received != total) return "total_received";
  if (plan.bytes_sent != busiest) return "bytes_sent";
  return {};
}

std::string check_balance(const std::vector<ShardedTensor>& tensors, const ReshardPlan& plan,
                          const Expected& expected) {
  const Bytes optimum = min_max_by_subsets(expected.demand);
  if (plan.min_max_sent != optimum) {
    return "min_max_sent " + std::to_string(plan.min_max_sent) + " instead of " +
           std::to_string(optimum);
  }
  // Blocks are cut by rows, so the excess is less than one row: stricter than one block.
  Bytes row;
  for (const ShardedTensor& tensor : tensors) {
    Bytes bytes = tensor.element_bytes;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      if (static_cast<int>(d) != tensor.outer_dim) bytes *= tensor.shape[d];
    }
    row = std::max(row, bytes);
  }
  return plan.bytes_sent <= optimum + row ? "" : "a sender above the optimum plus one row";
}

}  // namespace

std::string broken_invariant(const std::vector<ShardedTensor>& tensors, const ReshardPlan& plan) {
  Expected expected;
  std::string broken = check_order(tensors, plan);
  if (broken.empty()) broken = check_elements(tensors, plan, expected);
  if (broken.empty()) broken = check_traffic(tensors, plan, expected);
  if (broken.empty()) broken = check_balance(tensors, plan, expected);
  return broken;
}

}  // namespace tessera
