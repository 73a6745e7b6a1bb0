// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/export_job.h"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"
#include "planner/interop/write_export.h"
#include "planner/plan/plan.h"

namespace tessera::gui {

ExportJob::ExportJob(SharedPlan plan, QWidget* parent)
    : QDialog(parent),
      plan_(std::move(plan)),
      target_(new QComboBox),
      folder_(new QLineEdit("job")),
      files_(new QPlainTextEdit) {
  setWindowTitle(Words::tr("Export a job"));
  resize(640, 420);
  for (const ExportTarget& target : every_export_target()) {
    target_->addItem(toText(target.name) + ": " + said(target.meaning));
  }
  target_->setAccessibleName(Words::tr("For whom"));
  folder_->setAccessibleName(Words::tr("Folder"));
  files_->setAccessibleName(Words::tr("Files, or why there are none"));
  files_->setReadOnly(true);
  auto* browse = new QPushButton(Words::tr("&Browse..."));
  browse->setAutoDefault(false);  // Enter is for the other one
  auto* where = new QHBoxLayout;
  where->addWidget(folder_, 1);
  where->addWidget(browse);
  auto* form = new QFormLayout;
  form->addRow(Words::tr("For &whom"), target_);
  auto* name = new QLabel(Words::tr("&Folder"));
  name->setBuddy(folder_);
  form->addRow(name, where);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  write_ = buttons->addButton(Words::tr("&Write"), QDialogButtonBox::AcceptRole);
  write_->setDefault(true);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->addWidget(files_, 1);
  layout->addWidget(buttons);
  connect(folder_, &QLineEdit::textChanged, this, &ExportJob::allow);
  connect(browse, &QPushButton::clicked, this, &ExportJob::chooseFolder);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  // The first that is for the plan's engine; where none is, the first that can run the plan.
  const auto choose_first = [this](const auto& suits) {
    for (int row = 0; row < target_->count() && !made_; ++row) {
      if (!suits(every_export_target()[static_cast<std::size_t>(row)])) continue;
      target_->setCurrentIndex(row);
      check();
    }
  };
  choose_first([this](const ExportTarget& target) {
    return std::find(target.engines.begin(), target.engines.end(), plan_->engine) !=
           target.engines.end();
  });
  choose_first([](const ExportTarget&) { return true; });
  connect(target_, &QComboBox::currentIndexChanged, this, &ExportJob::check);
}

void ExportJob::write() const { write_export(*made_, folder().toStdString()); }

void ExportJob::chooseFolder() {
  const QString folder =
      QFileDialog::getExistingDirectory(this, Words::tr("Folder of the job"), folder_->text());
  if (!folder.isEmpty()) folder_->setText(folder);
}

void ExportJob::check() {
  Problems problems;
  const ExportTarget& target =
      every_export_target()[static_cast<std::size_t>(target_->currentIndex())];
  made_ = export_plan(*plan_, target, {}, problems);
  QStringList lines;
  if (made_) {
    for (const ExportedFile& file : made_->files) lines << QString::fromStdString(file.name);
    for (const std::string& note : made_->notes) lines << "" << said(note);
  } else {
    lines << problemsText(problems);
  }
  files_->setPlainText(lines.join("\n"));
  allow();
}

void ExportJob::allow() { write_->setEnabled(made_.has_value() && !folder().isEmpty()); }

}  // namespace tessera::gui
