// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/stale_cover.h"

#include <QEvent>
#include <QPainter>

#include "gui/document/words.h"
#include "gui/models/colours.h"

namespace tessera::gui {

StaleCover::StaleCover(QWidget* covered) : QWidget(covered) {
  setAttribute(Qt::WA_TransparentForMouseEvents);
  setAccessibleName(says());
  setObjectName("stale");
  covered->installEventFilter(this);
  hide();
}

QString StaleCover::says() { return Words::tr("This answers an earlier question."); }

void StaleCover::setStale(bool stale) {
  setGeometry(parentWidget()->rect());
  raise();
  setVisible(stale);
}

void StaleCover::leaveOut(QWidget* part) {
  left_out_ = part;
  update();
}

QRegion StaleCover::covered() const {
  const QRegion all(rect());
  if (!left_out_ || !left_out_->isVisibleTo(parentWidget())) return all;
  return all - QRect(left_out_->mapTo(parentWidget(), QPoint(0, 0)), left_out_->size());
}

bool StaleCover::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) setGeometry(parentWidget()->rect());
  return QWidget::eventFilter(watched, event);
}

// One piece of the pattern: whatever changes below has it drawn anew, lines by the hundred.
QPixmap StaleCover::hatch() const {
  constexpr int kApart = 14;
  const double ratio = devicePixelRatioF();
  QPixmap tile(QSize(kApart, kApart) * ratio);
  tile.setDevicePixelRatio(ratio);
  tile.fill(Qt::transparent);
  QPainter painter(&tile);
  QColor line = palette().color(QPalette::Text);
  line.setAlphaF(0.16F);
  painter.setPen(QPen(line, 2));
  painter.setRenderHint(QPainter::Antialiasing);
  for (int x = -kApart; x <= kApart; x += kApart) painter.drawLine(x, kApart, x + kApart, 0);
  return tile;
}

void StaleCover::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setClipRegion(covered());
  QColor fade = palette().color(QPalette::Window);
  fade.setAlphaF(0.55F);
  painter.fillRect(rect(), fade);
  painter.drawTiledPixmap(rect(), hatch());
  const QString text = says();
  QFont bold = font();
  bold.setBold(true);
  painter.setFont(bold);
  QRect box = painter.fontMetrics().boundingRect(text).adjusted(-12, -8, 12, 8);
  constexpr int kDown = 24;
  if (height() < kDown + box.height()) return;
  box.moveCenter({width() / 2, kDown + box.height() / 2});
  const MessageColours colours = coloursOf(Tone::warning, themeOf(palette()));
  painter.fillRect(box, colours.background);
  painter.setPen(colours.text);
  painter.drawText(box, Qt::AlignCenter, text);
}

}  // namespace tessera::gui
