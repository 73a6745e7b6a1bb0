// SPDX-License-Identifier: GPL-3.0-or-later
// What the run printed: the end of its log, which goes on while one looks at the end of it.
#include <QFontDatabase>
#include <QLabel>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QVBoxLayout>

#include "gui/document/words.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

class LogView : public QWidget {
 public:
  explicit LogView(Session& session)
      : run_(*session.run()), file_(new QLabel), text_(new QPlainTextEdit) {
    file_->setTextFormat(Qt::PlainText);
    file_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    file_->setContentsMargins(6, 2, 6, 0);
    file_->hide();
    text_->setReadOnly(true);
    text_->setTabChangesFocus(true);
    text_->setLineWrapMode(QPlainTextEdit::NoWrap);
    text_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    text_->setAccessibleName(Words::tr("Log of the run"));
    text_->setPlaceholderText(
        Words::tr("No log is here. What a run prints is read from a file beside its folder: of the "
                  "same name with .log behind it, or the one of its Slurm job."));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(2);
    layout->addWidget(file_);
    layout->addWidget(text_, 1);
    connect(&run_, &RunFollower::folderChanged, this, &LogView::showLog);
    connect(&run_, &RunFollower::polled, this, &LogView::showLog);
  }

 protected:
  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    showLog();
  }

 private:
  void showLog() {
    if (!isVisible()) return;
    file_->setVisible(!run_.log().isEmpty());
    file_->setText(run_.logFile());
    if (run_.log() == shown_) return;
    shown_ = run_.log();
    QScrollBar* bar = text_->verticalScrollBar();
    const int at = bar->value();
    const bool follows = at == bar->maximum();
    text_->setPlainText(shown_);
    bar->setValue(follows ? bar->maximum() : at);
  }

  RunFollower& run_;
  QLabel* file_;
  QPlainTextEdit* text_;
  QString shown_;
};

const RegisteredView kLogView({"log", Place::run_tabs, 2, 1, QT_TRANSLATE_NOOP("Words", "Log"),
                               [](Session& session) -> QWidget* { return new LogView(session); }});

}  // namespace
}  // namespace tessera::gui
