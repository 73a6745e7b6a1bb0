#include "executor/preference/reward_training.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/model_tensors.h"
#include "executor/checkpoint/atomic_file.h"
#include "executor/comm/groups.h"
#include "executor/comm/stopwatch.h"
#include "executor/data/prompts.h"
#include "executor/launch/stop_signals.h"
#include "executor/loop/share.h"
#include "executor/preference/preference_loss.h"
#include "executor/preference/reward_state.h"
#include "executor/records/run_log.h"
#include "executor/train/trainer.h"
#include "executor/weights/kept_weights.h"
#include "simulator/run_end/end_cause.h"
#include "simulator/timeline/rank_status.h"
#include "simulator/timeline/run_lock.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Numbers = std::map<std::string, double>;

constexpr double kLockPatience = 10;  // seconds

RankMap whole_world(RankOrder order, const ParallelLayout& layout, int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  Problems problems;
  RankMap map = make_rank_map(order, layout, ranks, nullptr, "layout", problems);
  if (!problems.empty()) throw Error(ExitCode::usage, std::move(problems));
  return map;
}

/// The lock of the output folder on rank 0, which makes the folder.
std::optional<RunLock> take_folder(const RewardTrainingOptions& options, Communicator& host) {
  std::optional<RunLock> lock;
  Problems problems;
  if (host.rank() == 0) {
    std::error_code error;
    const bool made = fs::create_directories(options.output, error);
    if (error || (!made && !options.resume)) {
      problems.push_back({.file = options.output.string(),
                          .found = error ? error.message() : "it exists",
                          .expected = "a new folder, or --resume"});
    } else {
      lock = RunLock::take(options.output / "lock", kLockPatience, problems);
    }
  }
  const std::string failure = problems.empty() ? "" : to_string(problems.front());
  for (const std::string& text : share_texts(host, failure)) {
    if (!text.empty()) throw Error(ExitCode::bad_input, text);
  }
  return lock;
}

/// The role's groups, also those beside the computation and on host memory.
struct Groups {
  Groups(RankSetup& setup, const RankMap& map) : groups(make_groups(*setup.world, map)) {
    lane = make_side_lane(setup);
    if (lane.world != nullptr) {
      shard = make_shard_group(*lane.world, map);
      if (map.layout.cp > 1) ring = make_axis_group(*lane.world, map, Axis::cp);
    }
    host = make_shard_group(setup.host(), map);
    tensor_host = make_axis_group(setup.host(), map, Axis::tp);
  }

  TrainerOptions options(Recompute recompute) const {
    TrainerOptions made{.recompute = recompute};
    made.sharding.host_group = host.get();
    made.tensor_host = tensor_host.get();
    if (shard != nullptr) made.sharding.side_group = shard.get(), made.sharding.side = lane.stream;
    if (ring != nullptr) made.context = {.lane = ring.get(), .side = lane.stream};
    return made;
  }

  ParallelGroups groups;
  SideLane lane;
  std::unique_ptr<Communicator> shard, ring, host, tensor_host;
};

class RewardTraining {
 public:
  RewardTraining(RankSetup& setup, const ModelSpec& model, const PreferenceSet& train,
                 const PreferenceSet* validation, const RewardTrainingOptions& options)
      : setup_(setup),
        options_(options),
        train_(train),
        validation_(validation),
        lock_(take_folder(options, setup.host())),
        status_(options.output, setup.rank, {.marks_end = false}),
        source_(static_cast<std::int64_t>(train.pairs.size()), options.pairs_per_step,
                options.seed),
        groups_(setup, whole_world(options.rank_order, options.layout, setup.size)),
        weights_(loaded(model)),
        trainer_(weights_, groups_.groups, options.optimizer, groups_.options(options.recompute)),
        state_(options.output, weights_, trainer_, setup.host(), data()) {
    if (setup.rank != 0) return;
    log_.emplace(options.output);
    if (!options.plan_json.empty()) write(options.output / "plan.json", options.plan_json);
  }

  /// Marks the rank as finished with the code that the process will exit with.
  RewardTrainingResult run() {
    try {
      const RewardTrainingResult result = train_all();
      const bool stopped = result.stopped != StopReason::none;
      status_.finish(stopped ? static_cast<int>(exit_code_of(result.stopped)) : 0);
      return result;
    } catch (const Error& error) {
      status_.finish(static_cast<int>(error.code()));
      throw;
    } catch (const PeerLost&) {
      status_.finish(static_cast<int>(ExitCode::peer_lost));
      throw;
    } catch (...) {
      status_.finish(static_cast<int>(ExitCode::internal));
      throw;
    }
  }

 private:
  RewardTrainingResult train_all() {
    RewardTrainingResult result;
    if (options_.resume) result.steps = state_.resume();
    if (log_) log_->forget_after(result.steps);
    if (result.steps > 0) note("[Resume] from step " + std::to_string(result.steps));
    const std::int64_t total = options_.schedule.total_steps;
    while (result.steps < total && result.stopped == StopReason::none) {
      const std::int64_t step = ++result.steps;
      const Numbers numbers = train(step);
      const bool applied = numbers.at("reward_model/skipped_updates") == 0;
      if (applied && std::isfinite(numbers.at("reward_model/loss"))) state_.went_well();
      record(step, numbers);
      result.stopped = static_cast<StopReason>(
          largest_of(setup_.host(), static_cast<std::int32_t>(stop_signalled())));
      const bool stops = result.stopped != StopReason::none;
      const bool due = options_.save_freq > 0 && (step % options_.save_freq == 0 || step == total);
      if (due || stops) {
        enter(Phase::save_checkpoint, step);
        state_.save(step);
      }
    }
    if (result.stopped != StopReason::none) return result;
    save_reward_model(options_.output / "hf", options_.model, options_.config_json, weights_,
                      groups_.groups, trainer_);
    setup_.host().barrier();
    return result;
  }

