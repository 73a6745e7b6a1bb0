// SPDX-License-Identifier: GPL-3.0-or-later
// What a run taught, as a text, with the calibration to be saved. GUI thread.
#pragma once

#include <QString>
#include <QWidget>
#include <functional>

#include "gui/models/run_lessons.h"

namespace tessera::gui {

/// Opens it above `parent`, which stays in use. `tell`: why the calibration was not saved.
/// Precondition: the lesson has no problem.
void openLesson(QWidget& parent, const QString& title, const Lesson& lesson,
                const std::function<void(const QString&)>& tell);

}  // namespace tessera::gui
