// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/export_views.h"

#include <QCoreApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QPixmap>

namespace tessera::gui {
namespace {

constexpr int kMostEventsMs = 50;

void save(QWidget& widget, const QString& file, QStringList& written) {
  if (!widget.grab().save(file)) {
    throw Error(ExitCode::io, "cannot write " + file.toStdString());
  }
  written << file;
}

void save_page(MainWindow& window, QWidget& page, const QString& name, const QDir& folder,
               const QStringList& views, QStringList& written) {
  window.showPage(&page);
  QCoreApplication::processEvents();
  save(window, folder.filePath(name + ".png"), written);
  for (const QString& view : views) {
    if (auto* widget = page.findChild<QWidget*>(view)) {
      save(*widget, folder.filePath(view + ".png"), written);
    }
  }
}

}  // namespace

QStringList exportViews(MainWindow& window, const QString& folder) {
  const QDir target(folder);
  if (!target.mkpath(".")) throw Error(ExitCode::io, "cannot make " + folder.toStdString());
  window.show();
  QStringList written;
  if (window.session().plan()) {
    save_page(window, window.explore(), "explore", target,
              {"plans", "mesh", "memory", "phases", "certificate"}, written);
  }
  if (!window.session().run()->folder().empty()) {
    save_page(window, window.run(), "run", target,
              {"reward", "kl", "throughput", "step_phases", "reshard_rate", "reshard_bytes",
               "comparison", "ranks"},
              written);
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

}  // namespace tessera::gui
