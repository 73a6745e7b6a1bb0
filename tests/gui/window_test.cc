// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/main_window.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <QApplication>
#include <QDir>
#include <QFileInfo>
#include <QImage>
#include <QMessageBox>
#include <QSplitter>
#include <QTabWidget>
#include <QTableView>
#include <QTemporaryDir>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>

#include "gui/application.h"
#include "gui/layout/kept_layout.h"
#include "gui/pages/command_palette.h"
#include "gui/pages/export_views.h"
#include "gui/views/message_bar.h"
#include "gui/views/view.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

const QString kData = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data";

/// Colours that cover more than a few pixels.
std::size_t colours_in(const QImage& image) {
  std::map<QRgb, int> counts;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) ++counts[image.pixel(x, y)];
  }
  return static_cast<std::size_t>(
      std::count_if(counts.begin(), counts.end(), [](const auto& c) { return c.second > 8; }));
}

TEST(Window, EveryViewOfASamplePlanAndRunIsDrawn) {
  MainWindow window;
  ASSERT_TRUE(window.openPlan(kData + "/run/plan.json"));
  ASSERT_TRUE(window.openRun(kData + "/run", false));
  QTemporaryDir folder;
  const QStringList files = exportViews(window, folder.path());
  // Every registered view has a place on a page, a name of its own and a picture; so have the
  // pages.
  std::set<QString> names, pictures;
  for (const Place place : kEveryPlace) {
    for (const ViewKind& kind : viewsOf(place)) {
      EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    }
  }
  ASSERT_FALSE(names.empty());
  for (const char* page : {"explore", "understand", "run"})
    EXPECT_TRUE(names.insert(page).second) << page;
  for (const QString& file : files) {
    EXPECT_TRUE(pictures.insert(QFileInfo(file).completeBaseName()).second) << file.toStdString();
    const QImage image(file);
    ASSERT_FALSE(image.isNull()) << file.toStdString();
    EXPECT_GE(colours_in(image),
              file.endsWith("ranks.png") || file.endsWith("pinned.png") ? 3u : 4u)
        << file.toStdString();
  }
  EXPECT_EQ(pictures, names);
}

TEST(Window, AnEmptyWindowExportsNothing) {
  MainWindow window;
  QTemporaryDir folder;
  EXPECT_TRUE(exportViews(window, folder.path()).isEmpty());
}

TEST(Window, TheFormHasWhatItIsShownAndAsksOnlyWhatTheUserChanges) {
  RequestForm form;
  PlanQuery query{"qwen2.5-7b",
                  "h100-8",
                  "ppo-7b-1k",
                  1,
                  4,
                  {"actor.tp=4", "actor.zero=3", "rollout.tp=2", "actor.recompute=full",
                   "placement=colocated"}};
  query.engine = "verl";
  query.objective = "cost";
  query.risk = 0.001;
  std::vector<PlanQuery> asked;
  QObject::connect(&form, &RequestForm::queryChanged,
                   [&](const PlanQuery& query) { asked.push_back(query); });
  form.setQuery(query);
  EXPECT_EQ(form.query(), query);
  rest(300);
  EXPECT_TRUE(asked.empty());
  for (QComboBox* box : form.findChildren<QComboBox*>()) {
    if (box->accessibleName() == "actor.tp") QTest::keyClicks(box, "8");
  }
  ASSERT_TRUE(wait_for([&] { return !asked.empty(); }));
  query.fixed[0] = "actor.tp=48";
  EXPECT_EQ(asked.back(), query);
}

TEST(Window, WhatWasAskedIsRememberedAndRubbishIsTold) {
  QTemporaryDir folder;
  const std::filesystem::path memory = folder.filePath("window.json").toStdString();
  const PlanQuery query{"qwen2.5-0.5b", "h100-8", "ppo-7b-1k", 1, 8, {"actor.tp=2"}};
  {
    MainWindow window(memory);
    window.session().ask(query);
    ASSERT_TRUE(wait_for([&] { return std::filesystem::exists(memory); }));  // not only at the end
    ASSERT_TRUE(window.openPlan(kData + "/run/plan.json"));
    window.session().undo();
    with_dialog(&window, [](QDialog& dialog) {
      if (auto* box = qobject_cast<QMessageBox*>(&dialog))
        box->button(QMessageBox::Discard)->click();
    });
    window.close();
  }
  MainWindow again(memory);
  again.askLast({});
  EXPECT_EQ(again.session().document().question, query);
  std::ofstream(memory) << "{\"tessera_window\": 1, \"fixed\": [";
  MainWindow broken(memory);
  EXPECT_TRUE(broken.session().document().file_problems.contains("window.json"));
  broken.askLast(query);
  EXPECT_EQ(broken.session().document().question, query);
}

