// Layers of multi-token prediction in verl's configurations: what of them becomes a plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "tests/planner/interop/exported.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct Read {
  std::optional<Imported> imported;
  Problems problems;

  const RolePlan& role(Role role) const { return *imported->plan.find(role); }
  std::string told() const { return Error(ExitCode::bad_input, problems).what(); }
};

Read read(const std::string& text) {
  Problems none;
  const ImportOptions options{.cluster = *read_cluster_spec("h800-64", none)};
  Read made;
  made.imported = import_config(text, "a.sh", options, made.problems);
  return made;
}

std::string grpo(const std::string& model, const std::string& rest) {
  return "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 "
         "actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.model.path=" +
         model +
         " actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.use_kl_loss=True " +
         rest + "\n";
}

// model.mtp (verl 0.9.1: MtpConfig of workers/config/model.py, check_mtp_config of
// utils/megatron_utils.py; the reference has none, workers/engine_workers.py).
TEST(ImportVerl, LayersThatPredictFurtherTokensAreInThePlan) {
  const std::string mtp = "actor_rollout_ref.model.mtp.", megatron = "model_engine=megatron ",
                    enabled = megatron + mtp + "enable=True ";
  const std::string name = "XiaomiMiMo/MiMo-7B-RL";
  const auto made_of = [&](const std::string& more) { return read(grpo(name, more)); };
  const Read without = made_of(megatron), held = made_of(enabled),
             trained = made_of(enabled + mtp + "enable_train=True " + mtp + "enable_rollout=True"),
             fsdp = made_of(mtp + "enable=True " + mtp + "enable_train=True");
  ASSERT_TRUE(without.imported && held.imported && trained.imported) << trained.told();
  EXPECT_EQ(held.role(Role::actor).mtp, MtpUse::held);
  EXPECT_EQ(trained.role(Role::actor).mtp, MtpUse::trained);
  EXPECT_EQ(trained.role(Role::rollout).mtp, MtpUse::held);
  EXPECT_EQ(trained.role(Role::reference).mtp, MtpUse::left_out);
  EXPECT_EQ(without.role(Role::actor).mtp, MtpUse::left_out);
  ASSERT_TRUE(fsdp.imported) << fsdp.told();  // transformers' classes leave them out
  EXPECT_EQ(fsdp.role(Role::actor).mtp, MtpUse::left_out);
  EXPECT_THAT(trained.imported->notes, Contains(HasSubstr(mtp + "enable_rollout: servers draft")));
}

TEST(ImportVerl, LayersThatPredictFurtherTokensCostWhatTheyAre) {
  const std::string mtp = "actor_rollout_ref.model.mtp.";
  const auto priced = [&](const std::string& more) {
    const Read made = read(grpo("XiaomiMiMo/MiMo-7B-RL", "model_engine=megatron " + mtp + more));
    EXPECT_TRUE(made.imported) << made.told();
    Problems problems;
    Plan plan = made.imported->plan;
    price(plan, *find_calibration("h800", problems), made.imported->memory_share);
    return plan;
  };
  const auto seconds = [](const Plan& plan, Phase phase) {
    return plan.prediction.phases_s.at(phase);
  };
  const Plan without = priced("enable=False"), held = priced("enable=True"),
             trained = priced("enable=True " + mtp + "enable_train=True");
  const auto of_update = [](const Plan& plan) {
    return plan.find(Role::actor)->memory.at(Phase::update_actor);
  };
  const std::int64_t parameters = mtp_parameter_count(without.models.at("actor").spec);
  const auto tp = without.find(Role::actor)->layout.tp;
  const auto further =
      static_cast<double>((of_update(held).gradients - of_update(without).gradients).value);
  EXPECT_NEAR(further / (4.0 * static_cast<double>(parameters) / tp), 1, 0.01);
  EXPECT_EQ(of_update(held).activations, of_update(without).activations);
  EXPECT_EQ(of_update(trained).gradients, of_update(held).gradients);
  EXPECT_GT(of_update(trained).activations, of_update(held).activations);
  EXPECT_GT(of_update(trained).logits, of_update(held).logits);
  EXPECT_EQ(of_update(held).logits, of_update(without).logits);
  // One layer more of 36 and a second head are 12 % of the products; a step has more to do.
  const double slower = seconds(trained, Phase::update_actor) / seconds(held, Phase::update_actor);
  EXPECT_GT(slower, 1.03);
  EXPECT_LT(slower, 1.2);
  EXPECT_GT(seconds(trained, Phase::old_log_prob), seconds(held, Phase::old_log_prob));
  EXPECT_EQ(seconds(trained, Phase::ref), seconds(without, Phase::ref));
}