  void enter(Phase phase, std::int64_t step) { status_.enter(name_of(phase), step); }

  Weights loaded(const ModelSpec& model) {
    Weights weights = make_weights(parameter_table(model), options_.layout, groups_.groups.coord,
                                   options_.dtype, setup_.device);
    Problems problems;
    load_kept_weights(weights, options_.model, options_.seed, problems);
    if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
    return weights;
  }

  CheckpointData data() const {
    return {.prompts = source_.prompts(),
            .per_step = source_.per_step(),
            .seed = static_cast<std::int64_t>(options_.seed),
            .digest = train_.digest()};
  }

  static void write(const fs::path& file, const std::string& text) {
    Problems problems;
    if (!write_file_atomically(file, text, problems))
      throw Error(ExitCode::io, std::move(problems));
  }

  void note(const std::string& line) const {
    if (setup_.rank != 0) return;
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  std::vector<float> scores(std::span<const TokenSequence> batch) {
    std::vector<float> all;
    for (const auto& values : trainer_.values(batch, {.token_limit = options_.values_tokens})) {
      all.push_back(values.front());
    }
    return all;
  }

  Numbers train(std::int64_t step) {
    const Stopwatch watch;
    enter(Phase::values, step);
    const std::vector<std::int64_t> which = source_.step(step - 1);
    std::vector<double> margins;
    for (const std::int64_t i : which) {
      margins.push_back(train_.pairs[static_cast<std::size_t>(i)].margin);
    }
    const std::vector<TokenSequence> batch = train_.sequences(which);
    const double rate = learning_rate(options_.schedule, step - 1);
    const PreferenceLoss loss =
        preference_loss(scores(batch), margins, options_.center_coefficient);
    const double scored = watch.seconds();
    enter(Phase::update_critic, step);
    const UpdateResult result = trainer_.update(
        batch, loss.function(options_.layout.dp),
        {.token_limit = options_.update_tokens, .learning_rate = rate, .written = {}});
    const double seconds = watch.seconds();
    std::int64_t tokens = 0;  // without the one behind each sequence (PairTokens)
    for (const TokenSequence& sequence : batch) tokens += sequence.tokens() - 1;
    return {{"reward_model/loss", loss.value},
            {"reward_model/accuracy", loss.accuracy},
            {"reward_model/margin", loss.margin},
            {"reward_model/grad_norm", result.grad_norm},
            {"reward_model/lr", rate},
            {"reward_model/skipped_updates", result.applied ? 0.0 : 1.0},
            {"perf/total_num_tokens", static_cast<double>(tokens)},
            {"timing_s/values", scored},
            {"timing_s/update_critic", seconds - scored},
            {"timing_s/step", seconds}};
  }

  /// Accuracy and margin of the pairs that are not trained on, which may be many: as even parts of
  /// at most a step's pairs.
  void validate(Numbers& numbers) {
    const auto pairs = static_cast<std::int64_t>(validation_->pairs.size());
    const std::int64_t parts = (pairs + options_.pairs_per_step - 1) / options_.pairs_per_step;
    std::vector<float> all;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t first = pairs * part / parts, last = pairs * (part + 1) / parts;
      std::vector<std::int64_t> which(static_cast<std::size_t>(last - first));
      std::iota(which.begin(), which.end(), first);
      const std::vector<float> some = scores(validation_->sequences(which));
      all.insert(all.end(), some.begin(), some.end());
    }
    const PreferenceLoss loss =
        preference_loss(all, std::vector<double>(validation_->pairs.size()), 0);
    numbers["val/accuracy"] = loss.accuracy;
    numbers["val/margin"] = loss.margin;
  }

  void record(std::int64_t step, Numbers numbers) {
    const bool last = step == options_.schedule.total_steps;
    const bool due = options_.test_freq > 0 && step % options_.test_freq == 0;
    if (validation_ != nullptr && (last || due)) {
      enter(Phase::values, step);
      validate(numbers);
    }
    if (!log_) return;
    log_->add_step(step, numbers);
    char text[200];
    std::snprintf(text, sizeof text, "[Step %lld] loss %.4f  accuracy %.3f  margin %.3f  %.2f s",
                  static_cast<long long>(step), numbers.at("reward_model/loss"),
                  numbers.at("reward_model/accuracy"), numbers.at("reward_model/margin"),
                  numbers.at("timing_s/step"));
    std::string line = text;
    if (numbers.contains("val/accuracy")) {
      std::snprintf(text, sizeof text, "  validation: accuracy %.3f  margin %.3f",
                    numbers.at("val/accuracy"), numbers.at("val/margin"));
      line += text;
    }
    note(line);
  }

  RankSetup& setup_;
  const RewardTrainingOptions& options_;
  const PreferenceSet& train_;
  const PreferenceSet* validation_;
  std::optional<RunLock> lock_;  // of rank 0
  RankStatusFile status_;
  PromptSource source_;
  Groups groups_;
  Weights weights_;
  Trainer trainer_;
  RewardState state_;
  std::optional<RunLog> log_;  // of rank 0
};

}  // namespace

RewardTrainingResult train_reward_model(RankSetup& setup, const ModelSpec& model,
                                        const PreferenceSet& train, const PreferenceSet* validation,
                                        const RewardTrainingOptions& options) {
  return RewardTraining(setup, model, train, validation, options).run();
}

}  // namespace tessera
