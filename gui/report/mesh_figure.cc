// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/report/mesh_figure.h"

#include <algorithm>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/models/mesh_model.h"
#include "gui/report/figure_frame.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

constexpr int kMostSingle = 32, kMostRows = 48;  // nodes with a row of their own; rows in all
constexpr int kMostColumns = 16;
constexpr double kNames = 110, kCellHeight = 36, kStrip = 7, kHeader = 20;

/// Nodes from first to last, which look alike.
struct NodeRow {
  int first = 0, last = 0;
};

QVariantList roles_of_node(const MeshModel& mesh, int node) {
  QVariantList roles;
  for (int gpu = 0; gpu < mesh.columnCount(); ++gpu) {
    roles << QVariant(mesh.index(node, gpu).data(MeshModel::RoleColoursRole).toList());
  }
  return roles;
}

std::vector<NodeRow> rows_of(const MeshModel& mesh) {
  std::vector<NodeRow> rows;
  QVariantList last;
  for (int node = 0; node < mesh.rowCount(); ++node) {
    if (mesh.rowCount() <= kMostSingle) {
      rows.push_back({node, node});
      continue;
    }
    QVariantList roles = roles_of_node(mesh, node);
    if (!rows.empty() && roles == last) {
      rows.back().last = node;
    } else {
      rows.push_back({node, node});
      last = std::move(roles);
    }
  }
  return rows;
}

void add_rank(Markup& to, const QModelIndex& at, double x, double y, double width) {
  const QVariantList roles = at.data(MeshModel::RoleColoursRole).toList();
  const QColor fill = at.data(Qt::BackgroundRole).value<QColor>();
  const QString coordinate = at.data(MeshModel::CoordinateRole).toString();
  add_box(to, x, y, width, kCellHeight, fill,
          Words::tr("rank %1, %2").arg(at.data().toString(), coordinate));
  const double part = width / static_cast<double>(std::max<qsizetype>(1, roles.size()));
  for (qsizetype i = 0; i < roles.size(); ++i) {
    add_box(to, x + part * static_cast<double>(i), y + kCellHeight - kStrip, part, kStrip,
            roles[i].value<QColor>(), {});
  }
  const bool dark = textOn(fill) == QColor(Qt::black);
  const char* const css_class = dark ? "on-light middle" : "on-dark middle";
  const bool roomy = width >= 76;
  add_label(to, x + width / 2, y + (roomy ? 13 : 18), at.data().toString(), css_class);
  if (roomy) add_label(to, x + width / 2, y + 26, coordinate, css_class);
}

QString name_of_row(const NodeRow& row) {
  return row.first == row.last ? Words::tr("node %1").arg(row.first)
                               : Words::tr("nodes %1-%2").arg(row.first).arg(row.last);
}

}  // namespace

void draw_mesh(Markup& to, const SharedPlan& plan) {
  MeshModel mesh;
  mesh.setPlan(plan);
  const std::vector<NodeRow> rows = rows_of(mesh);
  const int drawn = std::min(static_cast<int>(rows.size()), kMostRows);
  const int columns = std::min(mesh.columnCount(), kMostColumns);
  const double width = columns <= 8 ? 80 : 40;
  open_figure(to, Words::tr("Roles on %1 ranks").arg(plan->world_size()),
              kNames + (width + 3) * columns, kHeader + (kCellHeight + 3) * drawn);
  for (int gpu = 0; gpu < columns; ++gpu) {
    add_label(to, kNames + (width + 3) * gpu + width / 2, 13,
              columns <= 8 ? QString("GPU %1").arg(gpu) : QString::number(gpu), "tick middle");
  }
  for (int row = 0; row < drawn; ++row) {
    const double y = kHeader + (kCellHeight + 3) * row;
    const NodeRow& nodes = rows[static_cast<std::size_t>(row)];
    add_label(to, kNames - 8, y + 22, name_of_row(nodes), "name end");
    for (int gpu = 0; gpu < columns; ++gpu) {
      const QModelIndex at = mesh.index(nodes.first, gpu);
      if (mesh.rankAt(at) >= 0) add_rank(to, at, kNames + (width + 3) * gpu, y, width);
    }
  }
  std::vector<std::pair<QString, QColor>> legend;
  for (const Role role : mesh.roles()) legend.emplace_back(toText(name_of(role)), colourOf(role));
  close_figure(to, legend);
  const int hidden = static_cast<int>(rows.size()) - drawn;
  if (hidden > 0) to.element("p", Words::tr("and %1 rows of nodes more").arg(hidden));
  if (columns < mesh.columnCount()) {
    to.element("p",
               Words::tr("the first %1 of a node's %2 GPUs").arg(columns).arg(mesh.columnCount()));
  }
  const bool folded = std::any_of(rows.begin(), rows.end(),
                                  [](const NodeRow& row) { return row.first != row.last; });
  if (folded)
    to.element("p", Words::tr("Nodes with the same roles share a row: the first one's is drawn."));
}

}  // namespace tessera::gui
