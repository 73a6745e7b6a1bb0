#include "planner/sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "cost_models/documents/problem.h"
#include "planner/sweep/search/row_search.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kHeader =
    "note,model,cluster,kind,gpus,tp,pp,dp,cp,ep,vpp,zero,recompute,sequence_parallel,micro_batch,"
    "global_batch,prompt_tokens,response_tokens\n";

CsvTable swept(const std::string& rows) {
  Problems problems;
  auto table = parse_csv(kHeader + rows, "in.csv", problems);
  EXPECT_TRUE(table.has_value());
  EXPECT_TRUE(sweep(*table, ".", "", search_row, problems).has_value());
  EXPECT_TRUE(problems.empty()) << (problems.empty() ? "" : to_string(problems[0]));
  return *table;
}

std::string cell(const CsvTable& table, std::size_t row, std::string_view column) {
  return table.rows[row].cells[table.column(column).value()];
}

double value(const CsvTable& table, std::size_t row, std::string_view column) {
  return std::strtod(cell(table, row, column).c_str(), nullptr);
}

TEST(Sweep, KeepsEveryColumnAndAddsThePrediction) {
  const CsvTable table =
      swept("\"a, b\",llama3.1-8b,h100-8,train,8,2,1,4,1,1,1,1,none,1,1,64,2048,0\n");
  EXPECT_EQ(table.header.front(), "note");
  EXPECT_EQ(table.header.size(), 29U);
  EXPECT_EQ(cell(table, 0, "note"), "a, b");
  EXPECT_EQ(cell(table, 0, "feasible"), "1");
  EXPECT_GT(value(table, 0, "step_s"), 0);
  EXPECT_EQ(cell(table, 0, "step_s"), cell(table, 0, "update_s"));
  EXPECT_THAT(cell(table, 0, "gen_s"), IsEmpty());
  EXPECT_NEAR(value(table, 0, "tokens_per_s_per_gpu"), 64 * 2048 / value(table, 0, "step_s") / 8,
              1e-3 * value(table, 0, "tokens_per_s_per_gpu"));
  EXPECT_GT(value(table, 0, "mfu"), 0.1);
  EXPECT_LT(value(table, 0, "mfu"), 0.75);
}

TEST(Sweep, OfItsOwnOutputChangesNothing) {
  CsvTable table = swept("x,llama3.1-8b,h100-8,train,8,8,1,1,1,1,1,0,full,1,1,16,2048,0\n");
  const std::string once = to_csv(table);
  Problems problems;
  ASSERT_TRUE(sweep(table, ".", "", search_row, problems).has_value());
  EXPECT_EQ(to_csv(table), once);
}

TEST(Sweep, FillsEmptyCellsWithTheFastestThatFits) {
  std::string rows = "x,llama3.1-8b,h100-8,train,8,4,1,2,1,1,1,1,full,1,,32,4096,0\n";
  for (const char* size : {"1", "2", "4", "8", "16"}) {
    rows +=
        std::string("x,llama3.1-8b,h100-8,train,8,4,1,2,1,1,1,1,full,1,") + size + ",32,4096,0\n";
  }
  const CsvTable table = swept(rows);
  double best = 1e30;
  for (std::size_t row = 1; row < table.rows.size(); ++row) {
    if (cell(table, row, "feasible") == "1") best = std::min(best, value(table, row, "step_s"));
  }
  EXPECT_DOUBLE_EQ(value(table, 0, "step_s"), best);
  EXPECT_THAT(cell(table, 0, "why"), HasSubstr("micro_batch="));
}

TEST(Sweep, SaysWhyALayoutIsImpossible) {
  const CsvTable table = swept(
      "x,llama3.1-8b,h100-8,train,8,3,1,4,1,1,1,0,none,0,1,16,2048,0\n"
      "x,llama3.1-8b,h100-8,train,64,1,64,1,1,1,1,0,none,0,1,64,2048,0\n");
  for (std::size_t row = 0; row < 2; ++row) {
    EXPECT_EQ(cell(table, row, "feasible"), "0");
    EXPECT_THAT(cell(table, row, "step_s"), IsEmpty());
    EXPECT_THAT(cell(table, row, "why"), HasSubstr("no layout of 32 layers"));
  }
}

