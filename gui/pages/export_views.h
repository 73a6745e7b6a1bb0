// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of the pages, of each view in them pictures and data, and a report of it all.
#pragma once

#include <QString>
#include <QStringList>
#include <functional>
#include <optional>
#include <vector>

#include "gui/pages/main_window.h"

namespace tessera::gui {

/// Which files of a view are written; `html`: the report (gui/report/report.h), `whole`: the window
/// with the view in front, as window_NAME.png.
struct ExportFormats {
  bool png = true, svg = false, csv = false, json = false, html = false, whole = false;
};
inline constexpr ExportFormats kAllFormats{true, true, true, true, true};

/// "png,csv"; nullopt where a word is none of png, svg, csv, json, html, whole.
std::optional<ExportFormats> formats_of(const QString& words);

/// A page or a view that can be exported as the window is now.
struct Exportable {
  QString name;   // of its files
  QString title;  // in the window's language; may be empty
};
/// Where nothing fits the page Explore alone, and the page of the run only where one is open.
std::vector<Exportable> exportables(MainWindow& window);

struct ExportChoice {
  ExportFormats formats;
  std::optional<QStringList> names;  // of exportables(); nullopt: all of them
};

/// Is told what comes next and how many of how many are done; false: nobody waits for the rest.
using ExportProgress = std::function<bool(const QString& name, int done, int all)>;

/// Writes these pages as pictures and views in the formats that they have. Waits for what they show
/// as long as it takes, and says in the status bar what is worked out. Meanwhile the window shows
/// what it showed before. The report is report.html. Returns the files written. Throws Error(io).
QStringList exportViews(MainWindow& window, const QString& folder, const ExportChoice& choice = {},
                        const ExportProgress& progress = {});
inline QStringList exportViews(MainWindow& window, const QString& folder,
                               const ExportFormats& formats) {
  return exportViews(window, folder, ExportChoice{formats, {}});
}

/// Asks which views, as what and into which folder, and writes them; how many is said at the end,
/// and what cannot be written.
void chooseExport(MainWindow& window);

/// Asks for a file, and writes that view into it once what it shows has been worked out; what
/// cannot be written is told. Precondition: kindOf(view) (gui/export/view_file.h).
void chooseViewExport(MainWindow& window, QWidget& view);

/// Asks for a file, and saves the report there once the plan's step has been worked out; a file
/// that cannot be written is told.
void chooseReport(MainWindow& window);

/// Runs events until no search is under way, as long as that takes.
void waitForPlans(const Session& session);

/// Pins the plans of the first rows and goes back to the first; waits for each.
void pinBest(Session& session, int count);

}  // namespace tessera::gui
