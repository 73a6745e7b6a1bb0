// Rows of a sweep against `tessera plan --fix` with the same choices: one price for both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"
#include "planner/request/request.h"
#include "planner/sweep/price.h"
#include "planner/sweep/search/row_search.h"

namespace tessera {
namespace {

using testing::HasSubstr;

using Cells = std::map<std::string, std::string>;

SweepResult swept(const Cells& cells) {
  std::string header, line;
  for (const auto& [column, cell] : cells) {
    header += (header.empty() ? "" : ",") + column;
    line += (line.empty() ? "" : ",") + cell;
  }
  Problems problems;
  const auto table = parse_csv(header + "\n" + line + "\n", "in.csv", problems);
  const auto rows = table ? read_sweep_rows(*table, problems) : std::nullopt;
  const auto inputs = rows ? read_sweep_inputs(*rows, ".", "in.csv", "", problems) : std::nullopt;
  EXPECT_TRUE(inputs.has_value()) << (problems.empty() ? "" : to_string(problems[0]));
  return SweepPricer(*inputs, search_row).price(rows->front());
}

/// A workload of an actor alone: generation, log-probabilities, one or more updates.
Workload workload_of(const Cells& cells) {
  Workload workload;
  workload.algorithm = "custom";
  workload.dataflow = {
      {Phase::gen, Role::rollout, CallKind::generate, {"prompts"}, {"responses"}},
      {Phase::old_log_prob, Role::actor, CallKind::infer, {"responses"}, {"old"}},
      {Phase::update_actor, Role::actor, CallKind::train, {"responses", "old"}, {}}};
  const auto number = [&](const char* column) { return std::stoll(cells.at(column)); };
  workload.prompts_per_step = number("global_batch");
  workload.prompt_tokens = number("prompt_tokens");
  workload.response_tokens.mean = static_cast<double>(number("response_tokens"));
  workload.response_tokens.max = number("max_response_tokens");
  if (static_cast<double>(workload.response_tokens.max) > 1.5 * workload.response_tokens.mean) {
    workload.response_tokens.cv = 0.5;  // as the sweep's rows
  }
  workload.mini_batches = workload.prompts_per_step / number("mini_batch");
  return workload;
}

PlanOutcome planned(const Cells& cells, const std::vector<std::string>& words) {
  Problems problems;
  PlanRequest request;
  request.engine = cells.at("plan_engine");
  request.models["actor"] = {read_model_spec(cells.at("model"), problems).value(), "", ""};
  request.cluster = read_cluster_spec(cells.at("cluster"), problems).value();
  request.calibration = calibration_for_cluster(request.cluster, problems).value();
  request.workload = workload_of(cells);
  request.one_step_off = cells.contains("policy_lag") && cells.at("policy_lag") == "1";
  request.fixed = parse_settings(words, problems);
  auto outcome = make_plan(request, problems);
  EXPECT_TRUE(outcome.has_value()) << (problems.empty() ? "" : to_string(problems[0]));
  return *std::move(outcome);
}

/// A random row and the words of --fix that say the same.
struct Case {
  Cells cells;
  std::vector<std::string> words;

  std::string text() const {
    std::string all;
    for (const auto& [column, cell] : cells) all += column + "=" + cell + " ";
    for (const std::string& word : words) all += " " + word;
    return all;
  }
};

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  template <class T>
  T of(const std::vector<T>& choices) {
    return choices[std::uniform_int_distribution<std::size_t>(0, choices.size() - 1)(random_)];
  }
  bool once_in(int times) { return std::uniform_int_distribution(1, times)(random_) == 1; }

  Case row(const std::string& engine, bool apart) {
    Case made;
    const int gpus = apart ? 8 : of<int>({8, 16});
    const int batch = of<int>({32, 64, 256}), response = of<int>({256, 1024, 2048});
    const std::string model = of<std::string>({"qwen2.5-7b", "llama3.1-8b", "qwen2.5-14b"});
    made.cells = {
        {"model", model},
        {"cluster", apart || gpus == 16 ? "h800-16" : of<std::string>({"h100-8", "h200-8"})},
        {"kind", "iteration"},
        {"plan_engine", engine},
        {"global_batch", std::to_string(batch)},
        {"mini_batch", std::to_string(batch / of<int>({1, 2}))},
        {"prompt_tokens", of<std::string>({"128", "1024"})},
        {"response_tokens", std::to_string(response)},
        {"max_response_tokens", std::to_string(response * of<int>({1, 4}))}};
    const auto say = [&](const std::string& column, const std::string& cell,
                         const std::string& field, const std::string& value, int leave_open) {
      if (once_in(leave_open)) return;
      made.cells[column] = cell;
      made.words.push_back(field + "=" + value);
    };
    const auto degree = [&](const std::string& column, const std::string& field, int value) {
      say(column, std::to_string(value), field, std::to_string(value), 6);
    };
    const int tp = of<int>({1, 2, 4}), pp = engine == "verl" ? 1 : of<int>({1, 1, 2});
    made.words.push_back("actor.gpus=" + std::to_string(gpus));
    made.words.push_back("rollout.gpus=" + std::to_string(gpus));
    made.cells["train_gpus"] = made.cells["gen_gpus"] = std::to_string(gpus);
    if (engine != "verl") degree("tp", "actor.tp", tp);
    made.cells["pp"] = std::to_string(pp);
    made.words.push_back("actor.pp=" + std::to_string(pp));
    if (engine == "any") degree("cp", "actor.cp", 1);
    const std::string recompute = of<std::string>({"none", "full"});
    say("recompute", recompute, "actor.recompute", recompute, 3);
    if (!once_in(4)) {
      const long long size = of<int>({1, 2});
      const Workload workload = workload_of(made.cells);
      made.cells["micro_batch"] = std::to_string(size);
      made.words.push_back("actor.tokens=" + std::to_string(size * longest_sequence(workload)));
    }
    degree("gen_tp", "rollout.tp", of<int>({1, 2, 4}));
    const bool keep = once_in(2);
    say("rollout_weights", keep ? "keep" : "unmap", "rollout.offload", keep ? "none" : "all", 3);
    made.cells["placement"] = apart ? "split" : "colocated";
    if (apart) made.cells["policy_lag"] = engine == "tessera" ? "0" : "1";
    made.words.push_back(apart ? "placement=actor | rollout" : "placement=colocated");
    return made;
  }

