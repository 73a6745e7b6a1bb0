// SPDX-License-Identifier: GPL-3.0-or-later
// Draws the ranks of a plan as closely as they are looked at: GPUs with their roles and peers, or
// nodes and pods by the shares of their colours. Pure functions of the model; GUI thread.
#pragma once

#include <QPainter>
#include <QPalette>
#include <QString>
#include <utility>
#include <vector>

#include "gui/mesh/mesh_layout.h"
#include "gui/models/mesh_model.h"

namespace tessera::gui {

/// A part of the picture: where, and how closely.
struct MeshPicture {
  const MeshModel* model = nullptr;
  MeshLayout layout;
  MeshSight sight;
  QRectF area;  // pixels of the canvas
  QPalette palette;
};

/// GPUs of each colour among these ranks, in the order in which they first occur.
std::vector<std::pair<QRgb, int>> shares_of(const MeshModel& model, int first, int end,
                                            Theme theme = Theme::light);

void paint_mesh(QPainter& painter, const MeshPicture& picture);
/// All of it in `area`, by nodes; without frames and texts.
void paint_minimap(QPainter& painter, const MeshModel& model, const MeshLayout& layout,
                   const QRectF& area, const QPalette& palette);
/// Of the GPU types, where there are several; the same everywhere.
QColor colourOfType(int type);

/// What a node or a pod is, in lines: its ranks, types, how many GPUs do what, idle ones.
QString describe_nodes(const MeshModel& model, const MeshLayout& layout, int first_node,
                       int end_node);

}  // namespace tessera::gui
