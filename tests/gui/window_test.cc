// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/main_window.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <QApplication>
#include <QDir>
#include <QFileInfo>
#include <QImage>
#include <QTableView>
#include <QTemporaryDir>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "gui/pages/export_views.h"
#include "gui/views/view.h"

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
  for (const Place place :
       {Place::plans, Place::left, Place::right, Place::charts, Place::tables}) {
    for (const ViewKind& kind : viewsOf(place)) {
      EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    }
  }
  ASSERT_FALSE(names.empty());
  for (const char* page : {"explore", "run"}) EXPECT_TRUE(names.insert(page).second) << page;
  for (const QString& file : files) {
    EXPECT_TRUE(pictures.insert(QFileInfo(file).completeBaseName()).second) << file.toStdString();
    const QImage image(file);
    ASSERT_FALSE(image.isNull()) << file.toStdString();
    EXPECT_GE(colours_in(image), file.endsWith("ranks.png") ? 3u : 4u) << file.toStdString();
  }
  EXPECT_EQ(pictures, names);
}

TEST(Window, AnEmptyWindowExportsNothing) {
  MainWindow window;
  QTemporaryDir folder;
  EXPECT_TRUE(exportViews(window, folder.path()).isEmpty());
}

TEST(Window, TheFormAsksWhatItShows) {
  RequestForm form;
  const PlanQuery query{"qwen2.5-7b",
                        "h100-8",
                        "ppo-7b-1k",
                        1,
                        4,
                        {"actor.tp=4", "rollout.tp=2", "placement=colocated"}};
  std::vector<PlanQuery> asked;
  QObject::connect(&form, &RequestForm::queryChanged,
                   [&](const PlanQuery& query) { asked.push_back(query); });
  form.setQuery(query);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0], query);
  EXPECT_EQ(form.query(), query);
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

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
