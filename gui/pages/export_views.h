// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of the pages, of each view in them pictures and data, and a report of it all.
#pragma once

#include <QString>
#include <QStringList>
#include <optional>

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

/// Writes explore, understand and run as pictures and every named view in the formats it has; where
/// nothing fits explore alone, and the page of the run only where one is open. Waits for what they
/// show as long as it takes, and says in the status bar what is worked out. The report is
/// report.html. What is in front comes to the front again. Returns the files written. Throws
/// Error(io).
QStringList exportViews(MainWindow& window, const QString& folder,
                        const ExportFormats& formats = {});

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
