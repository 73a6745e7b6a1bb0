#include "planner/sweep/sweep_row.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "cost_models/documents/printed.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/enum_names.h"
#include "planner/engines/engine.h"
#include "planner/sweep/sweep_columns.h"

namespace tessera {
namespace {

constexpr auto kKinds = enum_names<SweepKind>({{SweepKind::train, "train"},
                                               {SweepKind::logprob, "logprob"},
                                               {SweepKind::rollout, "rollout"},
                                               {SweepKind::iteration, "iteration"}});
constexpr auto kPrecisions = enum_names<SweepPrecision>({{SweepPrecision::bf16, "bf16"},
                                                         {SweepPrecision::fp16, "fp16"},
                                                         {SweepPrecision::fp8, "fp8"},
                                                         {SweepPrecision::fp32, "fp32"},
                                                         {SweepPrecision::tf32, "tf32"}});
constexpr auto kAttentions = enum_names<SweepAttention>({{SweepAttention::flash, "flash"},
                                                         {SweepAttention::unfused, "unfused"},
                                                         {SweepAttention::flash_1, "flash 1"},
                                                         {SweepAttention::flash_2, "flash 2"},
                                                         {SweepAttention::flash_3, "flash 3"}});
constexpr std::array<std::string_view, 3> kGradPrecisions = {"fp32", "bf16", "fp16"};
constexpr auto kDispatches = enum_names<ExpertDispatch>(
    {{ExpertDispatch::direct, "direct"}, {ExpertDispatch::hierarchical, "hierarchical"}});
// Those that a cell may name; a loss with an entropy term follows from the algorithm.
constexpr std::array<std::pair<LossKernel, std::string_view>, 4> kLosses{{
    {LossKernel::eager, "eager"},
    {LossKernel::vocab_parallel, "vocab_parallel"},
    {LossKernel::fused, "fused"},
    {LossKernel::in_place, "in_place"},
}};
// Those that a cell may name: the orders of a plan's rank_map.
constexpr std::array<std::pair<TrainedRanks, std::string_view>, 2> kRankOrders{
    {{TrainedRanks::contiguous, "contiguous"}, {TrainedRanks::megatron, "megatron"}}};
constexpr auto kRecomputes = enum_names<Recompute>(
    {{Recompute::none, "none"}, {Recompute::selective, "selective"}, {Recompute::full, "full"}});
constexpr auto kRolloutWeights =
    enum_names<RolloutWeights>({{RolloutWeights::keep, "keep"}, {RolloutWeights::unmap, "unmap"}});
constexpr std::size_t kMostProblems = 100;  // a file of another format is wrong in every row

struct CountColumn {
  std::string_view name;
  SweepRow::Count SweepRow::*member;
  std::int64_t least = 1, most = std::int64_t{1} << 40;
};
constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;
constexpr std::array<CountColumn, 20> kCounts = {{
    {"gpus", &SweepRow::gpus, 1, kMostRanks},
    {"tp", &SweepRow::tp, 1, kMostRanks},
    {"pp", &SweepRow::pp, 1, kMostRanks},
    {"dp", &SweepRow::dp, 1, kMostRanks},
    {"cp", &SweepRow::cp, 1, kMostRanks},
    {"ep", &SweepRow::ep, 1, kMostRanks},
    {"etp", &SweepRow::etp, 1, kMostRanks},
    {"vpp", &SweepRow::vpp, 1, kMostRanks},
    {"zero", &SweepRow::zero, 0, 3},
    {"micro_batch", &SweepRow::micro_batch},
    {"global_batch", &SweepRow::global_batch},
    {"train_gpus", &SweepRow::train_gpus, 1, kMostRanks},
    {"gen_gpus", &SweepRow::gen_gpus, 1, kMostRanks},
    {"gen_tp", &SweepRow::gen_tp, 1, kMostRanks},
    {"gen_pp", &SweepRow::gen_pp, 1, kMostRanks},
    {"gen_dp", &SweepRow::gen_dp, 1, kMostRanks},
    {"gen_ep", &SweepRow::gen_ep, 1, kMostRanks},
    {"policy_lag", &SweepRow::policy_lag, 0, 1 << 16},
    {"mini_batch", &SweepRow::mini_batch},
    {"max_response_tokens", &SweepRow::max_response_tokens},
}};

constexpr std::array<std::string_view, 3> kNeeded = {"model", "cluster", "kind"};

// Columns that are read beside kCounts.
constexpr std::array<std::string_view, 20> kOtherColumns = {
    "model",       "cluster",           "kind",           "prompt_tokens", "response_tokens",
    "recompute",   "sequence_parallel", "expert_overlap", "tp_overlap",    "reshard_after_forward",
    "reference",   "expert_dispatch",   "loss",           "rank_order",    "rollout_weights",
    "plan_engine", "grad_precision",    "placement",      "precision",     "attention"};

std::vector<std::string> read_columns() {
  std::vector<std::string> all(kOtherColumns.begin(), kOtherColumns.end());
  for (const CountColumn& column : kCounts) all.emplace_back(column.name);
  return all;
}

void refuse_misspelt_columns(const CsvTable& table, Problems& problems) {
  const std::vector<std::string> known = read_columns();
  for (const std::string& name : kept_columns(table)) {
    const auto meant = resembled_column(name, known);
    const bool needed = meant && !table.column(*meant) &&
                        std::find(kNeeded.begin(), kNeeded.end(), *meant) != kNeeded.end();
    if (!meant || needed) continue;  // what is needed is told to be missing
    problems.push_back({table.file, "1 (" + name + ")", "the unknown column '" + name + "'",
                        "a known column, or a name that resembles none",
                        "did you mean '" + *meant + "'?"});
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Free text of sources ("fp8 (blockwise), bf16 elsewhere", "unfused, fused softmax"): what it says
// first decides.
bool starts_with_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.starts_with(word); });
}

bool has_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

// nullopt: no word that any source uses. Formats that no engine here trains in count as bf16.
std::optional<SweepPrecision> precision_in(std::string_view cell, std::string& notes) {
  std::string text = lower_case(cell);
  // Composer's and DeepSpeed's names say first that precisions are mixed: amp_fp8, mixed fp16.
  for (const std::string_view mixed : {"amp_", "amp ", "mixed_", "mixed "}) {
    if (text.starts_with(mixed)) text.erase(0, mixed.size());
  }
  if (text.empty() || starts_with_one_of(text, {"bf16", "bfloat16"})) return SweepPrecision::bf16;
  if (starts_with_one_of(text, {"fp8", "mxfp8", "float8", "e4m3"})) return SweepPrecision::fp8;
  if (starts_with_one_of(text, {"fp16", "half", "float16"})) return SweepPrecision::fp16;
  if (starts_with_one_of(text, {"fp32", "float32", "single"})) return SweepPrecision::fp32;
  if (starts_with_one_of(text, {"tf32", "tensorfloat"})) return SweepPrecision::tf32;
  if (starts_with_one_of(text, {"fp4", "nvfp4", "mxfp4", "float4", "int8", "int4", "w8a8", "w4a16",
                                "mixed", "amp", "16"})) {
    notes += "precision '" + std::string(cell) + "' priced as bf16; ";
    return SweepPrecision::bf16;
  }
  return std::nullopt;
}

std::optional<SweepAttention> attention_in(std::string_view cell) {
  const std::string text = lower_case(cell);
  if (starts_with_one_of(
          text, {"unfused", "eager", "math", "no flash", "without flash", "naive", "standard"})) {
    return SweepAttention::unfused;
  }
  if (has_one_of(text, {"flash 1", "flash-1", "flashattention-1", "flash attention 1", "triton"})) {
    return SweepAttention::flash_1;
  }
  if (has_one_of(text,
                 {"flash 2", "flash-2", "flashattention-2", "flash attention 2", "fa2", "sdpa"})) {
    return SweepAttention::flash_2;
  }
  if (has_one_of(
          text, {"flash 3", "flash-3", "flashattention-3", "fa3", "cudnn", "transformer engine"})) {
    return SweepAttention::flash_3;
  }
  const bool known =
      starts_with_one_of(text, {"te", "fa", "torch", "pytorch", "ring", "ck"}) ||
      has_one_of(text, {"flash", "fused", "cudnn", "transformer engine", "mla", "efficient",
                        "xformers", "ulysses", "flex", "sparse", "fmha"});
  return known ? std::optional(SweepAttention::flash) : std::nullopt;
}

std::optional<SweepPlacement> placement_in(std::string_view cell) {
  const std::string text = lower_case(cell);
  if (text.empty()) return SweepPlacement::by_gpus;
  if (starts_with_one_of(text, {"non", "not "})) return SweepPlacement::split;
  if (has_one_of(text, {"coloc", "co-loc", "hybrid", "shared"})) return SweepPlacement::colocated;
  const bool known =
      has_one_of(text, {"split", "separat", "standalone", "disagg", "async", "step-off", "step_off",
                        "step off", "apart", "decoupled", "dedicated"});
  return known ? std::optional(SweepPlacement::split) : std::nullopt;
}

// Where a table's columns stand.
using Columns = std::map<std::string_view, std::size_t>;

// Reads the cells of one row by their columns' names.
class RowReader {
 public:
  RowReader(const CsvTable& table, const Columns& columns, const CsvRow& row, Problems& problems)
      : table_(table), columns_(columns), row_(row), problems_(problems) {}

