// The text that Prometheus reads, held to the grammar of its format and to its own reader.
#include "executor/records/prometheus_text.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

TEST(PrometheusText, IsWhatTheFormatsPageShows) {
  EXPECT_EQ(prometheus_text(7, {{"timing_s/gen", 0.25}}),
            "# HELP tessera_step Number of the newest step.\n"
            "# TYPE tessera_step gauge\n"
            "tessera_step 7\n"
            "# HELP tessera_timing_s_gen timing_s/gen\n"
            "# TYPE tessera_timing_s_gen gauge\n"
            "tessera_timing_s_gen 0.25\n");
}

/// Names: [a-zA-Z_:][a-zA-Z0-9_:]*; each once, with its type before it; values: Go's floats.
TEST(PrometheusText, EveryLineFollowsTheGrammar) {
  const double infinite = std::numeric_limits<double>::infinity();
  const std::string text = prometheus_text(1, {{"val-core/openai/gsm8k/reward/mean@1", 0.1},
                                               {"system/gpu_0_power_usage_watts", 688.4},
                                               {"actor/grad_norm", std::nan("")},
                                               {"a/b", infinite},
                                               {"a_b", 3},
                                               {"a/c", -infinite},
                                               {"tiny", 5e-324}});
  const std::regex help("# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) .+"),
      type("# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) gauge"),
      sample(
          "([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{metric=\"[^\"]*\"\\})? "
          "(NaN|[+-]Inf|[-+]?[0-9.]+(e[-+][0-9]+)?)");
  std::istringstream lines(text);
  std::set<std::string> named;
  std::map<std::string, std::string> values;
  std::smatch found;
  for (std::string line, typed; std::getline(lines, line);) {
    if (std::regex_match(line, found, help)) {
      EXPECT_TRUE(named.insert(found[1]).second) << line;
    } else if (std::regex_match(line, found, type)) {
      typed = found[1];
    } else {
      ASSERT_TRUE(std::regex_match(line, found, sample)) << line;
      EXPECT_EQ(found[1], typed);
      values[found[1].str() + found[2].str()] = found[3];
    }
  }
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(values.size(), 8U);
  EXPECT_EQ(values.at("tessera_val_core_openai_gsm8k_reward_mean_1"), "0.10000000000000001");
  EXPECT_EQ(values.at("tessera_actor_grad_norm"), "NaN");
  EXPECT_EQ(values.at("tessera_a_b{metric=\"a/b\"}"), "+Inf");
  EXPECT_EQ(values.at("tessera_a_b{metric=\"a_b\"}"), "3");
  EXPECT_EQ(values.at("tessera_a_c"), "-Inf");
}

/// Prometheus' own client finds every number to the last bit, and every name in the help text.
TEST(PrometheusText, ItsOwnReaderFindsEveryNumber) {
  const std::string python = python_with("prometheus_client");
  if (python.empty()) GTEST_SKIP() << "no prometheus_client: scripts/setup.sh --test installs it";
  std::map<std::string, double> numbers = {
      {"val-core/openai/gsm8k/reward/mean@1", 0.1},
      {"val-core/my\\data\nset/reward", 1.0 / 3},
      {"val-core/\u6570\u5b66/reward", 2},
      {"actor/grad_norm", std::nan("")},
      {"a/infinite", std::numeric_limits<double>::infinity()},
      {"a/minus infinite", -std::numeric_limits<double>::infinity()},
      {"a/tiny", 5e-324},
      {"same/name", 4},
      {"same \"name\\", 5},
      {"same_name", 6},
      {"same\nname", 7},
      {"step", 8},
      {"a/large", std::numeric_limits<double>::max()},
      {"perf/total_num_tokens", 123456789012345678.0}};
  const TemporaryFolder folder;
  std::ofstream(folder.path / "page.txt") << prometheus_text(9'007'199'254'740'991, numbers);
  numbers["Number of the newest step."] = 9'007'199'254'740'991;
  nlohmann::json wanted;
  for (const auto& [name, value] : numbers) {
    char text[40];
    std::snprintf(text, sizeof text, "%a", value);
    wanted[name] = text;
  }
  std::ofstream(folder.path / "numbers.json") << wanted;
  EXPECT_EQ(run_python(python, TESSERA_SOURCE_DIR "/tests/executor/records/prometheus_oracle.py " +
                                   (folder.path / "page.txt").string() + " " +
                                   (folder.path / "numbers.json").string()),
            0);
}

}  // namespace
}  // namespace tessera
