#include "simulator/reshard/layout_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr int kMostDegree = 1 << 15;

/// Degrees as they are written; 0 = not written.
struct Words {
  int tp = 0, cp = 0, pp = 0, vpp = 0, dp = 0, fsdp = 0, ep = 0, etp = 0;
  bool all_fsdp = false;
  RankOrder order = RankOrder::contiguous;
};

constexpr std::array<std::pair<std::string_view, int Words::*>, 8> kDegrees{{{"tp", &Words::tp},
                                                                             {"cp", &Words::cp},
                                                                             {"pp", &Words::pp},
                                                                             {"vpp", &Words::vpp},
                                                                             {"dp", &Words::dp},
                                                                             {"fsdp", &Words::fsdp},
                                                                             {"ep", &Words::ep},
                                                                             {"etp", &Words::etp}}};

bool read_word(const std::string& word, Words& words) {
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  if (equals == std::string::npos) return words.all_fsdp = key == "fsdp";
  const std::string value = word.substr(equals + 1);
  if (key == "order") {
    const bool megatron = value == name_of(RankOrder::megatron);
    words.order = megatron ? RankOrder::megatron : RankOrder::contiguous;
    return megatron || value == name_of(RankOrder::contiguous);
  }
  for (const auto& [name, member] : kDegrees) {
    if (name != key || words.*member != 0) continue;
    int& degree = words.*member;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, degree);
    return error == std::errc{} && stop == end && degree >= 1 && degree <= kMostDegree;
  }
  return false;
}

// As a fraction, so that no product is too large.
double product_of(const Words& words) {
  double product = 1;
  for (const int degree : {words.tp, words.cp, words.pp, words.dp, words.fsdp}) {
    if (degree > 0) product *= degree;
  }
  return product;
}

int or_one(int degree) { return degree == 0 ? 1 : degree; }

ParallelLayout layout_of(const Words& words, std::int64_t layers, std::int64_t gpus) {
  ParallelLayout layout{{.tp = or_one(words.tp),
                         .cp = or_one(words.cp),
                         .pp = or_one(words.pp),
                         .vpp = or_one(words.vpp),
                         .dp_shard = or_one(words.fsdp),
                         .ep = or_one(words.ep),
                         .etp = or_one(words.etp)}};
  const std::int64_t model =
      std::int64_t{layout.tp} * layout.cp * layout.pp * (words.all_fsdp ? 1 : layout.dp_shard);
  const auto left = static_cast<int>(std::max<std::int64_t>(1, gpus / model));
  const int replicas = words.all_fsdp ? or_one(words.dp) : words.dp > 0 ? words.dp : left;
  if (words.all_fsdp) layout.dp_shard = std::max(1, left / replicas);
  layout.dp = replicas * layout.dp_shard;
  layout.zero = layout.dp_shard > 1 ? 3 : 0;
  if (std::int64_t{layout.pp} * layout.vpp <= layers) {
    layout.stages = even_stages(layers, layout.pp, layout.vpp);
  }
  return layout;
}

}  // namespace

std::optional<WrittenLayout> read_layout_words(const std::string& text, std::int64_t layers,
                                               std::int64_t gpus, const std::string& name,
                                               Problems& problems) {
  const std::size_t before = problems.size();
  Words words;
  std::stringstream list(text.empty() ? "," : text);  // one word, which is empty
  for (std::string word; std::getline(list, word, ',');) {
    if (read_word(word, words)) continue;
    problems.push_back({.file = name,
                        .place = "",
                        .found = "'" + word + "'",
                        .expected = "tp, cp, pp, vpp, dp, fsdp, ep or etp=N once each, fsdp, "
                                    "order=contiguous or order=megatron"});
  }
  if (problems.size() > before) return std::nullopt;
  if (product_of(words) > static_cast<double>(gpus)) {
    problems.push_back({.file = name,
                        .place = "",
                        .found = "'" + text + "'",
                        .expected = "a layout of " + std::to_string(gpus) + " GPUs"});
    return std::nullopt;
  }
  WrittenLayout written{layout_of(words, layers, gpus), words.order};
  validate(written.layout, layers, gpus, name, "", problems);
  if (problems.size() > before) return std::nullopt;
  return written;
}

}  // namespace tessera
