// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/export_views.h"

#include <QApplication>
#include <QDir>
#include <QFileInfo>
#include <QPointer>
#include <QStatusBar>
#include <QTabWidget>
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/export/view_file.h"
#include "gui/report/report.h"
#include "gui/views/save_file.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

constexpr int kMostEventsMs = 50;

[[noreturn]] void refuse(const QString& path, const char* why) {
  throw Error(ExitCode::io, Problems{{.file = path.toStdString(), .found = why}});
}
constexpr const char* kNotMade = QT_TRANSLATE_NOOP("Words", "the folder cannot be made");

/// What is written where, and what was.
struct Export {
  QDir folder;
  ExportFormats formats;
  QStringList written;

  void png(QWidget& widget, const QString& name) {
    const QString file = folder.filePath(name + ".png");
    writePng(widget, file);
    written << file;
  }
  void picture(QWidget& widget, const QString& name) {
    if (formats.png) png(widget, name);
    if (formats.svg) {
      const QString file = folder.filePath(name + ".svg");
      writeSvg(widget, name, file);
      written << file;
    }
  }
  void data(QWidget& view, const ViewKind& kind, Session& session, ViewFormat format) {
    const QString file = folder.filePath(QString(kind.name) + "." + nameOf(format));
    if (writeView(view, kind, session, format, file)) written << file;
  }
};

/// Runs events until the condition holds, as long as that takes, and lets what they changed find
/// its size: a line that got a second row is not drawn in the room of one.
template <class Condition>
void waitFor(const Condition& condition) {
  while (!condition()) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, kMostEventsMs);
  }
  QCoreApplication::sendPostedEvents(nullptr, QEvent::LayoutRequest);
}

/// The window's work on what it shows has ended, or nobody waits for it: the window was closed.
void waitForWork(MainWindow& window, const QString& name) {
  Session& session = window.session();
  const bool works = session.isWorking();
  if (works) window.statusBar()->showMessage(Words::tr("Working out %1").arg(name));
  waitFor([&] { return !session.isWorking() || window.isHidden(); });
  if (works) window.statusBar()->clearMessage();  // no part of the view's picture
}

/// What a report has of the plan's step, which takes a while to work out.
void wantStep(Session& session) {
  if (!session.document().valid()) return;
  session.timeline()->want();
  session.reshard()->want();
  session.wantFreer();
}

void saveReport(MainWindow& window, const QString& file) {
  try {
    write_report(window.session(), file);
    window.statusBar()->showMessage(Words::tr("Saved %1").arg(QFileInfo(file).fileName()), 5000);
  } catch (const Error& error) {
    window.tellHere(problemsText(error.problems()));
  }
}

/// The pages and tabs that are in front, which come there again when it goes.
class Front {
 public:
  explicit Front(QWidget& window) : focus_(QApplication::focusWidget()) {
    for (QTabWidget* tabs : window.findChildren<QTabWidget*>()) {
      shown_.emplace_back(tabs, tabs->currentIndex());
    }
  }
  ~Front() {
    for (const auto& [tabs, shown] : shown_) {
      if (tabs) tabs->setCurrentIndex(shown);
    }
    if (focus_) focus_->setFocus();
  }
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

 private:
  std::vector<std::pair<QPointer<QTabWidget>, int>> shown_;
  QPointer<QWidget> focus_;
};

/// Of a view in a tab: a page that is not shown has no size.
void bringToFront(QWidget& view) {
  for (QWidget* above = view.parentWidget(); above != nullptr; above = above->parentWidget()) {
    auto* tabs = qobject_cast<QTabWidget*>(above);
    for (int tab = 0; tabs != nullptr && tab < tabs->count(); ++tab) {
      QWidget* page = tabs->widget(tab);
      if (page != &view && !page->isAncestorOf(&view)) continue;
      tabs->setCurrentIndex(tab);
      QCoreApplication::processEvents();
    }
  }
}

void save_page(MainWindow& window, QWidget& page, const QString& name,
               std::initializer_list<Place> places, Export& to) {
  Session& session = window.session();
  window.showPage(&page);
  QCoreApplication::processEvents();
  waitForWork(window, name);
  to.picture(window, name);
  for (const Place place : places) {
    for (const ViewKind& kind : viewsOf(place)) {
      auto* view = page.findChild<QWidget*>(kind.name);
      if (view == nullptr) continue;
      bringToFront(*view);
      if (!view->isVisible()) continue;  // the run has nothing for it
      waitForWork(window, kind.name);
      to.picture(*view, kind.name);
      if (to.formats.whole) to.png(window, QString("window_") + kind.name);
      if (to.formats.csv) to.data(*view, kind, session, ViewFormat::csv);
      if (to.formats.json) to.data(*view, kind, session, ViewFormat::json);
    }
  }
}

