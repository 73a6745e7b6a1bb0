// SPDX-License-Identifier: GPL-3.0-or-later
// The mesh as a picture that is zoomed, with a choice of what its colours mean.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QWidget>

#include "gui/mesh/mesh_canvas.h"
#include "gui/models/session.h"

namespace tessera::gui {

class MeshView : public QWidget {
  Q_OBJECT

 public:
  explicit MeshView(Session& session, QWidget* parent = nullptr);

  void setColouring(const MeshColouring& colouring);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void planChanged();
  void goToColouring(int step);
  void want();
  void describeLevel();
  void describeColours();
  QString fillText() const;
  QString scaleText() const;
  QString phasesText() const;
  QString whyNoColours() const;

  Session& session_;
  QComboBox* colouring_;
  QLabel* level_;
  QPushButton *farther_, *closer_, *all_;
  MeshCanvas* canvas_;
  QLabel* legend_;
};

}  // namespace tessera::gui