TEST(Window, ItsPartsComeBackAsTheyWereLeft) {
  QTemporaryDir folder;
  const std::filesystem::path memory = folder.filePath("window.json").toStdString();
  const auto parts = [](MainWindow& window) { return window.findChild<QSplitter*>("explore"); };
  const auto below = [](MainWindow& window) { return window.findChild<QSplitter*>("timeline"); };
  const auto tabs = [](MainWindow& window) { return window.run().findChild<QTabWidget*>(); };
  // What comes to the front becomes the last of its parent's children.
  const auto look_around = [](MainWindow& window) {
    for (QTabWidget* each : window.findChildren<QTabWidget*>()) {
      for (int tab = each->count() - 1; tab >= 0; --tab) {
        each->setCurrentIndex(tab);
        rest(5);
      }
    }
  };
  QList<int> left, steps;
  {
    MainWindow window(memory);
    window.show();
    rest(20);
    const int all = parts(window)->sizes()[0] + parts(window)->sizes()[1];
    parts(window)->setSizes({all - 500, 500});
    left = parts(window)->sizes();
    look_around(window);
    QTest::keyClick(&window, Qt::Key_2, Qt::ControlModifier);
    rest(20);
    const int high = below(window)->sizes()[0] + below(window)->sizes()[1];
    below(window)->setSizes({high - 150, 150});
    steps = below(window)->sizes();
    tabs(window)->setCurrentIndex(2);
    window.close();
  }
  MainWindow again(memory);
  again.show();
  rest(20);
  EXPECT_EQ(parts(again)->sizes(), left);
  EXPECT_EQ(tabs(again)->currentIndex(), 2);
  QTest::keyClick(&again, Qt::Key_2, Qt::ControlModifier);
  rest(20);
  EXPECT_EQ(below(again)->sizes(), steps);
  // What was kept of a larger screen is cut to this one.
  again.resize(3000, 2000);
  const WindowLayout larger = layout_of(again);
  restore(again, larger);
  const QSize screen = again.screen()->availableSize();
  EXPECT_EQ(again.width(), std::max(screen.width(), again.minimumSizeHint().width()));
  EXPECT_LT(again.height(), screen.height()) << "its frame has room, too";
  parts(again)->setSizes(left);
  // What is no layout changes nothing.
  WindowLayout broken = again.workspace().layout;
  for (QString& split : broken.splits) split = split.section(' ', 0, 0) + " -1 99999999999 x";
  for (QString& tab : broken.tabs) tab = tab.section(' ', 0, 0) + " 17";
  broken.geometry = "AAAA";
  restore(again, broken);
  EXPECT_EQ(parts(again)->sizes(), left);
  EXPECT_EQ(tabs(again)->currentIndex(), 2);
}

TEST(Window, EveryActionHasAKeyAndNoTwoTheSame) {
  MainWindow window;
  std::set<QString> keys;
  for (const QAction* action : commandsOf(*window.menuBar())) {
    const QString key = action->shortcut().toString();
    EXPECT_FALSE(key.isEmpty()) << action->text().toStdString();
    EXPECT_TRUE(keys.insert(key).second) << key.toStdString();
  }
  EXPECT_GE(keys.size(), 12u);
}

