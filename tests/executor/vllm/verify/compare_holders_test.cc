// Weights of folders and of running servers, compared by digests: sound ones, and with dozens of
// faults of every kind, whose bytes faulty_worker.py finds without digests.
#include "executor/vllm/verify/compare_holders.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/model_spec.h"
#include "tests/executor/vllm/verify/served_weights.h"

namespace tessera {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kTimeout = 120;
constexpr int kFaultsOfAKind = 40;

/// Worker, tensor, first byte, bytes.
using Place = std::tuple<int, std::string, std::int64_t, std::int64_t>;

std::set<Place> places_of(const WeightComparison& comparison) {
  std::set<Place> places;
  for (const TensorComparison& each : comparison.differences) {
    EXPECT_EQ(each.fault, TensorFault::values) << each.name;
    places.insert({each.worker_b, each.name, each.bytes.offset, each.bytes.bytes});
  }
  return places;
}

std::set<Place> changed_by(VllmServer& server, const std::string& kind, int seed) {
  std::set<Place> places;
  const WorkerReplies replies =
      server.call_workers("tessera_fault", {kind, std::to_string(seed)}, kTimeout);
  for (std::size_t worker = 0; worker < replies.size(); ++worker) {
    const json reply = json::parse(replies[worker]);
    for (const json& each : reply.at("changed")) {
      places.insert({static_cast<int>(worker), each.at(0), each.at(1), each.at(2)});
    }
  }
  return places;
}

class CompareHolders : public ServedWeights {
 protected:
  void SetUp() override {
    ServedWeights::SetUp();
    if (IsSkipped()) return;
    Problems problems;
    table_ = parameter_table(*read_model_spec(model_, problems));
    stored_ = open_model_weights(model_, problems);
    ASSERT_TRUE(stored_ && problems.empty());
  }

  WeightHolder holder_of(VllmServer& server) const {
    return served_holder(server, describe_server(server, kTimeout), table_, kTimeout);
  }
  WeightHolder holder_of_folder(std::optional<DType> as = std::nullopt) const {
    return stored_holder(*stored_, table_, as);
  }

  ParameterTable table_;
  std::optional<StoredWeights> stored_;
};

TEST_F(CompareHolders, NamesWorkerTensorAndBytesOfEveryFault) {
  const std::vector<std::string> kinds = {"stale_tensor", "swapped_slice", "missed_bias",
                                          "flipped_bit", "wrong_rank"};
  const std::vector<int> degrees = {1, 2, 4};
  int without = 0, seed = 0;
  for (const int tp : degrees) {
    const auto server =
        serve(model_, tp, {"--worker-extension-cls", "faulty_worker.FaultyReceiver"});
    const WeightHolder folder = holder_of_folder(), served = holder_of(*server);
    const WeightComparison sound = compare_holders(table_, folder, served);
    EXPECT_THAT(sound.differences, IsEmpty()) << to_text(sound);
    EXPECT_EQ(sound.tensors, std::ssize(table_.rows));
    EXPECT_GE(sound.bytes, table_.elements() * 2);
    const int each = kFaultsOfAKind / 3 + (tp == 1 ? kFaultsOfAKind % 3 : 0);
    for (const std::string& kind : kinds) {
      for (int i = 0; i < each; ++i) {
        const std::set<Place> changed = changed_by(*server, kind, ++seed);
        without += changed.empty() ? 1 : 0;
        ASSERT_EQ(places_of(compare_holders(table_, folder, served)), changed)
            << kind << " " << seed << " on " << tp;
        server->call_workers("tessera_mend", {}, kTimeout);
      }
    }
  }
  EXPECT_LT(without, kFaultsOfAKind / 4) << "another worker's part is the same where all have it";
}

// Every replica of one server meets every one of the other's.
TEST_F(CompareHolders, TwoServersAreComparedWhateverTheirDegrees) {
  ::setenv("FAKE_VLLM_TRANSFORMERS", "1", 1);
  const auto a = serve(model_, 2);
  ::unsetenv("FAKE_VLLM_TRANSFORMERS");
  const auto b = serve(model_, 4, {"--worker-extension-cls", "faulty_worker.FaultyReceiver"});
  const ServerDescription described = describe_server(*a, kTimeout);
  Problems problems;
  const auto model = parse_model_spec(described.config, "server", problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(parameter_table(*model).rows, table_.rows);
  const WeightHolder mine = holder_of(*a), theirs = holder_of(*b);
  EXPECT_THAT(compare_holders(table_, mine, theirs).differences, IsEmpty());
  const std::set<Place> changed = changed_by(*b, "flipped_bit", 2);
  ASSERT_EQ(changed.size(), 1U);
  const WeightComparison found = compare_holders(table_, mine, theirs);
  ASSERT_FALSE(found.differences.empty());
  EXPECT_EQ(places_of(found), changed);
  EXPECT_THAT(to_text(found), HasSubstr("of A, worker 2 of B, differs, bytes "));
  EXPECT_EQ(json::parse(to_json(found)).at("differences").at(0).at("worker_b"), 2);
}

TEST_F(CompareHolders, TypesAreRoundedWhereThatIsAskedFor) {
  const auto server = serve(model_, 2, {"--dtype", "float32"});
  const WeightHolder served = holder_of(*server);
  const WeightComparison unlike = compare_holders(table_, holder_of_folder(), served);
  ASSERT_EQ(unlike.differences.size(), table_.rows.size());
  EXPECT_EQ(unlike.differences[0].fault, TensorFault::dtype);
  EXPECT_EQ(unlike.differences[0].b, "fp32");
  EXPECT_THAT(compare_holders(table_, holder_of_folder(DType::fp32), served).differences,
              IsEmpty());
}

TEST_F(CompareHolders, AnotherModelDiffersByNamesAndShapes) {
  const auto server = serve(write("wider", "1", "intermediate_size=64 num_hidden_layers=3"), 2);
  const WeightComparison found = compare_holders(table_, holder_of_folder(), holder_of(*server));
  std::map<std::string, TensorComparison> by_name;
  for (const TensorComparison& each : found.differences) by_name[each.name] = each;
  const TensorComparison& up = by_name.at("model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(up.fault, TensorFault::shape);
  EXPECT_EQ(up.a, "[56, 32]");
  EXPECT_EQ(up.b,
            "model.layers.0.mlp.gate_up_proj.weight [64, 32] instead of [56, 32] on worker 0");
  EXPECT_EQ(by_name.at("model.layers.2.mlp.gate_up_proj.weight").fault, TensorFault::only_in_b);
  const auto small = serve(write("small", "1", "num_hidden_layers=1"), 1);
  const WeightComparison less = compare_holders(table_, holder_of_folder(), holder_of(*small));
  EXPECT_THAT(to_text(less), HasSubstr("model.layers.1.input_layernorm.weight: only in A\n"));
}

TEST_F(CompareHolders, AServerThatCannotBeComparedSaysWhy) {
  const auto told = [](VllmServer& server) {
    try {
      describe_server(server, kTimeout);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::missing);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const auto bare = serve(model_, 1, {"--worker-extension-cls", ""});
  EXPECT_THAT(told(*bare), HasSubstr("pip install integrations/vllm"));
  const auto sleeping = serve(model_, 1, {"--enable-sleep-mode"});
  sleeping->sleep(kTimeout);
  EXPECT_THAT(told(*sleeping), HasSubstr("it sleeps and holds no weights"));
  VllmServer nobody("http://127.0.0.1:" + std::to_string(free_port()));
  EXPECT_THAT(told(nobody), HasSubstr("refused the connection"));
}

}  // namespace
}  // namespace tessera
