#include "executor/vllm/verify/compare_holders.h"

#include <algorithm>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

/// Parts into which a search cuts what is left of a box.
constexpr std::int64_t kWays = 16;

/// Elements that two workers hold.
struct Pair {
  int row = 0, worker_a = 0, worker_b = 0;
  Box box;
};

/// The search for a pair's first or last element, row-major, that differs.
struct Search {
  std::size_t pair = 0;
  bool last = false;
  Box box;      // it is in here
  int dim = 0;  // that is cut next; those before it have one index left
};

/// Dims with one index left need no cut.
void settle(Search& search) {
  while (search.dim < search.box.rank &&
         search.box.dims[static_cast<std::size_t>(search.dim)].size() == 1) {
    ++search.dim;
  }
}

std::vector<Box> ways_of(const Search& search) {
  const Interval range = search.box.dims[static_cast<std::size_t>(search.dim)];
  const std::int64_t ways = std::min(kWays, range.size());
  std::vector<Box> boxes;
  for (std::int64_t i = 0; i < ways; ++i) {
    const Interval part = split(range.size(), ways, i);
    boxes.push_back(restricted(search.box, search.dim, {range.lo + part.lo, range.lo + part.hi}));
  }
  return boxes;
}

/// Row-major place in the whole tensor of a box's first or last element.
std::int64_t place_of(const Box& box, const std::vector<std::int64_t>& shape, bool last) {
  std::int64_t place = 0;
  for (int dim = 0; dim < box.rank; ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    place = place * shape[d] + (last ? box.dims[d].hi - 1 : box.dims[d].lo);
  }
  return place;
}

class Comparing {
 public:
  Comparing(const WeightHolder& a, const WeightHolder& b) : a_(a), b_(b) {}

  /// Whether the digests of the pieces differ.
  std::vector<bool> differ(std::span<const Pair> pairs) const {
    std::vector<HeldPiece> of_a, of_b;
    for (const Pair& each : pairs) {
      of_a.push_back({each.worker_a, each.row, each.box});
      of_b.push_back({each.worker_b, each.row, each.box});
    }
    if (pairs.empty()) return {};
    const std::vector<std::uint64_t> mine = a_.digests(of_a), theirs = b_.digests(of_b);
    std::vector<bool> found;
    for (std::size_t i = 0; i < pairs.size(); ++i) found.push_back(mine[i] != theirs[i]);
    return found;
  }

  /// Cuts what is left of all searches until each has one element. What differed and does not any
  /// more keeps its outermost part.
  void finish(std::span<const Pair> pairs, std::span<Search> searches) const {
    for (;;) {
      std::vector<Pair> asked;
      for (Search& search : searches) {
        settle(search);
        if (search.dim == search.box.rank) continue;
        for (const Box& box : ways_of(search)) {
          asked.push_back(pairs[search.pair]);
          asked.back().box = box;
        }
      }
      if (asked.empty()) return;
      const std::vector<bool> found = differ(asked);
      std::size_t at = 0;
      for (Search& search : searches) {
        if (search.dim == search.box.rank) continue;
        const std::size_t ways = ways_of(search).size();
        std::size_t chosen = search.last ? ways - 1 : 0;
        for (std::size_t i = 0; i < ways; ++i) {
          const std::size_t way = search.last ? ways - 1 - i : i;
          if (!found[at + way]) continue;
          chosen = way;
          break;
        }
        search.box = asked[at + chosen].box;
        at += ways;
      }
    }
  }

 private:
  const WeightHolder &a_, &b_;
};

/// Why the tensors cannot be compared; nullopt: they can.
std::optional<TensorComparison> unlike(const std::string& name, const HeldTensor& a,
                                       const HeldTensor& b) {
  TensorComparison made{.name = name, .a = {}, .b = {}, .bytes = {}};
  if (!a.held || !b.held) {
    made.fault = a.held ? TensorFault::only_in_a : TensorFault::only_in_b;
    return a.held || b.held ? std::optional(made) : std::nullopt;
  }
  if (!a.fits || !b.fits) {
    made.fault = TensorFault::shape;
    made.a = a.shape;
    made.b = b.shape;
    return made;
  }
  if (a.type == b.type) return std::nullopt;
  made.fault = TensorFault::dtype;
  made.a = a.type;
  made.b = b.type;
  return made;
}

