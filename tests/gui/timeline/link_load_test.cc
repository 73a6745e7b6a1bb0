// SPDX-License-Identifier: GPL-3.0-or-later
// The load of links: that it is the simulator's, and what the window does with it.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QFile>
#include <QHelpEvent>
#include <QLabel>
#include <QToolTip>
#include <algorithm>
#include <set>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/strict_json.h"
#include "gui/document/text.h"
#include "gui/pages/export_views.h"
#include "gui/step_views/link_canvas.h"
#include "gui/step_views/timeline_canvas.h"
#include "gui/timeline/link_model.h"
#include "simulator/engine/report.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

const TimelineIndex& split_index() {
  static const TimelineIndex index = simulated(split_plan(), *calibration_of(split_plan()));
  return index;
}

TEST(LinkSteps, LanesHaveEveryLinkOnceAndOnlyEqualOnesShareThem) {
  const LinkSteps steps = link_steps_of(split_index());
  std::set<int> seen;
  double before = 1e9;
  for (const LinkLane& lane : steps.lanes) {
    EXPECT_LE(lane.first().most_load, before + 0.01) << "the fullest first";
    before = std::min(before, static_cast<double>(lane.first().most_load));
    for (const LinkLoad* link : lane.links) {
      EXPECT_TRUE(seen.insert(link->link).second) << link->name;
      EXPECT_EQ(link->kind, lane.first().kind);
      EXPECT_EQ(link->load, lane.first().load);
      EXPECT_EQ(link->uses, lane.first().uses);
    }
  }
  EXPECT_EQ(seen.size(), split_index().simulation.links.size());
  EXPECT_GT(seen.size(), 16u);
  for (std::size_t a = 0; a < steps.lanes.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const LinkLoad &one = steps.lanes[a].first(), &other = steps.lanes[b].first();
      EXPECT_FALSE(one.kind == other.kind && one.load == other.load && one.uses == other.uses);
    }
  }
}

TEST(LinkSteps, EveryPixelShowsTheFullestWindowInIt) {
  const LinkSteps steps = link_steps_of(split_index());
  const auto end = static_cast<double>(steps.end_ns);
  const auto window = static_cast<double>(steps.window_ns);
  for (const double part : {1.0, 0.2, 0.01}) {
    constexpr int kWidth = 150;
    const TimeAxis axis = fitted(0.7 * end * (1 - part), (0.7 + 0.3 * part) * end, kWidth);
    std::vector<float> drawn;
    for (const LoadColumn& column : columns_of(steps, 0, axis, kWidth)) {
      EXPECT_EQ(column.from, static_cast<int>(drawn.size()));
      drawn.resize(static_cast<std::size_t>(column.to), column.load);
    }
    ASSERT_EQ(drawn.size(), static_cast<std::size_t>(kWidth));
    const std::vector<float>& load = steps.lanes[0].first().load;
    for (int x = 0; x < kWidth; ++x) {
      float most = 0;
      for (std::size_t w = 0; w < load.size(); ++w) {
        const double from = static_cast<double>(w) * window;
        const double to = w + 1 == load.size() ? 2 * end : from + window;
        if (from < axis.time_at(x + 1) && to > axis.time_at(x)) most = std::max(most, load[w]);
      }
      EXPECT_EQ(drawn[static_cast<std::size_t>(x)], most) << part << " " << x;
    }
  }
}

TEST(LinkSteps, ARanksBusiestLinkIsTheFullestOfItsOwn) {
  const Simulation& simulation = split_index().simulation;
  const std::vector<RankLink> busiest = busiest_links(simulation);
  ASSERT_EQ(busiest.size(), simulation.ranks.size());
  for (std::size_t rank = 0; rank < busiest.size(); ++rank) {
    double most = 0;
    for (const LinkLoad& link : simulation.links) {
      const auto& ranks = link.ranks;
      if (std::find(ranks.begin(), ranks.end(), static_cast<int>(rank)) == ranks.end()) continue;
      most = std::max(most, static_cast<double>(link.bytes) / link.bytes_per_s /
                                (static_cast<double>(split_index().end_ns) * 1e-9));
    }
    EXPECT_NEAR(busiest[rank].mean_load, most, 1e-6) << rank;
    EXPECT_EQ(busiest[rank].name.empty(), most == 0) << rank;
  }
}

