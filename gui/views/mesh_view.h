// SPDX-License-Identifier: GPL-3.0-or-later
// The mesh as a grid of cells with a choice of what their colours mean.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QTableView>
#include <QWidget>

#include "gui/models/session.h"

namespace tessera::gui {

class MeshView : public QWidget {
  Q_OBJECT

 public:
  explicit MeshView(Session& session, QWidget* parent = nullptr);

  void setColouring(const MeshColouring& colouring);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void planChanged();
  void fitCells();
  void describeColours();

  Session& session_;
  QComboBox* colouring_;
  QTableView* grid_;
  QLabel* legend_;
};

}  // namespace tessera::gui
