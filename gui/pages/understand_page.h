// SPDX-License-Identifier: GPL-3.0-or-later
// One plan in full: how its step goes in time, and how its weights travel. GUI thread.
#pragma once

#include <QTabWidget>
#include <QWidget>

#include "gui/models/session.h"
#include "gui/views/stale_cover.h"

namespace tessera::gui {

class UnderstandPage : public QWidget {
  Q_OBJECT

 public:
  explicit UnderstandPage(Session& session, QWidget* parent = nullptr);

  void showTimeline();

  /// The picture of the tab that is shown has the focus, where it has one.
  void givePictureTheKeys();

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void showPicture();

  StaleCover* cover_;
  QTabWidget* tabs_;
};

}  // namespace tessera::gui