TEST(LinkSteps, WhatLoadsALaneIsWhatTheSimulatorSaysThen) {
  const LinkSteps steps = link_steps_of(split_index());
  for (std::size_t lane = 0; lane < steps.lanes.size(); ++lane) {
    const LinkLoad& link = steps.lanes[lane].first();
    for (std::size_t w = 0; w < link.load.size(); w += 3) {
      const double ns = (static_cast<double>(w) + 0.5) * static_cast<double>(steps.window_ns);
      double sum = 0;
      for (const UseThen& then : uses_at(steps, lane, ns)) {
        EXPECT_GT(then.load, 0);
        sum += then.load;
      }
      EXPECT_NEAR(sum, link.load[w], 1e-5);
      EXPECT_EQ(load_at(steps, lane, ns), link.load[w]);
    }
  }
}

/// Tensor parallelism of the actor and of the rollout crosses ports; of a rollout that spans nodes
/// it is told.
TEST(LinkSteps, WhatNoLoadCountsIsTold) {
  const Simulation& simulation = split_index().simulation;
  const LinkSteps steps = link_steps_of(split_index());
  const QString text = countedText(steps);
  std::set<std::pair<Phase, Exchange>> counted, uncounted;
  for (const LinkLoad& link : simulation.links) {
    for (const LinkUse& use : link.uses) counted.emplace(use.phase, use.exchange);
  }
  for (const auto& [phase, exchange] : counted) {
    EXPECT_TRUE(text.section("Not counted", 0, 0).contains(toText(name_of(phase))))
        << text.toStdString();
  }
  const QString told = text.section("Not counted", 1);
  EXPECT_FALSE(told.contains("parallelism"));  // of shards alone there is none
  for (const Uncounted& part : steps.uncounted) {
    uncounted.emplace(part.phase, part.exchange);
    EXPECT_FALSE(counted.contains({part.phase, part.exchange}));
    EXPECT_GT(part.seconds, 0);
    EXPECT_TRUE(told.contains(toText(name_of(part.phase)) + " (" + secondsText(part.seconds)))
        << text.toStdString();
  }
  EXPECT_TRUE(counted.contains({Phase::update_actor, Exchange::none})) << text.toStdString();
  EXPECT_EQ(counted.contains({Phase::gen, Exchange::none}),
            split_plan().find(Role::rollout)->layout.tp > 1);
  for (const CommunicationPart& part : simulation.communication) {
    EXPECT_TRUE(counted.contains({part.phase, part.exchange}) ||
                uncounted.contains({part.phase, part.exchange}))
        << name_of(part.phase) << " " << name_of(part.exchange);
  }
  // Nothing is told of a step in which ranks exchange nothing else.
  TimelineIndex none;
  none.simulation = simulation;
  none.simulation.communication.clear();
  EXPECT_FALSE(countedText(link_steps_of(none)).contains("Not counted"));
}

TEST(LinkModel, KeepsTheContract) {
  LinkModel model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  const LinkSteps steps = link_steps_of(split_index());
  model.setLinks(steps);
  ASSERT_EQ(model.rowCount(), static_cast<int>(steps.lanes.size()));
  EXPECT_FALSE(model.index(0, LinkModel::Then).data().isValid());
  model.setMoment(0.0);
  int links = 0;
  for (int row = 0; row < model.rowCount(); ++row) {
    links += model.index(row, LinkModel::Links).data(LinkModel::SortRole).toInt();
    for (int column = 0; column < model.columnCount(); ++column) {
      EXPECT_FALSE(model.index(row, column).data().toString().isEmpty()) << column;
    }
  }
  EXPECT_EQ(links, static_cast<int>(split_index().simulation.links.size()));
  model.setLinks({});
  EXPECT_EQ(model.rowCount(), 0);
}

