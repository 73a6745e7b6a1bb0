// SPDX-License-Identifier: GPL-3.0-or-later
// How weights travel from training to rollout: who sends whom what, as a matrix and as arrows over
// the mesh, and what every method would cost.
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "gui/document/words.h"
#include "gui/mesh/flow_mesh.h"
#include "gui/models/colours.h"
#include "gui/reshard/flow_matrix_model.h"
#include "gui/reshard/methods_model.h"
#include "gui/views/table.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

/// The more bytes the stronger; what stays is hatched.
class FlowDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option,
             const QModelIndex& index) const override {
    const QRect cell = option.rect.adjusted(0, 0, -1, -1);
    const QColor base = option.palette.color(QPalette::Base);
    const double share = index.data(FlowMatrixModel::ShareRole).toDouble();
    const QColor strong(0x2b, 0x5c, 0xa6);
    const auto mix = [&](int a, int b) {
      const double part = share > 0 ? 0.15 + 0.85 * share : 0;
      return static_cast<int>(a + (b - a) * part);
    };
    const QColor fill(mix(base.red(), strong.red()), mix(base.green(), strong.green()),
                      mix(base.blue(), strong.blue()));
    painter->save();
    painter->fillRect(cell, fill);
    if (index.data(FlowMatrixModel::StaysRole).toBool()) {
      painter->fillRect(cell, QBrush(option.palette.color(QPalette::Button), Qt::BDiagPattern));
    }
    painter->setPen(textOn(fill));
    const QString text = index.data().toString();
    if (QFontMetrics(option.font).horizontalAdvance(text) <= cell.width()) {
      painter->drawText(cell, Qt::AlignCenter, text);
    }
    if (option.state & QStyle::State_Selected) {
      painter->setPen(QPen(option.palette.color(QPalette::Text), 2));
      painter->drawRect(cell.adjusted(1, 1, -1, -1));
    }
    painter->restore();
  }
};

/// The methods in an order, the plan's own in bold letters.
class MethodOrder : public QSortFilterProxyModel {
 public:
  using QSortFilterProxyModel::QSortFilterProxyModel;

  QVariant data(const QModelIndex& index, int role) const override {
    if (role != Qt::FontRole) return QSortFilterProxyModel::data(index, role);
    if (!index.data(MethodsModel::UsedRole).toBool()) return {};
    QFont font;
    font.setBold(true);
    return font;
  }
};

/// Why there are no flows, or what they are sums of; empty where each is of two ranks' exact
/// ranges.
QString aboutFlows(const ReshardFacts& facts) {
  if (!facts.no_flows.isEmpty()) return facts.no_flows;
  QStringList says;
  if (!facts.counted.isEmpty()) says << facts.counted;
  if (facts.by_node) {
    says << Words::tr(
                "With %1 ranks the ends are nodes: what their %2 ranks send and receive "
                "together.")
                .arg(facts.ranks)
                .arg(facts.ranks_per_node);
  }
  return says.join(" ");
}

class ReshardView : public QWidget {
 public:
  explicit ReshardView(Session& session);

 protected:
  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    session_.reshard()->want();
  }

 private:
  QWidget* matrix();
  QWidget* arrows();
  QWidget* methods();
  void factsChanged();
  void showCaption();
  void viewChanged(const ViewState& view);
  int endOf(int rank) const;
  int rankOf(int end) const;

  Session& session_;
  FlowMatrixModel* flows_;
  MethodsModel* methods_;
  QComboBox* part_;
  QTableView* grid_ = nullptr;
  FlowMesh* mesh_;
  QLabel *says_, *caption_;
};

ReshardView::ReshardView(Session& session)
    : session_(session),
      flows_(new FlowMatrixModel(this)),
      methods_(new MethodsModel(this)),
      part_(new QComboBox),
      mesh_(new FlowMesh(*flows_)),
      says_(new QLabel),
      caption_(new QLabel) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 4, 0, 0);
  says_->setTextFormat(Qt::PlainText);
  says_->setWordWrap(true);
  layout->addWidget(says_);
  auto* upper = new QSplitter;
  upper->setObjectName("reshard_bytes");
  upper->setChildrenCollapsible(false);
  upper->addWidget(matrix());
  upper->addWidget(arrows());
  upper->setSizes({600, 600});
  auto* split = new QSplitter(Qt::Vertical);
  split->setObjectName("reshard");
  split->setChildrenCollapsible(false);
  split->addWidget(upper);
  split->addWidget(methods());
  split->setSizes({440, 320});
  layout->addWidget(split, 1);
  connect(&session, &Session::viewChanged, this,
          [this](const ViewState& view) { viewChanged(view); });
  connect(session.reshard(), &PlanWatch::changed, this, [this] { factsChanged(); });
  factsChanged();
}

