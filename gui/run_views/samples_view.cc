// SPDX-License-Identifier: GPL-3.0-or-later
// What a run was asked and what it answered: a table that sorts and filters, and the sample that is
// chosen in full below it.
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QShortcut>
#include <QSpinBox>
#include <QSplitter>
#include <QTimer>
#include <QVBoxLayout>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/samples/sample_model.h"
#include "gui/samples/token_model.h"
#include "gui/views/elided_label.h"
#include "gui/views/message_bar.h"
#include "gui/views/table.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

constexpr int kRestMs = 250;  // of typing, before a file or all texts are looked through
constexpr int kNewest = -1;   // of the box of the last step

/// A text below what it is.
struct TextPane {
  QWidget* panel;
  QLabel* title;
  QPlainTextEdit* text;
};

TextPane textPane(const QString& name) {
  TextPane pane{new QWidget, new QLabel("<b>" + name + "</b>"), new QPlainTextEdit};
  pane.title->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  pane.title->setWordWrap(true);
  pane.text->setReadOnly(true);
  pane.text->setTabChangesFocus(true);
  pane.text->setAccessibleName(Words::tr("%1 of the sample").arg(name));
  auto* layout = new QVBoxLayout(pane.panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(2);
  layout->addWidget(pane.title);
  layout->addWidget(pane.text, 1);
  return pane;
}

class SamplesView : public QWidget {
 public:
  explicit SamplesView(Session& session);

 protected:
  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    samples_.want();
  }

 private:
  QWidget* choices();
  QWidget* texts();
  QWidget* tokens();
  void filesChanged();
  void filter();
  void forgetFilter();
  void keepRowInPlace();
  void notePlace();
  void showCount();
  void showSample(const QModelIndex& index);

  SampleFollower& samples_;
  SampleOrder* order_;
  QTableView* table_;
  QLineEdit* filter_;
  QSpinBox* last_;
  QLabel* extent_;
  MessageBar* problems_;
  TextPane prompt_, response_, truth_;
  TokenModel* tokens_;
  std::filesystem::path folder_;  // of the run that is filtered
  bool chosen_ = false;           // by the user: else the first row is looked at
  std::optional<int> down_;  // rows of the chosen one below the first in sight; nullopt: it is not
};

SamplesView::SamplesView(Session& session)
    : samples_(*session.samples()),
      order_(new SampleOrder(samples_.model(), this)),
      table_(makeTable(order_, Words::tr("Samples of the run"))),
      filter_(new QLineEdit),
      last_(new QSpinBox),
      extent_(new ElidedLabel),
      problems_(new MessageBar(Words::tr("What is wrong with the samples"))),
      prompt_(textPane(Words::tr("Prompt"))),
      response_(textPane(Words::tr("Response"))),
      truth_(textPane(Words::tr("Expected"))),
      tokens_(new TokenModel(this)) {
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSortingEnabled(true);
  table_->sortByColumn(SampleModel::Step, Qt::DescendingOrder);  // the newest step is looked for
  table_->verticalHeader()->hide();
  table_->setColumnWidth(SampleModel::Prompt, 260);
  table_->setColumnWidth(SampleModel::Response, 420);
  for (const int narrow : {SampleModel::Step, SampleModel::Reward, SampleModel::Ended}) {
    table_->setColumnWidth(narrow, 70);
  }
  for (const int wide : {SampleModel::Length, SampleModel::PromptLength, SampleModel::LogProb}) {
    table_->setColumnWidth(wide, 120);
  }
  auto* split = new QSplitter(Qt::Vertical);
  split->setObjectName("samples");
  split->setChildrenCollapsible(false);
  split->addWidget(table_);
  split->addWidget(texts());
  split->setSizes({360, 260});
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 0);
  layout->setSpacing(4);
  layout->addWidget(choices());
  layout->addWidget(problems_);
  layout->addWidget(split, 1);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& index) { showSample(index); });
  for (const auto signal : {&QTableView::clicked, &QTableView::activated}) {
    connect(table_, signal, this, [this] { chosen_ = true; });
  }
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          &SamplesView::notePlace, Qt::QueuedConnection);
  connect(table_->verticalScrollBar(), &QScrollBar::valueChanged, this, &SamplesView::notePlace);
  connect(&samples_, &SampleFollower::changed, this, [this] { filesChanged(); });
  filesChanged();
}

QWidget* SamplesView::choices() {
  auto* bar = new QWidget;
  auto* layout = new QHBoxLayout(bar);
  layout->setContentsMargins(0, 0, 0, 0);
  filter_->setPlaceholderText(Words::tr("Filter samples by a part of their texts"));
  filter_->setAccessibleName(Words::tr("Filter of the samples"));
  filter_->setClearButtonEnabled(true);
  last_->setRange(kNewest, std::numeric_limits<int>::max());
  last_->setValue(kNewest);
  last_->setSpecialValueText(Words::tr("newest"));
  last_->setKeyboardTracking(false);
  last_->setAccessibleName(Words::tr("Last step whose samples are shown"));
  last_->setToolTip(Words::tr("Samples up to this step; the smallest value follows the run"));
  extent_->setAccessibleName(Words::tr("Which samples are shown"));
  auto* up_to = new QLabel(Words::tr("&up to step"));
  up_to->setBuddy(last_);
  layout->addWidget(filter_, 2);
  layout->addWidget(up_to);
  layout->addWidget(last_);
  layout->addWidget(extent_, 3);
  auto* rest = new QTimer(this);
  rest->setSingleShot(true);
  rest->setInterval(kRestMs);
  connect(filter_, &QLineEdit::textChanged, rest, [rest] { rest->start(); });
  connect(rest, &QTimer::timeout, this, &SamplesView::filter);
  connect(last_, &QSpinBox::valueChanged, this, [this](int step) {
    samples_.showUpTo(step == kNewest ? std::nullopt : std::optional<std::int64_t>(step));
  });
  auto* find = new QShortcut(QKeySequence::Find, this);
  connect(find, &QShortcut::activated, filter_,
          [this] { filter_->setFocus(Qt::ShortcutFocusReason); });
  return bar;
}