class Links : public Explore {
 protected:
  void SetUp() override {
    Explore::SetUp();
    ask(PlanQuery{.model = "qwen2.5-7b",
                  .cluster = "h100-64",
                  .workload = "ppo-7b-1k",
                  .nodes = 2,
                  .fixed = {"placement=actor+reference | critic", "actor.tp=4"}});
    QTest::keyClick(&window, Qt::Key_2, Qt::ControlModifier);
    showTab("Load of links");
    canvas = window.findChild<LinkCanvas*>();
    ASSERT_NE(canvas, nullptr);
    ASSERT_TRUE(wait_for([&] { return !canvas->steps().empty(); }));
    QCoreApplication::processEvents();
  }
  Session& session() { return window.session(); }
  const LinkLoad& link(int lane) {
    return canvas->steps().lanes[static_cast<std::size_t>(lane)].first();
  }
  QPoint placeOf(int lane, double ns) {
    const LinkPicture& picture = canvas->picture();
    return {LinkPicture::kNames + static_cast<int>(canvas->axis().x_of(ns)),
            picture.top() + (lane - static_cast<int>(picture.first)) * picture.laneHeight() +
                picture.laneHeight() / 2};
  }
  double fullest(int lane) {
    const std::vector<float>& load = link(lane).load;
    const auto at = std::max_element(load.begin(), load.end()) - load.begin();
    return (static_cast<double>(at) + 0.5) * static_cast<double>(canvas->steps().window_ns);
  }
  LinkCanvas* canvas = nullptr;
};

TEST_F(Links, TheViewSaysWhatItCounts) {
  const auto* label = named<QLabel>(window, "What the loads count");
  ASSERT_NE(label, nullptr);
  EXPECT_TRUE(label->isVisible());
  EXPECT_EQ(label->text(), countedText(canvas->steps()));
  EXPECT_TRUE(label->text().contains("Not counted"));
}

TEST_F(Links, AClickOnAStripChoosesARankAndThePhaseThatLoadsIt) {
  const double ns = fullest(0);
  const std::vector<UseThen> uses = uses_at(canvas->steps(), 0, ns);
  ASSERT_FALSE(uses.empty());
  QTest::mouseClick(canvas, Qt::LeftButton, {}, placeOf(0, ns));
  EXPECT_EQ(session().view(), (ViewState{link(0).ranks.front(), uses.front().use->phase}));
  EXPECT_EQ(window.findChild<TimelineCanvas*>()->picture().view, session().view());
  EXPECT_EQ(canvas->picture().phase, uses.front().use->phase);
}

TEST_F(Links, HoveringTellsHowFullItIsAndWhichCallsLoadIt) {
  const double ns = fullest(0);
  const QPoint at = placeOf(0, ns);
  QTest::mouseMove(canvas, at);
  QHelpEvent event(QEvent::ToolTip, at, canvas->mapToGlobal(at));
  QApplication::sendEvent(canvas, &event);
  const QString text = QToolTip::text();
  EXPECT_TRUE(text.startsWith(QString::fromStdString(link(0).name))) << text.toStdString();
  for (const UseThen& then : uses_at(canvas->steps(), 0, ns)) {
    const bool layers = then.use->exchange == Exchange::none;
    const std::string_view phase = name_of(then.use->phase),
                           what = layers ? "layers (tensor" : name_of(then.use->exchange);
    EXPECT_TRUE(text.contains(
        QString("%1, %2").arg(QString::fromUtf8(phase.data()), QString::fromUtf8(what.data()))))
        << text.toStdString();
  }
}

/// A rank that another view chose has its lanes marked, and one of them in sight.
TEST_F(Links, ARankThatIsChosenElsewhereHasItsLinksMarked) {
  const auto pixel = [&](int lane) {
    QImage image(canvas->size(), QImage::Format_RGB32);
    canvas->render(&image);
    return image.pixel(2, placeOf(lane, 0).y());
  };
  const QRgb mark = canvas->palette().color(QPalette::Highlight).rgb();
  for (const int rank : {0, 9, 15}) {
    session().look({rank, std::nullopt});
    int marked = 0;
    const auto [from, to] = canvas->picture().lanes();
    for (std::size_t lane = from; lane < to; ++lane) {
      const bool theirs = carries(canvas->steps().lanes[lane], rank);
      EXPECT_EQ(pixel(static_cast<int>(lane)) == mark, theirs) << rank << " " << lane;
      marked += theirs ? 1 : 0;
    }
    EXPECT_GT(marked, 0) << rank;
  }
}

