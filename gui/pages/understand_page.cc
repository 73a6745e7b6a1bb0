// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/understand_page.h"

#include <QApplication>
#include <QTabBar>
#include <QVBoxLayout>

#include "gui/document/words.h"
#include "gui/step_views/time_canvas.h"
#include "gui/step_views/timeline_canvas.h"
#include "gui/views/view.h"

namespace tessera::gui {

UnderstandPage::UnderstandPage(Session& session, QWidget* parent)
    : QWidget(parent), tabs_(new QTabWidget) {
  QTabWidget* const tabs = tabs_;
  tabs->setObjectName("understand_tabs");
  tabs->setDocumentMode(true);
  tabs->setAccessibleName(Words::tr("Views of the step"));
  for (const ViewKind& kind : viewsOf(Place::whole)) {
    tabs->addTab(makeView(kind, session), titleOf(kind));
  }
  connect(tabs, &QTabWidget::currentChanged, this, [this] { showPicture(); });
  auto* covered = new QWidget;
  auto* inner = new QVBoxLayout(covered);
  inner->setContentsMargins(0, 0, 0, 0);
  inner->addWidget(tabs);
  cover_ = new StaleCover(covered);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(covered);
  const Session* shown = &session;
  connect(shown, &Session::documentChanged, this,
          [=, this] { cover_->setStale(shown->document().stale()); });
}

// The keys that a picture says it has are its own at once; who goes through tabs by keys goes on.
void UnderstandPage::showPicture() {
  if (isVisible() && qobject_cast<QTabBar*>(QApplication::focusWidget()) == nullptr) {
    givePictureTheKeys();
  }
}

void UnderstandPage::givePictureTheKeys() {
  QWidget* picture = tabs_->currentWidget()->findChild<TimeCanvas*>();
  if (picture == nullptr) picture = tabs_->currentWidget()->findChild<TimelineCanvas*>();
  if (picture != nullptr) picture->setFocus();
}

void UnderstandPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  showPicture();
}

void UnderstandPage::showTimeline() {
  for (int tab = 0; tab < tabs_->count(); ++tab) {
    if (tabs_->widget(tab)->objectName() == "timeline") tabs_->setCurrentIndex(tab);
  }
}

}  // namespace tessera::gui
