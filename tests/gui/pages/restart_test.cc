// SPDX-License-Identifier: GPL-3.0-or-later
// What comes back at the next start, and what was asked for at it.
#include <gtest/gtest.h>

#include <QDir>
#include <QLabel>
#include <QMessageBox>
#include <QPushButton>
#include <QSlider>
#include <QTemporaryDir>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gui/document/project.h"
#include "gui/kept/open_work.h"
#include "gui/layout/kept_layout.h"
#include "gui/pages/main_window.h"
#include "gui/watch/metric_list_model.h"
#include "planner/plan/plan_json.h"
#include "tests/gui/sample_plans.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

const std::filesystem::path kData = std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/gui/data";

TEST(Window, AProjectIsOpenAgainAtTheNextStart) {
  QTemporaryDir folder;
  const std::filesystem::path memory = folder.filePath("window.json").toStdString();
  const PlanQuery query{"qwen2.5-0.5b", "h100-8", "ppo-7b-1k", 1, 8, {"actor.tp=2"}};
  const QString file = folder.filePath("project.json");
  write_project({.question = query, .pinned = {shared(free_plan())}}, file.toStdString());
  {
    MainWindow window(memory);
    ASSERT_TRUE(window.openProject(file));
    window.close();
  }
  MainWindow again(memory);
  again.askLast({});
  EXPECT_EQ(again.session().document().question, query);
  EXPECT_EQ(again.session().pinned()->count(), 1);
  // One that is gone is none.
  std::filesystem::remove(file.toStdString());
  MainWindow without(memory);
  without.askLast({});
  EXPECT_EQ(without.session().document().question, query);
  EXPECT_EQ(without.session().pinned()->count(), 0);
}

// What a start is told to open is not lost in what was open before.
TEST(Window, ARunThatIsAskedForIsFollowedWhateverTheLastProjectHas) {
  QTemporaryDir folder;
  const std::filesystem::path memory = folder.filePath("window.json").toStdString();
  const PlanQuery query{"qwen2.5-0.5b", "h100-8", "ppo-7b-1k", 1, 8, {"actor.tp=2"}};
  const QString file = folder.filePath("project.json");
  write_project({.question = query, .runs = {kData / "sampled"}}, file.toStdString());
  {
    MainWindow window(memory);
    ASSERT_TRUE(window.openProject(file));
    window.close();
  }
  MainWindow again(memory);
  ASSERT_TRUE(again.openRun(QString::fromStdString((kData / "run").string()), false));
  again.askLast({});
  EXPECT_EQ(again.session().run()->folder(), kData / "run");
}

TEST(Window, AFileThatIsRefusedAtAStartIsSaidBesideTheLastPlan) {
  QTemporaryDir folder;
  const std::filesystem::path memory = folder.filePath("window.json").toStdString();
  const QString plan = folder.filePath("plan.json"), broken = folder.filePath("broken.json");
  std::ofstream(plan.toStdString()) << to_json(free_plan());
  std::ofstream(broken.toStdString()) << R"({"tessera_plan": 1})";
  {
    MainWindow window(memory);
    ASSERT_TRUE(window.openPlan(plan));
    window.close();
  }
  MainWindow again(memory);
  ASSERT_FALSE(again.openPlan(broken));
  again.askLast({});
  EXPECT_EQ(again.session().document().file, plan);
  EXPECT_TRUE(again.session().document().file_problems.contains("broken.json"));
}