TEST_F(Links, KeysGoFromLinkToLinkAndFromChangeToChange) {
  canvas->setFocus();
  QTest::keyClick(canvas, Qt::Key_Home);
  QTest::keyClick(canvas, Qt::Key_Down);
  EXPECT_EQ(canvas->picture().lane, 1);
  QTest::keyClick(canvas, Qt::Key_Up);
  QTest::keyClick(canvas, Qt::Key_Up);
  EXPECT_EQ(canvas->picture().lane, 0);
  QTest::keyClick(canvas, Qt::Key_Period);
  ASSERT_TRUE(canvas->moment());
  const std::vector<float>& load = link(0).load;
  for (int i = 0; i < 5; ++i) {
    const std::size_t window = canvas->steps().window(*canvas->moment());
    QTest::keyClick(canvas, Qt::Key_Period);
    std::size_t next = window + 1;
    while (next < load.size() && load[next] == load[window]) ++next;
    EXPECT_EQ(canvas->steps().window(*canvas->moment()), std::min(next, load.size() - 1));
  }
  EXPECT_TRUE(canvas->accessibleDescription().startsWith(QString::fromStdString(link(0).name)));
  for (int i = 0; i < 400; ++i) QTest::keyClick(canvas, Qt::Key_Down);
  const int last = static_cast<int>(canvas->steps().lanes.size()) - 1;
  EXPECT_EQ(canvas->picture().lane, last);
  EXPECT_EQ(canvas->picture().laneAt(placeOf(last, 0).y()), last);  // in sight
}

TEST_F(Links, ARowOfTheTableChoosesItsLink) {
  auto* table = named<QTableView>(window, "Links of the cluster");
  ASSERT_EQ(table->model()->rowCount(), static_cast<int>(canvas->steps().lanes.size()));
  EXPECT_EQ(table->model()->index(0, LinkModel::Link).data().toString().toStdString(),
            link(0).name);
  table->setFocus();
  table->setCurrentIndex(table->model()->index(1, 0));
  QTest::keyClick(table, Qt::Key_Return);
  EXPECT_EQ(canvas->picture().lane, 1);
  EXPECT_TRUE(carries(canvas->steps().lanes[1], session().view().rank));
}

std::string content_of(const QString& file) {
  QFile in(file);
  return in.open(QIODevice::ReadOnly) ? in.readAll().toStdString() : std::string();
}

TEST_F(Links, AreExportedInEveryFormatWithTheSimulatorsNumbers) {
  const QStringList files = exportViews(window, folder.path(), kAllFormats);
  for (const char* end : {".png", ".svg", ".csv", ".json"}) {
    EXPECT_TRUE(files.contains(folder.filePath(QString("link_load") + end))) << end;
  }
  Problems problems;
  const auto file = [&](const char* end) {
    return content_of(folder.filePath(QString("link_load") + end));
  };
  const auto csv = parse_csv(file(".csv"), "csv", problems);
  const auto json = parse_json(file(".json"), "json", problems);
  ASSERT_TRUE(csv && json);
  const Plan& plan = *session().plan();
  const auto report =
      parse_json(to_json(simulate(plan, *session().calibration()), plan, *session().calibration()),
                 "simulate", problems);
  const std::vector<Node>& links = report->root.find("links")->items;
  ASSERT_EQ(csv->rows.size(), links.size());
  for (const Node& link : links) {
    const auto row = std::find_if(csv->rows.begin(), csv->rows.end(), [&](const CsvRow& one) {
      return one.cells[0] == link.find("link")->text;
    });
    ASSERT_NE(row, csv->rows.end());
    EXPECT_EQ(row->cells[*csv->column("kind")], link.find("kind")->text);
    EXPECT_EQ(row->cells[*csv->column("bytes")], std::to_string(link.find("bytes")->integer));
    EXPECT_NEAR(std::stod(row->cells[*csv->column("mean_load")]), link.find("mean_load")->number,
                1e-8);
  }
  std::size_t listed = 0;
  for (const Node& lane : json->root.find("lanes")->items)
    listed += lane.find("links")->items.size();
  EXPECT_EQ(listed, links.size());
  EXPECT_NE(file(".svg").find(link(0).name), std::string::npos);
}

}  // namespace
}  // namespace tessera::gui
