// Ranks whose training weights lie in the rollout's memory train and generate as with two memories,
// bit for bit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "executor/arena/shared_arena.h"
#include "executor/comm/thread_communicator.h"
#include "executor/data/init_model.h"
#include "executor/loop/calls.h"
#include "executor/loop/worker.h"
#include "tests/executor/loop/worker_rig.h"
#include "tests/executor/reshard/layout_cases.h"
#include "tests/executor/train/small_models.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing_models::quadratic_loss;
using testing_models::random_tokens;
using testing_models::Tokens;

constexpr int kSteps = 3;

class OneMemory : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    torch::set_num_threads(1);
    folder_ = fs::temp_directory_path() / ("tessera-one-memory-" + std::to_string(getpid()));
    fs::create_directories(folder_);
    Problems problems;
    ASSERT_TRUE(init_model("tiny-qwen2-digits", folder_ / "model", {.seed = 3}, problems))
        << to_string(problems.at(0));
    model_ = *read_model_spec(folder_ / "model", problems);
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  inline static fs::path folder_;
  inline static ModelSpec model_;
};

/// Results that one rank computes.
struct Seen {
  std::vector<double> numbers;
  std::vector<Sequence> sequences;
  std::vector<torch::Tensor> weights;

  void expect_equal(const Seen& other) const {
    EXPECT_EQ(numbers, other.numbers);
    EXPECT_TRUE(sequences == other.sequences);
    ASSERT_EQ(weights.size(), other.weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i)
      EXPECT_TRUE(torch::equal(weights[i], other.weights[i])) << i;
  }
};

/// Three steps of reshard, generation and update, as a run makes them.
Seen trained(Worker& worker, const ReshardConfig& config, std::int64_t vocab) {
  Seen seen;
  const RoleWorker &actor = *worker.find(Role::actor), &rollout = *worker.find(Role::rollout);
  for (int step = 0; step < kSteps; ++step) {
    const ReshardReport report = move_weights(worker);
    seen.numbers.push_back(static_cast<double>(report.busiest));
    EXPECT_EQ(report.verified, config.verify);
    const CertificateReport proof = verify_weights(worker, report.wire);
    EXPECT_GT(proof.compared + proof.shared, 0);
    EXPECT_TRUE(worker.memory.shared || proof.shared == 0);
    if (rollout.member()) {
      seen.weights.push_back(values_of(*rollout.weights));
      if (rollout.weights->layout.pp == 1) {
        for (Sequence& sequence : generated(rollout, step, vocab))
          seen.sequences.push_back(std::move(sequence));
      }
    }
    const bool overlap = config.overlap && step + 1 < kSteps;
    if (overlap) worker.weight_reshard->begin();
    if (!actor.member()) continue;
    const Tokens tokens = random_tokens(5, vocab, 40 + static_cast<std::uint32_t>(step));
    UpdateOptions options{.token_limit = 30, .entropy = true, .learning_rate = 1e-2};
    if (overlap)
      options.written = [&](std::span<const int> rows) { worker.weight_reshard->written(rows); };
    const UpdateResult result = actor.trainer->update(
        tokens.sequences(), quadratic_loss(tokens, actor.groups.dp_size, true), options);
    actor.trainer->wake();
    seen.numbers.insert(seen.numbers.end(), {result.loss, result.grad_norm});
    if (actor.weights->layout.dp_shard == 1) seen.weights.push_back(values_of(*actor.weights));
  }
  return seen;
}

/// The memory of a rank is the rollout's and what no slot of that holds; each tensor of the actor
/// lies there.
void expect_places(const Worker& worker) {
  const SharedArena& shared = *worker.memory.shared;
  const std::int64_t behind = shared.bytes - shared.rollout.bytes;
  EXPECT_EQ(worker.memory.actor->bytes(), shared.bytes);
  EXPECT_GE(behind, shared.held_twice);
  EXPECT_LT(behind, shared.held_twice +
                        256 * (static_cast<std::int64_t>(shared.training.slots.size()) + 1));
  const auto* const memory = static_cast<const std::byte*>(worker.memory.actor->data());
  const RoleWorker &actor = *worker.find(Role::actor), &rollout = *worker.find(Role::rollout);
  if (rollout.member()) {
    EXPECT_EQ(rollout.weights->storage.const_data_ptr(), memory);
  }
  if (!actor.member()) return;
  for (const ArenaSlot& slot : shared.training.slots) {
    EXPECT_EQ(actor.weights->tensor(slot.tensor).const_data_ptr(), memory + slot.range.offset);
  }
}

ReshardConfig with_two_memories(ReshardConfig config) {
  config.unmap = true;
  return config;
}

