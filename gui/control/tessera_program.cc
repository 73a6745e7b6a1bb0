// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/control/tessera_program.h"

#include <QCoreApplication>
#include <QStandardPaths>

#include "gui/document/words.h"

namespace tessera::gui {

QString tesseraProgram() {
  const QString here = QCoreApplication::applicationDirPath();
  const QString near = QStandardPaths::findExecutable("tessera", {here, here + "/../cli"});
  return near.isEmpty() ? QStandardPaths::findExecutable("tessera") : near;
}

QString whyNoProgram() {
  if (!tesseraProgram().isEmpty()) return {};
  return Words::tr("The program tessera is not here: neither beside this window nor on PATH.");
}

QString refusalIn(const QString& printed) {
  const QString text = printed.trimmed();
  static const QString error_prefix = "tessera: ";
  if (text.startsWith(error_prefix)) return text.mid(error_prefix.size());
  const qsizetype error = text.indexOf("\n" + error_prefix);
  return error < 0 ? text : text.mid(error + 1 + error_prefix.size());
}

}  // namespace tessera::gui
