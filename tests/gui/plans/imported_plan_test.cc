// SPDX-License-Identifier: GPL-3.0-or-later
// A script of another program, opened in the window as `tessera import` reads it.
#include "gui/plans/imported_plan.h"

#include <gtest/gtest.h>

#include <fstream>

#include "cost_models/fit/derived_calibration.h"
#include "gui/pages/dropped_files.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "planner/plan/plan.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

// GRPO with verl on eight GPUs.
const std::string kScript =
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 "
    "actor_rollout_ref.actor.ppo_mini_batch_size=8 actor_rollout_ref.rollout.n=4 "
    "data.max_prompt_length=512 data.max_response_length=1024 "
    "actor_rollout_ref.actor.use_dynamic_bsz=true "
    "actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B\n";

class Scripts : public Explore {
 protected:
  QString written(const char* name, const std::string& text) {
    const QString file = folder.filePath(name);
    std::ofstream(file.toStdString()) << text;
    return file;
  }
};

TEST_F(Scripts, AScriptOfVerlIsShownAsTheCommandPricesIt) {
  ask(small_query());
  const QString file = written("run.sh", kScript);
  answer_file_dialog(&window, file);
  QTest::keyClick(&window, Qt::Key_I, Qt::ControlModifier | Qt::AltModifier);
  ASSERT_TRUE(document().valid()) << document().file_problems.toStdString();
  Problems problems;
  ImportOptions options{.cluster = *read_cluster_spec("h100-8", problems)};
  options.allow_unknown = true;
  auto imported = import_config(kScript, file.toStdString(), options, problems);
  ASSERT_TRUE(imported);
  price(imported->plan, *calibration_for_cluster(options.cluster, problems),
        imported->memory_share);
  const Plan& shown = *window.session().plan();
  EXPECT_EQ(shown.roles, imported->plan.roles);
  EXPECT_EQ(shown.prediction, imported->plan.prediction);
  EXPECT_EQ(shown.engine, "verl");
  EXPECT_TRUE(document().file_problems.startsWith(file + " was read as a plan"))
      << document().file_problems.toStdString();
  for (const std::string& note : imported->notes) {
    EXPECT_TRUE(document().file_problems.contains(QString::fromStdString(note))) << note;
  }
  // It is in no file, and undo goes back to the question before.
  EXPECT_TRUE(window.windowTitle().startsWith("unsaved plan*"));
  EXPECT_TRUE(window.session().hasEdits());
  window.session().undo();
  EXPECT_EQ(document().question, small_query());
}

TEST_F(Scripts, ThatCannotBeReadChangeNothing) {
  ask(small_query());
  const SharedPlan before = window.session().plan();
  const QString mark = folder.filePath("was_run");
  openFiles(window, {written("other.sh", "#!/bin/sh\ntouch '" + mark.toStdString() + "'\n")});
  EXPECT_TRUE(document().file_problems.contains("other.sh"))
      << document().file_problems.toStdString();
  EXPECT_EQ(window.session().plan(), before);
  EXPECT_EQ(document().question, small_query());
  EXPECT_FALSE(QFile::exists(mark));
  // By its keys a configuration is one, and what is wrong in it is told.
  openFiles(window, {written("verl.yaml", "actor_rollout_ref:\n  model: {path: none}\n")});
  EXPECT_TRUE(document().file_problems.contains("verl.yaml"))
      << document().file_problems.toStdString();
}

}  // namespace
}  // namespace tessera::gui
