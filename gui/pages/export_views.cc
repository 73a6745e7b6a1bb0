// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/export_views.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QProgressDialog>
#include <QStatusBar>
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/export/file_writing.h"
#include "gui/export/view_file.h"
#include "gui/pages/export_dialog.h"
#include "gui/pages/still_window.h"
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

/// Nobody waits for what is not written yet.
struct Left {};

/// What is written where, and what was.
struct Export {
  QDir folder;
  const ExportChoice& choice;
  const ExportProgress& progress;
  StillWindow& still;
  QStringList written;
  int done = 0, all = 0;  // of what was chosen

  const ExportFormats& formats = choice.formats;

  /// False where it was not chosen.
  bool begin(const QString& name, const QString& title) {
    if (choice.names && !choice.names->contains(name)) return false;
    if (progress && !progress(title, done, all)) throw Left();
    ++done;
    return true;
  }

  void png(QWidget& widget, const QString& name) {
    const QString file = folder.filePath(name + ".png");
    still.away([&] { writePng(widget, file); });
    written << file;
  }
  void picture(QWidget& widget, const QString& name) {
    if (formats.png) png(widget, name);
    if (formats.svg) {
      const QString file = folder.filePath(name + ".svg");
      still.away([&] { writeSvg(widget, name, file); });
      written << file;
    }
  }
  QString data_file(const ViewKind& kind, ViewFormat format) const {
    return folder.filePath(QString(kind.name) + "." + nameOf(format));
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

/// Writes it, and waits for its end. Throws Error(io).
void writeLong(MainWindow& window, const LongText& text, Export& to, const QString& file) {
  FileWriting writing;  // apart from the window's, of which files may be on their way
  QString problems;
  bool done = false;
  QObject::connect(&writing, &FileWriting::refused, &writing,
                   [&](const QString& why) { problems = why; });
  QObject::connect(&writing, &FileWriting::written, &writing, [&] { done = true; });
  writing.start(text, file);
  waitFor([&] {
    const bool waits = !to.progress || to.progress(writing.progress(), to.done - 1, to.all);
    return !waits || !writing.isBusy() || window.isHidden();
  });
  if (writing.isBusy()) throw Left();
  if (!problems.isEmpty()) {
    throw Error(ExitCode::io, Problems{{.found = problems.toStdString()}});
  }
  if (done) to.written << file;
}

/// What it shows as a table, or for programs.
void writeData(MainWindow& window, QWidget& view, const ViewKind& kind, ViewFormat format,
               Export& to) {
  const QString file = to.data_file(kind, format);
  if (!isLong(kind, format)) {
    if (writeView(view, kind, window.session(), format, file)) to.written << file;
  } else if (const LongText text = longTextOf(kind, window.session(), format)) {
    writeLong(window, text, to, file);
  }
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

/// A page that has something to export, and where on it its views stand.
struct Page {
  QWidget& widget;
  const char* name;
  const char* title;
  std::vector<Place> places;
};

std::vector<Page> pagesOf(MainWindow& window) {
  std::vector<Page> pages;
  const Document& document = window.session().document();
  std::vector<Place> of_plans{Place::plans, Place::left, Place::tabs, Place::right};
  if (document.none_fits) of_plans.clear();
  if (document.none_fits || document.plan) {
    pages.push_back({window.explore(), "explore", "Explore", of_plans});
  }
  if (document.plan && !document.none_fits) {
    pages.push_back({window.understand(), "understand", "Understand", {Place::whole}});
  }
  if (!window.session().run()->folder().empty()) {
    pages.push_back({window.run(), "run", "Run", {Place::charts, Place::tables, Place::run_tabs}});
  }
  return pages;
}

std::vector<ViewKind> viewsOn(const Page& page) {
  std::vector<ViewKind> kinds;
  for (const Place place : page.places) {
    for (const ViewKind& kind : viewsOf(place)) {
      if (page.widget.findChild<QWidget*>(kind.name) != nullptr) kinds.push_back(kind);
    }
  }
  return kinds;
}

QString titleOf(const Page& page) { return Words::tr(page.title); }

void saveView(MainWindow& window, const Page& page, const ViewKind& kind, Export& to) {
  QWidget& view = *page.widget.findChild<QWidget*>(kind.name);
  bringToFront(view);
  if (!view.isVisible()) return;  // the run has nothing for it
  waitForWork(window, kind.name);
  to.picture(view, kind.name);
  if (to.formats.whole) to.png(window, QString("window_") + kind.name);
  if (to.formats.csv) writeData(window, view, kind, ViewFormat::csv, to);
  if (to.formats.json) writeData(window, view, kind, ViewFormat::json, to);
}

void savePage(MainWindow& window, const Page& page, Export& to) {
  auto show = [&, shown = false]() mutable {
    if (std::exchange(shown, true)) return;
    window.showPage(&page.widget);
    QCoreApplication::processEvents();
  };
  if (to.begin(page.name, titleOf(page))) {
    show();
    waitForWork(window, page.name);
    to.picture(window, page.name);
  }
  for (const ViewKind& kind : viewsOn(page)) {
    const QString title = titleOf(kind);
    if (!to.begin(kind.name, title.isEmpty() ? kind.name : title)) continue;
    show();
    saveView(window, page, kind, to);
  }
}

void savePages(MainWindow& window, Export& to) {
  const Document& document = window.session().document();
  if (document.plan && !document.none_fits) {
    window.session().wantEveryPlan();  // what the table's rows say
    window.session().wantFreer();
  }
  const std::vector<Exportable> all = exportables(window);
  to.all = static_cast<int>(to.choice.names ? to.choice.names->size() : all.size());
  for (const Page& page : pagesOf(window)) savePage(window, page, to);
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

std::vector<Exportable> exportables(MainWindow& window) {
  std::vector<Exportable> all;
  for (const Page& page : pagesOf(window)) {
    all.push_back({page.name, Words::tr("the page %1").arg(titleOf(page))});
    for (const ViewKind& kind : viewsOn(page)) all.push_back({kind.name, titleOf(kind)});
  }
  return all;
}

QStringList exportViews(MainWindow& window, const QString& folder, const ExportChoice& choice,
                        const ExportProgress& progress) {
  if (!QDir(folder).mkpath(".")) refuse(folder, kNotMade);
  window.show();
  StillWindow still(window);
  Export to{QDir(folder), choice, progress, still, {}};
  const ExportFormats& formats = choice.formats;
  try {
    if (formats.png || formats.svg || formats.csv || formats.json || formats.whole) {
      savePages(window, to);
    }
    if (formats.html && has_report(window.session())) {
      const QString file = to.folder.filePath("report.html");
      wantStep(window.session());
      waitForWork(window, "report");
      write_report(window.session(), file);
      to.written << file;
    }
  } catch (const Left&) {
    // What was written is there.
  }
  return to.written;
}

void chooseExport(MainWindow& window) {
  ExportDialog dialog(exportables(window), &window);
  if (dialog.exec() != QDialog::Accepted) return;
  QProgressDialog waiting(Words::tr("Export views"), Words::tr("Cancel"), 0, 1, &window);
  waiting.setWindowTitle(Words::tr("Export views"));
  waiting.setWindowModality(Qt::WindowModal);
  waiting.setMinimumDuration(0);
  const auto progress = [&](const QString& name, int done, int all) {
    waiting.setLabelText(name);
    waiting.setMaximum(all + 1);  // it would close at its end
    waiting.setValue(done);
    return !waiting.wasCanceled();
  };
  try {
    const QStringList written = exportViews(window, dialog.folder(), dialog.choice(), progress);
    const QString where = QFileInfo(dialog.folder()).absoluteFilePath();
    window.statusBar()->showMessage(
        Words::tr("%1 files written into %2").arg(written.size()).arg(where));
  } catch (const Error& error) {
    window.tellHere(problemsText(error.problems()));
  }
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
  if (const LongText text = longTextOf(*kind, session, chosen->format)) {
    return window.writing().start(text, chosen->file);
  }
  try {
    if (!isLong(*kind, chosen->format) &&
        writeView(view, *kind, session, chosen->format, chosen->file)) {
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
