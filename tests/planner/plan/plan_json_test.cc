#include "planner/plan/plan_json.h"
#include "planner/engines/read_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <cmath>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cost_models/documents/malformed.h"
#include "tests/planner/plan/sample_plan.h"

namespace tessera {
namespace {

double any_number() {
  return *rc::gen::inRange<std::int64_t>(0, 1LL << 62) * std::exp2(*rc::gen::inRange(-90, 10));
}

std::string any_text() {
  static const std::vector<std::string> texts{"", "plain", "\"quoted\" \\ \n\t",
                                              "\xC3\xA9 \xF0\x9F\x98\x80", "a/b~c"};
  return *rc::gen::elementOf(texts);
}

/// Layout of `ranks` ranks whose degrees multiply to it; PP at most the four layers.
RolePlan any_role(Role role, const std::vector<int>& ranks, std::int64_t mini_batch) {
  const int n = static_cast<int>(ranks.size());
  const int tp = 1 << *rc::gen::inRange(0, n == 4 ? 3 : n == 2 ? 2 : 1);
  const int pp = n / tp >= 2 && *rc::gen::arbitrary<bool>() ? 2 : 1;
  RolePlan plan = sample_role(role, ranks, tp, pp, n / tp / pp, mini_batch);
  if (*rc::gen::arbitrary<bool>()) {
    plan.rank_order = RankOrder::list;
    std::reverse(plan.ranks.begin(), plan.ranks.end());
  } else if (*rc::gen::arbitrary<bool>()) {
    plan.rank_order = RankOrder::megatron;
  }
  if (plan.layout.dp > 1 && *rc::gen::arbitrary<bool>()) {
    plan.layout.dp_shard = plan.layout.dp;
    plan.layout.zero = 3;
  }
  plan.dtypes.param = *rc::gen::element(DType::fp32, DType::bf16);
  plan.recompute = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
  plan.offload.optimizer = *rc::gen::arbitrary<bool>();
  plan.memory[*rc::gen::elementOf(kEveryPhase)].optimizer =
      Bytes{*rc::gen::inRange<std::int64_t>(0, 1LL << 45)};
  return plan;
}

Plan any_plan() {
  Plan plan = sample_plan();
  const std::string algorithm = *rc::gen::element(std::string("ppo"), std::string("grpo"));
  const KlPlace kl = *rc::gen::element(KlPlace::none, KlPlace::loss, KlPlace::reward);
  plan.workload.algorithm = algorithm;
  plan.workload.kl = kl;
  plan.workload.dataflow = preset_dataflow(algorithm, kl, *rc::gen::arbitrary<bool>());
  plan.schedule = default_schedule(plan.workload);
  const std::vector<std::vector<int>> rank_sets{{0, 1, 2, 3}, {0, 1}, {2, 3}, {1}};
  plan.roles.clear();
  for (const Role role : kEveryRole) {
    std::int64_t mini_batch = -1;
    for (const Call& call : plan.workload.dataflow) {
      if (call.role != role || call.kind == CallKind::compute) continue;
      mini_batch = std::max<std::int64_t>(mini_batch, call.kind == CallKind::train ? 256 : 0);
    }
    if (mini_batch >= 0) {
      plan.roles.push_back(any_role(role, *rc::gen::elementOf(rank_sets), mini_batch));
    }
  }
  plan.models["actor"].path = any_text();
  plan.models["actor"].spec.bos_token = *rc::gen::inRange<std::int64_t>(0, 16);
  plan.models["actor"].spec.norm_epsilon = any_number();
  plan.reshard[0].mode = *rc::gen::element(ReshardMode::minimal, ReshardMode::full);
  plan.reshard[0].digest = *rc::gen::element(std::string(), std::string("0123456789abcdef"));
  plan.environment[0].reason = any_text();
  plan.prediction.step_s = Seconds{any_number()};
  plan.prediction.phases_s[*rc::gen::elementOf(kEveryPhase)] = Seconds{any_number()};
  plan.prediction.measured_constants = {any_text()};
  plan.certificate.value = -any_number();
  plan.prediction.fits = *rc::gen::element(0.0, 0.5, 1.0);
  plan.prediction.peak_error_bytes = Bytes{*rc::gen::inRange<std::int64_t>(0, 1LL << 40)};
  plan.certificate.risk = *rc::gen::element(0.0, 0.02, 0.5);
  if (*rc::gen::arbitrary<bool>()) {
    plan.certificate.safer = {0.002, 0.999, plan.certificate.runner_up[0]};
  }
  plan.certificate.runner_up[0].step_s = Seconds{any_number()};
  plan.provenance.calibration = any_text();
  return plan;
}

TEST(PlanJson, AnyValidPlanReadsBackEqualAndWritesTheSameBytes) {
  EXPECT_TRUE(rc::check([] {
    const Plan plan = any_plan();
    const std::string text = to_json(plan);
    Problems problems;
    const auto again = parse_plan(text, "plan.json", problems);
    if (!again) RC_FAIL(to_string(problems.at(0)));
    RC_ASSERT(*again == plan);
    RC_ASSERT(to_json(*again) == text);
  }));
}

TEST(PlanJson, HasTheKeysOfVersionOneInTheirOrder) {
  const std::string text = to_json(sample_plan());
  std::size_t last = 0;
  for (const char* key :
       {"tessera_plan", "models", "engine", "cluster", "workload", "dataflow", "schedule", "roles",
        "reshard", "environment", "prediction", "certificate", "provenance"}) {
    const std::size_t at = text.find("\n  \"" + std::string(key) + "\": ");
    ASSERT_NE(at, std::string::npos) << key;
    EXPECT_GT(at + 1, last) << key;
    last = at + 1;
  }
}

TEST(PlanJson, WritesAtomicallyAndReadsTheFile) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "plan_json_test";
  std::filesystem::create_directories(folder);
  const auto file = folder / "plan.json";
  write_plan(sample_plan(), file);
  write_plan(sample_plan(), file);
  Problems problems;
  EXPECT_EQ(read_plan(file, problems), sample_plan());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  EXPECT_THROW(write_plan(sample_plan(), folder / "absent/plan.json"), Error);
  EXPECT_FALSE(read_plan(folder / "absent.json", problems));
  std::filesystem::remove_all(folder);
}

// Another writer's "1.0" is the integer 1 (JSON Schema 2020-12, 4.2.3).
TEST(PlanJson, ReadsWholeNumbersHoweverTheyAreWritten) {
  std::string text = to_json(sample_plan());
  for (const auto& [found, written] : {std::pair{"\"tessera_plan\": 1", "\"tessera_plan\": 1.0"},
                                       std::pair{"\"layers\": 4", "\"layers\": 4e0"}}) {
    text.replace(text.find(found), std::string(found).size(), written);
  }
  Problems problems;
  const auto read = parse_plan(text, "plan.json", problems);
  ASSERT_TRUE(read.has_value()) << Error(ExitCode::bad_input, problems).what();
  EXPECT_EQ(*read, sample_plan());
}

TEST(PlanJson, RefusesEveryMalformedPlanWithItsPlaceAndReason) {
  const Edit edits[] = {
      {"\"tessera_plan\": 1", "\"tessera_plan\": 2", "2:19 (/tessera_plan)", "plan version 2",
       "plan version 1"},
      {"\"tessera_plan\": 1", "\"tessera_plan\": \"1\"", "2:19 (/tessera_plan)", "version \"1\"",
       "plan version 1"},
      {"\"tessera_plan\": 1,", "", "1:1 (/tessera_plan)", "no 'tessera_plan'", "plan version 1"},
      {"\"engine\": \"tessera\"", "\"engine\": \"\"", "", "\"\"", "not empty"},
      {"\"engine\": \"tessera\"", "\"engine\": null", "", "null", "a value"},
      {"\"engine\": \"tessera\"", "\"engine\": \"tesera\"", "", "\"tesera\"", "tessera"},
      {"\"engine\"", "\"engin\"", "", "the unknown key 'engin'", "a known key"},
      {"\"engine\": \"tessera\"", "\"engine\": \"tessera\", \"engine\": \"verl\"", "",
       "the key 'engine' again", "every key once"},
      {"\"family\": \"qwen2\"", "\"family\": \"gpt5\"", "", "\"gpt5\"", "one of llama"},
      {"\"layers\": 4", "\"layers\": 0", "", "0", "1 to 65536"},
      {"\"layers\": 4", "\"layers\": 4.5", "", "4.5", "an integer"},
      {"\"kv_heads\": 2", "\"kv_heads\": 3", "", "3", "a divisor of query_heads = 4"},
      {"\"bos_token\": null,", "", "", "no 'bos_token'", "a token id or null"},
      {"\"truncate\": true", "\"truncate\": 1", "", "1", "true or false"},
      {"\"memory_gib\": 2.0", "\"memory_gib\": -2.0", "", "-2", "from 1e-06 to 1048576"},
      {"\"nodes\": 1", "\"nodes\": 1, \"racks\": 1", "", "the unknown key 'racks'", "known"},
      {"\"oversubscription\": 1.0,", "", "", "no 'oversubscription'", "a value"},
      {"\"kl\": \"reward\"", "\"kl\": \"rewards\"", "", "\"rewards\"", "none, loss, reward"},
      {"\"mini_batches\": 2", "\"mini_batches\": 3", "", "3", "a divisor"},
      {"\"call\": \"gen\"", "\"call\": \"generate\"", "", "\"generate\"", "one of gen"},
      {"\"after\": [\"reshard\"]", "\"after\": [\"reshards\"]", "", "\"reshards\"", "phases"},
      {"\"after\": [\"reshard\"]", "\"after\": []", "", "without waiting for 'reshard'", "arrived"},
      {"\"ranks\": [0, 1, 2, 3]", "\"ranks\": [0, 1, 2, -3]", "", "-3", "from 0 to"},
      {"\"ranks\": [0, 1, 2, 3]", "\"ranks\": [0, 1, 2, 4]", "", "4", "ranks from 0 to 3"},
      {"\"ranks\": [0, 1, 2, 3]", "\"ranks\": \"0-3\"", "", "\"0-3\"", "a list"},
      {"\"rank_map\": \"strided\"", "\"rank_map\": [3, 2, 1]", "", "a list of 3 items",
       "the role's ranks"},
      {"\"rank_map\": \"strided\"", "\"rank_map\": \"random\"", "", "\"random\"", "contiguous"},
      {"\"tp\": 2", "\"tp\": 3", "", "= 6", "4, the number of ranks"},
      {"\"tp\": 2", "\"tp\": 0", "", "0", "an integer from 1"},
      {"\"stages\": [", "\"stages\": [7, ", "", "a list of", "[first, last) pairs"},
      {"\"param\": \"bf16\"", "\"param\": \"fp8\"", "", "\"fp8\"", "fp32, bf16, fp16"},
      {"\"weights\": 1048576", "\"weights\": -1", "", "-1", "at least 0"},
      {"\"memory\": {", "\"memory\": {\"sleep\": {}, ", "", "the unknown key 'sleep'", "known"},
      {"\"step_s\": 0.1", "\"step_s\": -0.1", "", "-0.1", "at least 0"},
      {"\"digest\": \"\"", "\"digest\": \"0xzz\"", "", "\"0xzz\"", "16 hexadecimal"},
      {"\"name\": \"NCCL_CUMEM_ENABLE\"", "\"name\": \"\"", "", "\"\"", "not empty"},
      {"\"provenance\": {", "\"provenance\": {\"host\": 1, ", "", "'host'", "a known key"},
      {"{\n", "[\n", "", "", "JSON"},
  };
  const std::string good = to_json(sample_plan());
  expect_refused(good, edits, [](const std::string& text, Problems& problems) {
    return parse_plan(text, "plan.json", problems).has_value();
  });
}

TEST(PlanJson, PlacesCarryLineColumnAndPointer) {
  std::string text = to_json(sample_plan());
  const std::string good = "\"mini_batch\": 256";
  const std::size_t at = text.find(good);
  text.replace(at, good.size(), "\"mini_batch\": 255");
  const auto line =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  Problems problems;
  EXPECT_FALSE(parse_plan(text, "plan.json", problems));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].place, std::to_string(line) + ":23 (/roles/0/batching/mini_batch)");
}

TEST(PlanJson, EveryTruncationIsRefusedWithoutACrash) {
  const std::string text = to_json(sample_plan());
  for (std::size_t length = 0; length + 2 < text.size(); length += 97) {
    Problems problems;
    EXPECT_FALSE(parse_plan(text.substr(0, length), "plan.json", problems));
    EXPECT_FALSE(problems.empty());
  }
}

}  // namespace
}  // namespace tessera
