// Scores from programs outside the run: several processes, a time limit for each response, a limit
// of memory, no network where bubblewrap can be used.
//
// A request is a JSON line {"id", "data_source", "solution_str", "ground_truth", "extra_info"}; the
// answer a line {"id", "score"} or {"id", "error"} with the same id, beside a score also verl's
// "acc" (a number), "pred" (a text) and "more" (a map of numbers), or "plain_number": true for the
// score of a function that gives a number and no map, or "left_out", what of its result it does not
// say and why; beside an error "kind" (where an exception is raised, and its type) and "traceback".
// A score that is null, NaN or an infinity as Python, JavaScript or C write them, or a number too
// large for fp32, is none. A process may say {"ready": true} when it has loaded what it needs; the
// time limit of its first response counts from then on. One that says {"refused": why, "file",
// "line"} instead cannot score at all. A process that crashes, hangs, answers something else or
// floods its output is killed and started anew: its response has no score, and nothing else is
// lost. A program whose processes die 32 times in a row before they are ready is tried no more
// until the next finish(). One owner, one thread; the processes live as long as the object.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "executor/rewards/reward_scorer.h"
#include "executor/rewards/worker_process.h"

namespace tessera {

/// Whether workers run without network and in file systems that they cannot write, by bubblewrap:
/// automatic = where `bwrap` is there and may be used.
enum class Sandbox : std::uint8_t { automatic, bubblewrap, none };
std::string_view name_of(Sandbox sandbox);

struct WorkerLimits {
  double timeout_s = 30;         // seconds for one response
  double start_timeout_s = 120;  // seconds until a process is ready, or has answered
  double memory_gib = 8;         // address space of a process; 0 = no limit
  Sandbox sandbox = Sandbox::automatic;
  std::filesystem::path log = {};  // WorkerCommand::log
};

/// The command that runs `function` of a Python file as verl calls it: compute_score(data_source,
/// solution_str, ground_truth, extra_info, **kwargs), returning a number, a dict with "score", or a
/// list that begins with the number. `kwargs` is a JSON object. What the file prints goes to the
/// error output.
std::vector<std::string> python_reward(const std::string& python, const std::filesystem::path& file,
                                       const std::string& function, const std::string& kwargs);

/// The command that runs the code of a response (the last ```python block) against unit tests, as
/// verl's prime_code does: the truth is {"inputs": [text...], "outputs": [text...]}, with "fn_name"
/// a call whose arguments are the lines of an input, or {"assert_case": [statements...]}, as a map
/// or as JSON text. The score is the part of the first `tests` (10) that pass within
/// `test_timeout_s` (2) seconds each; `kwargs` may set both.
std::vector<std::string> unit_test_reward(const std::string& python, const std::string& kwargs);

/// `words` in the sandbox. A Problem, and nullopt, where bubblewrap is asked for and cannot be
/// used; as they are where it is automatic and cannot be used (`boxed` says so). `run_file` is what
/// messages call the file that asks for it.
std::optional<std::vector<std::string>> in_sandbox(std::vector<std::string> words, Sandbox sandbox,
                                                   bool& boxed, Problems& problems,
                                                   const std::string& run_file = "run.yaml");

/// Why a process cannot score.
struct StartRefusal {
  std::string file;  // that is at fault, where one is known
  std::int64_t line = 0;
  std::string found;
  bool late = false;  // it was not ready in time
};

/// Starts a process that says when it is ready (python_reward, unit_test_reward), waits until it
/// does and ends it. Nothing where all is well.
std::optional<StartRefusal> refusal_of_start(const std::vector<std::string>& words,
                                             const WorkerLimits& limits);

class RewardWorkers final : public RewardScorer {
 public:
  /// Starts nothing yet. Precondition: count > 0.
  RewardWorkers(std::vector<std::string> command, const WorkerLimits& limits, int count);
  ~RewardWorkers() override;

  void submit(RewardRequest request) override;
  /// Gives waiting requests to free processes and takes in what has been answered, without waiting.
  void poll() override;
  std::size_t answered() const override { return answered_; }
  bool wait(std::chrono::milliseconds most) override;
  std::vector<RewardAnswer> finish() override;

 private:
  struct Worker;

  void give_work(Worker& worker);
  std::vector<Worker*> busy() const;
  void listen(Worker& worker);
  void lose(Worker& worker, std::string failure);
  void settle(std::size_t request, RewardAnswer answer);

  WorkerCommand command_;
  WorkerLimits limits_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::int64_t next_id_ = 0;
  std::vector<RewardRequest> requests_;  // since the last finish()
  std::vector<RewardAnswer> answers_;    // of them
  std::size_t next_ = 0, answered_ = 0;  // the first that waits; how many are answered
  int dead_starts_ = 0;                  // processes in a row that ended before they were ready
  std::string last_failure_;
};

}  // namespace tessera
