// A role's state from one layout to any other, element by element.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <ostream>
#include <set>
#include <string>

#include "cost_models/documents/problem.h"
#include "executor/comm/thread_communicator.h"
#include "executor/run_state/restore.h"
#include "executor/run_state/snapshot.h"
#include "executor/run_state/state_pieces.h"
#include "tests/executor/temporary_folder.h"
#include "tests/executor/train/small_models.h"

namespace tessera {
namespace {

using namespace testing_models;  // NOLINT

/// A way to cut a role.
struct Cut {
  const char* name;
  int tp = 1, pp = 1, dp = 1, zero = 0, shard = 1, cp = 1;
  int ep = 1;  // of a model with experts
  bool sequence_parallel = false;
  int etp = 0;  // 0: as many as tp

  int ranks() const { return tp * pp * dp * shard * cp; }
  ParallelLayout layout(const ModelSpec& model) const {
    ParallelLayout layout = layout_of(model, tp, pp, dp, zero);
    layout.dp *= shard;
    layout.dp_shard = shard;
    layout.cp = cp;
    if (!model.moe) return layout;
    layout.ep = ep;
    layout.sequence_parallel = sequence_parallel;
    layout.etp = etp > 0 ? etp : tp;
    return layout;
  }
};
void PrintTo(const Cut& cut, std::ostream* out) { *out << cut.name; }

const Cut kCuts[] = {
    {.name = "one"},
    {.name = "tp2pp2", .tp = 2, .pp = 2},
    {.name = "tp4", .tp = 4},
    {.name = "dp2", .dp = 2},
    {.name = "zero1", .dp = 3, .zero = 1},
    {.name = "tp2zero2", .tp = 2, .dp = 2, .zero = 2},
    {.name = "fsdp4", .zero = 3, .shard = 4},
    {.name = "hsdp", .dp = 2, .zero = 3, .shard = 2},
    {.name = "tp2fsdp2", .tp = 2, .zero = 3, .shard = 2},
    {.name = "cp2", .cp = 2},
    {.name = "cp2zero1", .dp = 2, .zero = 1, .cp = 2},
};

const Cut kExpertCuts[] = {
    {.name = "one"},
    {.name = "tp2", .tp = 2},
    {.name = "fsdp3", .zero = 3, .shard = 3},
    {.name = "ep2", .dp = 2, .ep = 2},
    {.name = "ep2dp4", .dp = 4, .ep = 2},
    {.name = "ep2zero1", .dp = 2, .zero = 1, .ep = 2},
    {.name = "ep2hsdp", .dp = 2, .zero = 3, .shard = 2, .ep = 2},
    {.name = "ep2tp2pp2", .tp = 2, .pp = 2, .dp = 2, .ep = 2},
    {.name = "ep4tp2", .tp = 2, .dp = 2, .ep = 4, .sequence_parallel = true, .etp = 1},
    {.name = "tp4etp2", .tp = 4, .sequence_parallel = true, .etp = 2},
    {.name = "ep2tp4etp2dp2", .tp = 4, .dp = 2, .ep = 2, .sequence_parallel = true, .etp = 2},
    {.name = "tp2whole", .tp = 2, .sequence_parallel = true, .etp = 1},
};

/// What the element of a tensor holds in a state: another number for each.
double value_of(int state, int row, std::int64_t element) {
  return 0.25 + state * 1e5 + row * 997.0 + static_cast<double>(element % 8191) * 0.125;
}

/// Element number of a tensor at a piece's place `at` (memory order).
std::int64_t element_of(const Parameter& parameter, const StatePiece& piece, std::int64_t at) {
  const std::vector<std::int64_t> shape = piece.memory_shape();
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = at % shape[d];
    at /= shape[d];
  }
  std::vector<std::int64_t> place(shape.size());
  std::size_t next = 1;
  for (int dim = 0; dim < piece.box.rank; ++dim) {
    const std::size_t from = dim == piece.outer_dim ? 0 : next++;
    place[static_cast<std::size_t>(dim)] =
        piece.box.dims[static_cast<std::size_t>(dim)].lo + index[from];
  }
  std::int64_t element = 0;
  for (std::size_t d = 0; d < place.size(); ++d) element = element * parameter.shape[d] + place[d];
  return element;
}

/// Sets or checks every element that the rank holds.
template <class Each>
void for_each_held(const RoleOnRank& role, Trainer& trainer, Each&& each) {
  const OptimizerState& state = trainer.optimizer().state();
  const torch::Tensor states[] = {state.master.detach(), state.exp_avg, state.exp_avg_sq};
  for (const StatePiece& piece : held_pieces(role.weights, trainer.optimizer().map())) {
    const Parameter& parameter = role.weights.table.rows[static_cast<std::size_t>(piece.row)];
    for (int s = 0; s < 3; ++s) {
      float* const data = const_cast<torch::Tensor&>(states[s]).mutable_data_ptr<float>();
      for (std::int64_t i = 0; i < piece.count(); ++i) {
        each(data[piece.shard + i],
             static_cast<float>(value_of(s, piece.row, element_of(parameter, piece, i))));
      }
    }
  }
}

/// The states of torch's generators that a rank of save() writes, beside what training has made.
std::vector<torch::Tensor> generators_of(int rank) {
  return {torch::full({100 + rank}, rank, torch::kUInt8)};
}

/// Saves known values under `cut`; the manifest that a run would write.
void save(const Cut& cut, const ModelSpec& model, DType dtype, const std::filesystem::path& folder,
          std::int64_t largest_steps, std::int64_t least_part_bytes = kLeastPartBytes) {
  run_ranks(cut.ranks(), [&](Communicator& world) {
    const auto role = make_role(world, model, cut.layout(model), dtype);
    Trainer trainer(role->weights, role->groups, AdamWOptions{});
    for_each_held(*role, trainer, [](float& held, float wanted) { held = wanted; });
    RoleSnapshot snapshot("actor", role->weights, trainer);
    snapshot.take();
    std::vector<StateTensor> tensors = snapshot.tensors();
    const std::vector<torch::Tensor> generators = generators_of(world.rank());
    for (StateTensor& tensor : generator_tensors(generators)) tensors.push_back(std::move(tensor));
    Problems problems;
    ASSERT_TRUE(write_state(folder, world.rank(), tensors, least_part_bytes, problems))
        << to_string(problems.at(0));
  });
  CheckpointManifest manifest{.step = 1};
  manifest.roles["actor"] = {.model = "actor", .optimizer_steps = largest_steps};
  Problems problems;
  for (int rank = 0; rank < cut.ranks(); ++rank) {
    for (int part = 0; exists(folder / rank_file_name(rank, part)); ++part) {
      manifest.files.push_back(*describe_file(folder / rank_file_name(rank, part), problems));
    }
  }
  ASSERT_TRUE(write_manifest(folder / kManifestName, manifest, problems));
}

/// Every rank of `cut` finds each of its elements, and weights that are the master weights rounded.
void expect_restored(const Cut& cut, const ModelSpec& model, DType dtype,
                     const std::filesystem::path& folder) {
  Problems problems;
  const auto checkpoint = open_checkpoint(folder, problems);
  ASSERT_TRUE(checkpoint) << to_string(problems.at(0));
  run_ranks(cut.ranks(), [&](Communicator& world) {
    const auto role = make_role(world, model, cut.layout(model), dtype);
    Trainer trainer(role->weights, role->groups, AdamWOptions{});
    Problems wrong;
    restore_role(*checkpoint, "actor", role->weights, trainer, wrong);
    ASSERT_TRUE(wrong.empty()) << to_string(wrong.front());
    EXPECT_EQ(trainer.optimizer().state().steps, 12);
    std::int64_t different = 0;
    for_each_held(*role, trainer, [&](float& held, float wanted) { different += held != wanted; });
    EXPECT_EQ(different, 0);
    trainer.with_whole_weights([&] {
      for (const ArenaSlot& slot :
           arena_layout(role->weights.table, role->weights.layout, role->weights.coord, dtype)
               .slots) {
        const Parameter& parameter =
            role->weights.table.rows[static_cast<std::size_t>(slot.tensor)];
        const StatePiece whole{.row = slot.tensor, .box = slot.box, .outer_dim = slot.outer_dim};
        const torch::Tensor got =
            role->weights.tensor(slot.tensor).detach().contiguous().view(-1).to(torch::kFloat32);
        std::vector<float> wanted;
        for (std::int64_t i = 0; i < whole.count(); ++i) {
          wanted.push_back(
              static_cast<float>(value_of(0, slot.tensor, element_of(parameter, whole, i))));
        }
        const torch::Tensor rounded =
            torch::tensor(wanted).to(scalar_type(dtype)).to(torch::kFloat32);
        EXPECT_TRUE(torch::equal(got, rounded)) << parameter.name;
      }
    });
  });
}

class StateOf : public testing::TestWithParam<Cut> {};

/// Of all ranks exactly one writes each element, and nobody much more than its share.
void expect_written_once(const Cut& cut, const std::vector<ModelSpec>& models) {
  for (const ModelSpec& model : models) {
    const ParameterTable table = parameter_table(model);
    std::mutex mutex;
    std::map<int, std::vector<Box>> written;
    std::int64_t total = 0, most = 0;
    run_ranks(cut.ranks(), [&](Communicator& world) {
      const auto role = make_role(world, model, cut.layout(model));
      const ShardMap map = make_shard_map(role->weights, role->groups);
      std::int64_t mine = 0;
      const std::lock_guard lock(mutex);
      for (const StatePiece& piece : written_pieces(role->weights, map, /*largest=*/100)) {
        written[piece.row].push_back(piece.box);
        mine += piece.count();
      }
      total += mine;
      most = std::max(most, mine);
    });
    EXPECT_EQ(total, table.elements());
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      std::vector<Box> left{whole(table.rows[row].shape)};
      for (const Box& box : written[static_cast<int>(row)]) {
        std::vector<Box> rest;
        for (const Box& each : left) {
          for (const Box& part : subtract(each, box)) rest.push_back(part);
        }
        left = rest;
      }
      EXPECT_TRUE(left.empty()) << table.rows[row].name << ": nobody writes a part";
    }
    if (cut.pp == 1) {
      EXPECT_LT(most, total * 3 / 2 / cut.ranks() + 200);
    }
  }
}

