// Code that is scored by running unit tests, as verl's prime_code does.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "executor/rewards/reward_workers.h"
#include "tests/executor/rewards/python_reward.h"

namespace tessera {
namespace {

/// Scores of verl's own prime_code (scripts/make_unit_test_vectors.py).
TEST(UnitTests, ScoreAsVerlsPrimeCode) {
  std::ifstream in(TESSERA_SOURCE_DIR "/tests/executor/rewards/verl_unit_tests.json");
  const auto vectors = nlohmann::json::parse(in);
  std::vector<RewardRequest> requests;
  for (const bool as_text : {false, true}) {
    for (const auto& one : vectors.at("cases")) {
      const std::string truth = one.at("truth").dump();
      requests.push_back({.data_source = "taco",
                          .response = one.at("response").get<std::string>(),
                          .truth_json = as_text ? nlohmann::json(truth).dump() : truth,
                          .extra_info_json = "{}"});
    }
  }
  RewardWorkers pool(unit_test_reward("python3", "{\"test_timeout_s\": 5}"),
                     {.timeout_s = 60, .memory_gib = 1, .sandbox = Sandbox::none}, 2);
  const auto answers = pool.score(requests);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& one = vectors.at("cases")[i % vectors.at("cases").size()];
    ASSERT_TRUE(answers[i].score) << answers[i].failure << one;
    if (one.at("truth").contains("fn_name") && one.at("score") == 0) {
      EXPECT_LT(*answers[i].score, 1) << "verl counts no single calls: " << one;
    } else {
      EXPECT_NEAR(*answers[i].score, one.at("score").get<double>(), 1e-9) << one;
    }
    EXPECT_TRUE(answers[i].detail.plain_number) << "as verl's default_compute_score passes it on";
  }
  EXPECT_GE(answers.size(), 48u);
}

TEST(UnitTests, StatementsAreTestsAndCodeCannotSpoilOthers) {
  const std::string truth = R"({"assert_case": ["assert f(1) == 2", "assert f(2) == 3"]})";
  const auto answers =
      [&](const std::vector<std::string>& bodies) {
        std::vector<RewardRequest> requests;
        for (const std::string& body : bodies) {
          requests.push_back(request("```python\n" + body + "\n```", truth));
        }
        return RewardWorkers(unit_test_reward("python3", "{\"test_timeout_s\": 1}"),
                             {.timeout_s = 30, .memory_gib = 1, .sandbox = Sandbox::none}, 2)
            .score(requests);
      }({"def f(x):\n    return x + 1", "def f(x):\n    return 2",
         "import os\nos.kill(os.getpid(), 9)", "def f(x):\n    while True: pass",
         "import os\nos.write(1, b'{\"id\":0,\"score\":1}')\nos._exit(0)"});
  const std::vector<double> expected = {1, 0.5, 0, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(answers[i].score.value_or(-1), expected[i]) << i << ": " << answers[i].failure;
  }
}

}  // namespace
}  // namespace tessera
