// SPDX-License-Identifier: GPL-3.0-or-later
// Every action of the menus by its name: type a part of it, Enter does it. What cannot be done now
// is grey, with the reason. GUI thread.
#pragma once

#include <QAction>
#include <QList>
#include <QMenuBar>
#include <QWidget>

namespace tessera::gui {

/// The actions of the menus, those of menus in them too, that do something.
QList<QAction*> commandsOf(const QMenuBar& menus);
/// "Plan again", without the menu's marks.
QString nameOf(const QAction& action);
/// Whether it can be used now, and why where it cannot: "no plan answers the question".
void allow(QAction& action, bool allowed, const QString& otherwise);
/// The reason of one that cannot be used now; empty where none was given.
QString whyNot(const QAction& action);
/// Asks which, and triggers it.
void runCommand(QWidget& parent, const QList<QAction*>& commands);

}  // namespace tessera::gui