TEST(Window, APartOfItsNameDoesACommand) {
  MainWindow window;
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  window.setTheme(Theme::light);
  with_dialog(&window, [](QDialog& dialog) {
    auto* line = dialog.findChild<QLineEdit*>();
    QTest::keyClicks(line, "dark");
    QTest::keyClick(line, Qt::Key_Return);
  });
  QTest::keyClick(&window, Qt::Key_P, Qt::ControlModifier);
  EXPECT_EQ(themeOf(QApplication::palette()), Theme::dark);
  for (const MessageBar* bar : window.findChildren<MessageBar*>()) {
    EXPECT_LT(bar->palette().color(QPalette::Window).lightness(), 128)
        << bar->accessibleName().toStdString();
  }
  window.setTheme(Theme::light);
}

TEST(Window, FilesOfAStrangerAreToldAndNeverFatal) {
  QTemporaryDir folder;
  std::ifstream in((kData + "/run/plan.json").toStdString());
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  MainWindow window;
  window.show();
  const QString file = folder.filePath("plan.json");
  int refused = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    std::string text = good;
    const std::size_t at = i * good.size() / 100;
    switch (i % 5) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text[at] = static_cast<char>(0xff);
        break;
      case 2:
        text.insert(at, std::string(70, '['));
        break;
      case 3:
        text.insert(at, "99999999999999999999");
        break;
      default:
        text.erase(at, 1 + i);
        break;
    }
    std::ofstream(file.toStdString(), std::ios::binary) << text;
    if (window.openPlan(file)) continue;
    ++refused;
    EXPECT_TRUE(window.session().document().file_problems.contains("plan.json")) << i;
    window.openRun(folder.path(), false);
  }
  EXPECT_GE(refused, 90);
}

TEST(Window, ARunsFolderFullOfRubbishIsFollowed) {
  QTemporaryDir folder;
  const std::filesystem::path run = folder.path().toStdString();
  std::filesystem::create_directories(run / "ranks");
  std::filesystem::create_directories(run / "ranks/2");
  std::filesystem::create_directories(run / "plan.json");
  std::filesystem::create_directories(run / "lock");
  std::ofstream(run / "ranks/0") << std::string(200, '\xff');
  std::ofstream(run / "ranks/1") << "TSRRANK1";
  ASSERT_EQ(::mkfifo((run / "ranks/3").c_str(), 0600), 0);
  std::ofstream metrics(run / "metrics.jsonl", std::ios::binary);
  metrics << "{\"step\": 1, \"data\": {\"timing_s/step\": 1e7, \"reshard/bytes\": 1e300, "
             "\"perf/throughput\": -1e308, \"critic/score/mean\": 1e-320}}\n"
          << "{\"step\": 9223372036854775807, \"data\": {\"timing_s/gen\": 5}}\n"
          << "{\"step\": 2, \"data\": {\"timing_s/gen\": -5}}\n"
          << "{\"step\": 3, \"data\": {\"timing_s/step\": 1e308}}\n"
          << std::string(100000, '{') << "\n"
          << std::string(2, '\0') << "\n{\"step\": -1, \"data\": {}}\n";
  metrics.close();
  MainWindow window;
  window.show();
  ASSERT_TRUE(window.openRun(folder.path(), false));
  rest(100);
  EXPECT_EQ(window.session().run()->steps()->rowCount(), 2);
  QTemporaryDir pictures;
  EXPECT_FALSE(exportViews(window, pictures.path()).isEmpty());
}

TEST(Window, EveryControlHasANameForAccessibility) {
  MainWindow window;
  const auto named = [](const QWidget* widget) { return !widget->accessibleName().isEmpty(); };
  for (const QComboBox* box : window.findChildren<QComboBox*>()) EXPECT_TRUE(named(box));
  for (const QTableView* table : window.findChildren<QTableView*>()) EXPECT_TRUE(named(table));
  for (const QSpinBox* box : window.findChildren<QSpinBox*>()) EXPECT_TRUE(named(box));
}

TEST(Window, AFolderThatIsNotThereIsRefused) {
  MainWindow window;
  EXPECT_FALSE(window.openRun(kData + "/no_such_run", false));
  EXPECT_FALSE(window.openPlan(kData + "/no_such_plan.json"));
}