TEST(ImportVerl, LayersThatPredictFurtherTokensStopAModelWithoutAny) {
  const std::string enable = "actor_rollout_ref.model.mtp.enable";
  const auto notes = [&](const std::string& more) {
    const Read made = read(grpo("Qwen/Qwen3-8B", enable + "=True " + more));
    EXPECT_TRUE(made.imported) << made.told();
    return made.imported ? made.imported->notes : std::vector<std::string>{};
  };
  EXPECT_THAT(notes("model_engine=megatron"), Contains(HasSubstr("does not run this: " + enable)));
  EXPECT_THAT(notes(""), Not(Contains(HasSubstr("mtp"))));
}

TEST(ImportVerl, LayersThatPredictFurtherTokensAreExportedAsTheyWereRead) {
  const std::string mtp = "actor_rollout_ref.model.mtp.";
  const Read made =
      read(grpo("XiaomiMiMo/MiMo-7B-RL",
                "model_engine=megatron " + mtp + "enable=True " + mtp + "enable_train=True"));
  ASSERT_TRUE(made.imported) << made.told();
  const std::string script =
      text_of(must_export(made.imported->plan, target_of("verl-megatron")), "run.sh");
  EXPECT_THAT(script, AllOf(HasSubstr(mtp + "enable=true"), HasSubstr(mtp + "enable_train=true"),
                            HasSubstr(mtp + "enable_rollout=false")));
  const Read again = read(script);
  ASSERT_TRUE(again.imported) << again.told();
  for (const Role role : {Role::actor, Role::rollout}) {
    EXPECT_EQ(again.role(role).mtp, made.role(role).mtp);
  }
}

TEST(ImportMegatron, LayersThatPredictFurtherTokensAreTrained) {
  Problems problems;
  const ImportOptions options{.cluster = *read_cluster_spec("h800-64", problems),
                              .model = "deepseek-v3"};
  const std::string script =
      "torchrun --nproc_per_node 8 --nnodes 8 pretrain_gpt.py --tensor-model-parallel-size 2 "
      "--pipeline-model-parallel-size 2 --expert-model-parallel-size 16 "
      "--expert-tensor-parallel-size 1 --decoder-last-pipeline-num-layers 30 --sequence-parallel "
      "--micro-batch-size 1 --global-batch-size 64 --seq-length 4096 --bf16 ";
  const auto with = import_config(script + "--mtp-num-layers 1\n", "a.sh", options, problems);
  const auto without = import_config(script + "\n", "a.sh", options, problems);
  ASSERT_TRUE(with && without) << Error(ExitCode::bad_input, problems).what();
  EXPECT_EQ(with->plan.roles[0].mtp, MtpUse::trained);
  EXPECT_EQ(without->plan.roles[0].mtp, MtpUse::left_out);
  const auto exported = [](const Plan& plan) {
    return must_export(plan, target_of("megatron")).files[0].text;
  };
  EXPECT_THAT(exported(with->plan), HasSubstr("--mtp-num-layers\n  1"));
  EXPECT_THAT(exported(without->plan), Not(HasSubstr("--mtp-num-layers")));
}

}  // namespace
}  // namespace tessera