TEST(Sweep, TimesWhatDoesNotFitAndSaysWhatIsMissing) {
  const CsvTable table = swept("x,llama3.1-70b,h100-8,train,8,8,1,1,1,1,1,0,full,1,1,8,2048,0\n");
  EXPECT_EQ(cell(table, 0, "feasible"), "0");
  EXPECT_GT(value(table, 0, "step_s"), 0);
  EXPECT_GT(value(table, 0, "peak_gib"), 80);
  EXPECT_THAT(cell(table, 0, "why"), HasSubstr("GiB"));
}

TEST(Sweep, PartsOfAnIterationAddUpWhereTheyShareTheirGpus) {
  const CsvTable table = swept(
      "x,qwen2.5-7b,h100-8,iteration,8,2,1,4,1,1,1,1,full,1,1,64,512,512\n"
      "x,qwen2.5-7b,h100-8,train,8,2,1,4,1,1,1,1,full,1,1,64,512,512\n"
      "x,qwen2.5-7b,h100-8,logprob,8,2,1,4,1,1,1,1,,1,1,64,512,512\n");
  const double parts = value(table, 0, "gen_s") + value(table, 0, "reshard_s") +
                       value(table, 0, "log_prob_s") + value(table, 0, "update_s");
  EXPECT_NEAR(value(table, 0, "step_s"), parts, 1e-5 * parts);
  EXPECT_EQ(cell(table, 0, "update_s"), cell(table, 1, "step_s"));
  EXPECT_EQ(cell(table, 0, "log_prob_s"), cell(table, 2, "step_s"));
  EXPECT_LT(value(table, 2, "step_s"), value(table, 1, "step_s"));
}

// As `tessera plan` refuses them; what only trains states its own context.
TEST(Sweep, RefusesResponsesBeyondTheModelsPositions) {
  const CsvTable table = swept(
      "x,gpt2,h100-8,iteration,8,1,1,8,1,1,1,1,none,0,1,64,1,1024\n"
      "x,gpt2,h100-8,rollout,8,1,1,8,1,1,1,,,,,64,1,1024\n"
      "x,gpt2,h100-8,iteration,8,1,1,8,1,1,1,1,none,0,1,64,1,1023\n"
      "x,gpt2,h100-8,train,8,1,1,8,1,1,1,1,none,0,1,64,2048,0\n");
  for (const std::size_t row : {0U, 1U}) {
    EXPECT_EQ(cell(table, row, "feasible"), "0");
    EXPECT_THAT(cell(table, row, "why"),
                HasSubstr("max_position_embeddings: found 1024 positions, expected at least 1025"));
    for (const char* time : {"step_s", "gen_s", "reshard_s", "log_prob_s", "update_s", "mfu",
                             "tokens_per_s_per_gpu"}) {
      EXPECT_THAT(cell(table, row, time), IsEmpty()) << time;
    }
  }
  for (const std::size_t row : {2U, 3U}) EXPECT_EQ(cell(table, row, "feasible"), "1");
}

TEST(Sweep, SaysWhereARowNeedsMoreNodesThanItsClusterHas) {
  const CsvTable table = swept(
      "x,llama3.1-8b,h100-8,train,64,8,1,8,1,1,1,1,none,1,1,64,2048,0\n"
      "x,llama3.1-8b,h100-8,train,8,8,1,1,1,1,1,1,none,1,1,64,2048,0\n");
  EXPECT_THAT(cell(table, 0, "why"), HasSubstr("the cluster has 8 GPUs: priced as 8 of its nodes"));
  EXPECT_THAT(cell(table, 1, "why"), testing::Not(HasSubstr("priced as")));
}

TEST(Sweep, ShortagesStateTheBytesOfTheirColumn) {
  const CsvTable table = swept("x,llama3.1-70b,h100-8,train,8,1,1,8,1,1,1,1,none,0,1,64,2048,0\n");
  ASSERT_EQ(cell(table, 0, "feasible"), "0");
  char peak[32];
  std::snprintf(peak, sizeof peak, "needs %.1f GiB of", value(table, 0, "peak_gib"));
  EXPECT_THAT(cell(table, 0, "why"), HasSubstr(peak));
}

CsvTable swept_rollouts(const std::string& rows) {
  Problems problems;
  auto table = parse_csv(
      "model,cluster,kind,gpus,tp,dp,ep,global_batch,mini_batch,prompt_tokens,response_tokens,"
      "max_response_tokens,gen_gpus,placement,policy_lag\n" +
          rows,
      "in.csv", problems);
  EXPECT_TRUE(table && sweep(*table, ".", "", search_row, problems));
  return *table;
}

