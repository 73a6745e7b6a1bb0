// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/message_bar.h"

#include <QEvent>
#include <QGuiApplication>
#include <QVBoxLayout>
#include <algorithm>

namespace tessera::gui {
namespace {

constexpr int kMostDetailHeight = 150;

}  // namespace

MessageBar::MessageBar(const QString& name, QWidget* parent)
    : QFrame(parent),
      line_(new QLabel),
      offer_(new QPushButton),
      more_(new QPushButton("&Details")),
      details_(new QPlainTextEdit) {
  setAccessibleName(name);
  setAutoFillBackground(true);
  line_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  line_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  line_->setTextFormat(Qt::PlainText);
  line_->installEventFilter(this);
  line_->setAccessibleName(name);
  more_->setCheckable(true);
  details_->setReadOnly(true);
  details_->setTabChangesFocus(true);
  details_->setMaximumHeight(kMostDetailHeight);
  details_->setLineWrapMode(QPlainTextEdit::WidgetWidth);
  details_->setAccessibleName(name + ", details");
  auto* top = new QHBoxLayout;
  top->addWidget(line_, 1);
  top->addWidget(offer_);
  top->addWidget(more_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 4, 8, 4);
  layout->addLayout(top);
  layout->addWidget(details_);
  connect(more_, &QPushButton::toggled, details_, &QWidget::setVisible);
  connect(offer_, &QPushButton::clicked, this, &MessageBar::offerTaken);
  say({}, Tone::calm);
  offer({});
}

void MessageBar::say(const QString& text, Tone tone, const QString& details) {
  first_ = text.section('\n', 0, 0);
  tone_ = tone;
  const QString rest = details.isEmpty() && text.contains('\n') ? text : details;
  more_->setVisible(!rest.isEmpty());
  if (rest.isEmpty()) more_->setChecked(false);
  details_->setVisible(more_->isChecked());
  if (details_->toPlainText() != rest) details_->setPlainText(rest);
  line_->setToolTip(text.left(2000));
  setVisible(!text.isEmpty());
  colour();
  elide();
}

void MessageBar::offer(const QString& action) {
  offer_->setText(action);
  offer_->setVisible(!action.isEmpty());
}

void MessageBar::colour() {
  const MessageColours colours = coloursOf(tone_, themeOf(QGuiApplication::palette()));
  QPalette mine;
  mine.setColor(QPalette::Window, colours.background);
  mine.setColor(QPalette::WindowText, colours.text);
  setPalette(mine);
}

void MessageBar::elide() {
  line_->setText(
      line_->fontMetrics().elidedText(first_, Qt::ElideRight, std::max(40, line_->width() - 4)));
}

void MessageBar::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::ApplicationPaletteChange) colour();
}

bool MessageBar::eventFilter(QObject* watched, QEvent* event) {
  if (watched == line_ && event->type() == QEvent::Resize) elide();
  return QFrame::eventFilter(watched, event);
}

}  // namespace tessera::gui
