// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/save_file.h"

#include <QFileDialog>
#include <QFileInfo>

namespace tessera::gui {

QString askFileToSave(QWidget* parent, const QString& title, const QString& proposed,
                      const QString& filter) {
  const QFileInfo file(proposed);
  QFileDialog dialog(parent, title, file.isAbsolute() ? file.absolutePath() : QString(), filter);
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setFileMode(QFileDialog::AnyFile);
  dialog.setDefaultSuffix(file.suffix());
  dialog.selectFile(file.fileName());
  return dialog.exec() == QDialog::Accepted ? dialog.selectedFiles().value(0) : QString();
}

}  // namespace tessera::gui