// The step waits for the replica that has most: 4 and 7 sequences on 8 replicas take as long as 8,
// 15 as long as 16, and more never take less, but for a thousandth: decode steps are interpolated.
TEST(Sweep, ReplicasThatDivideUnevenlyTakeAsLongAsTheFullest) {
  std::string rows;
  for (int batch = 1; batch <= 40; ++batch) {
    rows += "qwen2.5-7b,h100-8,rollout,8,1,8,1," + std::to_string(batch) + ",,1024,1024,,,,\n";
  }
  const CsvTable table = swept_rollouts(rows);
  for (std::size_t batch = 2; batch <= 40; ++batch) {
    EXPECT_GE(value(table, batch - 1, "gen_s"), 0.999 * value(table, batch - 2, "gen_s")) << batch;
  }
  const auto seconds = [&](std::size_t batch) { return value(table, batch - 1, "gen_s"); };
  EXPECT_NEAR(seconds(4) / seconds(8), 1, 1e-3);
  EXPECT_NEAR(seconds(7) / seconds(8), 1, 1e-3);
  EXPECT_NEAR(seconds(15) / seconds(16), 1, 1e-3);
  EXPECT_GT(seconds(8), 1);  // 1,024 steps that read 15 GB at 3.35 TB/s take 4.6 s
}

TEST(Sweep, RolloutWithoutPromptsDecodesOnly) {
  const CsvTable table = swept_rollouts(
      "qwen2.5-7b,h100-8,rollout,8,1,8,1,16,,0,1024,,,,\n"
      "qwen2.5-7b,h100-8,rollout,8,1,8,1,16,,1024,1024,,,,\n");
  EXPECT_GT(value(table, 0, "gen_s"), 1);
  EXPECT_LT(value(table, 0, "gen_s"), value(table, 1, "gen_s"));
}

TEST(Sweep, RowsThatContradictThemselvesSayWhichColumn) {
  const CsvTable table = swept_rollouts(
      "qwen2.5-7b,h100-8,rollout,8,1,8,1,16,,1024,0,,,,\n"
      "qwen2.5-7b,h100-8,iteration,8,1,8,1,16,,1024,0,,,,\n"
      "qwen2.5-7b,h100-8,rollout,8,1,8,1,16,,1024,1024,100,,,\n"
      "qwen2.5-7b,h100-8,train,8,1,8,8,16,,1024,0,,,,\n"
      "qwen3-30b-a3b,h100-8,train,8,1,8,256,16,,1024,0,,,,\n"
      "qwen2.5-7b,h100-8,train,8,1,8,1,1000,7,1024,0,,,,\n"
      "qwen2.5-7b,h100-8,train,9,9,1,1,16,,1024,0,,,,\n"
      "qwen2.5-7b,h100-8,train,8,1,8,1,7,,1024,0,,,,\n");
  const char* expected[] = {
      "response_tokens: found 0, expected at least 1 token",
      "response_tokens: found 0, expected at least 1 token",
      "max_response_tokens: found 100, expected at least the mean",
      "ep: found 8, expected 1, for the model has no experts",
      "ep: found 256, expected at most the model's 128 experts",
      "mini_batch: found 7, expected a divisor of global_batch = 1000",
      "tp: found 9, expected at most the 8 GPUs of a node, or those of whole nodes",
      "dp: found 8, expected at most the 7 sequences of a batch, one for each replica",
  };
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    EXPECT_EQ(cell(table, row, "feasible"), "0") << row;
    EXPECT_THAT(cell(table, row, "step_s"), IsEmpty()) << row;
    EXPECT_THAT(cell(table, row, "why"), HasSubstr(expected[row])) << row;
  }
}

/// tp over two whole nodes is slow, and possible (Narayanan et al. 2021, figure 13, has it).
TEST(Sweep, TensorParallelismMaySpanWholeNodes) {
  const CsvTable table = swept_rollouts(
      "qwen2.5-32b,h100-64,train,16,16,1,1,16,,1024,0,,,,\n"
      "qwen2.5-7b,h100-8,train,6,2,3,1,16,,1024,0,,,,\n");
  EXPECT_EQ(cell(table, 0, "feasible"), "1");
  EXPECT_THAT(cell(table, 1, "why"),
              HasSubstr("dp 3 does not divide the batch of 16: priced as 6"));
}