QWidget* SamplesView::texts() {
  auto* split = new QSplitter;
  split->setObjectName("sample");
  split->setChildrenCollapsible(false);
  for (const TextPane& pane : {prompt_, response_, truth_}) split->addWidget(pane.panel);
  split->addWidget(tokens());
  split->setSizes({270, 470, 140, 370});
  return split;
}

// Sorted by how likely they were: a click on a header.
QWidget* SamplesView::tokens() {
  auto* panel = new QWidget;
  auto* order = new QSortFilterProxyModel(this);
  order->setSourceModel(tokens_);
  order->setSortRole(TokenModel::SortRole);
  QTableView* table = makeTable(order, Words::tr("Tokens of the sample"));
  table->setSelectionMode(QAbstractItemView::SingleSelection);
  table->setSortingEnabled(true);
  table->sortByColumn(-1, Qt::AscendingOrder);
  table->setColumnWidth(TokenModel::Part, 66);
  table->setColumnWidth(TokenModel::Token, 72);
  table->setColumnWidth(TokenModel::LogProb, 100);
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(2);
  layout->addWidget(new QLabel(Words::tr("<b>Tokens</b>")));
  layout->addWidget(table, 1);
  return panel;
}

void SamplesView::showCount() {
  const int all = samples_.model()->rowCount(), shown = order_->rowCount();
  const QString extent = samples_.extent();
  extent_->setText(shown == all ? extent : Words::tr("%1 of %2").arg(countText(shown), extent));
  extent_->setToolTip(extent_->text());
}

// The chosen one is looked at on, where it is still there; else the first.
void SamplesView::filter() {
  const QPersistentModelIndex chosen = order_->mapToSource(table_->currentIndex());
  order_->setText(filter_->text());
  QModelIndex now = chosen_ ? order_->mapFromSource(chosen) : QModelIndex();
  chosen_ = now.isValid();
  if (!chosen_) now = order_->index(0, 0);
  table_->setCurrentIndex(now);
  table_->scrollTo(now);
  showCount();
}

// What was looked for in another run is not looked for in this one.
void SamplesView::forgetFilter() {
  if (std::exchange(folder_, samples_.folder()) == samples_.folder()) return;
  const QSignalBlocker quiet(filter_);
  filter_->clear();
  order_->setText({});
}

void SamplesView::filesChanged() {
  forgetFilter();
  const QString& problems = samples_.problems();
  problems_->say(problems, Tone::bad);
  const QSignalBlocker quiet(last_);  // another run begins with its newest
  last_->setValue(static_cast<int>(samples_.upTo().value_or(kNewest)));
  if (samples_.model()->rowCount() == 0) showSample({});
  if (!table_->currentIndex().isValid()) chosen_ = false;
  if (!chosen_ && order_->rowCount() > 0) table_->setCurrentIndex(order_->index(0, 0));
  keepRowInPlace();
  showCount();
}

// New samples come above it: the chosen one stays where it is looked at.
void SamplesView::keepRowInPlace() {
  if (!down_ || !table_->currentIndex().isValid()) return;
  const int down = *down_;
  table_->doItemsLayout();  // before the range of the bar is asked
  table_->verticalScrollBar()->setValue(table_->currentIndex().row() - down);
}

void SamplesView::notePlace() {
  const QModelIndex current = table_->currentIndex();
  const bool seen =
      current.isValid() && table_->viewport()->rect().intersects(table_->visualRect(current));
  down_ = seen ? std::optional(current.row() - table_->verticalScrollBar()->value()) : std::nullopt;
}

// A sample that is no longer kept stays to be read.
void SamplesView::showSample(const QModelIndex& index) {
  if (!index.isValid() && samples_.model()->rowCount() > 0) return;
  const Sample none;
  const bool any = index.isValid();
  const Sample& sample = any ? samples_.model()->sample(order_->mapToSource(index).row()) : none;
  const auto tokens = [](std::int64_t count) {
    if (count == 1) return Words::tr(", 1 token");
    return count < 0 ? QString()
                     : Words::tr(", %1 tokens").arg(countText(static_cast<double>(count)));
  };
  prompt_.title->setText(Words::tr("<b>Prompt</b>") + tokens(sample.prompt_tokens));
  QString about = tokens(sample.response_tokens);
  if (any) {
    about += sample.finished ? Words::tr(", ended") : Words::tr(", cut at the limit");
    about += sample.reward ? Words::tr(", reward %1").arg(*sample.reward, 0, 'g', 4)
                           : Words::tr(", no reward");
    about += Words::tr(", step %1").arg(sample.step);
  }
  response_.title->setText(Words::tr("<b>Response</b>") + about);
  prompt_.text->setPlainText(QString::fromStdString(sample.prompt));
  response_.text->setPlainText(QString::fromStdString(sample.response));
  truth_.text->setPlainText(QString::fromStdString(sample.truth));
  tokens_->setSample(sample);
}

const RegisteredView kSamplesView(
    {"samples", Place::run_tabs, 1, 1, QT_TRANSLATE_NOOP("Words", "Samples"),
     [](Session& session) -> QWidget* { return new SamplesView(session); },
     [](Session& session) { return csv_of(*session.samples()->model()); },
     [](Session& session) { return json_of(*session.samples()->model()); }});

}  // namespace
}  // namespace tessera::gui
