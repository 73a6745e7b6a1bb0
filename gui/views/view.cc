// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/view.h"

#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/document/words.h"

namespace tessera::gui {
namespace {

constexpr const char* kScreenOnly = "screen_only";

// A function's static: registrations of other files may come first.
std::vector<ViewKind>& registered() {
  static std::vector<ViewKind> kinds;
  return kinds;
}

}  // namespace

RegisteredView::RegisteredView(const ViewKind& kind) { registered().push_back(kind); }

std::vector<ViewKind> viewsOf(Place place) {
  std::vector<ViewKind> kinds;
  for (const ViewKind& kind : registered()) {
    if (kind.place == place) kinds.push_back(kind);
  }
  std::sort(kinds.begin(), kinds.end(),
            [](const ViewKind& a, const ViewKind& b) { return a.order < b.order; });
  return kinds;
}

QWidget* makeView(const ViewKind& kind, Session& session) {
  QWidget* view = kind.make(session);
  view->setObjectName(kind.name);
  return view;
}

void keepForTheScreen(QWidget& part) { part.setProperty(kScreenOnly, true); }

bool isForTheScreenOnly(const QWidget& part) { return part.property(kScreenOnly).toBool(); }

QString titleOf(const ViewKind& kind) {
  return *kind.title == 0 ? QString() : Words::tr(kind.title);
}

QWidget* makeTitledView(const ViewKind& kind, Session& session) {
  QWidget* view = makeView(kind, session);
  const QString title = titleOf(kind);
  if (title.isEmpty()) return view;
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(new QLabel(title));
  layout->addWidget(view, 1);
  return panel;
}

}  // namespace tessera::gui