void expect_same_with_two_memories(const Setting& setting, const ModelSpec& model,
                                   const fs::path& folder) {
  SCOPED_TRACE(described(setting));
  const Plan plan = plan_of(setting, model, folder / "model");
  RunConfig config;
  config.actor.grad_clip = 0.5;
  run_ranks(plan.world_size(), [&](Communicator& world) {
    const auto seen_with = [&](const ReshardConfig& reshard, bool one) {
      RunConfig own = config;
      own.reshard = reshard;
      Worker worker = make_worker(plan, own, {.world = &world, .host = &world});
      EXPECT_EQ(worker.memory.shared.has_value(), one);
      if (one) expect_places(worker);
      Seen seen = trained(worker, reshard, model.vocab);
      world.barrier();
      return seen;
    };
    const Seen want = seen_with(with_two_memories(setting.reshard), false);
    seen_with(setting.reshard, true).expect_equal(want);
  });
}

std::vector<ParallelLayout> trained_layouts(std::int64_t layers) {
  std::vector<ParallelLayout> layouts;
  for (ParallelLayout layout : four_rank_layouts(layers)) {
    if (layout.pp > layers) continue;
    layouts.push_back(layout);
    if (layout.dp == 1) continue;
    layout.zero = 1;
    layouts.push_back(layout);
  }
  return layouts;
}

TEST_F(OneMemory, OfEveryPairOfLayoutsTrainsAndGeneratesTheSame) {
  for (const ParallelLayout& from : trained_layouts(model_.layers)) {
    for (const ParallelLayout& to : four_rank_layouts(model_.layers)) {
      if (to.pp > model_.layers) continue;
      expect_same_with_two_memories({.from = from, .to = to}, model_, folder_);
    }
  }
}

TEST_F(OneMemory, OfARolloutThatHoldsAllNeedsNoOther) {
  for (const ParallelLayout& from : trained_layouts(model_.layers)) {
    const Setting setting{.from = from, .to = layout_of(1, 1, 4, model_.layers)};
    const Plan plan = plan_of(setting, model_, folder_ / "model");
    for (int rank = 0; rank < 4; ++rank) {
      const SharedArena shared =
          shared_arena_on(parameter_table(model_), rank_map_of(plan, Role::actor),
                          rank_map_of(plan, Role::rollout), rank, DType::bf16);
      EXPECT_EQ(shared.held_twice, 0) << described(setting);
      EXPECT_EQ(shared.bytes, shared.rollout.bytes) << described(setting);
    }
  }
}

TEST_F(OneMemory, WithEveryOptionOfAReshardIsNeverStale) {
  const std::int64_t layers = model_.layers;
  for (const ReshardConfig& reshard :
       {ReshardConfig{.verify = true}, ReshardConfig{.verify = true, .incremental = true},
        ReshardConfig{.overlap = true}, ReshardConfig{.bucket_bytes = 5000, .overlap = true},
        ReshardConfig{.transport = ReshardTransport::host, .bucket_bytes = 5000},
        ReshardConfig{.transport = ReshardTransport::send_recv, .verify = true},
        ReshardConfig{.transport = ReshardTransport::all_gather}}) {
    SCOPED_TRACE(std::string(name_of(reshard.transport)) + (reshard.overlap       ? " overlap"
                                                            : reshard.incremental ? " incremental"
                                                                                  : ""));
    const ParallelLayout from = layout_of(2, 1, 2, layers);
    ParallelLayout cut = from;
    cut.zero = 1;
    expect_same_with_two_memories(
        {.from = cut, .to = layout_of(1, 1, 4, layers), .reshard = reshard}, model_, folder_);
    expect_same_with_two_memories(
        {.from = from, .to = layout_of(4, 1, 1, layers), .reshard = reshard}, model_, folder_);
  }
}

TEST_F(OneMemory, OfFp32AndOfAnOptimizerOnTheHostIsTheSame) {
  const std::int64_t layers = model_.layers;
  ParallelLayout zero = layout_of(2, 1, 2, layers);
  zero.zero = 2;
  const ParallelLayout whole = layout_of(1, 1, 4, layers), split = layout_of(2, 1, 2, layers);
  for (const Setting& setting :
       {Setting{.from = zero, .to = whole, .dtype = DType::fp32},
        Setting{
            .from = layout_of(2, 2, 1, layers), .to = split, .dtype = DType::fp32, .offload = true},
        Setting{.from = layout_of(4, 1, 1, layers), .to = split, .offload = true},
        Setting{.from = zero, .to = split, .offload = true}}) {
    expect_same_with_two_memories(setting, model_, folder_);
  }
}

TEST_F(OneMemory, OfRolesOnRanksOfTheirOwnHoldsOnlyTheirs) {
  const std::int64_t layers = model_.layers;
  for (const ParallelLayout& from : {layout_of(2, 1, 1, layers), layout_of(1, 2, 1, layers)}) {
    for (const ParallelLayout& to : {layout_of(1, 1, 2, layers), layout_of(2, 1, 1, layers)}) {
      for (const bool overlap : {false, true}) {
        expect_same_with_two_memories(
            {.from = from, .to = to, .apart = true, .reshard = {.overlap = overlap}}, model_,
            folder_);
      }
    }
  }
}

