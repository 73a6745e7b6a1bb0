// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run_views/lesson_dialog.h"

#include <QDialog>
#include <QDialogButtonBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/views/fixed_text.h"
#include "gui/views/save_file.h"

namespace tessera::gui {

void openLesson(QWidget& parent, const QString& title, const Lesson& lesson,
                const std::function<void(const QString&)>& tell) {
  auto* dialog = new QDialog(&parent);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(title);
  dialog->resize(900, 520);
  auto* text = new QPlainTextEdit(lesson.text);
  showAsFixedText(*text, title);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Close);
  const bool poor = is_poor(lesson.worth);
  buttons->button(QDialogButtonBox::Save)
      ->setText(poor ? Words::tr("Save the calibration all the same...")
                     : Words::tr("Save the calibration..."));
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(text);
  layout->addWidget(buttons);
  buttons->button(poor ? QDialogButtonBox::Close : QDialogButtonBox::Save)->setDefault(true);
  QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
  QObject::connect(buttons, &QDialogButtonBox::accepted, dialog, [dialog, lesson, tell] {
    const QString file =
        askFileToSave(dialog, Words::tr("Save the calibration"), "calibration.json");
    if (file.isEmpty()) return;
    try {
      write_calibration(*lesson.learned, file.toStdString());
      dialog->accept();
    } catch (const Error& error) {
      tell(problemsText(error.problems()));
    }
  });
  dialog->open();
}

}  // namespace tessera::gui