TEST_P(StateOf, EveryElementIsWrittenOnce) { expect_written_once(GetParam(), {qwen2(), llama()}); }

TEST_P(StateOf, IsFoundByEveryOtherLayout) {
  const Cut from = GetParam();
  const ModelSpec model = llama();
  const TemporaryFolder folder;
  save(from, model, DType::fp32, folder.path, 12);
  for (const Cut& to : kCuts) {
    SCOPED_TRACE(to.name);
    expect_restored(to, model, DType::fp32, folder.path);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, StateOf, testing::ValuesIn(kCuts),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(State, OfExpertsIsWrittenOnceAndFoundByEveryOtherLayout) {
  for (const Cut& from : kExpertCuts) {
    SCOPED_TRACE(from.name);
    expect_written_once(from, {qwen2_moe()});
    const TemporaryFolder folder;
    save(from, qwen2_moe(), DType::fp32, folder.path, 12);
    for (const Cut& to : kExpertCuts) {
      SCOPED_TRACE(to.name);
      expect_restored(to, qwen2_moe(), DType::fp32, folder.path);
    }
  }
}

/// A tied embedding lies on two stages, master weights beside weights of 16 bits.
TEST(State, TiedEmbeddingsAndBfloat16GoTheSameWay) {
  const TemporaryFolder folder;
  save(kCuts[1], qwen2(), DType::bf16, folder.path, 12);
  for (const Cut& to : {kCuts[0], kCuts[1], kCuts[4], kCuts[6]}) {
    SCOPED_TRACE(to.name);
    expect_restored(to, qwen2(), DType::bf16, folder.path);
  }
}

/// A rank's state in several files is the same state: its generators lie in the last of them.
TEST(State, InPartsIsFoundByEveryOtherLayout) {
  for (const Cut& from : {kCuts[1], kCuts[6]}) {
    SCOPED_TRACE(from.name);
    const TemporaryFolder folder;
    save(from, llama(), DType::fp32, folder.path, 12, /*least_part_bytes=*/1);
    for (int rank = 0; rank < from.ranks(); ++rank) {
      EXPECT_TRUE(exists(folder.path / rank_file_name(rank, kMostParts - 1)));
    }
    for (const Cut& to : {kCuts[0], kCuts[1], kCuts[5], kCuts[6]}) {
      SCOPED_TRACE(to.name);
      expect_restored(to, llama(), DType::fp32, folder.path);
    }
    Problems problems;
    const auto checkpoint = open_checkpoint(folder.path, problems);
    ASSERT_TRUE(checkpoint);
    for (int rank = 0; rank < from.ranks(); ++rank) {
      const auto found = saved_generators(*checkpoint, rank, torch::kCPU, problems);
      ASSERT_EQ(found.size(), 1U);
      EXPECT_TRUE(torch::equal(found[0], generators_of(rank)[0]));
    }
    EXPECT_TRUE(saved_generators(*checkpoint, from.ranks(), torch::kCPU, problems).empty());
  }
}

/// Runs restore_role on one rank; what it finds wrong.
Problems restored(const ModelSpec& model, const std::filesystem::path& folder,
                  const std::string& role_name) {
  Problems problems;
  const auto checkpoint = open_checkpoint(folder, problems);
  if (!checkpoint) return problems;
  run_ranks(1, [&](Communicator& world) {
    const auto role = make_role(world, model, kCuts[0].layout(model));
    Trainer trainer(role->weights, role->groups, AdamWOptions{});
    restore_role(*checkpoint, role_name, role->weights, trainer, problems);
  });
  return problems;
}

TEST(State, AnotherModelOrRoleIsToldAndNotTaken) {
  const TemporaryFolder folder;
  save(kCuts[1], llama(), DType::fp32, folder.path, 12);
  EXPECT_TRUE(restored(llama(), folder.path, "actor").empty());
  const Problems other = restored(qwen2(), folder.path, "actor");
  ASSERT_FALSE(other.empty());
  EXPECT_NE(to_string(other.front()).find("of the elements"), std::string::npos);
  EXPECT_EQ(to_string(restored(llama(), folder.path, "critic").at(0)),
            (folder.path / kManifestName).string() +
                ":roles: found no critic, expected every role that the plan trains");
}

}  // namespace
}  // namespace tessera
