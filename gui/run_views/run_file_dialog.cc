// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run_views/run_file_dialog.h"

#include <QDialogButtonBox>
#include <QDoubleValidator>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QVBoxLayout>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/views/fixed_text.h"
#include "gui/views/save_file.h"

namespace tessera::gui {
namespace {

constexpr int kMostSteps = 1'000'000'000;  // of a run file

QLineEdit* rateField(const QString& name, double rate) {
  auto* field = new QLineEdit(QString::number(rate));
  field->setAccessibleName(name);
  auto* numbers = new QDoubleValidator(0, 1, 12, field);
  numbers->setLocale(QLocale::c());
  field->setValidator(numbers);
  return field;
}

QSpinBox* stepsField(const QString& name, int least, int value) {
  auto* field = new QSpinBox;
  field->setRange(least, kMostSteps);
  field->setValue(value);
  field->setAccessibleName(name);
  return field;
}

}  // namespace

RunFileDialog::RunFileDialog(std::shared_ptr<const Plan> plan, QWidget* parent)
    : QDialog(parent),
      plan_(std::move(plan)),
      prompts_(new QLineEdit),
      reward_(new QComboBox),
      rate_(rateField(Words::tr("Learning rate"), RunFileRequest().learning_rate)),
      critic_rate_(
          rateField(Words::tr("Critic's learning rate"), RunFileRequest().critic_learning_rate)),
      steps_(stepsField(Words::tr("Steps of the run"), 1, RunFileRequest().steps)),
      save_every_(stepsField(Words::tr("Steps between checkpoints"), 0, 0)),
      text_(new QPlainTextEdit),
      problem_(new QLabel) {
  setWindowTitle(Words::tr("Write a run file"));
  resize(720, 520);
  prompts_->setAccessibleName(Words::tr("File of prompts"));
  prompts_->setPlaceholderText(Words::tr("JSON lines or Parquet, with verl's fields"));
  reward_->setAccessibleName(Words::tr("Rule of the reward"));
  reward_->addItems(rewardRules());
  save_every_->setSpecialValueText(Words::tr("none"));
  showAsFixedText(*text_, Words::tr("The run file"));
  problem_->setTextFormat(Qt::PlainText);
  problem_->setWordWrap(true);
  problem_->setAccessibleName(Words::tr("What the run file lacks"));
  auto* form = new QFormLayout;
  form->addRow(Words::tr("&Prompts"), promptsRow());
  form->addRow(Words::tr("&Reward"), reward_);
  form->addRow(Words::tr("&Learning rate"), rate_);
  form->addRow(Words::tr("&Critic's learning rate"), critic_rate_);
  form->addRow(Words::tr("S&teps"), steps_);
  form->addRow(Words::tr("Steps between c&heckpoints"), save_every_);
  form->setRowVisible(critic_rate_, plan_->find(Role::critic) != nullptr);
  form->setRowVisible(reward_, plan_->find(Role::reward) == nullptr);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  save_ = buttons->addButton(Words::tr("&Save..."), QDialogButtonBox::ActionRole);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->addWidget(text_, 1);
  layout->addWidget(problem_);
  layout->addWidget(buttons);
  save_->setDefault(true);  // of the dialog that it is in by now
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(save_, &QPushButton::clicked, this, &RunFileDialog::save);
  for (QLineEdit* field : {prompts_, rate_, critic_rate_}) {
    connect(field, &QLineEdit::textChanged, this, [this] { check(); });
  }
  connect(reward_, &QComboBox::currentTextChanged, this, [this] { check(); });
  for (QSpinBox* field : {steps_, save_every_}) {
    connect(field, &QSpinBox::valueChanged, this, [this] { check(); });
  }
  check();
}

QWidget* RunFileDialog::promptsRow() {
  auto* row = new QWidget;
  auto* layout = new QHBoxLayout(row);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* choose = new QPushButton("...");
  choose->setAccessibleName(Words::tr("Choose a file of prompts"));
  choose->setToolTip(choose->accessibleName());
  choose->setAutoDefault(false);
  layout->addWidget(prompts_, 1);
  layout->addWidget(choose);
  row->setFocusProxy(prompts_);
  connect(choose, &QPushButton::clicked, this, [this] {
    const QString file = QFileDialog::getOpenFileName(
        this, Words::tr("File of prompts"), {},
        Words::tr("Prompts (*.jsonl *.json *.parquet);;All files (*)"));
    if (!file.isEmpty()) prompts_->setText(file);
  });
  return row;
}

RunFileRequest RunFileDialog::request() const {
  return {.prompts = prompts_->text().trimmed(),
          .reward = reward_->currentText(),
          .learning_rate = rate_->text().toDouble(),
          .critic_learning_rate = critic_rate_->text().toDouble(),
          .steps = steps_->value(),
          .save_every = save_every_->value()};
}

void RunFileDialog::check() {
  const RunFileRequest asked = request();
  QString why = whyNoRunFile(asked);
  const bool rates = rate_->hasAcceptableInput() && critic_rate_->hasAcceptableInput();
  if (why.isEmpty() && !rates) why = Words::tr("A learning rate is a number from 0 to 1.");
  problem_->setText(why);
  save_->setEnabled(why.isEmpty());
  text_->setPlainText(QString::fromStdString(run_file_text(asked, *plan_)));
}

void RunFileDialog::save() {
  const QString file = askFileToSave(this, Words::tr("Save the run file"), "run.yaml",
                                     Words::tr("Run files (*.yaml)"));
  if (file.isEmpty()) return;
  try {
    write_text_file(file.toStdString(), run_file_text(request(), *plan_));
  } catch (const Error& error) {
    problem_->setText(problemsText(error.problems()));
    return;
  }
  file_ = file;
  accept();
}

}  // namespace tessera::gui
