// SPDX-License-Identifier: GPL-3.0-or-later
// The views of the window: what shows one thing of a session, each on a page of it.
//
// A view registers itself by a ViewKind of static lifetime in its own source file; pages place all
// that are registered, and the export draws each of them into a picture of its name. The list is
// complete before main() and never changes. GUI thread only.
#pragma once

#include <QString>
#include <QWidget>
#include <array>
#include <string>
#include <vector>

#include "gui/document/long_text.h"
#include "gui/models/session.h"

namespace tessera::gui {

/// Where on a page a view stands. The question's page has the plans on top, two columns below, and
/// tabs under the left one; the page to understand a plan has one view in each tab; the run's page
/// has charts, two beside one another, and tables, and behind them a tab for each of its others.
enum class Place { plans, left, tabs, right, whole, charts, tables, run_tabs };
inline constexpr std::array kEveryPlace{Place::plans,  Place::left,    Place::tabs,
                                        Place::right,  Place::whole,   Place::charts,
                                        Place::tables, Place::run_tabs};

/// One kind of view. Equal names are a fault of the program.
struct ViewKind {
  const char* name;  // of the widget and of its picture: "memory"
  Place place;
  int order;          // among the views of a place, ascending; pictures are drawn in that order
  int stretch;        // share of its place's height
  const char* title;  // in English: a heading above it, of its tab; "" where it has its own
  QWidget* (*make)(Session& session);  // the caller owns the widget
  /// What it shows as a table, and for programs; nullptr where a picture is all there is. Empty
  /// while there is nothing.
  std::string (*csv)(Session& session) = nullptr;
  std::string (*json)(Session& session) = nullptr;
  /// Instead of these, of what may be too much for the window to wait for; an empty function
  /// likewise.
  LongText (*long_csv)(Session& session) = nullptr;
  LongText (*long_json)(Session& session) = nullptr;
};

/// Registers a kind; one object per view, at namespace scope.
struct RegisteredView {
  explicit RegisteredView(const ViewKind& kind);
};

/// All kinds of a place by their order.
std::vector<ViewKind> viewsOf(Place place);

/// A view of that kind, with its name as the widget's object name.
QWidget* makeView(const ViewKind& kind, Session& session);

/// Of a part of a view that says how it is worked: it is in no picture that is exported.
void keepForTheScreen(QWidget& part);
bool isForTheScreenOnly(const QWidget& part);

/// The title in the window's language.
QString titleOf(const ViewKind& kind);

/// The same below its title.
QWidget* makeTitledView(const ViewKind& kind, Session& session);

}  // namespace tessera::gui
