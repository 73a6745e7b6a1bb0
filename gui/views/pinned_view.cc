// SPDX-License-Identifier: GPL-3.0-or-later
// Pinned plans side by side: what differs, and a sentence on why one is slower.
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/views/table.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

QString hint(const PinnedModel& pinned) {
  if (pinned.count() == 0)
    return Words::tr("Pin the plan that is looked at, then another, to compare them.");
  if (pinned.count() == 1) return Words::tr("Pin another plan to see in what they differ.");
  return pinned.sentence();
}

QWidget* makePinned(Session& session) {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 4, 0, 0);
  auto* says = new QLabel;
  says->setWordWrap(true);
  says->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* pin = new QPushButton(Words::tr("&Pin this plan"));
  auto* unpin = new QPushButton(Words::tr("Unpin"));
  QTableView* table = makeTable(session.pinned(), Words::tr("Pinned plans"));
  table->setSelectionBehavior(QAbstractItemView::SelectColumns);
  table->setWordWrap(true);
  table->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table->horizontalHeader()->setStretchLastSection(false);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  auto* top = new QHBoxLayout;
  top->addWidget(says, 1);
  top->addWidget(pin);
  top->addWidget(unpin);
  layout->addLayout(top);
  layout->addWidget(table, 1);
  Session* asked = &session;
  const auto show = [=] {
    PinnedModel& pinned = *asked->pinned();
    says->setText(withUnitsKept(hint(pinned)));
    pin->setEnabled(asked->document().valid());
    unpin->setEnabled(pinned.count() > 0);
  };
  QObject::connect(pin, &QPushButton::clicked, asked, &Session::pin);
  QObject::connect(unpin, &QPushButton::clicked, table, [=] {
    const int column = table->currentIndex().isValid() ? table->currentIndex().column() : 0;
    asked->pinned()->unpin(column);
  });
  QObject::connect(asked->pinned(), &QAbstractItemModel::modelReset, panel, show);
  QObject::connect(asked, &Session::documentChanged, panel, show);
  show();
  return panel;
}

const RegisteredView kPinnedView({"pinned", Place::tabs, 0, 1,
                                  QT_TRANSLATE_NOOP("Words", "Compare"), makePinned,
                                  [](Session& session) { return csvOf(*session.pinned()); }});

}  // namespace
}  // namespace tessera::gui
