#include "planner/interop/config/stage_text.h"

#include <algorithm>
#include <charconv>

namespace tessera {
namespace {

constexpr std::size_t kMost = 1 << 16;

class StageReader {
 public:
  explicit StageReader(std::string_view text) : left_(text) {}

  /// Letters and bars with every repetition written out, up to the end or a closing parenthesis;
  /// nullopt where the text cannot be read.
  std::optional<std::string> sequence() {
    std::string made;
    while (!left_.empty() && left_.front() != ')') {
      std::optional<std::string> item = this->item();
      const std::optional<std::size_t> times = item ? this->times() : std::nullopt;
      if (!times || made.size() + *times * item->size() > kMost) return std::nullopt;
      for (std::size_t i = 0; i < *times; ++i) made += *item;
    }
    return made;
  }
  bool ended() const { return left_.empty(); }

 private:
  bool take(char letter) {
    if (left_.empty() || left_.front() != letter) return false;
    left_.remove_prefix(1);
    return true;
  }

  std::optional<std::string> item() {
    if (take('(')) {
      if (++depth_ > 16) return std::nullopt;
      std::optional<std::string> inner = sequence();
      --depth_;
      return take(')') ? inner : std::nullopt;
    }
    const char letter = left_.front();
    left_.remove_prefix(1);
    if (letter == ',') return std::string{};
    if (std::string_view("EtmL|").find(letter) == std::string_view::npos) return std::nullopt;
    return std::string(1, letter);
  }

  std::optional<std::size_t> times() {
    if (!take('*')) return 1;
    std::size_t count = 0;
    const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), count);
    if (error != std::errc{} || count > kMost) return std::nullopt;
    left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
    return count;
  }

  std::string_view left_;
  int depth_ = 0;
};

}  // namespace

std::optional<std::vector<std::int64_t>> stage_layers(std::string_view text) {
  StageReader reader(text);
  const std::optional<std::string> whole = reader.sequence();
  if (!whole || !reader.ended() || whole->empty()) return std::nullopt;
  std::vector<std::int64_t> layers(1, 0);
  for (const char letter : *whole) {
    if (letter == '|') layers.push_back(0);
    if (letter == 't') ++layers.back();
  }
  return layers;
}

std::string stage_text(const std::vector<LayerRange>& stages, std::int64_t mtp_layers) {
  std::string text = "E";
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i > 0) text += "|";
    const std::int64_t layers = stages[i].last - stages[i].first;
    if (layers > 0) text += "t";
    if (layers > 1) text += "*" + std::to_string(layers);
  }
  return text + std::string(static_cast<std::size_t>(mtp_layers), 'm') + "L";
}

std::vector<LayerRange> stage_ranges(const std::vector<std::int64_t>& layers) {
  std::vector<LayerRange> stages;
  std::int64_t at = 0;
  for (const std::int64_t count : layers) {
    stages.push_back({at, at + count});
    at += count;
  }
  return stages;
}

StageEnds stage_ends(const std::vector<LayerRange>& stages) {
  const auto layers = [&](std::size_t i) { return stages[i].last - stages[i].first; };
  const std::size_t last = stages.size() - 1;
  if (last == 0) return {};
  const std::int64_t middle = last >= 2 ? layers(1) : layers(last);
  StageEnds ends;
  if (layers(0) != middle) ends.first = layers(0);
  if (layers(last) != middle) ends.last = layers(last);
  for (std::size_t i = 1; i < last; ++i)
    ends.others_alike = ends.others_alike && layers(i) == middle;
  return ends;
}

std::optional<std::vector<std::int64_t>> even_but_for_ends(std::int64_t layers, std::int64_t stages,
                                                           std::int64_t first, std::int64_t last) {
  const std::int64_t open = stages - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const std::int64_t left = layers - first - last;
  if (left < 0 || open < 0 || (open == 0 ? left != 0 : left % open != 0)) return std::nullopt;
  std::vector<std::int64_t> each(static_cast<std::size_t>(stages), open > 0 ? left / open : 0);
  if (first > 0) each.front() = first;
  if (last > 0) each.back() = last;
  return each;
}

}  // namespace tessera
