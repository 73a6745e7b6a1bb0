// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/export_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "gui/document/words.h"
#include "gui/views/save_file.h"

namespace tessera::gui {

ExportDialog::ExportDialog(const std::vector<Exportable>& exportables, QWidget* parent)
    : QDialog(parent),
      exportables_(exportables),
      list_(new QListWidget),
      png_(new QCheckBox(Words::tr("&Pictures (png)"))),
      svg_(new QCheckBox(Words::tr("Dra&wings (svg)"))),
      csv_(new QCheckBox(Words::tr("&Tables (csv)"))),
      json_(new QCheckBox(Words::tr("&Data for programs (json)"))),
      html_(new QCheckBox(Words::tr("A &report (html)"))),
      folder_(new QLineEdit) {
  setWindowTitle(Words::tr("Export views"));
  resize(560, 620);
  for (const Exportable& each : exportables_) {
    auto* item = new QListWidgetItem(
        each.title.isEmpty() ? each.name : each.name + ": " + each.title, list_);
    item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsUserCheckable);
    item->setCheckState(Qt::Checked);
  }
  list_->setAccessibleName(Words::tr("Pages and views"));
  png_->setChecked(true);
  auto* all = new QPushButton(Words::tr("&All"));
  auto* none = new QPushButton(Words::tr("&None"));
  auto* choose = new QHBoxLayout;
  choose->addWidget(new QLabel(Words::tr("Pages and views")), 1);
  choose->addWidget(all);
  choose->addWidget(none);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  buttons->button(QDialogButtonBox::Cancel)->setText(Words::tr("Cancel"));
  write_ = buttons->addButton(Words::tr("&Export"), QDialogButtonBox::AcceptRole);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(choose);
  layout->addWidget(list_, 1);
  layout->addLayout(formats());
  layout->addLayout(where());
  layout->addWidget(buttons);
  for (QPushButton* each : {all, none}) each->setAutoDefault(false);
  write_->setDefault(true);
  connect(all, &QPushButton::clicked, this, [this] { checkAll(Qt::Checked); });
  connect(none, &QPushButton::clicked, this, [this] { checkAll(Qt::Unchecked); });
  connect(list_, &QListWidget::itemChanged, this, &ExportDialog::allow);
  connect(folder_, &QLineEdit::textChanged, this, &ExportDialog::allow);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  allow();
  folder_->setFocus();
}

QLayout* ExportDialog::formats() {
  auto* line = new QVBoxLayout;
  for (QCheckBox* each : {png_, svg_, csv_, json_, html_}) {
    line->addWidget(each);
    connect(each, &QCheckBox::toggled, this, &ExportDialog::allow);
  }
  return line;
}

QLayout* ExportDialog::where() {
  auto* line = new QHBoxLayout;
  auto* label = new QLabel(Words::tr("&Folder"));
  auto* browse = new QPushButton(Words::tr("&Browse..."));
  label->setBuddy(folder_);
  folder_->setAccessibleName(Words::tr("Folder"));
  browse->setAutoDefault(false);  // Enter is for the other one
  line->addWidget(label);
  line->addWidget(folder_, 1);
  line->addWidget(browse);
  connect(browse, &QPushButton::clicked, this, &ExportDialog::chooseFolder);
  return line;
}

void ExportDialog::chooseFolder() {
  const QString folder = askFolderToFill(this, Words::tr("Export views into"), Words::tr("Export"));
  if (!folder.isEmpty()) folder_->setText(folder);
}

void ExportDialog::checkAll(Qt::CheckState state) {
  for (int row = 0; row < list_->count(); ++row) list_->item(row)->setCheckState(state);
}

ExportChoice ExportDialog::choice() const {
  ExportChoice choice{.formats = {.png = png_->isChecked(),
                                  .svg = svg_->isChecked(),
                                  .csv = csv_->isChecked(),
                                  .json = json_->isChecked(),
                                  .html = html_->isChecked()},
                      .names = {}};
  choice.names.emplace();
  for (int row = 0; row < list_->count(); ++row) {
    if (list_->item(row)->checkState() == Qt::Checked) {
      choice.names->append(exportables_[static_cast<std::size_t>(row)].name);
    }
  }
  return choice;
}

void ExportDialog::allow() {
  const ExportChoice now = choice();
  const bool views = !now.names->isEmpty() &&
                     (now.formats.png || now.formats.svg || now.formats.csv || now.formats.json);
  write_->setEnabled((views || now.formats.html) && !folder().isEmpty());
}

}  // namespace tessera::gui
