// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/explore_page.h"

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>
#include <utility>

#include "gui/document/headline.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/explore/shown_answer.h"
#include "gui/layout/low_room.h"
#include "gui/translations/said.h"
#include "gui/views/view.h"
#include "planner/explain/nearest_fix.h"
#include "planner/explain/report.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

constexpr int kPatienceMs = 400;

QSplitter* splitter(const char* name, Qt::Orientation orientation,
                    std::initializer_list<QWidget*> widgets) {
  auto* split = new QSplitter(orientation);
  split->setObjectName(name);
  split->setChildrenCollapsible(false);
  for (QWidget* widget : widgets) split->addWidget(widget);
  return split;
}

/// The views of a place below one another.
QSplitter* column(const char* name, Place place, Session& session) {
  QSplitter* split = splitter(name, Qt::Vertical, {});
  QList<int> sizes;
  for (const ViewKind& kind : viewsOf(place)) {
    split->addWidget(makeTitledView(kind, session));
    sizes << kind.stretch;
  }
  split->setSizes(sizes);
  return split;
}

QTabWidget* tabs(Place place, Session& session) {
  auto* tabs = new QTabWidget;
  tabs->setObjectName("explore_tabs");
  tabs->setDocumentMode(true);
  tabs->setAccessibleName(Words::tr("Comparison and report"));
  for (const ViewKind& kind : viewsOf(place)) tabs->addTab(makeView(kind, session), titleOf(kind));
  return tabs;
}

}  // namespace

ExplorePage::ExplorePage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      form_(new RequestForm),
      typed_(new TypedLine(*form_)),
      answer_(new MessageBar(Words::tr("Answer"))),
      files_(new MessageBar(Words::tr("What is wrong with a file"))) {
  auto* left = column("explore_left", Place::left, session);
  left->addWidget(tabs(Place::tabs, session));
  left->setSizes({330, 280});
  auto* details = splitter("explore_details", Qt::Horizontal,
                           {left, column("explore_right", Place::right, session)});
  details->setSizes({600, 600});
  QSplitter* plans = column("explore_plans", Place::plans, session);
  auto* both = splitter("explore_answer", Qt::Vertical, {plans, details});
  both->setSizes({140, 660});
  both->setStretchFactor(1, 1);
  auto* answered = new QWidget;  // the cover's: a splitter would give it a place of its own
  auto* whole_of_them = new QVBoxLayout(answered);
  whole_of_them->setContentsMargins(0, 0, 0, 0);
  whole_of_them->addWidget(both);
  cover_ = new StaleCover(answered);
  cover_->leaveOut(answered->findChild<QWidget*>("pinned"));  // pins depend on no question
  QWidget* main = answers(answered);

  question_ = new QScrollArea;
  question_->setWidget(form_);
  question_->setWidgetResizable(true);
  question_->setFrameShape(QFrame::NoFrame);
  question_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  question_->setMinimumWidth(form_->minimumSizeHint().width() + 24);
  auto* whole = splitter("explore", Qt::Horizontal, {question_, main});
  whole->setSizes({310, 1170});
  whole->setStretchFactor(1, 1);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(whole);
  patience_.setSingleShot(true);
  patience_.setInterval(kPatienceMs);
  connect(&patience_, &QTimer::timeout, this, [this] {
    waiting_->show();
    showStale();
  });
  connect(form_, &RequestForm::sliderMoved, this, [this] {
    moved_ = true;
    askMoved();
  });
  connect(form_, &RequestForm::queryChanged, this, [this](const PlanQuery& query) {
    moved_ = false;
    const bool slid = std::exchange(sliding_, false);
    if (query == session_.document().question) return;
    typed_->goesOn() || slid ? session_.askOn(query) : session_.ask(query);
  });
  connect(&session_, &Session::documentChanged, this, &ExplorePage::documentChanged);
  connect(answer_, &MessageBar::offerTaken, this, &ExplorePage::takeFix);
  connect(files_, &MessageBar::offerTaken, this, [this] { session_.report({}); });
}

void ExplorePage::giveQuestionTheKeys() {
  auto* first = form_->findChild<QComboBox*>();
  question_->ensureWidgetVisible(first);
  first->setFocus();
}

QWidget* ExplorePage::answers(QWidget* below) {
  auto* top = new QWidget;
  auto* layout = new QVBoxLayout(top);
  layout->setContentsMargins(0, 0, 0, 0);
  waiting_ = waiting();
  QFont bold = answer_->font();
  bold.setBold(true);
  answer_->findChild<QLabel*>()->setFont(bold);
  layout->addWidget(files_);
  layout->addWidget(waiting_);
  layout->addWidget(answer_);
  layout->addWidget(new LowRoom(below), 1);
  return top;
}

