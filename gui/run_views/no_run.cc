// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run_views/no_run.h"

#include <QGridLayout>
#include <QVBoxLayout>

#include "gui/document/words.h"

namespace tessera::gui {
namespace {

// The label of what the button does.
QLabel* addWay(QGridLayout& ways, QPushButton* button, const QString& what) {
  const int row = ways.rowCount();
  auto* label = new QLabel(what);
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  label->setBuddy(button);
  ways.addWidget(button, row, 0);
  ways.addWidget(label, row, 1);
  ways.setColumnStretch(1, 1);
  return label;
}

}  // namespace

NoRun::NoRun(QAction* start, QAction* quickstart, QWidget* parent) : QWidget(parent) {
  auto* title = new QLabel(Words::tr("No run is open"));
  QFont large = font();
  large.setPointSizeF(1.4 * large.pointSizeF());
  large.setBold(true);
  title->setFont(large);
  auto* says = new QLabel(
      Words::tr("This page follows a run step by step: its figures, what its ranks do, and what "
                "the plan predicted beside what was measured."));
  says->setWordWrap(true);
  says->setMinimumWidth(440);
  auto* ways = new QGridLayout;
  ways->setHorizontalSpacing(14);
  ways->setVerticalSpacing(8);
  const auto add = [ways](QPushButton* button, const QString& what) {
    return addWay(*ways, button, what);
  };
  again_ = new QPushButton(Words::tr("Follow the last run again"));
  last_ = add(again_, {});
  again_->hide();
  last_->hide();
  connect(again_, &QPushButton::clicked, this, [this] { emit againRequested(last_->text()); });
  auto* begin = new QPushButton(Words::tr("Start this plan..."));
  const auto allow = [begin, start] { begin->setEnabled(start->isEnabled()); };
  connect(start, &QAction::changed, begin, allow);
  connect(begin, &QPushButton::clicked, start, &QAction::trigger);
  allow();
  add(begin, Words::tr("Runs the plan that is looked at on this machine (F6). It goes on when the "
                       "window is closed."));
  auto* tiny = new QPushButton;
  const auto show = [tiny, quickstart] {
    tiny->setText(quickstart->text());
    tiny->setEnabled(quickstart->isEnabled());
  };
  connect(quickstart, &QAction::changed, tiny, show);
  connect(tiny, &QPushButton::clicked, quickstart, &QAction::trigger);
  show();
  add(tiny, Words::tr("Needs no GPU and no files: a tiny model learns to reverse three digits on "
                      "four ranks of this machine's processors, for some minutes (Shift+F6)."));
  auto* open = new QPushButton(Words::tr("Open a run's folder..."));
  connect(open, &QPushButton::clicked, this, &NoRun::openRequested);
  add(open, Words::tr("A folder that tessera run writes or has written, or one of verl's with its "
                      "metrics.jsonl. It can be dropped on the window, too (Ctrl+R)."));
  auto* remote = new QPushButton(Words::tr("Follow a remote run..."));
  connect(remote, &QPushButton::clicked, this, &NoRun::remoteRequested);
  add(remote, Words::tr("A run on another host that tessera serve offers there, through ssh -L "
                        "(Ctrl+Alt+R)."));
  auto* middle = new QVBoxLayout;
  middle->setSpacing(12);
  middle->addStretch(2);
  middle->addWidget(title);
  middle->addWidget(says);
  middle->addLayout(ways);
  middle->addStretch(3);
  auto* layout = new QHBoxLayout(this);
  layout->addStretch(1);
  layout->addLayout(middle, 3);
  layout->addStretch(1);
}

void NoRun::offer(const QString& place) {
  last_->setText(place);
  again_->show();
  last_->show();
}

}  // namespace tessera::gui
