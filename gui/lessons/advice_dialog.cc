// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/advice_dialog.h"

#include <QClipboard>
#include <QDialogButtonBox>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/lessons/lesson_dialog.h"
#include "gui/translations/said.h"
#include "gui/views/save_file.h"

namespace tessera::gui {
namespace {

QLabel* wrapped(const QString& text, Qt::TextFormat format = Qt::PlainText) {
  auto* label = new QLabel(text);
  label->setTextFormat(format);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

QString gainText(const Lesson& lesson, const AdvisedChange& change) {
  const RunAdvice& advice = lesson.advice;
  return (is_poor(lesson.worth)
              ? Words::tr("perhaps %1 a step instead of %2: %3 less, fits with %4 %")
              : Words::tr("<b>%1 a step</b> instead of %2: %3 less, fits with %4 %"))
      .arg(secondsText(change.step_s), secondsText(advice.step_s),
           secondsText(change.gain_s, change.gain_deviation_s), numberText(100 * change.fits, 1));
}

}  // namespace

AdviceDialog::AdviceDialog(const Lesson& lesson, Plans plans, QWidget* parent)
    : QDialog(parent), lesson_(lesson), plans_(std::move(plans)), says_(wrapped({})) {
  setWindowTitle(Words::tr("What to change"));
  resize(fittingSize(*parent));
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(worthLabel(lesson_));
  if (is_poor(lesson_.worth)) {
    layout->addWidget(
        wrapped(Words::tr("The changes below are priced by these constants: they are guesses. "
                          "Measure one before you rely on it.")));
  }
  layout->addWidget(wrapped(
      Words::tr("A step takes %1 as measured, %2 by the learned constants.")
          .arg(secondsText(lesson_.advice.measured_s), secondsText(lesson_.advice.step_s))));
  layout->addWidget(changes(), 1);
  layout->addWidget(says_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Close);
  buttons->button(QDialogButtonBox::Save)->setText(Words::tr("Save plan and calibration..."));
  connect(buttons, &QDialogButtonBox::accepted, this, &AdviceDialog::save);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  layout->addWidget(buttons);
  buttons->button(QDialogButtonBox::Save)->setAutoDefault(false);
  buttons->button(QDialogButtonBox::Close)->setDefault(true);
  showCommands();
}

QWidget* AdviceDialog::changes() {
  auto* inside = new QWidget;
  auto* list = new QVBoxLayout(inside);
  list->setContentsMargins(0, 0, 4, 0);
  const std::size_t count = lesson_.advice.changes.size();
  if (count == 0) list->addWidget(wrapped(Words::tr("No other setting is quicker and fits.")));
  for (std::size_t i = 0; i < count; ++i) list->addWidget(panelOf(i));
  list->addStretch(1);
  auto* scroll = new QScrollArea;
  scroll->setWidget(inside);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  return scroll;
}

QWidget* AdviceDialog::panelOf(std::size_t number) {
  const AdvisedChange& change = lesson_.advice.changes[number];
  auto* panel = new QFrame;
  panel->setFrameShape(QFrame::StyledPanel);
  auto* rows = new QVBoxLayout(panel);
  const QString ordinal = QString::number(number + 1);
  rows->addWidget(wrapped(ordinal + ". " + gainText(lesson_, change), Qt::RichText));
  rows->addWidget(wrapped(said(change.what)));
  if (!change.keys.empty()) {
    QStringList keys;
    for (const std::string& key : change.keys) keys << toText(key);
    rows->addWidget(wrapped(keys.join('\n')));
  }
  auto* command = new QLineEdit;
  command->setReadOnly(true);
  command->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  command->setAccessibleName(Words::tr("Command of change %1").arg(ordinal));
  commands_.push_back(command);
  auto* copies = new QPushButton(Words::tr("Copy"));
  copies->setToolTip(Words::tr("Copy the command; the two files that it reads are saved before"));
  copies->setAccessibleName(Words::tr("Copy the command of change %1").arg(ordinal));
  auto* plans = new QPushButton(Words::tr("Plan with it"));
  plans->setToolTip(Words::tr("Show this plan on the page Explore, by the learned constants"));
  plans->setAccessibleName(Words::tr("Plan with change %1").arg(ordinal));
  for (QPushButton* button : {copies, plans}) button->setAutoDefault(false);
  connect(copies, &QPushButton::clicked, this, [this, number] { copy(number); });
  connect(plans, &QPushButton::clicked, this, [this, number] {
    const PlanQuery question = question_of(lesson_, lesson_.advice.changes[number]);
    accept();
    plans_(question);
  });
  auto* line = new QHBoxLayout;
  line->addWidget(command, 1);
  line->addWidget(copies);
  line->addWidget(plans);
  rows->addLayout(line);
  return panel;
}

void AdviceDialog::copy(std::size_t number) {
  if (!files_ && !save()) return;
  QGuiApplication::clipboard()->setText(commands_[number]->text());
  says_->setText(Words::tr("Copied the command of change %1; its files are in %2")
                     .arg(number + 1)
                     .arg(QString::fromStdString(files_->plan.parent_path().string())));
}

// Where they are to be is asked for once they are wanted. False: they are nowhere.
bool AdviceDialog::save() {
  const QString folder = askFolderToFill(
      this, Words::tr("Folder for the learned calibration.json and the run's plan.json"),
      Words::tr("Choose"));
  if (folder.isEmpty()) return false;
  try {
    files_ = save_advice(lesson_, folder.toStdString());
  } catch (const Error& error) {
    says_->setText(problemsText(error.problems()));
    return false;
  }
  says_->setText(
      Words::tr("Saved %1").arg(QString::fromStdString(files_->plan.parent_path().string())));
  showCommands();
  return true;
}

void AdviceDialog::showCommands() {
  const AdviceFiles files = files_.value_or(AdviceFiles{});
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    commands_[i]->setText(toText(
        command_of(lesson_.advice.changes[i], files.plan.string(), files.calibration.string())));
    commands_[i]->setCursorPosition(0);
    commands_[i]->setToolTip(commands_[i]->text());
  }
}

}  // namespace tessera::gui
