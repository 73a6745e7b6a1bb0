// SPDX-License-Identifier: GPL-3.0-or-later
// Which values a setting can have beside all else that is asked, and what speaks against the rest.
//
// The planner says it (Planner::against), in the background, value by value, for settings that
// somebody looks at; another question forgets it all. GUI thread.
#pragma once

#include <QObject>
#include <QString>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/document/plan_answer.h"
#include "gui/threads/newest.h"

namespace tessera::gui {

class SettingChecks : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  void setQuestion(const PlanQuery& question);
  /// Of a setting, as "actor.tp", these values; what is known or under way is not asked again.
  void want(const std::string& key, const std::vector<std::string>& values);

  /// What speaks against "actor.tp=8": empty where nothing does, nullopt while that is not known.
  std::optional<QString> against(const std::string& word) const;
  /// What is wrong with the question whatever it fixes, of which no setting is to blame; empty
  /// where nothing is, or where it is not known.
  const QString& refused() const { return refused_; }
  bool isBusy() const { return work_.isBusy(); }

 signals:
  /// More is known of this setting, or nothing any more (empty).
  void changed(const QString& key);

 private:
  struct Check {
    std::string key, word;
  };
  struct Reasons {
    std::vector<std::string> of_setting, of_question;
  };

  void next();

  PlanQuery question_;
  std::map<std::string, std::optional<QString>> known_;  // by word; nullopt = on its way
  QString refused_;
  std::deque<Check> waiting_;
  std::shared_ptr<KeptPlanner> planner_ = std::make_shared<KeptPlanner>();
  Newest<Reasons> work_;  // last: its work ends before anything else goes
};

}  // namespace tessera::gui
