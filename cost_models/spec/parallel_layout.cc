#include "cost_models/spec/parallel_layout.h"

#include <array>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/enum_names.h"
#include "cost_models/spec/split.h"

namespace tessera {
namespace {

constexpr auto kRankOrders = enum_names<RankOrder>({{RankOrder::contiguous, "contiguous"},
                                                    {RankOrder::megatron, "megatron"},
                                                    {RankOrder::strided, "strided"},
                                                    {RankOrder::list, "list"}});

/// Appends problems about one part of a file.
struct Reporter {
  const std::string& file;
  const std::string& place;
  Problems& problems;

  void operator()(std::string_view key, std::string found, std::string expected,
                  std::string hint = {}) const {
    problems.push_back({.file = file,
                        .place = key.empty() ? place : place + "/" + std::string(key),
                        .found = std::move(found),
                        .expected = std::move(expected),
                        .hint = std::move(hint)});
  }
};

bool check_degrees(const ParallelLayout& layout, const Reporter& report) {
  const std::array<std::pair<const char*, int>, 8> degrees{{{"tp", layout.tp},
                                                            {"cp", layout.cp},
                                                            {"pp", layout.pp},
                                                            {"vpp", layout.vpp},
                                                            {"dp", layout.dp},
                                                            {"dp_shard", layout.dp_shard},
                                                            {"ep", layout.ep},
                                                            {"etp", layout.etp}}};
  bool good = true;
  for (const auto& [key, degree] : degrees) {
    if (degree >= 1) continue;
    good = false;
    report(key, std::to_string(degree), "a degree of at least 1");
  }
  if (good && layout.dp % layout.dp_shard != 0) {
    good = false;
    report("dp_shard", std::to_string(layout.dp_shard),
           "a divisor of dp = " + std::to_string(layout.dp));
  }
  return good;
}

void check_products(const ParallelLayout& layout, std::int64_t ranks, const Reporter& report) {
  const std::int64_t product = std::int64_t{layout.tp} * layout.cp * layout.pp * layout.dp;
  if (product != ranks) {
    report("", "tp x cp x pp x dp_replicate x dp_shard = " + std::to_string(product),
           std::to_string(ranks) + ", the number of ranks");
  }
  const std::int64_t expert = std::int64_t{layout.ep} * layout.etp;
  const std::int64_t per_stage = std::int64_t{layout.tp} * layout.cp * layout.dp;
  if (per_stage % expert != 0) {
    report("ep", "ep x etp = " + std::to_string(expert),
           "a divisor of tp x cp x dp = " + std::to_string(per_stage));
  }
  const std::int64_t replica = std::int64_t{layout.tp} * layout.cp * layout.dp_shard;
  if (layout.dp_shard > 1 && replica % expert != 0 && expert % replica != 0) {
    report("ep", "ep x etp = " + std::to_string(expert),
           "a divisor or a multiple of tp x cp x dp_shard = " + std::to_string(replica),
           "otherwise the replicas would cut the experts differently");
  }
}

void check_zero(const ParallelLayout& layout, const Reporter& report) {
  if (layout.zero < 0 || layout.zero > 3) {
    report("zero", std::to_string(layout.zero), "a ZeRO stage from 0 to 3");
  } else if (layout.dp_shard > 1 && layout.zero != 3) {
    report("zero", std::to_string(layout.zero), "3, because dp_shard > 1 cuts the parameters");
  } else if (layout.zero == 3 && layout.dp_shard == 1 && layout.dp > 1) {
    report("zero", "3 with dp_shard 1", "dp_shard > 1",
           "replicas cut nothing; stages 1 and 2 do with dp_replicate alone");
  }
}

void check_stages(const ParallelLayout& layout, std::int64_t layers, const Reporter& report) {
  const size_t chunks = static_cast<size_t>(layout.pp) * static_cast<size_t>(layout.vpp);
  if (layout.stages.size() != chunks) {
    report("stages", std::to_string(layout.stages.size()) + " ranges",
           "pp x vpp = " + std::to_string(chunks) + " ranges of layers");
    return;
  }
  std::int64_t next = 0;
  for (size_t i = 0; i < chunks; ++i) {
    const LayerRange& range = layout.stages[i];
    if (range.first != next || range.last < range.first) {
      report("stages/" + std::to_string(i),
             "[" + std::to_string(range.first) + ", " + std::to_string(range.last) + ")",
             "a range that begins at layer " + std::to_string(next));
      return;
    }
    next = range.last;
  }
  if (next != layers) {
    report("stages", std::to_string(next) + " layers",
           "every layer once: " + std::to_string(layers) + " layers");
  }
}

}  // namespace

std::vector<LayerRange> even_stages(std::int64_t layers, int pp, int vpp) {
  const int chunks = pp * vpp;
  std::vector<LayerRange> stages;
  for (int i = 0; i < chunks; ++i) {
    const Interval part = split(layers, chunks, i);
    stages.push_back({part.lo, part.hi});
  }
  return stages;
}

void validate(const ParallelLayout& layout, std::int64_t layers, std::int64_t ranks,
              const std::string& file, const std::string& place, Problems& problems) {
  const Reporter report{file, place, problems};
  if (!check_degrees(layout, report)) return;
  check_products(layout, ranks, report);
  check_zero(layout, report);
  check_stages(layout, layers, report);
}

std::string describe(const ParallelLayout& layout) {
  std::string text = "tp" + std::to_string(layout.tp) + " pp" + std::to_string(layout.pp) + " dp" +
                     std::to_string(layout.dp);
  if (layout.cp > 1) text += " cp" + std::to_string(layout.cp);
  if (layout.vpp > 1) text += " vpp" + std::to_string(layout.vpp);
  if (layout.dp_shard > 1) text += " fsdp" + std::to_string(layout.dp_shard);
  if (layout.ep > 1) text += " ep" + std::to_string(layout.ep);
  if (layout.etp > 1) text += " etp" + std::to_string(layout.etp);
  if (layout.zero > 0) text += " zero" + std::to_string(layout.zero);
  return text;
}

std::string_view name_of(RankOrder order) { return kRankOrders[order]; }

}  // namespace tessera
