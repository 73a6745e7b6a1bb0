// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/run_page.h"

#include <QGridLayout>
#include <QHeaderView>
#include <QMessageBox>
#include <QSplitter>
#include <algorithm>
#include <cmath>

#include "gui/models/colours.h"
#include "gui/models/text.h"

namespace tessera::gui {
namespace {

QTableView* tableOf(QAbstractItemModel* model, const QString& name) {
  auto* table = new QTableView;
  table->setModel(model);
  table->setAccessibleName(name);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setAlternatingRowColors(true);
  table->setShowGrid(false);
  table->verticalHeader()->hide();
  table->verticalHeader()->setDefaultSectionSize(22);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table->horizontalHeader()->setStretchLastSection(true);
  table->horizontalHeader()->setHighlightSections(false);
  return table;
}

QString shortName(const std::string& name) {
  return QString::fromStdString(name).section('/', -1).replace('_', ' ');
}

}  // namespace

RunPage::RunPage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      folder_(new QLabel("No run is open")),
      message_(new QLabel),
      stop_(new QPushButton("&Stop the run")),
      reward_(new Chart("Reward (mean score)")),
      kl_(new Chart("KL divergence")),
      throughput_(new Chart("Throughput")),
      phases_(new Chart("Time by phase")),
      rate_(new Chart("Reshard rate")),
      bytes_(new Chart("Reshard, bytes received by the busiest rank")),
      ranks_(tableOf(session.run()->ranks(), "Ranks of the run")),
      comparison_(tableOf(session.run()->comparison(), "Prediction and measurement")) {
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(header());
  layout->addWidget(message_);
  message_->setWordWrap(true);
  message_->hide();
  auto* split = new QSplitter;
  split->addWidget(charts());
  split->addWidget(tables());
  split->setSizes({900, 600});
  layout->addWidget(split, 1);
  RunFollower* run = session.run();
  connect(run->steps(), &RunModel::stepsChanged, this, &RunPage::showSteps);
  connect(run->comparison(), &QAbstractItemModel::modelReset, this, &RunPage::showReshard);
  connect(run, &RunFollower::folderChanged, this, [this] {
    message_->hide();
    showState();
  });
  connect(run, &RunFollower::polled, this, &RunPage::showState);
  connect(run, &RunFollower::problemsFound, this, [this](const QString& text) {
    message_->setText(text);
    message_->setStyleSheet("background:#fde8e4; color:#7a1d0c; padding:6px;");
    message_->show();
  });
  connect(stop_, &QPushButton::clicked, this, &RunPage::askToStop);
  showState();
}

QWidget* RunPage::header() {
  auto* bar = new QWidget;
  auto* layout = new QHBoxLayout(bar);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* open = new QPushButton("&Open run...");
  connect(open, &QPushButton::clicked, this, &RunPage::openRequested);
  folder_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  layout->addWidget(folder_, 1);
  layout->addWidget(open);
  layout->addWidget(stop_);
  return bar;
}

QWidget* RunPage::charts() {
  auto* panel = new QWidget;
  auto* grid = new QGridLayout(panel);
  grid->setContentsMargins(0, 0, 0, 0);
  Chart* const all[] = {reward_, kl_, throughput_, phases_, rate_, bytes_};
  const char* const names[] = {"reward",      "kl",           "throughput",
                               "step_phases", "reshard_rate", "reshard_bytes"};
  for (int i = 0; i < 6; ++i) {
    all[i]->setObjectName(names[i]);
    grid->addWidget(all[i], i / 2, i % 2);
  }
  return panel;
}

QWidget* RunPage::tables() {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(new QLabel("<b>Predicted and measured</b>, mean over the steps after two"));
  layout->addWidget(comparison_, 3);
  layout->addWidget(new QLabel("<b>Ranks</b>"));
  layout->addWidget(ranks_, 2);
  comparison_->setObjectName("comparison");
  ranks_->setObjectName("ranks");
  return panel;
}

void RunPage::showState() {
  RunFollower& run = *session_.run();
  const int running = run.ranks()->running();
  const bool stopping = running > 0 && run.stopRequested();
  stop_->setEnabled(running > 0 && !stopping);
  stop_->setText(stopping ? "Stopping..." : "&Stop the run");
  if (run.folder().empty()) return;
  const auto& steps = run.steps()->steps();
  const QString state =
      running > 0 ? QString("%1 of %2 ranks running").arg(running).arg(run.ranks()->rowCount())
                  : QString("no rank is running");
  folder_->setText(QString("<b>%1</b>&nbsp;&nbsp; step %2, %3")
                       .arg(QString::fromStdString(run.folder().string()).toHtmlEscaped())
                       .arg(steps.empty() ? 0 : steps.back().step)
                       .arg(state));
}

void RunPage::showSteps() {
  const RunModel& run = *session_.run()->steps();
  reward_->showLines("score",
                     {{"score", QColor(0x00, 0x72, 0xb2), run.series("critic/score/mean")}});
  std::vector<ChartLine> kl;
  const std::pair<const char*, QRgb> kinds[] = {{"actor/kl_loss", 0xffd55e00},
                                                {"actor/reward_kl_penalty", 0xffd55e00},
                                                {"actor/ppo_kl", 0xff009e73}};
  for (const auto& [name, colour] : kinds) {
    if (run.has(name)) kl.push_back({shortName(name), QColor(colour), run.series(name)});
  }
  kl_->showLines(kl.size() == 1 ? kl[0].name + ", nats" : QString("nats"), kl);
  throughput_->showLines("tokens/s/GPU",
                         {{"throughput", QColor(0x00, 0x9e, 0x73), run.series("perf/throughput")}},
                         true);
  showPhases();
  showReshard();
}

void RunPage::showPhases() {
  const RunModel& run = *session_.run()->steps();
  std::vector<double> positions;
  for (const StepNumbers& step : run.steps()) positions.push_back(static_cast<double>(step.step));
  std::vector<ChartStack> stacks;
  for (const Phase phase : run.phases()) {
    const std::string name(name_of(phase));
    ChartStack stack{QString::fromStdString(name), colourOf(phase), {}};
    for (const StepNumbers& step : run.steps()) {
      const auto found = step.data.find("timing_s/" + name);
      stack.values.push_back(found == step.data.end() ? 0 : found->second);
    }
    stacks.push_back(std::move(stack));
  }
  phases_->showColumns("seconds", positions, stacks);
}

void RunPage::showReshard() {
  RunFollower& follower = *session_.run();
  const RunModel& run = *follower.steps();
  rate_->showLines("GB/s", {{"rate", QColor(0xe6, 0x9f, 0x00), run.series("reshard/gbps")}}, true);
  ChartLine received{"received", QColor(0xe6, 0x9f, 0x00), run.series("reshard/bytes")};
  double most = 0;
  for (const QPointF& point : received.points) most = std::max(most, point.y());
  const int power = most >= 1 << 30 ? 3 : most >= 1 << 20 ? 2 : 1;
  const double unit = std::pow(1024.0, power);
  for (QPointF& point : received.points) point.ry() /= unit;
  std::vector<ChartLine> bytes{received};
  if (follower.plan() && !received.points.empty()) {
    for (const PlannedReshard& pair : follower.plan()->reshard) {
      const double bound = static_cast<double>(pair.lower_bound_bytes) / unit;
      const double first = received.points.front().x(), last = received.points.back().x();
      bytes.push_back(
          {"lower bound", QColor(0x55, 0x55, 0x55), {{first, bound}, {last, bound}}, true});
    }
  }
  static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB"};
  bytes_->showLines(kUnits[power], bytes, true);
}

void RunPage::askToStop() {
  const auto answer = QMessageBox::question(
      this, "Stop the run", "Ask all ranks to end after the phase that they are in?");
  if (answer == QMessageBox::Yes) session_.run()->requestStop();
  showState();
}

}  // namespace tessera::gui
