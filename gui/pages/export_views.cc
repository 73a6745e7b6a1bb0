// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/export_views.h"

#include <QCoreApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QPixmap>
#include <QTabWidget>
#include <algorithm>

#include "gui/views/view.h"

namespace tessera::gui {
namespace {

constexpr int kMostEventsMs = 50;

void save(QWidget& widget, const QString& file, QStringList& written) {
  if (!widget.grab().save(file)) {
    throw Error(ExitCode::io, "cannot write " + file.toStdString());
  }
  written << file;
}

/// Of a view in a tab: a page that is not shown has no size.
void bringToFront(QWidget& view) {
  for (QWidget* above = view.parentWidget(); above != nullptr; above = above->parentWidget()) {
    auto* tabs = qobject_cast<QTabWidget*>(above);
    if (tabs == nullptr || tabs->indexOf(&view) < 0) continue;
    tabs->setCurrentWidget(&view);
    QCoreApplication::processEvents();
  }
}

void save_page(MainWindow& window, QWidget& page, const QString& name, const QDir& folder,
               std::initializer_list<Place> places, QStringList& written) {
  window.showPage(&page);
  QCoreApplication::processEvents();
  save(window, folder.filePath(name + ".png"), written);
  for (const Place place : places) {
    for (const ViewKind& kind : viewsOf(place)) {
      if (auto* view = page.findChild<QWidget*>(kind.name)) {
        bringToFront(*view);
        save(*view, folder.filePath(QString(kind.name) + ".png"), written);
      }
    }
  }
}

}  // namespace

QStringList exportViews(MainWindow& window, const QString& folder) {
  const QDir target(folder);
  if (!target.mkpath(".")) throw Error(ExitCode::io, "cannot make " + folder.toStdString());
  window.show();
  QStringList written;
  const Document& document = window.session().document();
  if (document.none_fits) {
    save_page(window, window.explore(), "explore", target, {}, written);
  } else if (document.plan) {
    save_page(window, window.explore(), "explore", target,
              {Place::plans, Place::left, Place::tabs, Place::right}, written);
  }
  if (!window.session().run()->folder().empty()) {
    save_page(window, window.run(), "run", target, {Place::charts, Place::tables}, written);
  }
  return written;
}

bool waitForPlans(const Session& session, double seconds) {
  QElapsedTimer timer;
  timer.start();
  while (session.isBusy() && static_cast<double>(timer.elapsed()) < seconds * 1e3) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, kMostEventsMs);
  }
  return !session.isBusy();
}

void pinBest(Session& session, int count, double seconds) {
  for (int row = 0; row < std::min(count, session.plans()->rowCount()); ++row) {
    session.selectRow(row);
    if (!waitForPlans(session, seconds)) return;
    session.pin();
  }
  session.selectRow(0);
}

}  // namespace tessera::gui