/// Several batches share the end in which slots stay free; none is generated in less than its part
/// of full slots.
// Half of each expert's columns: half of the experts' weights and gradients on a GPU, of which the
// tokens that both halves hold take a part back.
TEST(Sweep, ExpertsAreCutByTheirOwnTensorParallelism) {
  const std::string row =
      ",mixtral-8x22b,h100-8192-roce-7to1,train,128,2,8,8,1,4,7,1,none,1,1,256,4096,0\n";
  Problems problems;
  auto table =
      parse_csv("etp," + std::string(kHeader) + "1," + row + "2," + row + "," + row + "3," + row,
                "in.csv", problems);
  ASSERT_TRUE(table && sweep(*table, ".", "", search_row, problems)) << to_string(problems[0]);
  const double whole = value(*table, 0, "peak_gib"), halved = value(*table, 1, "peak_gib");
  // 56 / 8 layers of 8 / 4 experts of 3 x 6,144 x 16,384: 2 + 4 bytes of each element, and more.
  const double experts = 7 * 2 * 3 * 6144.0 * 16384 * 6 / (1 << 30);
  EXPECT_GT(whole - halved, 0.2 * experts);
  EXPECT_LT(whole - halved, 0.5 * experts);
  EXPECT_EQ(cell(*table, 2, "step_s"), cell(*table, 0, "step_s"));  // silent: experts stay whole
  EXPECT_EQ(cell(*table, 3, "feasible"), "0");
  EXPECT_THAT(cell(*table, 3, "why"), HasSubstr("etp"));
}

TEST(Sweep, BatchesThatAreGeneratedAtOnceShareTheirTail) {
  const CsvTable table = swept_rollouts(
      "qwen2.5-7b,h100-8,iteration,8,1,,1,64,,512,512,2048,8,split,1\n"
      "qwen2.5-7b,h100-8,iteration,8,1,,1,64,,512,512,2048,8,split,5\n"
      "qwen2.5-7b,h100-8,iteration,8,1,,1,320,,512,512,2048,8,split,1\n");
  const auto seconds = [&](std::size_t row, const char* column) {
    return std::strtod(cell(table, row, column).c_str(), nullptr);
  };
  EXPECT_THAT(cell(table, 0, "why"), testing::Not(HasSubstr("generated at once")));
  EXPECT_THAT(cell(table, 1, "why"), HasSubstr("5 batches generated at once"));
  EXPECT_LT(seconds(1, "gen_s"), seconds(0, "gen_s"));
  EXPECT_NEAR(seconds(1, "gen_s"), seconds(2, "gen_s") / 5, 1e-5 * seconds(1, "gen_s"));
  EXPECT_EQ(cell(table, 0, "update_s"), cell(table, 1, "update_s"));
}

// 18,867 tensors at 0.23 or half a millisecond each; together also the optimizer states of 30.5e9
// parameters on 8 GPUs, 12 bytes each, at 2.5 GB/s a GPU.
TEST(Sweep, SwitchesOfPublishedTrainersCostTheirSoftware) {
  const CsvTable table = swept_rollouts(
      "qwen3-30b-a3b,h100-8,iteration,8,1,,1,64,,512,512,2048,8,split,1\n"
      "qwen3-30b-a3b,h100-8,iteration,8,1,,1,64,,512,512,2048,8,colocated,0\n");
  const double apart = std::strtod(cell(table, 0, "reshard_s").c_str(), nullptr);
  const double together = std::strtod(cell(table, 1, "reshard_s").c_str(), nullptr);
  EXPECT_GE(apart, 0.23e-3 * 18867);
  EXPECT_LE(apart, 0.23e-3 * 18867 + 2);
  EXPECT_GE(together, 0.5e-3 * 18867 + 12 * 30.5e9 / 8 / 2.5e9);
}

