// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/setting_checks.h"

#include <QStringList>
#include <utility>

#include "gui/translations/said.h"

namespace tessera::gui {
namespace {

/// The question with this setting instead of the one that it has.
PlanQuery with(PlanQuery question, const std::string& key, const std::string& word) {
  std::erase_if(question.fixed,
                [&](const std::string& fixed) { return fixed.starts_with(key + "="); });
  question.fixed.push_back(word);
  return question;
}

QString saidOf(const std::vector<std::string>& reasons) {
  QStringList lines;
  for (const std::string& reason : reasons) lines << said(reason);
  return lines.join('\n');
}

}  // namespace

void SettingChecks::setQuestion(const PlanQuery& question) {
  if (question == question_) return;
  question_ = question;
  work_.cancel();
  waiting_.clear();
  known_.clear();
  refused_.clear();
  emit changed({});
}

void SettingChecks::want(const std::string& key, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    const std::string word = key + "=" + value;
    if (known_.emplace(word, std::nullopt).second) waiting_.push_back({key, word});
  }
  if (!work_.isBusy()) next();
}

std::optional<QString> SettingChecks::against(const std::string& word) const {
  const auto found = known_.find(word);
  return found == known_.end() ? std::nullopt : found->second;
}

void SettingChecks::next() {
  if (waiting_.empty()) return;
  const Check check = waiting_.front();
  waiting_.pop_front();
  const auto find = [planner = planner_,
                     query = with(question_, check.key, check.word)](const std::stop_token& stop) {
    Reasons reasons{planner->against(query, stop), {}};
    if (!reasons.of_setting.empty()) reasons.of_question = refusal_of(query);
    if (!reasons.of_question.empty()) reasons.of_setting.clear();
    return reasons;
  };
  work_.start(find, [this, check](const Reasons& reasons) {
    known_[check.word] = saidOf(reasons.of_setting);
    refused_ = saidOf(reasons.of_question);
    next();
    emit changed(QString::fromStdString(check.key));
  });
}

}  // namespace tessera::gui
