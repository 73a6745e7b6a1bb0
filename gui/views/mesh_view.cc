// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/mesh_view.h"

#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/document/text.h"
#include "gui/models/colours.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

/// A rank: its number and coordinate on the group's colour, a strip of the colours of its roles
/// below, a frame around the chosen rank's peers.
class RankDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option,
             const QModelIndex& index) const override {
    if (index.data(MeshModel::RankRole).toInt() < 0) return;
    const QRect cell = option.rect.adjusted(1, 1, -1, -1);
    painter->save();
    painter->fillRect(cell, index.data(Qt::BackgroundRole).value<QColor>());
    paintRoles(*painter, cell, index.data(MeshModel::RoleColoursRole).toList());
    painter->setPen(index.data(Qt::ForegroundRole).value<QColor>());
    const bool roomy = cell.height() >= 34 && cell.width() >= 62;
    QRect text = cell.adjusted(2, 0, -2, -kStrip);
    if (roomy) {
      QFont small = option.font;
      small.setPointSizeF(small.pointSizeF() * 0.78);
      painter->setFont(small);
      painter->drawText(text.adjusted(0, text.height() / 2 - 1, 0, 0), Qt::AlignCenter,
                        index.data(MeshModel::CoordinateRole).toString());
      text.setHeight(text.height() / 2 + 1);
    }
    QFont bold = option.font;
    bold.setBold(true);
    painter->setFont(bold);
    if (cell.width() >= 16) painter->drawText(text, Qt::AlignCenter, index.data().toString());
    const bool chosen = option.state & QStyle::State_Selected;
    if (chosen || index.data(MeshModel::PeerRole).toBool()) {
      painter->setPen(QPen(option.palette.color(QPalette::Text), chosen ? 3 : 2,
                           chosen ? Qt::SolidLine : Qt::DotLine));
      painter->drawRect(cell.adjusted(1, 1, -2, -2));
    }
    painter->restore();
  }

  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override {
    return {40, 30};
  }

 private:
  static constexpr int kStrip = 6;

  static void paintRoles(QPainter& painter, const QRect& cell, const QVariantList& colours) {
    if (colours.isEmpty()) return;
    const int top = cell.bottom() - kStrip + 1;
    for (qsizetype i = 0; i < colours.size(); ++i) {
      const int left = cell.left() + static_cast<int>(cell.width() * i / colours.size());
      const int right = cell.left() + static_cast<int>(cell.width() * (i + 1) / colours.size());
      painter.fillRect(QRect(left, top, right - left, kStrip), colours[i].value<QColor>());
    }
  }
};

QString swatch(const QColor& colour, const QString& text) {
  return QString("<span style='color:%1'>&#9632;</span>&nbsp;%2").arg(colour.name(), text);
}

const RegisteredView kMeshView({"mesh", Place::left, 0, 330, "", [](Session& session) -> QWidget* {
                                  return new MeshView(session);
                                }});

}  // namespace

MeshView::MeshView(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      colouring_(new QComboBox),
      grid_(new QTableView),
      legend_(new QLabel) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* top = new QHBoxLayout;
  auto* title = new QLabel("<b>Mesh</b>&nbsp;&nbsp;colour by");
  title->setBuddy(colouring_);
  top->addWidget(title);
  top->addWidget(colouring_, 1);
  layout->addLayout(top);
  layout->addWidget(grid_, 1);
  layout->addWidget(legend_);
  legend_->setWordWrap(true);
  colouring_->setAccessibleName("Meaning of the mesh's colours");
  grid_->setAccessibleName("Mesh of ranks");
  grid_->setModel(session.mesh());
  grid_->setItemDelegate(new RankDelegate(grid_));
  grid_->setSelectionMode(QAbstractItemView::SingleSelection);
  grid_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  grid_->setShowGrid(false);
  grid_->setTabKeyNavigation(false);
  grid_->setMinimumHeight(120);
  for (QHeaderView* header : {grid_->horizontalHeader(), grid_->verticalHeader()}) {
    header->setSectionsClickable(false);
    header->setMinimumSectionSize(12);
    header->setSectionResizeMode(QHeaderView::Fixed);
  }
  connect(&session, &Session::planSelected, this, &MeshView::planChanged);
  connect(colouring_, &QComboBox::activated, this,
          [this] { setColouring(colouring_->currentData().value<MeshColouring>()); });
  connect(grid_->selectionModel(), &QItemSelectionModel::currentChanged, this,
          [this](const QModelIndex& current) {
            session_.look({session_.mesh()->rankAt(current), session_.view().phase});
          });
  connect(&session_, &Session::viewChanged, this, [this](const ViewState& view) {
    if (session_.mesh()->rankAt(grid_->currentIndex()) == view.rank) return;
    const QSignalBlocker quiet(grid_->selectionModel());
    grid_->setCurrentIndex(session_.mesh()->indexOf(view.rank));
    grid_->viewport()->update();
  });
}

void MeshView::planChanged() {
  const MeshColouring kept =
      colouring_->count() > 0 ? session_.mesh()->colouring() : MeshColouring{};
  colouring_->clear();
  colouring_->addItem("roles that share a rank", QVariant::fromValue(MeshColouring{}));
  for (const Role role : session_.mesh()->roles()) {
    for (const Axis axis : {Axis::tp, Axis::pp, Axis::dp, Axis::model}) {
      const QString what = axis == Axis::model ? "model replicas" : axisName(axis) + " groups";
      colouring_->addItem(toText(name_of(role)) + ": " + what,
                          QVariant::fromValue(MeshColouring{role, axis}));
    }
  }
  setColouring(kept);
}

void MeshView::setColouring(const MeshColouring& colouring) {
  session_.mesh()->setColouring(colouring);
  for (int i = 0; i < colouring_->count(); ++i) {
    if (colouring_->itemData(i).value<MeshColouring>() == session_.mesh()->colouring()) {
      colouring_->setCurrentIndex(i);
    }
  }
  fitCells();
  describeColours();
}

void MeshView::describeColours() {
  QStringList parts;
  for (const Role role : session_.mesh()->roles()) {
    parts << swatch(colourOf(role), toText(name_of(role)));
  }
  legend_->setText("strip: " + parts.join("&nbsp; ") + "&nbsp;&nbsp; fill: " +
                   colouring_->currentText() + QString(" (%1)").arg(session_.mesh()->groupCount()));
}

void MeshView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fitCells();
}

// Cells fill the grid as far as they stay readable; larger meshes scroll.
void MeshView::fitCells() {
  const int columns = session_.mesh()->columnCount();
  const int rows = session_.mesh()->rowCount();
  if (columns == 0 || rows == 0) return;
  const int width = grid_->width() - grid_->verticalHeader()->sizeHint().width() - 6;
  const int height = grid_->height() - grid_->horizontalHeader()->sizeHint().height() - 6;
  grid_->horizontalHeader()->setDefaultSectionSize(std::clamp(width / columns, 34, 110));
  grid_->verticalHeader()->setDefaultSectionSize(std::clamp(height / rows, 24, 90));
}

}  // namespace tessera::gui
