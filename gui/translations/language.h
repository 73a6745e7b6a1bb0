// SPDX-License-Identifier: GPL-3.0-or-later
// The languages that the window speaks: English, in which its texts are written, and those of
// gui/translations that were built into the program.
//
// What planner, simulator and rules say is in English in all of them. GUI thread.
#pragma once

#include <QLocale>
#include <QString>
#include <QStringList>

namespace tessera::gui {

/// As locales name them: "en", "zh_CN".
QStringList languages();
/// As its own speakers call it.
QString nameOfLanguage(const QString& language);
/// The first one that the user of the locale reads; English where there is none.
QString languageOf(const QLocale& locale);
/// From now on texts are in that language; those that are shown already stay as they are.
/// Precondition: one of languages().
void speak(const QString& language);
/// The English text that is shown as this one in the language that is spoken; itself where it is
/// English, or no text of the window.
QString englishOf(const QString& shown);

}  // namespace tessera::gui