/// Trainers that keep their weights elsewhere than one behind another: FSDP's shards, parameters
/// that leave the device between phases and come by whole tensors, fp32 that travels as bf16.
TEST_F(OneMemory, DigestsProveTheRolloutOfEveryStorage) {
  const std::int64_t layers = model_.layers;
  Setting gathered{.from = layout_of(2, 1, 2, layers), .to = layout_of(1, 1, 4, layers)};
  gathered.mode = ReshardMode::full;
  Setting parked = gathered;
  parked.park = true;
  for (const Setting& setting :
       {Setting{.from = layout_of(1, 1, 1, layers, 4), .to = layout_of(2, 1, 2, layers)},
        Setting{.from = layout_of(1, 2, 1, layers, 2), .to = layout_of(4, 1, 1, layers)},
        Setting{.from = layout_of(1, 1, 2, layers, 2), .to = layout_of(1, 1, 4, layers)}, gathered,
        parked,
        Setting{.from = layout_of(2, 1, 2, layers),
        .to = layout_of(1, 2, 2, layers),
        .dtype = DType::fp32,
        .reshard = {.wire = DType::bf16, .wire_from_step = 2}}}) {
    SCOPED_TRACE(described(setting));
    const Plan plan = plan_of(setting, model_, folder_ / "model");
    RunConfig config;
    config.reshard = setting.reshard;
    run_ranks(plan.world_size(), [&](Communicator& world) {
      Worker worker = make_worker(plan, config, {.world = &world, .host = &world});
      trained(worker, config.reshard, model_.vocab);
      world.barrier();
    });
  }
}

/// Every rank ends with the same words, whose oracle is the element that was changed.
TEST_F(OneMemory, AChangedElementOfARolloutEndsAllRanksWithItsPlace) {
  const std::int64_t layers = model_.layers;
  const Plan plan =
      plan_of({.from = layout_of(1, 1, 1, layers, 2), .to = layout_of(2, 1, 1, layers)}, model_,
              folder_ / "model");
  run_ranks(2, [&](Communicator& world) {
    Worker worker = make_worker(plan, {}, {.world = &world, .host = &world});
    move_weights(worker);
    EXPECT_GT(verify_weights(worker, {}).compared, 0);
    const std::string name = "model.layers.0.mlp.down_proj.weight";
    const torch::Tensor& tensor = worker.find(Role::rollout)->weights->at(name);
    if (world.rank() == 1) tensor.view({-1})[21].neg_();
    try {
      verify_weights(worker, {});
      ADD_FAILURE() << "nothing was found";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::check_failed);
      ASSERT_EQ(error.problems().size(), 1U);
      const Problem& problem = error.problems().front();
      EXPECT_EQ(problem.file, "rank 1, rollout");
      EXPECT_EQ(problem.place, name);
      EXPECT_EQ(problem.found,
                "bytes 42 to 43 of its " + std::to_string(tensor.nbytes()) + " differ");
    }
  });
}

/// Weights that the optimizer did not write: the rollout has the same ones, the master weights do
/// not.
TEST_F(OneMemory, AWeightThatIsNotItsMasterWeightEndsAllRanks) {
  const std::int64_t layers = model_.layers;
  ParallelLayout cut = layout_of(2, 1, 2, layers);
  cut.zero = 1;
  for (const ParallelLayout& from : {layout_of(2, 1, 1, layers), cut}) {
    const Plan plan = plan_of({.from = from, .to = layout_of(1, 1, from.ranks(), layers)}, model_,
                              folder_ / "model");
    run_ranks(from.ranks(), [&](Communicator& world) {
      Worker worker = make_worker(plan, {}, {.world = &world, .host = &world});
      const RoleWorker& actor = *worker.find(Role::actor);
      const std::string name = "model.layers.1.mlp.down_proj.weight";
      const torch::Tensor tensor = actor.weights->at(name).detach();
      if (actor.groups.coord.tp == 1) tensor.view({-1})[9].neg_();  // of all replicas alike
      move_weights(worker);
      try {
        verify_weights(worker, {});
        ADD_FAILURE() << "nothing was found";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::check_failed);
        const std::string words = error.what();
        EXPECT_NE(words.find(", trained weights:" + name + ": found bytes 18 to 19 of its " +
                             std::to_string(tensor.nbytes()) +
                             " differ, expected its master weights, rounded"),
                  std::string::npos)
            << words;
        EXPECT_EQ(words.find('\n'), std::string::npos) << words;  // one rank keeps that master
      }
    });
  }
}

}  // namespace
}  // namespace tessera
