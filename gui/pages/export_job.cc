// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/export_job.h"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"
#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/interop/write_export.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

bool takes(const ExportTarget& target, const Plan& plan) {
  return std::find(target.engines.begin(), target.engines.end(), plan.engine) !=
         target.engines.end();
}

// Of several targets of a program the first stands for the program itself.
bool is_first(const ExportTarget& target) {
  for (const ExportTarget& one : every_export_target()) {
    if (one.program == target.program) return one.name == target.name;
  }
  return false;
}

// For verl one of all engines that it usually has, unless the target is for one of them alone.
std::vector<std::string_view> engines_of(const ExportTarget& target, const Plan& plan) {
  std::vector<Role> roles;
  for (const RolePlan& role : plan.roles) roles.push_back(role.role);
  const std::vector<const Engine*> usual = answering(engine_named(kAnyEngine), roles);
  const auto is_usual = [&](std::string_view name) {
    return std::any_of(usual.begin(), usual.end(),
                       [&](const Engine* one) { return one->name == name; });
  };
  const bool several = is_first(target) || target.engines.size() > 1;
  if (target.program != ExportedProgram::verl || !several || !is_usual(target.engines.front())) {
    return {target.engines.front()};
  }
  std::vector<std::string_view> engines;
  for (const ExportTarget& other : every_export_target()) {
    if (other.program != target.program) continue;
    std::copy_if(other.engines.begin(), other.engines.end(), std::back_inserter(engines), is_usual);
  }
  return engines;
}

// The one that refuses least of the plan, so that little changes; one that does not have the model
// refuses all of it.
QString engine_for(const ExportTarget& target, const Plan& plan) {
  const std::vector<std::string_view> engines = engines_of(target, plan);
  const auto refusals = [&](std::string_view engine) {
    const Problems problems = outside_capabilities(plan, "plan", engine);
    const auto unknown = [](const Problem& one) { return one.place.ends_with("/family"); };
    return std::pair(std::count_if(problems.begin(), problems.end(), unknown), problems.size());
  };
  return toText(*std::min_element(
      engines.begin(), engines.end(),
      [&](std::string_view a, std::string_view b) { return refusals(a) < refusals(b); }));
}

// What a layout's field is called in a sentence; empty where it has no name but its own.
QString called(const QString& field) {
  static const std::map<QString, const char*> names{
      {"tp", QT_TRANSLATE_NOOP("Words", "tensor parallelism")},
      {"pp", QT_TRANSLATE_NOOP("Words", "pipeline stages")},
      {"vpp", QT_TRANSLATE_NOOP("Words", "virtual stages")},
      {"cp", QT_TRANSLATE_NOOP("Words", "context parallelism")},
      {"ep", QT_TRANSLATE_NOOP("Words", "expert parallelism")},
      {"zero", QT_TRANSLATE_NOOP("Words", "ZeRO stage")},
      {"dp_shard", QT_TRANSLATE_NOOP("Words", "shards of its weights")},
      {"recompute", QT_TRANSLATE_NOOP("Words", "recomputation")},
      {"sequence_parallel", QT_TRANSLATE_NOOP("Words", "sequence parallelism")}};
  const auto found = names.find(field);
  return found == names.end() ? field : Words::tr(found->second);
}

// "the actor has tensor parallelism 2; possible: 1" of "/roles/0/layout/tp"; of what has no field
// of its own the reason.
QString sentence(const Plan& plan, const Problem& problem) {
  const QStringList place = toText(problem.place).split('/', Qt::SkipEmptyParts);
  const std::size_t role = place.value(1).toUInt();
  const bool field = place.value(0) == "roles" && place.size() > 2 && role < plan.roles.size() &&
                     place.last() != "layout" && place.last() != "ranks";
  if (!field) {
    const std::string why = problem.hint.substr(0, problem.hint.find(';'));
    return "- " + (why.empty() ? said(problem.found) : said(why));
  }
  return Words::tr("- the %1 has %2 %3; possible: %4")
      .arg(toText(name_of(plan.roles[role].role)), called(place.last()), said(problem.found),
           said(problem.expected));
}

QString refusal(const ExportTarget& target, const Plan& plan, const Problems& problems) {
  constexpr std::size_t kMost = 6;
  QStringList lines{Words::tr("This plan is for the engine %1, and %2 cannot run it:")
                        .arg(QString::fromStdString(plan.engine), said(target.meaning))};
  for (std::size_t i = 0; i < std::min(kMost, problems.size()); ++i) {
    if (problems[i].place != "/engine") lines << sentence(plan, problems[i]);
  }
  if (problems.size() > kMost) lines << Words::tr("- and %1 more").arg(problems.size() - kMost);
  return lines.join("\n");
}