void refuse_unknown_type(const WeightHolder& holder, const std::string& name,
                         const std::string& type) {
  const auto known = dtype_from(type);
  if (known && floats(*known)) return;
  throw Error(ExitCode::bad_input, {{.file = holder.name,
                                     .place = name,
                                     .found = "weights of type " + type,
                                     .expected = "fp32, bf16 or fp16",
                                     .hint = {}}});
}

void add_pairs(int row, const HeldTensor& a, const HeldTensor& b, std::vector<Pair>& pairs) {
  for (std::size_t i = 0; i < a.boxes.size(); ++i) {
    for (std::size_t j = 0; j < b.boxes.size(); ++j) {
      const Box common = intersect(a.boxes[i], b.boxes[j]);
      if (volume(common) == 0) continue;
      pairs.push_back({row, static_cast<int>(i), static_cast<int>(j), common});
    }
  }
}

void add_others(const WeightHolder& holder, TensorFault fault, WeightComparison& made) {
  for (const std::string& name : holder.others) {
    made.differences.push_back({.name = name, .fault = fault, .a = {}, .b = {}, .bytes = {}});
  }
}

/// Bytes of an element.
std::int64_t width_of(const HeldTensor& tensor) { return size_of(*dtype_from(tensor.type)); }

/// The ends of every pair that differs: a pair's first and last, one behind the other.
std::vector<Search> ends_of(std::span<const Pair> pairs, const Comparing& comparing) {
  const std::vector<bool> differs = comparing.differ(pairs);
  std::vector<Search> all;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!differs[i]) continue;
    all.push_back({.pair = i, .last = false, .box = pairs[i].box});
    all.push_back({.pair = i, .last = true, .box = pairs[i].box});
  }
  comparing.finish(pairs, std::span(all).first(std::min(all.size(), 2 * kMostLocated)));
  return all;
}

}  // namespace

WeightComparison compare_holders(const ParameterTable& table, const WeightHolder& a,
                                 const WeightHolder& b) {
  WeightComparison made{.a = a.name, .b = b.name, .differences = {}};
  std::vector<Pair> pairs;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string& name = table.rows[row].name;
    const HeldTensor &mine = a.tensors[row], &theirs = b.tensors[row];
    if (mine.held && theirs.held) ++made.tensors;
    if (auto fault = unlike(name, mine, theirs)) {
      made.differences.push_back(std::move(*fault));
    } else if (mine.held) {
      refuse_unknown_type(a, name, mine.type);
      add_pairs(static_cast<int>(row), mine, theirs, pairs);
    }
  }
  add_others(a, TensorFault::only_in_a, made);
  add_others(b, TensorFault::only_in_b, made);
  for (const Pair& pair : pairs) {
    made.bytes += volume(pair.box) * width_of(a.tensors[static_cast<std::size_t>(pair.row)]);
  }
  const std::vector<Search> ends = ends_of(pairs, Comparing(a, b));
  for (std::size_t i = 0; i < ends.size(); i += 2) {
    const Pair& pair = pairs[ends[i].pair];
    const Parameter& row = table.rows[static_cast<std::size_t>(pair.row)];
    const std::int64_t width = width_of(a.tensors[static_cast<std::size_t>(pair.row)]);
    const std::int64_t first = place_of(ends[i].box, row.shape, false),
                       last = place_of(ends[i + 1].box, row.shape, true);
    made.differences.push_back({.name = row.name,
                                .fault = TensorFault::values,
                                .a = {},
                                .b = {},
                                .bytes = {first * width, (last + 1 - first) * width},
                                .tensor_bytes = row.elements() * width,
                                .worker_a = a.serves ? pair.worker_a : -1,
                                .worker_b = b.serves ? pair.worker_b : -1});
  }
  std::stable_sort(
      made.differences.begin(), made.differences.end(),
      [](const TensorComparison& x, const TensorComparison& y) { return x.name < y.name; });
  return made;
}

}  // namespace tessera