// As rows that state 1, 2, 4 and 8 GPUs say.
TEST(Sweep, OpenNumbersOfGpusBecomeTheFewestThatFit) {
  for (const std::string model : {"qwen2.5-0.5b", "qwen2.5-14b", "qwen2.5-32b"}) {
    const std::string row = ",,,,,,,,,,,64,1024,0\n";
    const CsvTable table =
        swept("x," + model + ",h200-8,train," + row +  //
              "x," + model + ",h200-8,train,1" + row + "x," + model + ",h200-8,train,2" + row +
              "x," + model + ",h200-8,train,4" + row + "x," + model + ",h200-8,train,8" + row);
    std::size_t fewest = 1;
    while (fewest < 5 && cell(table, fewest, "feasible") == "0") ++fewest;
    ASSERT_LT(fewest, 5U) << model;
    EXPECT_EQ(cell(table, 0, "feasible"), "1");
    const std::string chosen = "train_gpus=" + std::to_string(1 << (fewest - 1));
    EXPECT_THAT(cell(table, 0, "why"), HasSubstr(chosen + ", the fewest that fit"));
    EXPECT_EQ(cell(table, 0, "step_s"), cell(table, fewest, "step_s"));
  }
  const CsvTable table = swept(
      "x,llama3.1-405b,h200-8,train,,,,,,,,,,,,64,1024,0\n"
      "x,qwen2.5-7b,h200-8,iteration,,,,,,,,,,,,64,1024,256\n");
  EXPECT_EQ(cell(table, 0, "feasible"), "0");
  EXPECT_EQ(cell(table, 1, "feasible"), "1");
}

TEST(Sweep, TimesFollowTheClustersFigures) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("tessera-figures-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto file = (folder / "slow.yaml").string();
  std::ofstream(file) << "version: 1\nname: slow\ngpu: H100-SXM-80GB\nmemory_gib: 80\n"
                         "peak_tflops_bf16: 99\nhbm_gb_s: 335\ngpus_per_node: 8\nnodes: 1\n"
                         "intra_node: {link: NVLink4 + NVSwitch, gb_s_per_gpu_one_way: 450}\n"
                         "inter_node: {fabric: InfiniBand NDR, nics_per_node: 8, "
                         "gbit_s_per_nic: 400}\n";
  const std::string row = ",train,8,2,1,4,1,1,1,1,none,1,1,64,2048,0\n";
  const CsvTable table = swept("x,llama3.1-8b,h100-8" + row + "x,llama3.1-8b," + file + row);
  std::filesystem::remove_all(folder);
  EXPECT_GT(value(table, 1, "step_s"), 7 * value(table, 0, "step_s"));
  EXPECT_LT(value(table, 1, "mfu"), 1);
}

// H800 computes 6.7 times as fast as H20, which has more memory.
TEST(Sweep, PricesARowOnTheGpuTypeThatSuitsIt) {
  const std::string layouts[] = {"train,16,8,1,2,1,1,1,1,none,1,1,64,2048,0\n",
                                 "rollout,16,2,1,8,1,1,1,,,,,512,1024,1024\n"};
  std::string rows;
  for (const std::string& layout : layouts) {
    for (const char* cluster : {"h800-h20-64", "h800-64", "h20-64"}) {
      rows += std::string("x,qwen2-7b,") + cluster + "," + layout;
    }
  }
  const CsvTable table = swept(rows);
  for (const std::size_t first : {std::size_t{0}, std::size_t{3}}) {
    const double least =
        std::min(value(table, first + 1, "step_s"), value(table, first + 2, "step_s"));
    EXPECT_NEAR(value(table, first, "step_s"), least, 1e-6 * least) << first;
    EXPECT_EQ(cell(table, first, "feasible"), "1");
  }
  EXPECT_THAT(cell(table, 0, "why"), HasSubstr("on H800-SXM-80GB"));
  const bool h800 = value(table, 4, "step_s") < value(table, 5, "step_s");
  EXPECT_THAT(cell(table, 3, "why"), HasSubstr(h800 ? "on H800-SXM-80GB" : "on H20-96GB"));
}

// 40 GPUs are more than either type has: the weaker figures of both.
TEST(Sweep, SpansTypesWhereOneHasTooFewGpus) {
  const CsvTable table = swept(
      "x,qwen2-7b,h800-h20-64,train,40,8,1,5,1,1,1,1,none,1,1,80,2048,0\n"
      "x,qwen2-7b,h800-64,train,40,8,1,5,1,1,1,1,none,1,1,80,2048,0\n");
  EXPECT_GT(value(table, 0, "step_s"), 2 * value(table, 1, "step_s"));
  EXPECT_THAT(cell(table, 0, "why"), HasSubstr("on H800-SXM-80GB+H20-96GB"));
}

}  // namespace
}  // namespace tessera
