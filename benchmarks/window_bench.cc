// SPDX-License-Identifier: GPL-3.0-or-later
// How long the window takes from an edit to its new picture, until a long run is drawn, and what it
// needs while a run writes a thousand steps a second.
//
// window_bench edit|run|stream: one JSON object on the standard output. Without a display, 1,280 x
// 800, the pages as a user has them. "held" is the longest that the window's thread computed
// between two turns of its event loop; "planner" what the planner alone computes for the same edit,
// "background" what all of the window's other threads compute until its picture is there.
// "slowness": how much slower this machine computes than where limits were set
// (tests/gui/event_loop.h). On a busy one the clock on the wall tells less than these.
#include <unistd.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QStyleFactory>
#include <QTabWidget>
#include <QTemporaryDir>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gui/pages/main_window.h"
#include "tests/gui/event_loop.h"

namespace {

using namespace tessera;
using namespace tessera::gui;

constexpr int kLongRun = 20'000, kStreamSeconds = 60, kStepsASecond = 1'000;

/// Runs events until the condition holds.
template <class Condition>
void until(const Condition& condition) {
  while (!condition()) QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
}

/// Of this process.
double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// A step with as many numbers as a run of PPO has.
std::string line_of(int step) {
  std::string line = "{\"step\": " + std::to_string(step) + ", \"data\": {";
  const auto add = [&](const std::string& name, double value) {
    line += "\"" + name + "\": " + std::to_string(value) + ", ";
  };
  for (const char* phase : {"gen", "old_log_prob", "ref", "update_actor", "reshard"}) {
    add("timing_s/" + std::string(phase), 0.1 + step % 7 * 0.01);
  }
  add("critic/score/mean", step % 100 / 100.0);
  add("perf/throughput", 4000 + step % 50);
  add("actor/ppo_kl", 0.001 * (step % 9));
  for (int i = 0; i < 91; ++i) {
    add("group_" + std::to_string(i % 7) + "/number_" + std::to_string(i), i + step % 11);
  }
  return line + "\"timing_s/step\": 1.0}}\n";
}

/// Seconds that all threads of this process computed.
double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct EditTime {
  std::string setting;
  double ms = 0, planner_ms = 0, background_ms = 0;
};

struct Times {
  std::vector<EditTime> edits;
  double back_ms = 0, held_ms = 0;  // back: the slowest way to what was asked before
};

/// Settings taken and given back, each from the question to the painted picture.
Times edits(MainWindow& window, const PlanQuery& query) {
  double background = 0;  // ms, of the last edit
  const auto ask = [&](const PlanQuery& question) {
    const double others = process_seconds() - thread_seconds();
    QElapsedTimer timer;
    timer.start();
    window.session().ask(question);
    until([&] { return !window.session().isBusy(); });
    QCoreApplication::processEvents();  // what is drawn anew
    background = 1e3 * (process_seconds() - thread_seconds() - others);
    return static_cast<double>(timer.nsecsElapsed()) * 1e-6;
  };
  ask(query);
  KeptPlanner planner;
  const auto planned = [&](const PlanQuery& question) {
    const double before = thread_seconds();
    planner.answer(question);
    return 1e3 * (thread_seconds() - before);
  };
  planned(query);
  Times of;
  for (const char* fixed :
       {"actor.tp=4", "actor.tp=8", "actor.dp=8", "actor.pp=2", "actor.zero=1", "rollout.tp=2"}) {
    PlanQuery edited = query;
    edited.fixed = {fixed};
    of.edits.push_back({fixed, 0, planned(edited), 0});
    planned(query);
    const double held = longest_hold([&] {
      of.edits.back().ms = ask(edited);
      of.edits.back().background_ms = background;
      of.back_ms = std::max(of.back_ms, ask(query));
    });
    of.held_ms = std::max(of.held_ms, 1e3 * held);
  }
  return of;
}

void measure_edits() {
  struct Case {
    const char *model, *cluster;
    std::int64_t nodes;
  };
  std::printf("{");
  const char* separator = "";
  for (const Case& one :
       {Case{"qwen2.5-7b", "h100-8", 1}, Case{"llama3.1-70b", "meta-h100-24k", 128},
        Case{"llama3.1-70b", "meta-h100-24k", 2048}}) {
    MainWindow window;
    window.resize(1280, 800);
    window.show();
    PlanQuery query{.model = one.model, .cluster = one.cluster, .workload = "grpo-7b-1k"};
    query.nodes = one.nodes;
    const Times of = edits(window, query);
    std::printf("%s\n  \"%s, %lld GPUs\": {", separator, one.model,
                8 * static_cast<long long>(one.nodes));
    for (const EditTime& each : of.edits) {
      std::printf("\"%s\": {\"ms\": %.1f, \"planner_ms\": %.1f, \"background_ms\": %.1f}, ",
                  each.setting.c_str(), each.ms, each.planner_ms, each.background_ms);
    }
    std::printf("\"free again, at most ms\": %.1f, \"held_ms\": %.1f, \"slowness\": %.2f}",
                of.back_ms, of.held_ms, slowness());
    separator = ",";
  }
  std::printf("\n}\n");
}

/// The window on a run's folder, with the tab of that title in front.
void follow(MainWindow& window, const QString& folder, const QString& title) {
  window.resize(1280, 800);
  window.show();
  window.openRun(folder);
  for (QTabWidget* tabs : window.run().findChildren<QTabWidget*>()) {
    for (int tab = 0; tab < tabs->count(); ++tab) {
      if (tabs->tabText(tab) == title) tabs->setCurrentIndex(tab);
    }
  }
}

void measure_run() {
  QTemporaryDir folder;
  {
    std::ofstream file(folder.filePath("metrics.jsonl").toStdString());
    for (int step = 1; step <= kLongRun; ++step) file << line_of(step);
  }
  std::printf("{");
  const char* separator = "";
  for (const char* title : {"Figures", "Metrics"}) {
    const double before = resident_mib();
    MainWindow window;
    QElapsedTimer timer;
    double ms = 0;
    const double held = longest_hold([&] {
      timer.start();
      follow(window, folder.path(), title);
      until([&] { return window.session().run()->steps()->rowCount() == kLongRun; });
      QCoreApplication::processEvents();
      ms = static_cast<double>(timer.nsecsElapsed()) * 1e-6;
    });
    std::ofstream(folder.filePath("metrics.jsonl").toStdString(), std::ios::app)
        << line_of(kLongRun + 1);
    const double step_held = longest_hold([&] {
      until([&] { return window.session().run()->steps()->rowCount() > kLongRun; });
      QCoreApplication::processEvents();
    });
    std::printf(
        "%s\n  \"%s\": {\"steps\": %d, \"opened_ms\": %.0f, \"held_ms\": %.1f, "
        "\"held_by_a_step_ms\": %.1f, \"mib\": %.0f}",
        separator, title, kLongRun, ms, 1e3 * held, 1e3 * step_held, resident_mib() - before);
    separator = ",";
    std::filesystem::resize_file(
        folder.filePath("metrics.jsonl").toStdString(),
        std::filesystem::file_size(folder.filePath("metrics.jsonl").toStdString()) -
            line_of(kLongRun + 1).size());
  }
  std::printf("\n}\n");
}

void measure_stream() {
  QTemporaryDir folder;
  std::ofstream file(folder.filePath("metrics.jsonl").toStdString());
  MainWindow window;
  follow(window, folder.path(), "Metrics");
  const double before = resident_mib();
  double most = 0;
  QElapsedTimer timer;
  timer.start();
  int step = 0;
  const auto write_on = [&] {
    const int due = static_cast<int>(timer.elapsed() * kStepsASecond / 1000);
    while (step < std::min(due, kStreamSeconds * kStepsASecond)) file << line_of(++step);
    file.flush();
    most = std::max(most, resident_mib() - before);
  };
  const double held = longest_hold([&] {
    QTimer writer;
    QObject::connect(&writer, &QTimer::timeout, write_on);
    writer.start(20);
    const int all = kStreamSeconds * kStepsASecond;
    until([&] { return window.session().run()->steps()->rowCount() == all; });
  });
  std::printf(
      "{\"steps_a_second\": %d, \"seconds\": %d, \"numbers_a_step\": 100, "
      "\"all_drawn_after_s\": %.1f, \"held_ms\": %.1f, \"most_mib\": %.0f}\n",
      kStepsASecond, kStreamSeconds, static_cast<double>(timer.elapsed()) / 1000, 1e3 * held, most);
}

}  // namespace

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  QApplication::setStyle(QStyleFactory::create("Fusion"));
  const std::map<std::string, void (*)()> all{
      {"edit", measure_edits}, {"run", measure_run}, {"stream", measure_stream}};
  const auto what = all.find(argc > 1 ? argv[1] : "");
  if (what == all.end()) {
    std::fputs("usage: window_bench edit|run|stream\n", stderr);
    return 64;
  }
  what->second();
}
