// SPDX-License-Identifier: GPL-3.0-or-later
// Text of what cannot be used now, as it is painted: by the pixels that it changes, and WCAG 2's
// contrast of 4.5 to 1.
#include <gtest/gtest.h>

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QGroupBox>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRadioButton>
#include <QSpinBox>
#include <QTabWidget>
#include <QTableWidget>
#include <QToolButton>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "gui/models/colours.h"
#include "gui/pages/main_window.h"

namespace tessera::gui {
namespace {

using Made = std::unique_ptr<QWidget>;

template <class Widget>
Made with_text(const QString& text) {
  auto widget = std::make_unique<Widget>();
  widget->setText(text);
  return widget;
}

Made group_with(const QString& text) { return std::make_unique<QGroupBox>(text); }

Made table_with(const QString& text) {
  auto table = std::make_unique<QTableWidget>(2, 1);
  table->setAlternatingRowColors(true);
  table->setHorizontalHeaderLabels({text});
  for (int row = 0; row < 2; ++row) table->setItem(row, 0, new QTableWidgetItem(text));
  return table;
}

/// Every kind of widget of the window that has text.
const std::pair<const char*, std::function<Made(const QString&)>> kKinds[] = {
    {"button", with_text<QPushButton>},
    {"tool button", with_text<QToolButton>},
    {"check box", with_text<QCheckBox>},
    {"radio button", with_text<QRadioButton>},
    {"label", with_text<QLabel>},
    {"line", with_text<QLineEdit>},
    {"list of choices",
     [](const QString& text) {
       auto box = std::make_unique<QComboBox>();
       box->addItem(text);
       return Made(std::move(box));
     }},
    {"list of choices that is typed into",
     [](const QString& text) {
       auto box = std::make_unique<QComboBox>();
       box->setEditable(true);
       box->setEditText(text);
       return Made(std::move(box));
     }},
    {"number",
     [](const QString& text) {
       auto box = std::make_unique<QSpinBox>();
       box->setSpecialValueText(text);
       return Made(std::move(box));
     }},
    {"lines",
     [](const QString& text) {
       auto lines = std::make_unique<QPlainTextEdit>();
       lines->setPlainText(text);
       return Made(std::move(lines));
     }},
    {"group", group_with},
    {"tab",
     [](const QString& text) {
       auto tabs = std::make_unique<QTabWidget>();
       tabs->addTab(new QWidget, " ");
       tabs->addTab(new QWidget, text);
       return Made(std::move(tabs));
     }},
    {"entry of a menu",
     [](const QString& text) {
       auto menu = std::make_unique<QMenu>();
       menu->addAction(text)->setEnabled(false);
       return Made(std::move(menu));
     }},
    {"cell and header of a table", table_with}};

void hide_text(QWidget& widget) {
  QPalette palette = widget.palette();
  for (const auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText}) {
    palette.setColor(role, Qt::transparent);
  }
  widget.setPalette(palette);
}

/// `seen`: with its text, else with all but that.
QImage painted(QWidget& widget, bool seen) {
  widget.setEnabled(false);
  QFont large = widget.font();  // whose strokes are as wide as pixels
  large.setPixelSize(32);
  large.setBold(true);
  large.setStyleStrategy(QFont::NoAntialias);
  widget.setFont(large);
  if (!seen) hide_text(widget);
  for (QWidget* inner : widget.findChildren<QWidget*>()) {
    inner->setFont(large);
    if (!seen) hide_text(*inner);
  }
  widget.resize(360, 200);
  return widget.grab().toImage().convertToFormat(QImage::Format_RGB32);
}

/// The least contrast of a pixel that has the text's colour, which most of those have that the text
/// changes: arrows and rims are blended of it. 0 where there is no text.
double least_contrast(const QImage& with, const QImage& without) {
  std::map<QRgb, std::pair<int, double>> seen;  // pixels, least contrast
  for (int y = 0; y < with.height(); ++y) {
    for (int x = 0; x < with.width(); ++x) {
      if (with.pixel(x, y) == without.pixel(x, y)) continue;
      const double here = contrast(with.pixelColor(x, y), without.pixelColor(x, y));
      auto& [pixels, least] = seen[with.pixel(x, y)];
      least = pixels++ == 0 ? here : std::min(least, here);
    }
  }
  const auto most = std::max_element(seen.begin(), seen.end(), [](const auto& a, const auto& b) {
    return a.second.first < b.second.first;
  });
  return most == seen.end() ? 0 : most->second.second;
}

TEST(DisabledText, IsReadOnEveryKindOfWidgetInBothThemes) {
  MainWindow window;
  for (const Theme theme : {Theme::light, Theme::dark}) {
    window.setTheme(theme);
    for (const auto& [kind, make] : kKinds) {
      const Made with = make("MEM"), without = make("MEM");
      EXPECT_GE(least_contrast(painted(*with, true), painted(*without, false)), 4.5)
          << kind << (theme == Theme::dark ? " in the dark" : " in the light");
    }
  }
}

}  // namespace
}  // namespace tessera::gui
