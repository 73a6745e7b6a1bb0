// SPDX-License-Identifier: GPL-3.0-or-later
// Choose what to plan, compare the plans, look at one of them.
#pragma once

#include <QLabel>
#include <QWidget>

#include "gui/models/session.h"
#include "gui/pages/request_form.h"

namespace tessera::gui {

class ExplorePage : public QWidget {
  Q_OBJECT

 public:
  explicit ExplorePage(Session& session, QWidget* parent = nullptr);

  RequestForm* form() { return form_; }

 private:
  void connectSession();
  void say(const QString& text, bool bad);

  Session& session_;
  RequestForm* form_;
  QLabel* message_;
  QWidget* details_;
};

}  // namespace tessera::gui