 private:
  std::mt19937 random_;
};

constexpr double kSame = 1e-9;

void expect_equal(const SweepResult& row, const Plan& plan) {
  const Prediction& prediction = plan.prediction;
  const auto near = [](double a, double b) { EXPECT_NEAR(a, b, kSame * b); };
  const auto seconds = [&](Phase phase) { return prediction.phases_s.at(phase); };
  near(row.step_s.value(), prediction.step_s);
  // Of plans that take equally long the search takes the likelier to survive, a row any.
  const double row_bytes = row.peak_gib.value() * (1 << 30);
  if (static_cast<double>(prediction.peak_bytes.value) < (1 - kSame) * row_bytes) return;
  near(row.gen_s.value(), seconds(Phase::gen));
  near(row.reshard_s.value(), seconds(Phase::reshard));
  near(row.log_prob_s.value(), seconds(Phase::old_log_prob));
  near(row.update_s.value(), seconds(Phase::update_actor));
  near(row.peak_gib.value() * (1LL << 30), static_cast<double>(prediction.peak_bytes.value));
}

void compare(const std::string& engine, bool apart, int cases) {
  Draw draw(apart ? 7 : 11);
  int feasible = 0, equal = 0;
  for (int i = 0; i < cases; ++i) {
    const Case made = draw.row(engine, apart);
    SCOPED_TRACE(made.text());
    const SweepResult row = swept(made.cells);
    const PlanOutcome outcome = planned(made.cells, made.words);
    const Plan* plan = std::get_if<Plan>(&outcome);
    ASSERT_EQ(row.feasible, plan != nullptr) << row.why;
    if (plan == nullptr) continue;
    ++feasible;
    // A row states its lag; a plan that may lag need not, and an engine that waits may be faster.
    if (made.cells.contains("policy_lag") && made.cells.at("policy_lag") == "1" &&
        !is_one_step_off(plan->schedule)) {
      EXPECT_LE(plan->prediction.step_s, row.step_s.value() * (1 + kSame));
      continue;
    }
    ++equal;
    expect_equal(row, *plan);
  }
  EXPECT_GE(feasible, cases / 3);
  EXPECT_GE(equal, 1);
}

TEST(SweepAndPlan, PriceARowAlikeOnSharedGpus) { compare("any", false, 24); }
TEST(SweepAndPlan, PriceARowAlikeOnGpusOfTheirOwn) { compare("any", true, 12); }
TEST(SweepAndPlan, PriceARowAlikeWhereTrainingWaits) { compare("tessera", true, 12); }
TEST(SweepAndPlan, PriceARowAlikeForTessera) { compare("tessera", false, 12); }
TEST(SweepAndPlan, PriceARowAlikeForVerl) { compare("verl", false, 12); }
TEST(SweepAndPlan, PriceARowAlikeForVerlOnGpusOfTheirOwn) { compare("verl", true, 6); }
TEST(SweepAndPlan, PriceARowAlikeForMegatron) { compare("verl-megatron", false, 12); }

// A rollout that is kept pays no way back to memory; a row says which it had.
TEST(SweepAndPlan, RowsSayWhetherTheRolloutIsKept) {
  Cells cells = {{"model", "qwen2.5-7b"},
                 {"cluster", "h200-8"},
                 {"kind", "iteration"},
                 {"gpus", "8"},
                 {"tp", "2"},
                 {"micro_batch", "4"},
                 {"pp", "1"},
                 {"zero", "1"},
                 {"gen_tp", "2"},
                 {"global_batch", "64"},
                 {"prompt_tokens", "1024"},
                 {"response_tokens", "1024"}};
  const SweepResult open = swept(cells);
  cells["rollout_weights"] = "unmap";
  const SweepResult unmapped = swept(cells);
  cells["rollout_weights"] = "keep";
  const SweepResult kept = swept(cells);
  EXPECT_EQ(open.step_s, kept.step_s);
  EXPECT_LE(*kept.reshard_s, *unmapped.reshard_s);
  EXPECT_GT(*kept.peak_gib, *unmapped.peak_gib);
  EXPECT_THAT(open.why, HasSubstr("rollout kept"));
  EXPECT_THAT(unmapped.why, HasSubstr("rollout unmapped"));
}

}  // namespace
}  // namespace tessera