void save_pages(MainWindow& window, Export& to) {
  const Document& document = window.session().document();
  if (document.none_fits) {
    save_page(window, window.explore(), "explore", {}, to);
  } else if (document.plan) {
    window.session().wantEveryPlan();  // what the table's rows say
    window.session().wantFreer();
    save_page(window, window.explore(), "explore",
              {Place::plans, Place::left, Place::tabs, Place::right}, to);
    save_page(window, window.understand(), "understand", {Place::whole}, to);
  }
  if (!window.session().run()->folder().empty()) {
    save_page(window, window.run(), "run", {Place::charts, Place::tables, Place::run_tabs}, to);
  }
}

}  // namespace

std::optional<ExportFormats> formats_of(const QString& words) {
  ExportFormats formats{.png = false};
  for (const QString& word : words.split(',')) {
    if (word == "png") {
      formats.png = true;
    } else if (word == "svg") {
      formats.svg = true;
    } else if (word == "csv") {
      formats.csv = true;
    } else if (word == "json") {
      formats.json = true;
    } else if (word == "html") {
      formats.html = true;
    } else if (word == "whole") {
      formats.whole = true;
    } else {
      return std::nullopt;
    }
  }
  return formats;
}

QStringList exportViews(MainWindow& window, const QString& folder, const ExportFormats& formats) {
  Export to{QDir(folder), formats, {}};
  if (!to.folder.mkpath(".")) refuse(folder, kNotMade);
  window.show();
  const Front front(window);
  if (formats.png || formats.svg || formats.csv || formats.json || formats.whole) {
    save_pages(window, to);
  }
  if (formats.html && has_report(window.session())) {
    const QString file = to.folder.filePath("report.html");
    wantStep(window.session());
    waitForWork(window, "report");
    write_report(window.session(), file);
    to.written << file;
  }
  return to.written;
}

// What it shows may still be worked out.
void chooseViewExport(MainWindow& window, QWidget& view) {
  const ViewKind* const kind = kindOf(view);
  QString problem;
  const auto chosen = chooseViewFile(&window, *kind, problem);
  if (!problem.isEmpty()) return window.tellHere(problem);
  if (!chosen) return;
  Session& session = window.session();
  waitForWork(window, kind->name);
  try {
    if (writeView(view, *kind, session, chosen->format, chosen->file)) {
      const QString file = QFileInfo(chosen->file).absoluteFilePath();
      window.statusBar()->showMessage(Words::tr("Saved %1").arg(file), 5000);
    } else {
      window.tellHere(Words::tr("%1 was not written: the view shows nothing").arg(chosen->file));
    }
  } catch (const Error& error) {
    window.tellHere(problemsText(error.problems()));
  }
}

void chooseReport(MainWindow& window) {
  Session& session = window.session();
  const QString file = askFileToSave(&window, Words::tr("Save report"), "report.html",
                                     Words::tr("Reports (*.html)"));
  if (file.isEmpty()) return;
  auto* waiting = new QObject(&window);
  const auto saved = std::make_shared<bool>(false);  // events that are under way come after it
  const auto go_on = [&window, &session, file, waiting, saved] {
    if (*saved) return;
    wantStep(session);
    if (session.timeline()->isBusy() || session.reshard()->isBusy() || session.isComparing()) {
      return;
    }
    *saved = true;
    waiting->deleteLater();
    saveReport(window, file);
  };
  window.statusBar()->showMessage(Words::tr("Working out the step for the report"));
  for (PlanWatch* work :
       {static_cast<PlanWatch*>(session.timeline()), static_cast<PlanWatch*>(session.reshard())}) {
    QObject::connect(work, &PlanWatch::changed, waiting, go_on, Qt::QueuedConnection);
  }
  QObject::connect(&session, &Session::documentChanged, waiting, go_on, Qt::QueuedConnection);
  go_on();
}

void waitForPlans(const Session& session) {
  waitFor([&] { return !session.isBusy(); });
}

void pinBest(Session& session, int count) {
  for (int row = 0; row < std::min(count, session.plans()->rowCount()); ++row) {
    session.selectRow(row);
    waitForPlans(session);
    session.pin();
  }
  session.selectRow(0);
}

}  // namespace tessera::gui