// "job", or "job-2" where that is there already.
QString free_folder() {
  const QString name = "job";
  QString free = name;
  for (int number = 2; QFileInfo::exists(free); ++number) {
    free = QString("%1-%2").arg(name).arg(number);
  }
  return free;
}

// A file that the folder has already would be lost.
bool replaces(const Export& made, const QString& folder) {
  return std::any_of(made.files.begin(), made.files.end(), [&](const ExportedFile& file) {
    return QFileInfo::exists(folder + "/" + QString::fromStdString(file.name));
  });
}

}  // namespace

ExportJob::ExportJob(SharedPlan plan, QWidget* parent)
    : QDialog(parent),
      plan_(std::move(plan)),
      target_(new QComboBox),
      folder_(new QLineEdit(free_folder())),
      files_(new QPlainTextEdit),
      fault_(new MessageBar(Words::tr("Why nothing was written"))) {
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
  plan_for_ = buttons->addButton(QString(), QDialogButtonBox::ActionRole);
  plan_for_->setAutoDefault(false);
  plan_for_->setObjectName("plan_for");
  plan_for_->hide();
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->addWidget(files_, 1);
  layout->addWidget(fault_);
  layout->addWidget(buttons);
  write_->setDefault(true);  // of the dialog that it is in by now
  connect(folder_, &QLineEdit::textChanged, this, &ExportJob::allow);
  connect(browse, &QPushButton::clicked, this, &ExportJob::chooseFolder);
  connect(plan_for_, &QPushButton::clicked, this, [this] {
    engine_wanted_ = plan_for_->property("engine").toString();
    reject();
  });
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
  choose_first([this](const ExportTarget& target) { return takes(target, *plan_); });
  choose_first([](const ExportTarget&) { return true; });
  connect(target_, &QComboBox::currentIndexChanged, this, &ExportJob::check);
}

void ExportJob::accept() {
  try {
    write_export(*made_, folder().toStdString());
  } catch (const Error& error) {
    return fault_->say(problemsText(error.problems()), Tone::bad);
  }
  QDialog::accept();
}

void ExportJob::chooseFolder() {
  const QString folder =
      QFileDialog::getExistingDirectory(this, Words::tr("Folder of the job"), folder_->text());
  if (!folder.isEmpty()) folder_->setText(folder);
}

void ExportJob::prefer(const QString& target) {
  for (int row = 0; row < target_->count(); ++row) {
    const ExportTarget& one = every_export_target()[static_cast<std::size_t>(row)];
    if (toText(one.name) == target && takes(one, *plan_)) return target_->setCurrentIndex(row);
  }
}

QString ExportJob::target() const { return toText(chosen().name); }

const ExportTarget& ExportJob::chosen() const {
  return every_export_target()[static_cast<std::size_t>(target_->currentIndex())];
}

// Another engine's plan is what helps where the target runs none of the plan's.
void ExportJob::offerEngine() {
  const bool helps = !made_ && !takes(chosen(), *plan_);
  plan_for_->setVisible(helps);
  if (!helps) return;
  const QString engine = engine_for(chosen(), *plan_);
  plan_for_->setProperty("engine", engine);
  plan_for_->setText(Words::tr("&Plan for %1").arg(engine));
}

void ExportJob::check() {
  Problems problems;
  const ExportTarget& target = chosen();
  made_ = export_plan(*plan_, target, {}, problems);
  QStringList lines;
  if (made_) {
    for (const ExportedFile& file : made_->files) lines << QString::fromStdString(file.name);
    for (const std::string& note : made_->notes) lines << "" << said(note);
  } else if (takes(target, *plan_)) {
    lines << problemsText(problems);
  } else {
    lines << refusal(target, *plan_, problems)
          << Words::tr(
                 "Plan for %1 asks the same question for that engine; its plan is then "
                 "exported here.")
                 .arg(engine_for(target, *plan_));
  }
  offerEngine();
  files_->setPlainText(lines.join("\n"));
  allow();
}

void ExportJob::allow() {
  fault_->say({}, Tone::calm);
  write_->setEnabled(made_.has_value() && !folder().isEmpty());
  const bool lost = write_->isEnabled() && replaces(*made_, folder());
  write_->setText(lost ? Words::tr("Over&write") : Words::tr("&Write"));
  write_->setToolTip(lost ? Words::tr("The folder has files of these names, which are replaced")
                          : QString());
}

}  // namespace tessera::gui
