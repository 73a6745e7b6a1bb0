// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/message_bar.h"

#include <QEvent>
#include <QGridLayout>
#include <QGuiApplication>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/document/text.h"
#include "gui/document/words.h"

namespace tessera::gui {
namespace {

constexpr int kMostDetailHeight = 150;
constexpr int kMostOfWindow = 10;  // a part of its height: pictures are what the window is for

}  // namespace

MessageBar::MessageBar(const QString& name, QWidget* parent)
    : QFrame(parent),
      line_(new QLabel),
      offer_(new QPushButton),
      more_(new QPushButton(Words::tr("&Details"))),
      offers_(new QWidget),
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
  details_->setMinimumHeight(3 * details_->fontMetrics().lineSpacing());
  details_->setLineWrapMode(QPlainTextEdit::WidgetWidth);
  details_->setAccessibleName(Words::tr("%1, details").arg(name));
  auto* top = new QHBoxLayout;
  top->addWidget(line_, 1);
  top->addWidget(offer_);
  top->addWidget(more_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 4, 8, 4);
  layout->addLayout(top);
  layout->addWidget(offers_);
  layout->addWidget(details_);
  auto* offers = new QGridLayout(offers_);
  offers->setContentsMargins(0, 0, 0, 0);
  offers->setSpacing(4);
  offers_->hide();
  connect(more_, &QPushButton::toggled, details_, [this](bool shown) {
    details_->setMaximumHeight(std::min(kMostDetailHeight, window()->height() / kMostOfWindow));
    details_->setVisible(shown);
  });
  connect(offer_, &QPushButton::clicked, this, [this] { emit offerTaken(0); });
  cover_ = new StaleCover(this);
  cover_->setObjectName("stale_message");
  say({}, Tone::calm);
  offer({});
}

void MessageBar::setStale(bool stale) {
  if (stale != cover_->isHidden()) return;
  cover_->setStale(stale);
  setAccessibleDescription(stale ? StaleCover::says() : QString());
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
  setStale(false);
  colour();
  elide();
}

void MessageBar::offer(const QString& action) {
  offer_->setText(action);
  offer_->setVisible(!action.isEmpty());
}

// Two in a row, as wide as the window lets them be.
void MessageBar::offerAll(const std::vector<std::pair<QString, QString>>& actions) {
  if (actions == offered_) return;
  offered_ = actions;
  qDeleteAll(offers_->findChildren<QPushButton*>());
  auto* grid = static_cast<QGridLayout*>(offers_->layout());
  for (std::size_t i = 0; i < actions.size(); ++i) {
    auto* button = new QPushButton(actions[i].first);
    button->setToolTip(actions[i].second);
    button->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    const auto number = static_cast<int>(i);
    connect(
        button, &QPushButton::clicked, this, [this, number] { emit offerTaken(number); },
        Qt::QueuedConnection);
    grid->addWidget(button, number / 2, number % 2);
  }
  offers_->setVisible(!actions.empty());
}

void MessageBar::colour() {
  const MessageColours colours = coloursOf(tone_, themeOf(QGuiApplication::palette()));
  QPalette mine;
  mine.setColor(QPalette::Window, colours.background);
  mine.setColor(QPalette::WindowText, colours.text);
  setPalette(mine);
}

void MessageBar::elide() {
  const QFontMetrics metrics = line_->fontMetrics();
  const int room = std::max(40, line_->width() - 4);
  const QString says = withUnitsKept(first_);
  QString words = says;  // Chinese is broken anywhere
  for (QChar& letter : words) letter = letter.script() == QChar::Script_Han ? ' ' : letter;
  int widest = 0;
  for (const QString& word : words.split(' ')) {
    widest = std::max(widest, metrics.horizontalAdvance(word));
  }
  // The second row begins with the word that the first one had no room for.
  const bool wraps = widest < room && metrics.horizontalAdvance(says) > room;
  line_->setWordWrap(wraps);
  line_->setFixedHeight((wraps ? 2 : 1) * metrics.size(Qt::TextSingleLine, says).height() + 2);
  line_->setText(metrics.elidedText(says, Qt::ElideRight, wraps ? 2 * room - widest : room));
}

bool MessageBar::eventFilter(QObject* watched, QEvent* event) {
  if (watched == line_ && event->type() == QEvent::Resize) elide();
  return QFrame::eventFilter(watched, event);
}

}  // namespace tessera::gui
