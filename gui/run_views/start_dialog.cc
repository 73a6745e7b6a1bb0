// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run_views/start_dialog.h"

#include <QDialogButtonBox>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QVBoxLayout>
#include <utility>

#include "cost_models/documents/preset.h"
#include "cost_models/spec/device/device_kind.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/run_views/run_file_dialog.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

QString planText(const Plan& plan) {
  const QString device = QString::fromStdString(plan.cluster.device.name);
  const QString engine = QString::fromStdString(plan.engine);
  if (plan.world_size() == 1)
    return Words::tr("1 rank on %1, for the engine %2").arg(device, engine);
  return Words::tr("%1 ranks on %2, for the engine %3").arg(plan.world_size()).arg(device, engine);
}

// What speaks against this machine, as far as the window sees it; the run itself decides.
QString hintOf(const Plan& plan) {
  if (is_cpu(plan.cluster.device)) return {};
  const QString instead = Words::tr(
      "Export job (Ctrl+J) writes what starts it on a cluster; the quickstart (Shift+F6) "
      "needs no GPU.");
  const std::int64_t per_node = plan.cluster.gpus_per_node;
  const std::int64_t nodes = (plan.world_size() + per_node - 1) / per_node;
  if (nodes > 1) {
    return Words::tr("It needs %1 nodes, and a run is started on this machine alone. %2")
        .arg(nodes)
        .arg(instead);
  }
  for (const char* driver : {"/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg"}) {
    if (QFileInfo::exists(driver)) return {};
  }
  return Words::tr("No driver of a GPU is seen on this machine. %1").arg(instead);
}

// It wraps: all of it is read before it is carried out.
QLabel* plainLabel(const QString& text) {
  auto* label = new QLabel(text);
  label->setTextFormat(Qt::PlainText);
  return label;
}

QPlainTextEdit* commandLines() {
  auto* lines = new QPlainTextEdit;
  lines->setReadOnly(true);
  lines->setTabChangesFocus(true);
  lines->setMaximumHeight(4 * lines->fontMetrics().lineSpacing());
  lines->setAccessibleName(Words::tr("Command"));
  return lines;
}

}  // namespace

StartDialog::StartDialog(std::shared_ptr<const Plan> plan, const StartRequest& typed,
                         QWidget* parent)
    : QDialog(parent),
      plan_(std::move(plan)),
      config_(new QComboBox),
      settings_(new QPlainTextEdit),
      folder_(new QLineEdit(QDir().relativeFilePath(typed.folder.isEmpty() ? newFolderIn(".", "run")
                                                                           : typed.folder))),
      command_(commandLines()),
      problem_(plainLabel({})) {
  setWindowTitle(Words::tr("Start a run"));
  resize(720, 360);
  config_->setEditable(true);
  config_->setAccessibleName(Words::tr("Run file"));
  for (const std::string& name : preset_names("runs", ".yaml")) {
    config_->addItem(QString::fromStdString(name));
  }
  config_->setCurrentText(typed.config);
  config_->lineEdit()->setPlaceholderText(Words::tr("a run.yaml, or a preset"));
  settings_->setAccessibleName(Words::tr("Settings of the run"));
  settings_->setPlaceholderText(
      Words::tr("KEY=VALUE, one a line, as data.train_files=[digits.jsonl]"));
  settings_->setTabChangesFocus(true);
  settings_->setPlainText(typed.settings.join('\n'));
  folder_->setAccessibleName(Words::tr("Folder of the run"));
  folder_->selectAll();  // what is typed replaces it
  folder_->setPlaceholderText(Words::tr("a new folder"));
  problem_->setWordWrap(true);
  problem_->setAccessibleName(Words::tr("What is missing"));
  auto* form = new QFormLayout;
  form->addRow(Words::tr("Plan"), plainLabel(planText(*plan_)));
  if (const QString hint = hintOf(*plan_); !hint.isEmpty()) {
    auto* says = plainLabel(hint);
    says->setWordWrap(true);
    says->setObjectName("elsewhere");
    form->addRow(QString(), says);
  }
  QWidget* config = withButton(config_, Words::tr("Choose a run file"), &StartDialog::chooseConfig);
  auto* write = new QPushButton(Words::tr("&Write one..."));
  write->setAutoDefault(false);
  config->layout()->addWidget(write);
  connect(write, &QPushButton::clicked, this, &StartDialog::writeConfig);
  form->addRow(Words::tr("&Run file"), config);
  form->addRow(Words::tr("&Settings"), settings_);
  form->addRow(Words::tr("&Folder"),
               withButton(folder_, Words::tr("Choose a folder"), &StartDialog::chooseFolder));
  form->addRow(Words::tr("Command"), command_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  start_ = buttons->addButton(Words::tr("S&tart"), QDialogButtonBox::AcceptRole);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form, 1);
  layout->addWidget(problem_);
  layout->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(config_, &QComboBox::currentTextChanged, this, [this] { check(); });
  connect(settings_, &QPlainTextEdit::textChanged, this, [this] { check(); });
  connect(folder_, &QLineEdit::textChanged, this, [this] { check(); });
  check();
}

QWidget* StartDialog::withButton(QWidget* field, const QString& what,
                                 void (StartDialog::*choose)()) {
  auto* row = new QWidget;
  auto* layout = new QHBoxLayout(row);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* button = new QPushButton("...");
  button->setAccessibleName(what);
  button->setToolTip(what);
  button->setAutoDefault(false);
  layout->addWidget(field, 1);
  layout->addWidget(button);
  row->setFocusProxy(field);
  connect(button, &QPushButton::clicked, this, choose);
  return row;
}

StartRequest StartDialog::request() const {
  const QString folder = folder_->text().trimmed();
  StartRequest request{
      plan_,
      config_->currentText().trimmed(),
      {},
      folder.isEmpty() ? folder : QDir::cleanPath(QDir().absoluteFilePath(folder))};
  for (const QString& line : settings_->toPlainText().split('\n')) {
    if (!line.trimmed().isEmpty()) request.settings << line.trimmed();
  }
  return request;
}

void StartDialog::chooseConfig() {
  const QString file = QFileDialog::getOpenFileName(this, Words::tr("Run file"), {},
                                                    Words::tr("Run files (*.yaml)"));
  if (!file.isEmpty()) config_->setCurrentText(file);
}

void StartDialog::writeConfig() {
  RunFileDialog dialog(plan_, this);
  if (dialog.exec() == QDialog::Accepted) config_->setCurrentText(dialog.file());
}

// The run makes its own folder, in the one that is chosen.
void StartDialog::chooseFolder() {
  const QString above =
      QFileDialog::getExistingDirectory(this, Words::tr("Where to make the run's folder"));
  if (!above.isEmpty()) folder_->setText(newFolderIn(above, "run"));
}

void StartDialog::check() {
  const StartRequest asked = request();
  const QString why = whyNoStart(asked);
  problem_->setText(why);
  start_->setEnabled(why.isEmpty());
  command_->setPlainText(why.isEmpty() ? commandText(wordsOf(asked)) : QString());
}

}  // namespace tessera::gui
