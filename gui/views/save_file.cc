// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/save_file.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>

#include "gui/document/words.h"

namespace tessera::gui {
namespace {

/// Takes folders whose names are typed, too.
class FolderDialog : public QFileDialog {
 public:
  FolderDialog(QWidget* parent, const QString& title, const QString& accept)
      : QFileDialog(parent, title) {
    setFileMode(QFileDialog::Directory);
    setOption(QFileDialog::ShowDirsOnly);
    setOption(QFileDialog::DontUseNativeDialog);  // which takes only those that are there
    setLabelText(QFileDialog::Accept, accept);
  }

  void accept() override {
    for (const QString& folder : selectedFiles()) QDir().mkpath(folder);
    QFileDialog::accept();
  }
};

}  // namespace

QString askFolderToFill(QWidget* parent, const QString& title, const QString& accept) {
  FolderDialog dialog(parent, title, accept);
  const bool taken = dialog.exec() == QDialog::Accepted;
  return taken ? dialog.selectedFiles().value(0) : QString();
}

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
