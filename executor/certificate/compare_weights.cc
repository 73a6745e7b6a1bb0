#include "executor/certificate/compare_weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr int kThreads = 4;
constexpr const char* kHead = "lm_head.weight";

/// Place in the whole tensor of element `element` of the box, both counted row-major.
std::int64_t place_of(const std::vector<std::int64_t>& shape, const Box& box,
                      std::int64_t element) {
  std::int64_t place = 0, below = 1;
  for (int dim = box.rank; dim-- > 0;) {
    const auto d = static_cast<std::size_t>(dim);
    const std::int64_t size = box.dims[d].size();
    place += (box.dims[d].lo + element % size) * below;
    element /= size;
    below *= shape[d];
  }
  return place;
}

/// Where two tensors differ, piece after piece.
struct Found {
  std::int64_t first = -1, last = -1, count = 0;  // elements of the whole tensor

  void add(std::int64_t place) {
    first = first < 0 ? place : std::min(first, place);
    last = std::max(last, place);
    ++count;
  }
};

/// Two tensors of one shape.
class TensorPair {
 public:
  TensorPair(const StoredTensor& a, const StoredTensor& b, DType type)
      : a_(a), b_(b), type_(type) {}

  Found compare() {
    for (const StoredPart& x : a_.parts) {
      for (const StoredPart& y : b_.parts) {
        const Box common = intersect(x.box, y.box);
        if (volume(common) > 0 && !equal_files(x, y)) compare_box(x, y, common);
      }
    }
    return found_;
  }

 private:
  /// Whole tensors whose bytes are the same need no second look.
  bool equal_files(const StoredPart& x, const StoredPart& y) const {
    const TensorView &u = *x.view, &v = *y.view;
    return x.box == y.box && x.outer_dim == y.outer_dim && u.dtype == v.dtype &&
           a_.dtype == b_.dtype && std::memcmp(u.data.data(), v.data.data(), u.data.size()) == 0;
  }

  void compare_box(const StoredPart& x, const StoredPart& y, const Box& common) {
    if (common.rank == 0) return compare_rows(x, y, common);
    const Interval rows = common.dims[0];
    const std::int64_t step =
        std::max<std::int64_t>(1, kReadAtOnce / (volume(common) / rows.size()));
    for (std::int64_t lo = rows.lo; lo < rows.hi; lo += step) {
      compare_rows(x, y, restricted(common, 0, {lo, std::min(lo + step, rows.hi)}));
    }
  }

  void compare_rows(const StoredPart& x, const StoredPart& y, const Box& box) {
    read_rows(a_, x, box, type_, mine_);
    read_rows(b_, y, box, type_, theirs_);
    if (mine_ == theirs_) return;
    const auto width = static_cast<std::size_t>(size_of(type_));
    for (std::size_t at = 0; at < mine_.size(); at += width) {
      if (std::memcmp(mine_.data() + at, theirs_.data() + at, width) == 0) continue;
      found_.add(place_of(a_.shape, box, static_cast<std::int64_t>(at / width)));
    }
  }

  const StoredTensor &a_, &b_;
  DType type_;
  Found found_;
  std::vector<std::byte> mine_, theirs_;
};

/// nullopt: equal.
std::optional<TensorComparison> compared(const std::string& name, const StoredTensor& a,
                                         const StoredTensor& b, std::optional<DType> as) {
  TensorComparison made{.name = name, .fault = TensorFault::shape, .a = {}, .b = {}, .bytes = {}};
  if (a.shape != b.shape) {
    made.a = in_words(a.shape);
    made.b = in_words(b.shape);
    return made;
  }
  const bool rounds = as && floats(a.dtype) && floats(b.dtype);
  if (!rounds && a.dtype != b.dtype) {
    made.fault = TensorFault::dtype;
    made.a = name_of(a.dtype);
    made.b = name_of(b.dtype);
    return made;
  }
  const DType type = rounds ? *as : a.dtype;
  const Found found = TensorPair(a, b, type).compare();
  if (found.count == 0) return std::nullopt;
  const std::int64_t width = size_of(type);
  made.fault = TensorFault::values;
  made.bytes = {found.first * width, (found.last + 1 - found.first) * width};
  made.elements = found.count;
  made.tensor_bytes = a.elements() * width;
  return made;
}

/// The tensor of that name, or what stands for a tied head.
const StoredTensor* find(const StoredWeights& weights, const std::string& name) {
  auto found = weights.tensors.find(name);
  if (found == weights.tensors.end() && name == kHead) {
    found = weights.tensors.find(weights.tied_to);
  }
  return found == weights.tensors.end() ? nullptr : &found->second;
}

std::vector<std::string> names_of(const StoredWeights& a, const StoredWeights& b) {
  std::vector<std::string> names;
  for (const StoredWeights* each : {&a, &b}) {
    for (const auto& [name, tensor] : each->tensors) {
      if (!name.ends_with("rotary_emb.inv_freq")) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

WeightComparison compare_weights(const StoredWeights& a, const StoredWeights& b,
                                 std::optional<DType> as) {
  WeightComparison made{.a = a.path.string(), .b = b.path.string(), .differences = {}};
  const std::vector<std::string> names = names_of(a, b);
  std::vector<std::optional<TensorComparison>> found(names.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<std::int64_t> tensors = 0, bytes = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < names.size(); i = next++) {
      const StoredTensor *mine = find(a, names[i]), *theirs = find(b, names[i]);
      if (mine == nullptr || theirs == nullptr) {
        found[i] = {.name = names[i],
                    .fault = mine == nullptr ? TensorFault::only_in_b : TensorFault::only_in_a,
                    .a = {},
                    .b = {},
                    .bytes = {}};
        continue;
      }
      found[i] = compared(names[i], *mine, *theirs, as);
      ++tensors;
      bytes += mine->elements() * size_of(mine->dtype);
    }
  };
  std::vector<std::future<void>> others;
  for (int i = 1; i < kThreads; ++i) others.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void>& other : others) other.get();
  made.tensors = tensors;
  made.bytes = bytes;
  for (auto& each : found) {
    if (each) made.differences.push_back(std::move(*each));
  }
  return made;
}

}  // namespace tessera
