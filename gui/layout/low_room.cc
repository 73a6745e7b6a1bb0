// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/layout/low_room.h"

#include <QEvent>
#include <QScrollBar>
#include <algorithm>

namespace tessera::gui {
namespace {

constexpr int kLeastHeight = 140;  // of what is in sight

}  // namespace

LowRoom::LowRoom(QWidget* content) {
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::NoFocus);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setWidget(content);  // hears of its layout
}

QSize LowRoom::least() const {
  return widget()->minimumSizeHint().expandedTo(widget()->minimumSize());
}

QSize LowRoom::minimumSizeHint() const {
  const int bar = verticalScrollBar()->sizeHint().width();
  return {least().width() + bar, std::min(least().height(), kLeastHeight)};
}

// What a text that wraps would like to have is no reason to scroll: only what it must have is.
void LowRoom::fit() { widget()->resize(viewport()->size().expandedTo({0, least().height()})); }

void LowRoom::resizeEvent(QResizeEvent* event) {
  fit();
  QScrollArea::resizeEvent(event);
}

bool LowRoom::eventFilter(QObject* watched, QEvent* event) {
  if (watched == widget() && event->type() == QEvent::LayoutRequest) {
    updateGeometry();
    fit();
  }
  return QScrollArea::eventFilter(watched, event);
}

}  // namespace tessera::gui
