// SPDX-License-Identifier: GPL-3.0-or-later
// Choose what to plan, compare the plans, look at one of them.
#pragma once

#include <QProgressBar>
#include <QScrollArea>
#include <QTimer>
#include <QWidget>

#include "gui/explore/typed_line.h"
#include "gui/form/request_form.h"
#include "gui/models/session.h"
#include "gui/views/message_bar.h"
#include "gui/views/stale_cover.h"

namespace tessera::gui {

class ExplorePage : public QWidget {
  Q_OBJECT

 public:
  explicit ExplorePage(Session& session, QWidget* parent = nullptr);

  RequestForm* form() { return form_; }
  /// Its first field, which comes into sight.
  void giveQuestionTheKeys();

 private:
  QWidget* answers(QWidget* below);
  QWidget* waiting();
  void documentChanged();
  void showAnswer();
  void takeFix(int number);
  void offerFixes(const Infeasible& none);
  void showStale();
  void askMoved();

  Session& session_;
  RequestForm* form_;
  QScrollArea* question_ = nullptr;  // of the form
  TypedLine* typed_;
  MessageBar *answer_, *files_;
  QWidget* waiting_;
  StaleCover* cover_;
  PlanQuery shown_;       // by the form
  bool moved_ = false;    // a slider went on, and its place is not asked so far
  bool sliding_ = false;  // the last edit is of a slider that is still held
  QTimer patience_;       // a search that is quick is not announced
};

}  // namespace tessera::gui
