// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/lesson_dialog.h"

#include <QDialog>
#include <QDialogButtonBox>
#include <QGuiApplication>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/views/fixed_text.h"
#include "gui/views/save_file.h"

namespace tessera::gui {

QSize fittingSize(const QWidget& parent) {
  constexpr QSize kUsual{1100, 620}, kAround{40, 60};
  return kUsual.boundedTo(parent.window()->size() - kAround);
}

QLabel* worthLabel(const Lesson& lesson) {
  auto* label = new QLabel(lesson.worth_text);
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label->setAccessibleName(Words::tr("Whether the constants are worth using"));
  if (!is_poor(lesson.worth)) return label;
  const MessageColours colours = coloursOf(Tone::warning, themeOf(QGuiApplication::palette()));
  QPalette mine;
  mine.setColor(QPalette::Window, colours.background);
  mine.setColor(QPalette::WindowText, colours.text);
  label->setPalette(mine);
  label->setAutoFillBackground(true);
  label->setMargin(6);
  return label;
}

void openLesson(QWidget& parent, const QString& title, const Lesson& lesson,
                const std::function<void(const QString&)>& tell) {
  auto* dialog = new QDialog(&parent);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(title);
  dialog->resize(fittingSize(parent));
  auto* text = new QPlainTextEdit(lesson.text);
  showAsFixedText(*text, title);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Close);
  const bool poor = is_poor(lesson.worth);
  buttons->button(QDialogButtonBox::Save)
      ->setText(poor ? Words::tr("Save the calibration all the same...")
                     : Words::tr("Save the calibration..."));
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(worthLabel(lesson));
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
