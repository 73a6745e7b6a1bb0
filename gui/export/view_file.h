// SPDX-License-Identifier: GPL-3.0-or-later
// One view of the window in a file: as a picture, as a table, or for programs.
//
// Views are told by the names of their widgets (gui/views/view.h). GUI thread.
#pragma once

#include <QString>
#include <QWidget>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/views/view.h"

namespace tessera::gui {

enum class ViewFormat : std::uint8_t { png, svg, csv, json };
inline constexpr std::array kEveryViewFormat{ViewFormat::png, ViewFormat::svg, ViewFormat::csv,
                                             ViewFormat::json};
/// "png", also the end of a file's name.
QString nameOf(ViewFormat format);

/// The formats that a view of the kind has.
std::vector<ViewFormat> formatsOf(const ViewKind& kind);

/// The kind that a view is of; nullptr where the widget is none.
const ViewKind* kindOf(const QWidget& widget);

/// The view that a widget is, or is part of; nullptr where there is none.
QWidget* viewWith(QWidget* widget);

/// What a file of the format has, where another thread is to make it (FileWriting); empty where
/// writeView() does.
LongText longTextOf(const ViewKind& kind, Session& session, ViewFormat format);
/// Whether longTextOf() or nothing writes the format.
bool isLong(const ViewKind& kind, ViewFormat format);

/// Writes it as it is now; false, and no file, where it shows nothing that the format has. Throws
/// Error(io). Precondition: !isLong(kind, format).
bool writeView(QWidget& view, const ViewKind& kind, Session& session, ViewFormat format,
               const QString& file);

/// Pictures of any widget. Throw Error(io).
void writePng(QWidget& widget, const QString& file);
void writeSvg(QWidget& widget, const QString& title, const QString& file);

/// Where to, and as what.
struct ViewFile {
  QString file;
  ViewFormat format = ViewFormat::png;
};
/// Asks for a file of one of the view's formats: the end of its name says which, and where it has
/// none, the kind of file that is chosen. nullopt: none was chosen, or its end is of no format of
/// the view; `problem` then says so.
std::optional<ViewFile> chooseViewFile(QWidget* parent, const ViewKind& kind, QString& problem);

}  // namespace tessera::gui
