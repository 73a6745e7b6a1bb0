// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/work_status.h"

#include <QHBoxLayout>
#include <utility>

#include "gui/document/words.h"

namespace tessera::gui {
namespace {

constexpr int kMomentMs = 1000, kTickMs = 250;
constexpr QSize kMoves{90, 10};

}  // namespace

WorkStatus::WorkStatus(std::vector<BackgroundWork> work, QWidget* parent)
    : QWidget(parent),
      work_(std::move(work)),
      says_(new QLabel),
      moves_(new QProgressBar),
      cancel_(new QPushButton(Words::tr("Cancel"))),
      go_on_(new QPushButton(Words::tr("Go on"))) {
  setAccessibleName(Words::tr("What is worked out"));
  says_->setAccessibleName(accessibleName());
  moves_->setRange(0, 0);
  moves_->setFixedSize(kMoves);
  moves_->setTextVisible(false);
  cancel_->setToolTip(Words::tr("Esc; ends this work"));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 8, 0);
  layout->addWidget(says_);
  layout->addWidget(moves_);
  layout->addWidget(cancel_);
  layout->addWidget(go_on_);
  tick_.setInterval(kTickMs);
  connect(&tick_, &QTimer::timeout, this, &WorkStatus::look);
  connect(cancel_, &QPushButton::clicked, this, &WorkStatus::cancel);
  connect(go_on_, &QPushButton::clicked, this, &WorkStatus::goOn);
  hide();
}

const BackgroundWork* WorkStatus::first(bool busy) const {
  for (const BackgroundWork& each : work_) {
    if (busy ? each.is_busy() : each.is_cancelled()) return &each;
  }
  return nullptr;
}

void WorkStatus::look() {
  const BackgroundWork* const busy = first(true);
  const BackgroundWork* const cancelled = busy == nullptr ? first(false) : nullptr;
  if (busy == nullptr) {
    tick_.stop();
  } else if (!tick_.isActive()) {
    since_.start();
    tick_.start();
  }
  const bool waits = busy != nullptr && since_.elapsed() >= kMomentMs;
  if (waits) {
    says_->setText(busy->progress
                       ? busy->progress()
                       : Words::tr("%1: %2 s").arg(busy->name).arg(since_.elapsed() / 1000));
  } else if (cancelled != nullptr) {
    says_->setText(Words::tr("Cancelled: %1").arg(cancelled->name));
  }
  moves_->setVisible(waits);
  cancel_->setVisible(waits);
  go_on_->setVisible(cancelled != nullptr);
  setVisible(waits || cancelled != nullptr);
  if (std::exchange(waiting_, waits) != waits) emit changed();
}

void WorkStatus::cancel() {
  for (const BackgroundWork& each : work_) {
    if (each.is_busy()) each.cancel();
  }
  look();
}

void WorkStatus::goOn() {
  for (const BackgroundWork& each : work_) {
    if (each.is_cancelled()) each.go_on();
  }
  look();
}

}  // namespace tessera::gui