  std::string_view cell(std::string_view column) const {
    const auto at = columns_.find(column);
    return at != columns_.end() ? trimmed(row_.cells[at->second]) : std::string_view{};
  }

  void refuse(std::string_view column, std::string expected, std::string hint = {}) {
    const std::string found =
        cell(column).empty() ? "an empty cell" : "'" + std::string(cell(column)) + "'";
    problems_.push_back({table_.file, std::to_string(row_.line) + " (" + std::string(column) + ")",
                         found, std::move(expected), std::move(hint)});
  }

  void read(const CountColumn& column, SweepRow& row) {
    const std::string_view text = cell(column.name);
    if (text.empty()) return;
    const auto value = number(text);  // spreadsheets write 8.0 where a column has gaps
    if (!value || *value != std::floor(*value) || *value < static_cast<double>(column.least) ||
        *value > static_cast<double>(column.most)) {
      return refuse(column.name, "a whole number from " + std::to_string(column.least) + " to " +
                                     std::to_string(column.most) + ", or nothing");
    }
    row.*column.member = static_cast<std::int64_t>(*value);
  }

  /// Degrees, of which `first` names the first, together make no more ranks than there may be.
  void read_product(std::string_view first, std::initializer_list<SweepRow::Count> degrees) {
    double ranks = 1;
    for (const SweepRow::Count& degree : degrees) {
      ranks *= static_cast<double>(degree.value_or(1));
    }
    if (ranks <= static_cast<double>(kMostRanks)) return;
    refuse(first, "degrees whose product is at most " + std::to_string(kMostRanks) + " ranks");
  }