QWidget* ReshardView::matrix() {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* top = new QHBoxLayout;
  auto* label = new QLabel(Words::tr("<b>Bytes</b> from row to column &nbsp; of"));
  label->setBuddy(part_);
  part_->setAccessibleName(Words::tr("Part of the model, or step, that travels"));
  part_->setMinimumContentsLength(16);
  top->addWidget(label);
  top->addWidget(part_);
  top->addStretch(1);
  layout->addLayout(top);
  grid_ = new QTableView;
  grid_->setModel(flows_);
  grid_->setItemDelegate(new FlowDelegate(grid_));
  grid_->setAccessibleName(Words::tr("Bytes from sender to receiver"));
  grid_->setSelectionMode(QAbstractItemView::SingleSelection);
  grid_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  grid_->setShowGrid(false);
  grid_->setTabKeyNavigation(false);
  for (QHeaderView* header : {grid_->horizontalHeader(), grid_->verticalHeader()}) {
    header->setMinimumSectionSize(20);
    header->setSectionResizeMode(QHeaderView::Fixed);
  }
  grid_->horizontalHeader()->setDefaultSectionSize(46);
  grid_->verticalHeader()->setDefaultSectionSize(24);
  layout->addWidget(grid_, 1);
  connect(part_, &QComboBox::currentIndexChanged, this, [this](int part) {
    if (part < 0) return;
    flows_->setPart(part);
    showCaption();
    viewChanged(session_.view());
  });
  connect(grid_->selectionModel(), &QItemSelectionModel::currentChanged, this,
          [this](const QModelIndex& at) {
            if (!at.isValid()) return;
            session_.look({rankOf(at.column()), session_.view().phase});
            mesh_->choose(at.column(), std::pair(at.row(), at.column()));
          });
  return panel;
}

QWidget* ReshardView::arrows() {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  caption_->setWordWrap(true);
  layout->addWidget(mesh_, 1);
  layout->addWidget(caption_);
  connect(mesh_, &FlowMesh::endClicked, this, [this](int end) {
    session_.look({end < 0 ? -1 : rankOf(end), session_.view().phase});
    mesh_->choose(end, std::nullopt);
  });
  return panel;
}

QWidget* ReshardView::methods() {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(new QLabel(
      Words::tr("<b>Methods</b>, bytes of the busiest rank; total is what the rollout waits for "
                "its weights")));
  auto* order = new MethodOrder(panel);
  order->setSourceModel(methods_);
  order->setSortRole(MethodsModel::SortRole);
  QTableView* table = makeTable(order, Words::tr("Methods to reshard"), MethodsModel::BadRole);
  table->setSortingEnabled(true);
  table->sortByColumn(MethodsModel::Total, Qt::AscendingOrder);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->verticalHeader()->hide();
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  layout->addWidget(table, 1);
  return panel;
}

void ReshardView::factsChanged() {
  const auto& job = *session_.reshard();
  const auto& facts = job.facts();
  flows_->setFacts(facts);
  methods_->setMethods(facts ? facts->methods : std::vector<MethodCost>{},
                       facts ? facts->used : std::nullopt);
  const QSignalBlocker quiet(part_);
  part_->clear();
  if (facts) {
    for (const ReshardPart* part : facts->choices()) part_->addItem(part->name);
    mesh_->setMesh(facts->by_node ? 8 : std::min(facts->ranks, facts->ranks_per_node));
  }
  part_->setEnabled(part_->count() > 0);
  showCaption();
  const QString text =
      facts ? aboutFlows(*facts) : job.whyNone(Words::tr("Working out the reshard"));
  says_->setText(text);
  says_->setVisible(!text.isEmpty());
  viewChanged(session_.view());
  if (isVisible()) session_.reshard()->want();
}

// Of the whole model also why it has no steps.
void ReshardView::showCaption() {
  const auto& facts = session_.reshard()->facts();
  QString text = facts && facts->no_flows.isEmpty() ? mesh_->caption() : QString();
  if (!text.isEmpty() && part_->currentIndex() <= 0 && !facts->no_steps.isEmpty()) {
    text += " " + facts->no_steps;
  }
  caption_->setText(text);
}

int ReshardView::endOf(int rank) const {
  const auto& facts = session_.reshard()->facts();
  return !facts || rank < 0 ? -1 : facts->by_node ? rank / facts->ranks_per_node : rank;
}

int ReshardView::rankOf(int end) const {
  const auto& facts = session_.reshard()->facts();
  return facts && facts->by_node ? end * facts->ranks_per_node : end;
}

// The receiver's column, in the row that is looked at already.
void ReshardView::viewChanged(const ViewState& view) {
  const int end = endOf(view.rank);
  mesh_->choose(end, std::nullopt);
  const QModelIndex now = grid_->currentIndex();
  if (end < 0 || (now.isValid() && now.column() == end)) return;
  const QSignalBlocker quiet(grid_->selectionModel());
  grid_->setCurrentIndex(flows_->index(now.isValid() ? now.row() : end, end));
  grid_->viewport()->update();
}

const RegisteredView kReshardView(
    {"reshard", Place::whole, 1, 1, QT_TRANSLATE_NOOP("Words", "Reshard"),
     [](Session& session) -> QWidget* { return new ReshardView(session); },
     [](Session& session) {
       const auto& facts = session.reshard()->facts();
       return facts ? facts->csv : std::string();
     },
     [](Session& session) {
       const auto& facts = session.reshard()->facts();
       return facts ? facts->json : std::string();
     }});

}  // namespace
}  // namespace tessera::gui
