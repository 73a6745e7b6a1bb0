#include "executor/rl/experience.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/comm/communicator.h"

namespace tessera {
namespace {

constexpr std::uint32_t kPackMagic = 0x54455831;  // "TEX1"

bool has(SequenceFields fields, SequenceField field) {
  return (fields & static_cast<SequenceFields>(field)) != 0;
}

std::pair<std::int32_t, std::int32_t> identity(const Sequence& s) {
  return {s.prompt_index, s.sample_index};
}

class Writer {
 public:
  void bytes(const void* data, std::size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), begin, begin + size);
  }
  template <class T>
  void value(const T& x) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes(&x, sizeof x);
  }
  template <class Container>
  void array(const Container& x) {
    value(static_cast<std::uint64_t>(x.size()));
    bytes(x.data(), x.size() * sizeof(typename Container::value_type));
  }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : in_(in) {}

  template <class T>
  T value() {
    T x;
    std::memcpy(&x, take(sizeof x), sizeof x);
    return x;
  }
  template <class Container>
  void array(Container& x) {
    using T = typename Container::value_type;
    const auto count = value<std::uint64_t>();
    if (count > in_.size() / sizeof(T)) malformed();
    x.resize(count);
    if (count > 0) std::memcpy(x.data(), take(count * sizeof(T)), count * sizeof(T));
  }
  bool empty() const { return in_.empty(); }
  [[noreturn]] static void malformed() {
    throw Error(ExitCode::internal, "a packed experience is malformed");
  }

 private:
  const std::byte* take(std::size_t size) {
    if (size > in_.size()) malformed();
    const std::byte* at = in_.data();
    in_ = in_.subspan(size);
    return at;
  }
  std::span<const std::byte> in_;
};

/// Calls `visit` with each float vector of `s` that `fields` names, in a fixed order.
template <class S, class Visit>
void each_float_field(S& s, SequenceFields fields, Visit visit) {
  if (has(fields, SequenceField::rollout_log_prob)) visit(s.rollout_log_prob);
  if (has(fields, SequenceField::old_log_prob)) visit(s.old_log_prob);
  if (has(fields, SequenceField::ref_log_prob)) visit(s.ref_log_prob);
  if (has(fields, SequenceField::values)) visit(s.values);
  if (has(fields, SequenceField::token_rewards)) visit(s.token_rewards);
  if (has(fields, SequenceField::advantages)) visit(s.advantages);
  if (has(fields, SequenceField::returns)) visit(s.returns);
  if (has(fields, SequenceField::sum_pi_squared)) visit(s.sum_pi_squared);
}

void write_sequence(Writer& out, const Sequence& s, SequenceFields fields) {
  out.value(s.prompt_index);
  out.value(s.sample_index);
  if (has(fields, SequenceField::tokens)) {
    out.array(s.uid);
    out.array(s.prompt);
    out.array(s.response);
    out.array(s.response_mask);
    out.value(static_cast<std::uint8_t>(s.finished));
  }
  if (has(fields, SequenceField::score)) out.value(s.score);
  if (has(fields, SequenceField::routed_experts)) out.array(s.routed_experts);
  each_float_field(s, fields, [&](const std::vector<float>& x) { out.array(x); });
}

void read_sequence(Reader& in, Sequence& s, SequenceFields fields) {
  if (has(fields, SequenceField::tokens)) {
    in.array(s.uid);
    in.array(s.prompt);
    in.array(s.response);
    in.array(s.response_mask);
    s.finished = in.value<std::uint8_t>() != 0;
  }
  if (has(fields, SequenceField::score)) s.score = in.value<double>();
  if (has(fields, SequenceField::routed_experts)) in.array(s.routed_experts);
  each_float_field(s, fields, [&](std::vector<float>& x) { in.array(x); });
}

}  // namespace

void sort_sequences(Experience& experience) {
  std::stable_sort(experience.sequences.begin(), experience.sequences.end(),
                   [](const Sequence& a, const Sequence& b) { return identity(a) < identity(b); });
}

std::int64_t response_tokens(const Experience& experience) {
  std::int64_t count = 0;
  for (const Sequence& s : experience.sequences) {
    count += static_cast<std::int64_t>(s.response.size());
  }
  return count;
}

std::vector<std::byte> pack(std::span<const Sequence> sequences, SequenceFields fields) {
  Writer out;
  out.value(kPackMagic);
  out.value(fields);
  out.value(static_cast<std::uint64_t>(sequences.size()));
  for (const Sequence& s : sequences) write_sequence(out, s, fields);
  return out.take();
}

void unpack(std::span<const std::byte> packed, Experience& into) {
  Reader in(packed);
  if (in.value<std::uint32_t>() != kPackMagic) Reader::malformed();
  const auto fields = in.value<SequenceFields>();
  const auto count = in.value<std::uint64_t>();
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> position;
  for (std::size_t i = 0; i < into.sequences.size(); ++i) {
    position.emplace(identity(into.sequences[i]), i);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    Sequence incoming;
    incoming.prompt_index = in.value<std::int32_t>();
    incoming.sample_index = in.value<std::int32_t>();
    const auto [at, added] = position.emplace(identity(incoming), into.sequences.size());
    if (added) into.sequences.push_back(std::move(incoming));
    read_sequence(in, into.sequences[at->second], fields);
  }
  if (!in.empty()) Reader::malformed();
  sort_sequences(into);
}

std::vector<std::vector<std::byte>> all_gather_bytes(Communicator& group,
                                                     std::span<const std::byte> mine) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const auto my_size = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> sizes(ranks);
  group.all_gather(&my_size, sizes.data(), 1, DType::int64);
  std::vector<std::vector<std::byte>> blocks(ranks);
  std::vector<SendBlock> sends;
  std::vector<ReceiveBlock> receives;
  for (std::size_t r = 0; r < ranks; ++r) {
    blocks[r].resize(static_cast<std::size_t>(sizes[r]));
    const int peer = static_cast<int>(r);
    if (!mine.empty()) sends.push_back({peer, mine.data(), mine.size()});
    if (!blocks[r].empty()) receives.push_back({peer, blocks[r].data(), blocks[r].size()});
  }
  group.exchange(sends, receives);
  return blocks;
}

}  // namespace tessera