QWidget* ExplorePage::waiting() {
  auto* bar = new QWidget;
  auto* layout = new QHBoxLayout(bar);
  layout->setContentsMargins(8, 0, 8, 0);
  auto* progress = new QProgressBar;
  progress->setRange(0, 0);
  progress->setMaximumHeight(10);
  progress->setAccessibleName(Words::tr("Planning"));
  auto* cancel = new QPushButton(Words::tr("Cancel"));
  cancel->setObjectName("cancel");
  cancel->setToolTip(Words::tr("Stop waiting for this plan (Esc)"));
  connect(cancel, &QPushButton::clicked, &session_, &Session::cancel);
  layout->addWidget(new QLabel(Words::tr("Planning")));
  layout->addWidget(progress, 1);
  layout->addWidget(cancel);
  bar->setObjectName("waiting");
  bar->hide();
  return bar;
}

// Of those that are offered, or the nearest while others are looked for; where an engine cannot
// even be asked, any that can.
void ExplorePage::takeFix(int number) {
  const Document& document = session_.document();
  if (!document.problems.empty()) {
    if (const auto any = for_any_engine(document.question)) session_.ask(*any);
    return;
  }
  if (!document.none_fits) return;
  const std::vector<PlannedFix>& fixes = session_.fixes();
  if (fixes.empty()) return session_.ask(changed(document.question, document.none_fits->change));
  const auto at = static_cast<std::size_t>(number);
  if (at < fixes.size()) session_.ask(fixes[at].question);
}

void ExplorePage::offerFixes(const Infeasible& none) {
  std::vector<std::pair<QString, QString>> offers;
  for (const PlannedFix& fix : session_.fixes()) {
    const QString words = said(fix.words);
    offers.emplace_back(
        Words::tr("%1: %2 a step, %3 free")
            .arg(said(brief(fix.words)), secondsText(fix.step_s), bytesText(fix.free.value)),
        Words::tr("%1: the best plan then takes %2 a step and leaves its fullest "
                  "rank %3 of what plans may use")
            .arg(words, secondsText(fix.step_s), bytesText(fix.free.value)));
  }
  const bool one = offers.empty() && none.change.any();
  answer_->offer(one ? Words::tr("Try: %1").arg(said(none.nearest_fix)) : QString());
  answer_->offerAll(offers);
}

// A slider is followed as fast as plans are made: what it passes meanwhile is left out. The way of
// one slider is one edit.
void ExplorePage::askMoved() {
  if (!moved_ || session_.isBusy()) return;
  moved_ = false;
  const PlanQuery query = form_->query();  // where it is by now
  if (query == session_.document().question) return;
  std::exchange(sliding_, true) ? session_.askOn(query) : session_.ask(query);
}

void ExplorePage::documentChanged() {
  const Document& document = session_.document();
  if (document.question != shown_) {  // what is being typed stays
    shown_ = document.question;
    if (form_->query() != shown_) {
      form_->setQuery(shown_);
      typed_->forget();
    }
  }
  if (!document.planning) {
    patience_.stop();
    waiting_->hide();
  } else if (waiting_->isHidden() && !patience_.isActive()) {
    patience_.start();
  }
  showAnswer();
  if (moved_ && !document.planning) {
    QMetaObject::invokeMethod(this, &ExplorePage::askMoved, Qt::QueuedConnection);
  }
  showStale();
  files_->say(document.file_problems, Tone::bad);
  files_->offer(document.file_problems.isEmpty() ? QString() : Words::tr("Dismiss"));
}

// Whatever answers an earlier question is hatched until the answer is there. While a slider is held
// answers follow one another: these are hatched once they are known to stay.
void ExplorePage::showStale() {
  const Document& document = session_.document();
  const bool stays = !document.planning || !sliding_ || !waiting_->isHidden();
  cover_->setStale(document.stale() && stays);
  const bool said = document.planning && document.answered && !answer_->text().isEmpty();
  answer_->setStale(said && document.answered != document.question && stays);
}

void ExplorePage::showAnswer() {
  const Document& document = session_.document();
  bool offers = false;
  if (document.answered != document.question) {
    // The former answer stays in sight for the moment that a search takes.
    if (!document.planning)
      answer_->say(Words::tr("This question is not planned: F5 plans it"), Tone::warning);
  } else if (!document.problems.empty()) {
    answer_->say(problemsText(document.problems), Tone::bad);
    const bool helps = for_any_engine(document.question).has_value();
    answer_->offer(helps ? Words::tr("Plan for any engine") : QString());
    answer_->offerAll({});
    offers = true;
  } else if (document.none_fits) {
    const Infeasible& none = *document.none_fits;
    answer_->say(headline_of(none), Tone::bad, saidLines(describe(none)));
    offerFixes(none);
    offers = true;
  } else if (document.plan) {
    const ShownAnswer shown = shown_answer(session_);
    answer_->say(shown.line.text(), Tone::calm, shown.details());
  }
  if (!offers) {
    answer_->offer({});
    answer_->offerAll({});
  }
}

}  // namespace tessera::gui
