// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/arguments.h"

#include <QCommandLineParser>
#include <cstdio>
#include <cstdlib>

#include "gui/translations/language.h"
#include "simulator/remote/remote_name.h"

namespace tessera::gui {

namespace {

[[noreturn]] void refuse(const char* option, const QString& found, const char* expected) {
  std::fprintf(stderr, "tessera-gui: --%s: found \"%s\", expected %s\n", option, qPrintable(found),
               expected);
  std::exit(static_cast<int>(ExitCode::usage));
}

QList<QCommandLineOption> every_option() {
  return {
      {"plan", "Open a plan.", "FILE"},
      {"project", "Open a project: its question, pinned plans and runs.", "FILE"},
      {"run", "Follow a run's folder; those named after it are drawn beside it.", "DIR"},
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
  arguments.compared = parser.value("compare").toInt();
  arguments.language = parser.value("language");
  if (parser.isSet("language") && !languages().contains(arguments.language)) {
    refuse("language", arguments.language, qPrintable(languages().join(" or ")));
  }
  const QStringList size = parser.value("size").split('x');
  if (size.size() == 2) arguments.size = {size[0].toInt(), size[1].toInt()};
  arguments.has_theme = parser.isSet("theme");
  if (parser.value("theme") == "dark") arguments.theme = Theme::dark;
  query.nodes = parser.value("nodes").toLongLong();
  for (const QString& word : parser.values("fix")) query.fixed.push_back(word.toStdString());
  arguments.has_query |= parser.isSet("nodes") || parser.isSet("fix");
  return arguments;
}

}  // namespace tessera::gui