  void read_switch(std::string_view column, std::optional<bool>& out) {
    const std::string_view text = cell(column);
    if (text.empty()) return;
    const auto value = number(text);
    if (value != 0.0 && value != 1.0) return refuse(column, "0 or 1, or nothing");
    out = value == 1.0;
  }

  void read_tokens(std::string_view column, std::optional<double>& out) {
    const std::string_view text = cell(column);
    if (text.empty()) return;
    constexpr double kMost = 1e9;
    const auto value = number(text);
    if (!value || *value < 0 || *value > kMost) {
      return refuse(column, "tokens per sequence from 0 to 1e9, or nothing");
    }
    out = *value;
  }

  // The name that the cell is.
  std::optional<std::string_view> choice(std::string_view column,
                                         const std::vector<std::string>& known) {
    const std::string_view text = cell(column);
    if (std::find(known.begin(), known.end(), text) != known.end()) return text;
    std::string expected;
    for (const std::string& name : known) expected += (expected.empty() ? "" : ", ") + name;
    refuse(column, expected, did_you_mean(std::string(text), known));
    return std::nullopt;
  }

  template <class Enum, std::size_t N, class Out>
  void read(std::string_view column, const std::array<std::pair<Enum, std::string_view>, N>& names,
            Out& out) {
    std::vector<std::string> known;
    for (const auto& [value, name] : names) known.emplace_back(name);
    const auto chosen = choice(column, known);
    for (const auto& [value, name] : names) {
      if (chosen == name) out = value;
    }
  }
  template <class Enum, std::size_t N, class Out>
  void read(std::string_view column, const EnumNames<Enum, N>& names, Out& out) {
    read(column, names.pairs, out);
  }

  template <class Names, class Enum>
  void read_if_any(std::string_view column, const Names& names, std::optional<Enum>& out) {
    if (!cell(column).empty()) read(column, names, out);
  }

