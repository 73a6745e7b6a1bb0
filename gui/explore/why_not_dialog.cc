// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/explore/why_not_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <string>
#include <utility>
#include <vector>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/form/marked_value.h"
#include "planner/plan/plan.h"
#include "planner/request/settings.h"

namespace tessera::gui {
namespace {

// "actor.tp" and all others of the plan's roles.
QStringList settings_of(const Plan& plan) {
  QStringList names;
  for (const RolePlan& role : plan.roles) {
    for (const Field field : every_field()) {
      if (!applies(role.role, field)) continue;
      names << toText(name_of(role.role)) + "." + toText(name_of(field));
    }
  }
  return names << "placement";
}

// Words of its own, or small degrees; whatever is typed is asked.
QStringList values_of(const QString& setting) {
  for (const Field field : every_field()) {
    if (!setting.endsWith("." + toText(name_of(field)))) continue;
    QStringList values;
    for (const std::string_view word : words_of(field)) values << toText(word);
    if (!values.isEmpty()) return values;
    if (field == Field::zero) return {"0", "1", "2", "3"};
    if (field == Field::sequence_parallel) return {"0", "1"};
    if (field == Field::tokens || field == Field::update_tokens) {
      return {"4096", "8192", "16384", "32768", "65536"};
    }
    return {"1", "2", "4", "8", "16", "32", "64"};
  }
  return {"colocated"};
}

QComboBox* editable(const QString& name) {
  auto* box = new QComboBox;
  box->setEditable(true);
  box->setInsertPolicy(QComboBox::NoInsert);
  box->setAccessibleName(name);
  return box;
}

}  // namespace

WhyNotDialog::WhyNotDialog(SharedPlan plan, PlanQuery question, Newest<WhyNotAnswer>& searches,
                           SettingChecks& checks, QWidget* parent)
    : QDialog(parent),
      plan_(std::move(plan)),
      question_(std::move(question)),
      setting_(editable(Words::tr("Setting"))),
      value_(editable(Words::tr("Value"))),
      says_(new QPlainTextEdit),
      searches_(searches),
      checks_(checks) {
  setWindowTitle(Words::tr("Why not another choice?"));
  resize(640, 340);
  setting_->addItems(settings_of(*plan_));
  value_->setCompleter(nullptr);  // 3 is 3, not the beginning of 32
  says_->setReadOnly(true);
  says_->setTabChangesFocus(true);
  says_->setAccessibleName(Words::tr("Why not"));
  says_->setPlaceholderText(
      Words::tr("What the best plan with this choice costs and why, or what speaks against it."));
  auto* form = new QFormLayout;
  form->addRow(Words::tr("&Setting"), setting_);
  form->addRow(Words::tr("&Value"), value_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  ask_ = buttons->addButton(Words::tr("&Ask"), QDialogButtonBox::ActionRole);
  plan_with_it_ = buttons->addButton(Words::tr("&Plan with it"), QDialogButtonBox::AcceptRole);
  plan_with_it_->setAutoDefault(false);
  plan_with_it_->setEnabled(false);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->addWidget(says_, 1);
  layout->addWidget(buttons);
  ask_->setDefault(true);  // of the dialog that it is in by now
  checks_.setQuestion(question_);
  connect(&checks_, &SettingChecks::changed, this, &WhyNotDialog::markValues);
  connect(setting_, &QComboBox::currentTextChanged, this, &WhyNotDialog::offerValues);
  connect(setting_, &QComboBox::currentTextChanged, this, &WhyNotDialog::forget);
  connect(value_, &QComboBox::currentTextChanged, this, &WhyNotDialog::forget);
  connect(ask_, &QPushButton::clicked, this, &WhyNotDialog::ask);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  setting_->setCurrentText("actor.tp");
  setting_->lineEdit()->selectAll();  // what is typed replaces it
  offerValues();
}

void WhyNotDialog::offerValues() {
  if (setting_->currentText().contains('=')) return splitSetting();
  const QString setting = setting_->currentText().trimmed();
  const QStringList values = values_of(setting);
  value_->clear();
  value_->addItems(values);
  if (setting_->findText(setting) < 0) return;  // it is still typed
  std::vector<std::string> words;
  for (const QString& value : values) words.push_back(value.toStdString());
  checks_.want(setting.toStdString(), words);
  markValues();
}

void WhyNotDialog::markValues() {
  const QSignalBlocker quiet(value_);
  const QString typed = value_->currentText(), setting = setting_->currentText().trimmed();
  for (int item = 0; item < value_->count(); ++item) {
    const std::string word = (setting + "=" + value_->itemText(item)).toStdString();
    const QString why = checks_.against(word).value_or(QString());
    markValue(*value_, item, why.isEmpty() ? why : refusedSentence(word, why));
  }
  // A box whose chosen item changes writes that item over what was typed since.
  if (value_->currentText() != typed) value_->setEditText(typed);
}

// "actor.tp=8" may be typed whole: what stands behind the sign is the value.
void WhyNotDialog::splitSetting() {
  const QString typed = setting_->currentText();
  const qsizetype sign = typed.indexOf('=');
  setting_->setEditText(typed.left(sign).trimmed());
  value_->setEditText(typed.mid(sign + 1).trimmed());
  value_->setFocus();
  value_->lineEdit()->end(false);
}

void WhyNotDialog::ask() {
  const QString word = setting_->currentText().trimmed() + "=" + value_->currentText().trimmed();
  forget();
  says_->setPlainText(Words::tr("Planning with %1").arg(word));
  searches_.start([plan = plan_, question = question_,
                   word = word.toStdString()] { return why_not_answer(plan, question, word); },
                  [this](const WhyNotAnswer& answer) { take(answer); });
}

// The answer to another choice than the one that stands there.
void WhyNotDialog::forget() {
  searches_.cancel();
  answer_ = {};
  plan_with_it_->setEnabled(false);
  says_->clear();
}

void WhyNotDialog::take(const WhyNotAnswer& answer) {
  answer_ = answer;
  says_->setPlainText(answer.text);
  plan_with_it_->setEnabled(answer.choice.has_value() && *answer.choice != question_);
}

}  // namespace tessera::gui
