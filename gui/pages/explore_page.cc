// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/explore_page.h"

#include <QScrollArea>
#include <QSplitter>
#include <QVBoxLayout>

#include "gui/models/text.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

QSplitter* splitter(Qt::Orientation orientation, std::initializer_list<QWidget*> widgets) {
  auto* split = new QSplitter(orientation);
  split->setChildrenCollapsible(false);
  for (QWidget* widget : widgets) split->addWidget(widget);
  return split;
}

/// The views of a place below one another.
QSplitter* column(Place place, Session& session) {
  QSplitter* split = splitter(Qt::Vertical, {});
  QList<int> sizes;
  for (const ViewKind& kind : viewsOf(place)) {
    split->addWidget(makeTitledView(kind, session));
    sizes << kind.stretch;
  }
  split->setSizes(sizes);
  return split;
}

}  // namespace

ExplorePage::ExplorePage(Session& session, QWidget* parent)
    : QWidget(parent), session_(session), form_(new RequestForm), message_(new QLabel) {
  message_->setWordWrap(true);
  message_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  message_->setAccessibleName("Result of the search");

  auto* details =
      splitter(Qt::Horizontal, {column(Place::left, session), column(Place::right, session)});
  details->setSizes({600, 600});
  details_ = details;

  auto* top = new QWidget;
  auto* top_layout = new QVBoxLayout(top);
  top_layout->setContentsMargins(0, 0, 0, 0);
  top_layout->addWidget(message_);
  for (const ViewKind& kind : viewsOf(Place::plans)) {
    top_layout->addWidget(makeTitledView(kind, session), kind.stretch);
  }
  auto* main = splitter(Qt::Vertical, {top, details_});
  main->setSizes({170, 680});
  main->setStretchFactor(1, 1);

  auto* scroll = new QScrollArea;
  scroll->setWidget(form_);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* whole = splitter(Qt::Horizontal, {scroll, main});
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setMinimumWidth(form_->minimumSizeHint().width() + 24);
  whole->setSizes({330, 1170});
  whole->setStretchFactor(1, 1);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(whole);
  connectSession();
}

void ExplorePage::connectSession() {
  connect(form_, &RequestForm::queryChanged, &session_, &Session::ask);
  connect(&session_, &Session::busyChanged, this, [this](bool busy) {
    if (busy) say("Planning...", false);
  });
  connect(&session_, &Session::planSelected, this, [this] { details_->setEnabled(true); });
  connect(&session_, &Session::planned, this, [this](double seconds) {
    const Certificate& found = session_.plans()->row(0).plan->certificate;
    say(QString(
            "Proven optimum in %1: %2 candidates priced, %3 branches cut, gap %4 %, margin %5 %")
            .arg(secondsText(seconds), countText(static_cast<double>(found.evaluated)),
                 countText(static_cast<double>(found.pruned)))
            .arg(100 * found.gap, 0, 'f', 2)
            .arg(100 * found.margin, 0, 'f', 1),
        false);
  });
  connect(&session_, &Session::infeasible, this, [this](const QString& text) {
    say(text, true);
    details_->setEnabled(false);
  });
  connect(&session_, &Session::problemsFound, this,
          [this](const QString& text) { say(text, true); });
}

void ExplorePage::say(const QString& text, bool bad) {
  message_->setText(text.trimmed());
  message_->setStyleSheet(bad ? "background:#fde8e4; color:#7a1d0c; padding:6px;" : "padding:2px;");
}

}  // namespace tessera::gui
