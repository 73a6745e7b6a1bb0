// SPDX-License-Identifier: GPL-3.0-or-later
// What a run taught, as a text, with the calibration to be saved. GUI thread.
#pragma once

#include <QLabel>
#include <QSize>
#include <QString>
#include <QWidget>
#include <functional>

#include "gui/lessons/run_lessons.h"

namespace tessera::gui {

/// Opens it above `parent`, which stays in use. `tell`: why the calibration was not saved.
/// Precondition: the lesson has no problem.
void openLesson(QWidget& parent, const QString& title, const Lesson& lesson,
                const std::function<void(const QString&)>& tell);

/// Whether the constants are worth using, in the colours of what that means.
QLabel* worthLabel(const Lesson& lesson);

/// Of a dialog that is read: as wide as its window lets it be.
QSize fittingSize(const QWidget& parent);

}  // namespace tessera::gui
