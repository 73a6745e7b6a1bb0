// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/mesh/mesh_painter.h"

#include <QFontMetricsF>
#include <algorithm>
#include <map>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"

namespace tessera::gui {
namespace {

constexpr double kStrip = 6;          // pixels of a cell that show its roles
constexpr double kTextPixels = 16;    // of a cell, from which it has its number
constexpr double kTypeHeight = 0.14;  // cells, below a node

struct Drawing {
  QPainter& painter;
  const MeshPicture& at;

  QRectF pixels(const QRectF& cells) const {
    return at.sight.pixels(cells).translated(at.area.topLeft());
  }
  Theme theme() const { return themeOf(at.palette); }
  bool sees(const QRectF& pixels) const { return at.area.intersects(pixels); }
};

void draw_roles(const Drawing& on, const QRectF& cell, int rank) {
  const std::vector<Role>& roles = on.at.model->rolesOn(rank);
  const double width = cell.width() / static_cast<double>(std::max<std::size_t>(roles.size(), 1));
  double left = cell.left();
  for (const Role role : roles) {
    on.painter.fillRect(QRectF(left, cell.bottom() - kStrip, width, kStrip), colourOf(role));
    left += width;
  }
}

// Its number, and where there is room what it is in its role.
void draw_text(const Drawing& on, const QRectF& cell, int rank, const QColor& fill) {
  QPainter& painter = on.painter;
  painter.setPen(textOn(fill));
  QRectF text = cell.adjusted(2, 0, -2, -kStrip);
  const QFont usual = painter.font();
  if (cell.height() >= 34 && cell.width() >= 62) {
    QFont small = usual;
    small.setPointSizeF(small.pointSizeF() * 0.78);
    painter.setFont(small);
    painter.drawText(text.adjusted(0, text.height() / 2 - 1, 0, 0), Qt::AlignCenter,
                     on.at.model->coordinate(rank));
    text.setHeight(text.height() / 2 + 1);
  }
  QFont bold = usual;
  bold.setBold(true);
  const QString number = QString::number(rank);
  const double width = QFontMetricsF(bold).horizontalAdvance(number);
  if (width > text.width()) bold.setPointSizeF(bold.pointSizeF() * text.width() / width);
  painter.setFont(bold);
  if (bold.pointSizeF() >= 5) painter.drawText(text, Qt::AlignCenter, number);
  painter.setFont(usual);
}

void draw_gpus(const Drawing& on, int node) {
  const MeshLayout& layout = on.at.layout;
  const double gap = on.at.sight.scale >= 12 ? 1 : 0.5;
  const Theme theme = on.theme();
  const int end = std::min(layout.ranks(), (node + 1) * layout.gpusPerNode());
  for (int rank = node * layout.gpusPerNode(); rank < end; ++rank) {
    const QRectF cell = on.pixels(layout.gpu(rank)).adjusted(gap, gap, -gap, -gap);
    if (!on.sees(cell)) continue;
    const QColor fill = on.at.model->colour(rank, theme);
    on.painter.fillRect(cell, fill);
    if (cell.height() < kTextPixels) continue;
    draw_roles(on, cell, rank);
    draw_text(on, cell, rank, fill);
  }
}

// Bars as wide as the shares.
void draw_shares(const Drawing& on, const QRectF& place, int first, int end) {
  double left = place.left();
  for (const auto& [colour, count] : shares_of(*on.at.model, first, end, on.theme())) {
    const double width = place.width() * count / (end - first);
    on.painter.fillRect(QRectF(left, place.top(), width, place.height()), QColor::fromRgb(colour));
    left += width;
  }
}

void draw_type(const Drawing& on, int node) {
  const int type = on.at.model->typeOf(node * on.at.layout.gpusPerNode());
  if (type < 0) return;
  QRectF line = on.at.layout.node(node);
  line.setTop(line.bottom() + 0.05);
  line.setHeight(kTypeHeight);
  on.painter.fillRect(on.pixels(line), colourOfType(type));
}

void draw_pod_text(const Drawing& on, const QRectF& place, int pod, int first, int end) {
  const QFontMetricsF metrics(on.painter.font());
  QString text = Words::tr("pod %1: %2 GPUs").arg(pod).arg(end - first);
  if (metrics.horizontalAdvance(text) + 8 > place.width()) text = QString::number(pod);
  const QRectF box(place.topLeft(), QSizeF(metrics.horizontalAdvance(text) + 8, metrics.height()));
  if (box.width() > place.width() || box.height() > place.height()) return;
  on.painter.fillRect(box, on.at.palette.color(QPalette::Base));
  on.painter.setPen(on.at.palette.color(QPalette::Text));
  on.painter.drawText(box, Qt::AlignCenter, text);
}

void draw_pods(const Drawing& on) {
  const MeshLayout& layout = on.at.layout;
  const int in_pod = layout.nodesPerPod() * layout.gpusPerNode();
  for (int pod = 0; pod < layout.pods(); ++pod) {
    const QRectF place = on.pixels(layout.pod(pod));
    if (!on.sees(place)) continue;
    const int first = pod * in_pod, end = std::min(first + in_pod, layout.ranks());
    draw_shares(on, place, first, end);
    draw_pod_text(on, place, pod, first, end);
  }
}

void draw_nodes(const Drawing& on, MeshLevel level) {
  const MeshLayout& layout = on.at.layout;
  for (int node = 0; node < layout.nodes(); ++node) {
    const QRectF place = on.pixels(layout.node(node));
    if (!on.sees(place)) continue;
    if (level == MeshLevel::gpus) {
      draw_gpus(on, node);
    } else {
      const int first = node * layout.gpusPerNode();
      draw_shares(on, place, first, std::min(first + layout.gpusPerNode(), layout.ranks()));
    }
    draw_type(on, node);
  }
}

void frame(const Drawing& on, const QRectF& place, bool chosen) {
  on.painter.setPen(QPen(on.at.palette.color(QPalette::Text), chosen ? 3 : 2,
                         chosen ? Qt::SolidLine : Qt::DotLine));
  on.painter.drawRect(place.adjusted(1, 1, -2, -2));
}

// The chosen rank and its group; from far away the nodes or pods that they are in.
void draw_chosen(const Drawing& on, MeshLevel level) {
  const int chosen = on.at.model->chosenRank();
  if (chosen < 0 || chosen >= on.at.layout.ranks()) return;
  const MeshLayout& layout = on.at.layout;
  const auto place = [&](int rank) {
    const int node = rank / layout.gpusPerNode();
    return level == MeshLevel::gpus    ? layout.gpu(rank)
           : level == MeshLevel::nodes ? layout.node(node)
                                       : layout.pod(layout.podOf(node));
  };
  const auto within = [&](int rank) {
    const int node = rank / layout.gpusPerNode();
    return level == MeshLevel::gpus ? rank : level == MeshLevel::nodes ? node : layout.podOf(node);
  };
  std::map<int, int> framed;  // one frame a place
  for (const int rank : on.at.model->peers()) framed.emplace(within(rank), rank);
  framed.erase(within(chosen));
  for (const auto& [at, rank] : framed) {
    if (const QRectF pixels = on.pixels(place(rank)); on.sees(pixels)) frame(on, pixels, false);
  }
  frame(on, on.pixels(place(chosen)), true);
}

}  // namespace

QColor colourOfType(int type) {
  static constexpr QRgb kColours[] = {0xff1b1f24, 0xffb8860b, 0xff6a51a3, 0xff238b45};
  return QColor::fromRgb(kColours[type % 4]);
}

std::vector<std::pair<QRgb, int>> shares_of(const MeshModel& model, int first, int end,
                                            Theme theme) {
  std::vector<std::pair<QRgb, int>> shares;
  for (int rank = first; rank < end; ++rank) {
    const QRgb colour = model.colour(rank, theme).rgb();
    const auto known = std::find_if(shares.begin(), shares.end(),
                                    [&](const auto& share) { return share.first == colour; });
    known == shares.end() ? shares.emplace_back(colour, 1) : (++known->second, *known);
  }
  return shares;
}

void paint_mesh(QPainter& painter, const MeshPicture& picture) {
  const Drawing on{painter, picture};
  const MeshLevel level = levelOf(picture.sight, picture.layout);
  painter.save();
  painter.setClipRect(picture.area);
  level == MeshLevel::pods ? draw_pods(on) : draw_nodes(on, level);
  draw_chosen(on, level);
  painter.restore();
}

void paint_minimap(QPainter& painter, const MeshModel& model, const MeshLayout& layout,
                   const QRectF& area, const QPalette& palette) {
  MeshPicture picture{&model, layout, sightOfAll(layout, area.size()), area, palette};
  const Drawing on{painter, picture};
  draw_nodes(on, MeshLevel::nodes);
}

QString describe_nodes(const MeshModel& model, const MeshLayout& layout, int first_node,
                       int end_node) {
  const int first = first_node * layout.gpusPerNode();
  const int end = std::min(end_node * layout.gpusPerNode(), layout.ranks());
  std::map<QString, int> uses;
  int idle = 0;
  for (int rank = first; rank < end; ++rank) {
    QStringList names;
    for (const Role role : model.rolesOn(rank)) names << toText(name_of(role));
    names.isEmpty() ? ++idle : ++uses[names.join(" + ")];
  }
  QString text =
      end_node - first_node == 1
          ? Words::tr("<b>node %1</b>, ranks %2-%3").arg(first_node).arg(first).arg(end - 1)
          : Words::tr("<b>pod %1</b>, nodes %2-%3, ranks %4-%5")
                .arg(layout.podOf(first_node))
                .arg(first_node)
                .arg((end - 1) / layout.gpusPerNode())
                .arg(first)
                .arg(end - 1);
  text += "<br>" + model.typesText(first, end).toHtmlEscaped();
  for (const auto& [roles, count] : uses)
    text += Words::tr("<br>%1 GPUs: %2").arg(count).arg(roles);
  if (idle > 0) text += Words::tr("<br>%1 GPUs are not used").arg(idle);
  return text;
}

}  // namespace tessera::gui
