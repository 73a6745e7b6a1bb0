// SPDX-License-Identifier: GPL-3.0-or-later
// The ranked plans as a table that sorts and filters; the row that is looked at follows the session
// and changes it: at once by a click or Enter, after a moment by the arrow keys.
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QShortcut>
#include <QSortFilterProxyModel>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/document/words.h"
#include "gui/views/table.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

constexpr int kRestMs = 250;  // the arrows may pass rows without planning each
constexpr int kFillMs = 600;  // an answer that stays has its other rows planned in full
constexpr double kQuick = 1;  // seconds of a search whose rows take little, too

struct PlanTable {
  QTableView* table;
  QSortFilterProxyModel* order;
  Session* session;
  QLabel* nothing;  // why the table is empty

  void show() const {
    const bool hidden = order->rowCount() == 0 && session->plans()->rowCount() > 0;
    nothing->setText(hidden ? Words::tr("None of these %1 plans. A degree that is fixed in the "
                                        "question is searched for among all.")
                                  .arg(session->plans()->rowCount())
                            : QString());
    nothing->setVisible(hidden);
    const QSignalBlocker quiet(table->selectionModel());
    const QModelIndex row =
        order->mapFromSource(session->plans()->index(session->selectedRow(), 0));
    if (!row.isValid()) {
      table->clearSelection();
    } else if (row.row() != table->currentIndex().row() ||
               !table->selectionModel()->isRowSelected(row.row())) {
      table->setCurrentIndex(row);
      table->selectRow(row.row());
      table->scrollTo(row);  // another view may have chosen it
    }
    table->setColumnHidden(PlanTableModel::Cost, !session->plans()->isByCost());
    table->viewport()->update();
  }
  void fitColumns() const {
    table->setColumnHidden(PlanTableModel::Cost, !session->plans()->isByCost());
    for (int column = 0; column < PlanTableModel::Layouts; ++column) {
      table->resizeColumnToContents(column);
    }
    fitLayouts();
  }
  /// The room that is left, and never less than they need: the table then scrolls to their end.
  void fitLayouts() const {
    constexpr int kLayouts = PlanTableModel::Layouts;
    const int left = table->viewport()->width() - table->horizontalHeader()->length() +
                     table->columnWidth(kLayouts);
    const int needed = std::max(static_cast<QAbstractItemView*>(table)->sizeHintForColumn(kLayouts),
                                table->horizontalHeader()->sectionSizeHint(kLayouts));
    table->setColumnWidth(kLayouts, std::max(left, needed));
  }
  void choose(const QModelIndex& index) const {
    if (index.isValid()) session->selectRow(order->mapToSource(index).row());
  }
};

/// Fits the layouts whenever the table has another width.
class LayoutsFitter : public QObject {
 public:
  explicit LayoutsFitter(const PlanTable& plans) : QObject(plans.table), plans_(plans) {
    plans.table->viewport()->installEventFilter(this);
  }
  bool eventFilter(QObject*, QEvent* event) override {
    if (event->type() == QEvent::Resize) plans_.fitLayouts();
    return false;
  }

 private:
  PlanTable plans_;
};

void connectTable(const PlanTable& plans, QLineEdit* filter) {
  QTableView* table = plans.table;
  auto* rest = new QTimer(table);
  rest->setSingleShot(true);
  rest->setInterval(kRestMs);
  QObject::connect(table->selectionModel(), &QItemSelectionModel::currentRowChanged, rest,
                   [rest] { rest->start(); });
  QObject::connect(rest, &QTimer::timeout, table,
                   [plans] { plans.choose(plans.table->currentIndex()); });
  for (const auto signal : {&QTableView::clicked, &QTableView::activated}) {
    QObject::connect(table, signal, table, [plans, rest](const QModelIndex& index) {
      rest->stop();
      plans.choose(index);
    });
  }
  QObject::connect(plans.session, &Session::documentChanged, table, [plans] { plans.show(); });
  QObject::connect(plans.session, &Session::planSelected, table, [plans] { plans.fitColumns(); });
  QObject::connect(plans.order, &QAbstractItemModel::dataChanged, table,
                   [plans] { plans.fitLayouts(); });
  QObject::connect(plans.order, &QAbstractItemModel::rowsInserted, table,
                   [plans] { plans.fitLayouts(); });
  QObject::connect(filter, &QLineEdit::textChanged, plans.order,
                   &QSortFilterProxyModel::setFilterFixedString);
  QObject::connect(filter, &QLineEdit::textChanged, table, [plans] { plans.show(); });
}

// What rows lack, and what fixed settings cost, comes once the answer rests; after a search that
// took long, rows once they are chosen.
void fillTable(QTableView* table, Session& session) {
  auto* fill = new QTimer(table);
  fill->setSingleShot(true);
  fill->setInterval(kFillMs);
  Session* filled = &session;
  QObject::connect(&session, &Session::documentChanged, fill, [fill, filled] {
    const Document& document = filled->document();
    const bool rests = document.valid() && !document.planning;
    rests ? fill->start() : fill->stop();
  });
  QObject::connect(fill, &QTimer::timeout, table, [filled] {
    if (filled->document().seconds < kQuick) filled->wantEveryPlan();
    filled->wantFreer();
  });
}

QWidget* makePlanTable(Session& session) {
  auto* panel = new QWidget;
  auto* order = new QSortFilterProxyModel(panel);
  order->setSourceModel(session.plans());
  order->setSortRole(PlanTableModel::SortRole);
  order->setFilterKeyColumn(-1);
  order->setFilterCaseSensitivity(Qt::CaseInsensitive);
  QTableView* table = makeTable(order, Words::tr("Ranked plans"));
  table->setSelectionMode(QAbstractItemView::SingleSelection);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setSortingEnabled(true);
  table->sortByColumn(-1, Qt::AscendingOrder);  // as the planner ranks them
  table->horizontalHeader()->setStretchLastSection(false);
  table->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table->setMinimumHeight(104);
  auto* filter = new QLineEdit;
  filter->setPlaceholderText(Words::tr("Filter plans, as \"tp8\" or \"colocated\""));
  filter->setAccessibleName(Words::tr("Filter of the ranked plans"));
  filter->setClearButtonEnabled(true);
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  auto* nothing = new QLabel;
  nothing->setWordWrap(true);
  layout->addWidget(filter);
  layout->addWidget(nothing);
  layout->addWidget(table, 1);
  auto* find = new QShortcut(QKeySequence::Find, panel);
  QObject::connect(find, &QShortcut::activated, filter,
                   [filter] { filter->setFocus(Qt::ShortcutFocusReason); });
  const PlanTable plans{table, order, &session, nothing};
  connectTable(plans, filter);
  new LayoutsFitter(plans);  // the table's
  fillTable(table, session);
  return panel;
}

const RegisteredView kPlanTableView({"plans", Place::plans, 0, 1, "", makePlanTable,
                                     [](Session& session) { return csvOf(*session.plans()); }});

}  // namespace
}  // namespace tessera::gui
