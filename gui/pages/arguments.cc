// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/arguments.h"

#include <QCommandLineParser>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cost_models/documents/problem.h"
#include "gui/document/file_kind.h"
#include "gui/translations/language.h"
#include "simulator/remote/remote_name.h"

namespace tessera::gui {

namespace {

[[noreturn]] void refuse(const char* option, const QString& found, const char* expected) {
  std::fprintf(stderr, "tessera-gui: --%s: found \"%s\", expected %s\n", option, qPrintable(found),
               expected);
  std::exit(static_cast<int>(ExitCode::usage));
}

int number_of(const QCommandLineParser& parser, const char* option) {
  if (!parser.isSet(option)) return 0;
  bool is_number = false;
  const int number = parser.value(option).toInt(&is_number);
  if (!is_number || number < 1) refuse(option, parser.value(option), "a number of at least 1");
  return number;
}

QSize size_of(const QCommandLineParser& parser) {
  if (!parser.isSet("size")) return {};
  const QStringList sides = parser.value("size").split('x');
  const QSize size(sides.value(0).toInt(), sides.value(1).toInt());
  if (sides.size() != 2 || size.isEmpty()) {
    refuse("size", parser.value("size"), "a width and a height, as 1280x720");
  }
  return size;
}

// What is named without an option is opened by what is in it, as files are that are dropped.
void name_file(const QString& path, Arguments& arguments) {
  Problems problems;
  const auto kind = kind_of(path.toStdString(), problems);
  if (!kind) {
    std::fprintf(stderr, "%s\n", Error(problems).what());
    std::exit(static_cast<int>(ExitCode::bad_input));
  }
  const auto ask = [&](std::string& part) {
    part = path.toStdString();
    arguments.has_query = true;
  };
  switch (*kind) {
    case FileKind::plan:
      arguments.plan = path;
      break;
    case FileKind::project:
      arguments.project = path;
      break;
    case FileKind::script:
      arguments.script = path;
      break;
    case FileKind::trace:
      arguments.trace = path;
      break;
    case FileKind::run:
      if (arguments.run.isEmpty()) {
        arguments.run = path;
      } else {
        arguments.other_runs << path;
      }
      break;
    case FileKind::model:
      return ask(arguments.query.model);
    case FileKind::cluster:
      return ask(arguments.query.cluster);
    case FileKind::workload:
      return ask(arguments.query.workload);
    case FileKind::topology:
      return ask(arguments.query.topology);
  }
}

QList<QCommandLineOption> every_option() {
  return {
      {"plan", "Open a plan.", "FILE"},
      {"project", "Open a project: its question, pinned plans and runs.", "FILE"},
      {"run", "Follow a run's folder, or its log; those named after it are drawn beside it.",
       "PATH"},
      {"remote",
       "Follow a run of another host (tessera serve), through a tunnel that ends at "
       "127.0.0.1:PORT; the token is in TESSERA_REMOTE_TOKEN, or asked for.",
       "127.0.0.1:PORT[/RUN]"},
      {"export", "Write every view into a folder and exit (no display is needed).", "DIR"},
      {"formats", "What the export writes: png, svg, csv, json, html (a report), whole (windows).",
       "LIST", "png"},
      {"compare", "Pin the best N plans before the export.", "N"},
      {"theme", "Colours: light or dark.", "NAME", "light"},
      {"language", "Language of the window: en or zh_CN; the system's unless given.", "NAME"},
      {"size", "Size of the window, as 1280x720.", "SIZE"},
      {"engine", "Engine to plan for.", "NAME"},
      {"objective", "What is minimised.", "NAME"},
      {"model", "Model to plan for: preset, folder or config.json.", "NAME"},
      {"cluster", "Cluster to plan for: preset or YAML.", "NAME"},
      {"workload", "Workload to plan for: preset or YAML.", "NAME"},
      {"nodes", "Nodes to use; the cluster's unless given.", "N"},
      {"fix", "A fixed choice, as actor.tp=2; may be repeated.", "SETTING"}};
}

}  // namespace

Arguments parse_arguments(const QStringList& words) {
  QCommandLineParser parser;
  parser.setApplicationDescription("Explore plans, follow runs.");
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addOptions(every_option());
  parser.addPositionalArgument(
      "FILE",
      "A plan, a project, a run's folder, a trace, a model, a cluster, a workload or "
      "a node's topology: opened by what is in it.",
      "[FILE...]");
  parser.process(words);
  Arguments arguments;
  arguments.plan = parser.value("plan");
  arguments.project = parser.value("project");
  arguments.other_runs = parser.values("run");
  if (!arguments.other_runs.isEmpty()) arguments.run = arguments.other_runs.takeFirst();
  arguments.remote = parser.value("remote");
  if (parser.isSet("remote") && !remote_name_from(arguments.remote.toStdString())) {
    refuse("remote", arguments.remote, "127.0.0.1:PORT or 127.0.0.1:PORT/RUN");
  }
  arguments.export_folder = parser.value("export");
  if (const auto formats = formats_of(parser.value("formats"))) {
    arguments.formats = *formats;
  } else {
    refuse("formats", parser.value("formats"), "some of png,svg,csv,json,html,whole");
  }
  PlanQuery& query = arguments.query;
  query = {"qwen2.5-7b", "h200-8", "grpo-7b-1k"};
  const auto take = [&](const char* name, std::string& target) {
    if (!parser.isSet(name)) return;
    target = parser.value(name).toStdString();
    arguments.has_query = true;
  };
  take("model", query.model);
  take("cluster", query.cluster);
  take("workload", query.workload);
  take("engine", query.engine);
  take("objective", query.objective);
  arguments.compared = number_of(parser, "compare");
  arguments.language = parser.value("language");
  if (parser.isSet("language") && !languages().contains(arguments.language)) {
    refuse("language", arguments.language, qPrintable(languages().join(" or ")));
  }
  arguments.size = size_of(parser);
  arguments.has_theme = parser.isSet("theme");
  const QString theme = parser.value("theme");
  if (theme != "light" && theme != "dark") refuse("theme", theme, "light or dark");
  if (theme == "dark") arguments.theme = Theme::dark;
  query.nodes = number_of(parser, "nodes");
  for (const QString& word : parser.values("fix")) query.fixed.push_back(word.toStdString());
  arguments.has_query |= parser.isSet("nodes") || parser.isSet("fix");
  for (const QString& path : parser.positionalArguments()) name_file(path, arguments);
  return arguments;
}

}  // namespace tessera::gui
