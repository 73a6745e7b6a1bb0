// SPDX-License-Identifier: GPL-3.0-or-later
// A window with a question, for tests that decide in it by keys and mouse.
#pragma once

#include <gtest/gtest.h>

#include <QTabWidget>
#include <QTableView>
#include <QTemporaryDir>

#include "gui/pages/main_window.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {

/// A small model on one node with every choice free.
inline PlanQuery small_query() {
  return {.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"};
}

/// The first of the window's parts of this name for accessibility; nullptr: there is none.
template <class Widget>
Widget* named(QWidget& window, const QString& name) {
  for (Widget* widget : window.findChildren<Widget*>()) {
    if (widget->accessibleName() == name) return widget;
  }
  return nullptr;
}

class Explore : public ::testing::Test {
 protected:
  void SetUp() override {
    window.resize(1280, 800);
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  }
  void ask(const PlanQuery& query) {
    window.session().ask(query);
    ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  }
  const Document& document() { return window.session().document(); }
  /// By the tab's key or a click, as a person does.
  void showTab(const QString& title) {
    for (QTabWidget* tabs : window.findChildren<QTabWidget*>()) {
      for (int tab = 0; tab < tabs->count(); ++tab) {
        if (tabs->tabText(tab) != title) continue;
        QTabBar* bar = tabs->tabBar();
        QTest::mouseClick(bar, Qt::LeftButton, {}, bar->tabRect(tab).center());
      }
    }
  }

  QTemporaryDir folder;
  MainWindow window;
};

}  // namespace tessera::gui