 private:
  const CsvTable& table_;
  const Columns& columns_;
  const CsvRow& row_;
  Problems& problems_;
};

SweepRow read_row(RowReader& reader) {
  SweepRow row;
  row.model = reader.cell("model");
  row.cluster = reader.cell("cluster");
  if (row.model.empty()) reader.refuse("model", "a preset or a path relative to the CSV");
  if (row.cluster.empty()) reader.refuse("cluster", "a preset or a path relative to the CSV");
  reader.read("kind", kKinds, row.kind);
  for (const CountColumn& column : kCounts) reader.read(column, row);
  reader.read_product("tp", {row.tp, row.pp, row.dp, row.cp});
  reader.read_product("gen_tp", {row.gen_tp, row.gen_pp, row.gen_dp});
  reader.read_tokens("prompt_tokens", row.prompt_tokens);
  reader.read_tokens("response_tokens", row.response_tokens);
  reader.read_if_any("recompute", kRecomputes, row.recompute);
  reader.read_switch("sequence_parallel", row.sequence_parallel);
  reader.read_switch("expert_overlap", row.expert_overlap);
  reader.read_switch("tp_overlap", row.tp_overlap);
  reader.read_switch("reshard_after_forward", row.reshard_after_forward);
  reader.read_switch("reference", row.reference);
  reader.read_if_any("expert_dispatch", kDispatches, row.expert_dispatch);
  reader.read_if_any("loss", kLosses, row.loss);
  reader.read_if_any("rank_order", kRankOrders, row.rank_order);
  reader.read_if_any("rollout_weights", kRolloutWeights, row.rollout_weights);
  if (!reader.cell("plan_engine").empty()) {
    std::vector<std::string> names;
    for (const Engine& engine : every_engine()) names.push_back(engine.name);
    row.engine = reader.choice("plan_engine", names).value_or("");
  }
  if (!reader.cell("grad_precision").empty()) {
    const auto precision =
        reader.choice("grad_precision", {kGradPrecisions.begin(), kGradPrecisions.end()});
    if (precision) row.narrow_gradients = *precision != "fp32";
  }
  const auto take = [&](std::string_view column, const auto& read, auto& out,
                        const char* expected) {
    if (read) {
      out = *read;
    } else {
      reader.refuse(column, expected);
    }
  };
  take("placement", placement_in(reader.cell("placement")), row.placement,
       "colocated or split (also disaggregated, standalone, one-step-off), or nothing");
  take("precision", precision_in(reader.cell("precision"), row.notes), row.precision,
       "a text that begins with bf16, fp16, fp8, fp32 or tf32, or nothing");
  row.compiled = has_one_of(lower_case(reader.cell("attention")), {"compile", "flex"});
  if (!reader.cell("attention").empty()) {
    take("attention", attention_in(reader.cell("attention")), row.attention,
         "flash, flash 1, flash 2 or unfused, or nothing");
  }
  return row;
}

}  // namespace

std::string_view name_of(SweepKind kind) { return kKinds[kind]; }
std::string_view name_of(SweepPrecision precision) { return kPrecisions[precision]; }
std::string_view name_of(SweepAttention attention) { return kAttentions[attention]; }

std::vector<std::string> kept_columns(const CsvTable& table) {
  const std::vector<std::string> read = read_columns();
  std::vector<std::string> kept;
  for (const std::string& name : table.header) {
    const bool known =
        std::find(read.begin(), read.end(), name) != read.end() ||
        std::find(kSweepOutputs.begin(), kSweepOutputs.end(), name) != kSweepOutputs.end();
    if (!known) kept.push_back(name);
  }
  return kept;
}

std::optional<std::vector<SweepRow>> read_sweep_rows(const CsvTable& table, Problems& problems) {
  const std::size_t before = problems.size();
  auto rows = read_sweep_rows_as_far(table, problems);
  if (problems.size() != before) return std::nullopt;
  return rows;
}

std::optional<std::vector<SweepRow>> read_sweep_rows_as_far(const CsvTable& table,
                                                            Problems& problems) {
  const std::size_t before = problems.size();
  for (const std::string_view column : kNeeded) {
    if (table.column(column)) continue;
    problems.push_back({table.file, "1", "no column '" + std::string(column) + "'",
                        "the columns model, cluster and kind",
                        did_you_mean(std::string(column), table.header)});
  }
  refuse_misspelt_columns(table, problems);
  if (problems.size() != before) return std::nullopt;
  Columns columns;
  for (std::size_t i = 0; i < table.header.size(); ++i) columns[table.header[i]] = i;
  std::vector<SweepRow> rows;
  for (const CsvRow& cells : table.rows) {
    if (problems.size() - before >= kMostProblems) break;
    RowReader reader(table, columns, cells, problems);
    rows.push_back(read_row(reader));
    rows.back().line = cells.line;
  }
  return rows;
}

}  // namespace tessera