/// Keys and clicks without sense, on whatever is there; dialogs and menus are closed again. As many
/// as the environment's TESSERA_MONKEY_EVENTS says.
TEST(Window, SurvivesAMonkey) {
  const int asked = qEnvironmentVariableIntValue("TESSERA_MONKEY_EVENTS");
  const int events = asked > 0 ? asked : 3000;
  MainWindow window;
  window.resize(1280, 720);
  window.show();
  ASSERT_TRUE(window.openPlan(kData + "/run/plan.json"));
  ASSERT_TRUE(window.openRun(kData + "/run", false));
  QTimer closer;
  QObject::connect(&closer, &QTimer::timeout, [] {
    if (QWidget* popup = QApplication::activePopupWidget()) popup->close();
    if (QWidget* modal = QApplication::activeModalWidget()) modal->close();
  });
  closer.start(5);
  const int seed = qEnvironmentVariableIntValue("TESSERA_MONKEY_SEED");
  std::mt19937 random(seed > 0 ? static_cast<unsigned>(seed) : 20);
  const auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
  const std::vector<int> keys{Qt::Key_Tab,  Qt::Key_Down,  Qt::Key_Up,    Qt::Key_Return,
                              Qt::Key_Home, Qt::Key_Space, Qt::Key_Plus,  Qt::Key_Backspace,
                              Qt::Key_1,    Qt::Key_8,     Qt::Key_Minus, Qt::Key_Escape,
                              Qt::Key_Left, Qt::Key_Right, Qt::Key_Comma, Qt::Key_Delete};
  const std::vector<int> with_control{Qt::Key_Z, Qt::Key_Y, Qt::Key_D, Qt::Key_T,
                                      Qt::Key_1, Qt::Key_2, Qt::Key_L, Qt::Key_F};
  for (int event = 0; event < events; ++event) {
    std::vector<QWidget*> widgets;
    for (QWidget* widget : window.findChildren<QWidget*>()) {
      if (widget->isVisible() && widget->isEnabled()) widgets.push_back(widget);
    }
    ASSERT_FALSE(widgets.empty()) << event;
    QWidget* widget = widgets[static_cast<std::size_t>(below(widgets.size()))];
    switch (below(5)) {
      case 0:
        QTest::mouseClick(widget, Qt::LeftButton, {},
                          {below(static_cast<std::size_t>(widget->width()) + 1),
                           below(static_cast<std::size_t>(widget->height()) + 1)});
        break;
      case 1:
        QTest::keyClick(&window,
                        static_cast<Qt::Key>(
                            with_control[static_cast<std::size_t>(below(with_control.size()))]),
                        Qt::ControlModifier);
        break;
      default:
        QTest::keyClick(widget,
                        static_cast<Qt::Key>(keys[static_cast<std::size_t>(below(keys.size()))]));
        break;
    }
    if (event % 16 == 0) QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
    if (!window.isVisible()) window.show();
  }
  closer.stop();
  window.session().cancel();
  window.session().ask({"qwen2.5-0.5b", "h100-8", "ppo-7b-1k"});
  EXPECT_TRUE(wait_for([&] { return window.session().document().valid(); }));
}

/// The program itself: pictures of a default plan would pass for those of the one that was named.
TEST(Program, ExportsNothingForAPlanThatIsNotThere) {
  QTemporaryDir folder;
  const QString into = folder.path() + "/views";
  const std::string command = std::string(TESSERA_BINARY_DIR) +
                              "/gui/tessera-gui --plan /nonexistent/plan.json --export '" +
                              into.toStdString() + "' >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 65);
  EXPECT_FALSE(QDir(into).exists());
}

TEST(Program, SaysWhyNothingFitsWhereThereIsNothingToExport) {
  QTemporaryDir folder;
  const std::string at = folder.path().toStdString();
  const std::string command = std::string(TESSERA_BINARY_DIR) +
                              "/gui/tessera-gui --model llama3.1-405b --cluster h100-8 --workload "
                              "grpo-7b-1k --formats csv --export '" +
                              at + "/views' >/dev/null 2>'" + at + "/told'";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  std::ifstream file(at + "/told");
  const std::string told{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(told.find("GiB"), std::string::npos) << told;
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  tessera::gui::Application application(argc, argv);
  application.tellFaults([](const QString& what) { ADD_FAILURE() << what.toStdString(); });
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
