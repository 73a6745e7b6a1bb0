// The numbers of a run that goes on, read from its own page beside its file.
#include <gmock/gmock.h>

#include <sstream>

#include "executor/http/http.h"
#include "executor/http/page_server.h"
#include "tests/cli/programs.h"
#include "tests/cli/running_program.h"

namespace tessera {
namespace {

using testing::HasSubstr;

class MetricsPage : public ProgramTest {
 protected:
  static std::vector<std::string> words(const std::string& name, int port) {
    return {kTessera,
            "run",
            at("plan.json"),
            "--config",
            "grpo-digits",
            "--set",
            "data.train_files=[" + at("prompts.jsonl") + "]",
            "--set",
            "trainer.total_training_steps=100000",
            "--set",
            "trainer.prometheus_port=" + std::to_string(port),
            "-o",
            at(name)};
  }

  /// The page once it has this step or a later one; empty where it never has.
  static std::string page_of(int port, int step, RunningProgram& program) {
    HttpConnection client("http://127.0.0.1:" + std::to_string(port));
    for (int look = 0; look < 1200 && !program.ended(); ++look) {
      const std::string page = client.get("/metrics", 5).body;
      const std::size_t at = page.find("\ntessera_step ");
      if (at != std::string::npos && std::stod(page.substr(at + 14)) >= step) return page;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return {};
  }

  /// Every number by what its gauge's help line calls it.
  static std::map<std::string, double> numbers_of(const std::string& page) {
    std::map<std::string, std::string> help;
    std::map<std::string, double> numbers;
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string hash, kind, gauge, rest;
      if (!line.starts_with('#')) {
        words >> gauge >> rest;
        numbers[help.at(gauge)] = std::stod(rest);
      } else if (words >> hash >> kind >> gauge && kind == "HELP") {
        std::getline(words >> std::ws, help[gauge]);
      }
    }
    return numbers;
  }
};

TEST_F(MetricsPage, HasTheNumbersOfTheNewestStep) {
  const int port = free_port();
  RunningProgram program(words("served", port), at("served.txt"));
  const std::string page = page_of(port, 2, program);
  ::kill(program.pid(), SIGTERM);
  EXPECT_EQ(program.wait(std::chrono::seconds(60)), 130) << program.messages();
  ASSERT_THAT(page, HasSubstr("\ntessera_timing_s_gen ")) << program.messages();
  std::map<std::string, double> served = numbers_of(page);
  const auto step = static_cast<std::size_t>(served.extract("Number of the newest step.").mapped());
  Problems problems;
  const auto written = read_metrics(folder_ / "served/metrics.jsonl", problems);
  ASSERT_TRUE(written && written->size() >= step);
  EXPECT_EQ(served, (*written)[step - 1].data);
}

/// A log that cannot be had costs a run nothing else.
TEST_F(MetricsPage, APortThatIsTakenIsToldAndTheRunGoesOn) {
  const int port = free_port();
  const PageServer taken(port, "/", "text/plain");
  EXPECT_EQ(train("beside", 1, "--set trainer.prometheus_port=" + std::to_string(port)), 0);
  EXPECT_THAT(text_of(folder_ / "beside/log.txt"),
              HasSubstr("[Prometheus] cannot listen at 127.0.0.1:" + std::to_string(port) +
                        "; the run goes on without it"));
}

}  // namespace
}  // namespace tessera