// A run's plan takes no question's place that is being planned.
TEST(Window, AProjectsQuestionStaysWhereARunIsOpenedWithIt) {
  QTemporaryDir folder;
  const std::filesystem::path run = folder.path().toStdString();
  std::filesystem::copy(
      kData / "run", run,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  std::ofstream(run / "plan.json") << to_json(free_plan());
  const PlanQuery query{"qwen2.5-0.5b", "h100-8", "ppo-7b-1k", 1, 8, {"actor.tp=2"}};
  MainWindow window;
  window.session().ask(query);
  ASSERT_TRUE(window.openRun(folder.path(), false));
  EXPECT_EQ(window.session().document().question, query);
}

TEST(Window, DrawnMetricsAndTheirSmoothingAreThoseOfTheLastStart) {
  QTemporaryDir folder;
  const std::filesystem::path memory = folder.filePath("window.json").toStdString();
  const auto smoothing = [](MainWindow& window) { return window.findChild<QSlider*>("smoothing"); };
  const auto metrics = [](MainWindow& window) { return window.findChild<MetricListModel*>(); };
  std::vector<std::string> drawn;
  {
    MainWindow window(memory);
    window.session().run()->follow(kData / "run", false);
    drawn = metrics(window)->drawn();
    window.close();
  }
  {  // Nobody chose any: the next run begins with those that any training has.
    MainWindow window(memory);
    window.session().run()->follow(kData / "run", false);
    EXPECT_EQ(metrics(window)->drawn(), drawn);
    EXPECT_EQ(metrics(window)->choice(), std::nullopt);
    metrics(window)->choose("critic/returns/min", true);
    metrics(window)->choose(drawn.front(), false);
    smoothing(window)->setValue(60);
    drawn = metrics(window)->drawn();
    ASSERT_EQ(drawn.back(), "critic/returns/min");
    window.close();
  }
  {
    MainWindow window(memory);
    EXPECT_EQ(smoothing(window)->value(), 60);
    window.session().run()->follow(kData / "run", false);
    EXPECT_EQ(metrics(window)->drawn(), drawn);
    for (const std::string& name : drawn) metrics(window)->choose(name, false);
    window.close();
  }
  MainWindow none(memory);  // as was chosen, too
  none.session().run()->follow(kData / "run", false);
  EXPECT_TRUE(metrics(none)->drawn().empty());
}

// Half a minute at most, then the parent says that it did not end so.
[[noreturn]] void compare_and_be_killed(const std::filesystem::path& memory) {
  MainWindow window(memory);
  window.session().run()->follow(kData / "run", false);
  window.session().run()->addOther(kData / "sampled", false);
  window.session().pinned()->setPlans({shared(free_plan()), shared(digits_plan())});
  wait_for([&] { return std::filesystem::exists(open_work_file(memory)); });
  raise(SIGKILL);
  std::abort();
}

// As a crash ends it, or the system where memory is short.
TEST(Window, PinnedPlansAndComparedRunsComeBackAfterAKill) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr const char* kFolder = "TESSERA_TEST_KILLED";  // the child's is its parent's
  QTemporaryDir own;
  if (!qEnvironmentVariableIsSet(kFolder)) qputenv(kFolder, own.path().toUtf8());
  const QDir folder(qEnvironmentVariable(kFolder));
  const std::filesystem::path memory = folder.filePath("window.json").toStdString();
  EXPECT_EXIT(compare_and_be_killed(memory), testing::KilledBySignal(SIGKILL), "");
  qunsetenv(kFolder);
  ASSERT_EQ(folder.entryList({"*.open.*"}).size(), 1);
  {
    MainWindow window(memory);
    window.takeLeft();
    ASSERT_EQ(window.session().pinned()->count(), 2);
    const Plan& second = *window.session().pinned()->plans()[1];
    EXPECT_EQ(second.roles, digits_plan().roles);
    EXPECT_EQ(second.prediction, digits_plan().prediction);
    EXPECT_EQ(window.session().run()->folder(), kData / "run");
    EXPECT_TRUE(wait_for([&] { return window.session().run()->others().size() == 1; }));
    // It is as safe from then on, and a window beside it is another one's.
    EXPECT_TRUE(std::filesystem::exists(open_work_file(memory)));
    EXPECT_EQ(folder.entryList({"*.open.*"}).size(), 1);
    MainWindow beside(memory);
    beside.takeLeft();
    EXPECT_EQ(beside.session().pinned()->count(), 0);
    with_dialog(&window, [](QDialog& dialog) {
      static_cast<QMessageBox&>(dialog).button(QMessageBox::Discard)->click();
    });
    window.close();
  }
  EXPECT_TRUE(folder.entryList({"*.open.*"}).isEmpty()) << "who discards them does not want them";
}

// What its file lacks is asked again, as without a project.
TEST(Window, AnEditOfAProjectsQuestionComesBackWithIt) {
  QTemporaryDir folder;
  const std::filesystem::path memory = folder.filePath("window.json").toStdString();
  PlanQuery query{"qwen2.5-0.5b", "h100-8", "ppo-7b-1k", 1, 8, {"actor.tp=2"}};
  const QString file = folder.filePath("project.json");
  write_project({.question = query}, file.toStdString());
  query.fixed = {"actor.tp=4"};
  {
    MainWindow window(memory);
    ASSERT_TRUE(window.openProject(file));
    window.session().ask(query);
    with_dialog(&window, [](QDialog& dialog) {
      static_cast<QMessageBox&>(dialog).button(QMessageBox::Cancel)->click();
    });
    window.close();
  }
  MainWindow again(memory);
  again.askLast({});
  EXPECT_EQ(again.session().document().question, query);
  EXPECT_TRUE(again.windowTitle().contains("project.json*")) << again.windowTitle().toStdString();
}

// Whoever edits and pins on must not believe that it is kept.
TEST(Window, WhereNothingCanBeKeptThatStaysInSight) {
  const QTemporaryDir folder;
  const QString plan = folder.filePath("plan.json");
  std::ofstream(plan.toStdString()) << to_json(digits_plan());
  MainWindow window("/proc/none/window.json");
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  ASSERT_TRUE(window.openPlan(plan));
  const auto told = [&] {
    QStringList texts;
    for (const auto* label : window.findChildren<QLabel*>()) {
      if (label->accessibleName() == "What is not kept" && label->isVisible()) {
        texts << label->text();
      }
    }
    return texts;
  };
  ASSERT_TRUE(wait_for([&] { return told().size() == 1; }));
  EXPECT_TRUE(told()[0].contains("window.json")) << told()[0].toStdString();
  PlanQuery edited = window.session().document().question;
  edited.fixed = {"actor.tp=1"};
  window.session().ask(edited);
  ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  QTest::keyClick(&window, Qt::Key_D, Qt::ControlModifier);
  QTest::keyClick(&window, Qt::Key_3, Qt::ControlModifier);
  EXPECT_EQ(told().size(), 1);
}

// A size that is asked for is not lost to the last window, which filled its screen.
TEST(Window, ASizeThatIsAskedForIsTheSizeOfAWindow) {
  QWidget window;
  window.setWindowState(Qt::WindowMaximized);
  give_size(window, {640, 480});
  EXPECT_FALSE(window.isMaximized());
  EXPECT_EQ(window.size(), QSize(640, 480));
}

}  // namespace
}  // namespace tessera::gui
