// A sandbox service: asked as verl asks it, scored as verl scores, and one that misbehaves costs
// the responses that it was asked about.
#include "executor/rewards/sandbox_service.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cost_models/documents/problem.h"
#include "executor/http/http.h"
#include "executor/rewards/reward_functions.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using testing::HasSubstr;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// fake_sandbox.py as a child process, for as long as the object lives.
class FakeService {
 public:
  FakeService() {
    int in[2], out[2];
    if (::pipe(in) != 0 || ::pipe(out) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::close(in[1]);
      const std::string log = (folder_.path / "log").string();
      ::execlp("python3", "python3", TESSERA_SOURCE_DIR "/tests/executor/rewards/fake_sandbox.py",
               log.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    std::string port;
    for (char c = 0; ::read(out[0], &c, 1) == 1 && c != '\n';) port += c;
    ::close(out[0]);
    server_ = "http://127.0.0.1:" + port;
  }
  ~FakeService() {
    ::close(input_);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  SandboxService at(const std::string& path) const {
    return {.server = server_,
            .path = path,
            .limits = {.timeout_s = 2},
            .retry_delay_s = 0.01,
            .largest_reply = 1 << 20};
  }
  /// What the service was sent.
  std::vector<Json> log() const {
    std::vector<Json> lines;
    std::ifstream in(folder_.path / "log");
    for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
    return lines;
  }

 private:
  TemporaryFolder folder_;
  std::string server_;
  pid_t pid_ = -1;
  int input_ = -1;
};

RewardRequest request(const std::string& response, const Json& truth) {
  return {.data_source = "codecontests",
          .response = response,
          .truth_json = truth.dump(),
          .extra_info_json = "{}"};
}

const Json kOne = {{"inputs", {""}}, {"outputs", {"4"}}};

std::string code(const std::string& text) { return "```python\n" + text + "\n```"; }

/// 35 responses that verl itself has scored by the same service (scripts/make_sandbox_vectors.py).
TEST(SandboxService, IsAskedAndScoredAsVerlDoes) {
  std::ifstream in(TESSERA_SOURCE_DIR "/tests/executor/rewards/verl_sandbox.json");
  const Json vectors = Json::parse(in);
  ASSERT_EQ(vectors.at("cases").size(), 35U);
  FakeService service;
  SandboxScorer scorer(service.at("/run_code"), 4);
  for (const Json& one : vectors.at("cases")) {
    scorer.submit(request(one.at("completion"), one.at("truth")));
  }
  const std::vector<RewardAnswer> answers = scorer.finish();
  ASSERT_EQ(answers.size(), 35U);
  std::multiset<std::string> wanted, asked;
  for (std::size_t k = 0; k < answers.size(); ++k) {
    const Json& one = vectors.at("cases")[k];
    EXPECT_EQ(answers[k].score.value_or(0), one.at("score").get<double>()) << one.at("completion");
    const Json& truth = one.at("truth");
    const bool calls = truth.is_object() && truth.contains("fn_name");
    for (std::size_t i = 0; i < std::min<std::size_t>(10, one.at("asked").size()); ++i) {
      // verl asks in no order, but of more than ten cases all have the same body here.
      Json body = one.at("asked")[i];
      if (calls) body.erase("code");  // the words of the wrapper are not verl's
      wanted.insert(body.dump());
    }
  }
  for (Json& body : service.log()) {
    const bool calls = body.at("code").get<std::string>().find("_call(") != std::string::npos;
    if (calls) body.erase("code");
    asked.insert(body.dump());
  }
  EXPECT_EQ(asked, wanted);
}

/// Of two responses the service handles one badly: the other has its score.
TEST(SandboxService, WhatGoesWrongCostsTheResponseAndNoOther) {
  FakeService service;
  for (const auto& [path, words] : std::vector<std::pair<std::string, std::string>>{
           {"/error", "answered 500: it broke"},
           {"/garbage", "answered 200: <html>hello</html>"},
           {"/half", "closed the connection"},
           {"/flood", "answered more than may be"},
           {"/lie", "answered 200"},
           {"/deep", "answered 200: [[["}}) {
    SandboxScorer scorer(service.at(path), 2);
    const std::vector<RewardAnswer> answers =
        scorer.score(std::vector{request(code("print(4) # bad"), kOne),
                                 request(code("print(4)"), kOne), request(code("print(5)"), kOne)});
    EXPECT_FALSE(answers[0].score) << path;
    EXPECT_THAT(answers[0].failure, HasSubstr(words)) << path;
    EXPECT_EQ(answers[1].score, 1) << path;
    EXPECT_EQ(answers[2].score, 0) << path;
  }
  SandboxScorer scorer(service.at("/run_code"), 2);
  const std::vector<RewardAnswer> answers = scorer.score(
      std::vector{request(code("# SANDBOX ERROR"), kOne), request(code("print(4)"), kOne)});
  EXPECT_FALSE(answers[0].score);
  EXPECT_EQ(answers[1].score, 1);
}

/// A service that hangs, or sends a byte now and then for ever, has its time and no more.
TEST(SandboxService, AReplyHasALimitOfTime) {
  FakeService service;
  for (const char* path : {"/hang", "/drip"}) {
    SandboxService slow = service.at(path);
    slow.limits.timeout_s = -4;  // with verl's ten seconds for the service: two in all
    SandboxScorer scorer(slow, 2);
    const Clock::time_point start = Clock::now();
    const std::vector<RewardAnswer> answers =
        scorer.score(std::vector{request(code("print(4) # bad"), kOne)});
    EXPECT_LT(seconds_since(start), 4) << path;
    EXPECT_FALSE(answers[0].score) << path;
    EXPECT_THAT(answers[0].failure, HasSubstr("did not answer in time")) << path;
  }
}

TEST(SandboxService, ABusyServiceIsAskedAgain) {
  FakeService service;
  for (const char* path : {"/busy", "/shut"}) {
    SandboxScorer scorer(service.at(path), 1);
    const std::string text = code("print(4) # " + std::string(path));
    const auto before = service.log().size();
    EXPECT_EQ(scorer.score(std::vector{request(text, kOne)})[0].score, 1) << path;
    EXPECT_EQ(service.log().size() - before, 3U) << path;
    SandboxService impatient = service.at(path);
    impatient.tries = 2;
    SandboxScorer other(impatient, 1);
    EXPECT_FALSE(
        other
            .score(std::vector{request(text + " ", kOne),
                               request(code("print(4) # more" + std::string(path)), kOne)})[1]
            .score);
  }
}

/// Nobody listens: every response is without a score, and a run is told before it begins.
TEST(SandboxService, NobodyThereIsToldBeforeARunBegins) {
  const SandboxService nowhere{.server = "http://127.0.0.1:" + std::to_string(free_port()),
                               .retry_delay_s = 0.01};
  SandboxScorer scorer(nowhere, 2);
  const auto answers = scorer.score(std::vector{request(code("print(4)"), kOne)});
  EXPECT_FALSE(answers[0].score);
  EXPECT_THAT(answers[0].failure, HasSubstr("refused the connection"));
  const RewardFunction function{.name = "sandbox_fusion", .service = true};
  Problems problems;
  check_reward_functions({.functions = {function}, .programs = {.service = nowhere}}, problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(to_string(problems[0]), HasSubstr("refused the connection"));
  FakeService service;
  problems.clear();
  const RewardPrograms programs{.workers = 2, .service = service.at("/run_code")};
  check_reward_functions({.functions = {function}, .programs = programs}, problems);
  EXPECT_TRUE(problems.empty());
  const auto made = make_reward_scorer(function, programs, 0, 2, problems);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->score(std::vector{request(code("print(4)"), kOne)})[0].score, 1);
  EXPECT_EQ(make_reward_scorer(function, programs, 2, 4, problems), nullptr)
      << "a rank that is dealt no responses";
}

/// Whoever gives up does not wait for a service that hangs.
TEST(SandboxService, EndsWithoutWaiting) {
  FakeService service;
  const Clock::time_point start = Clock::now();
  {
    SandboxScorer scorer(service.at("/hang"), 2);
    for (int i = 0; i < 8; ++i) scorer.submit(request(code("print(4) # bad"), kOne));
    ::usleep(300'000);
    EXPECT_EQ(scorer.answered(), 0U);
  }
  EXPECT_LT(seconds_since(start), 3);
}

}  // namespace
}  // namespace tessera
