// SPDX-License-Identifier: GPL-3.0-or-later
// tessera-gui: the window, or its views as pictures without one.
#include <QStandardPaths>
#include <QStatusBar>
#include <QStyleFactory>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "gui/application.h"
#include "gui/kept/workspace.h"
#include "gui/layout/kept_layout.h"
#include "gui/pages/arguments.h"
#include "gui/pages/export_views.h"
#include "gui/pages/main_window.h"
#include "gui/remote/remote_runs.h"
#include "gui/translations/font_of_language.h"
#include "gui/translations/language.h"
#include "gui/translations/said.h"
#include "planner/explain/report.h"
#include "simulator/remote/serve_token.h"

namespace {

int export_all(tessera::gui::MainWindow& window, const tessera::gui::Arguments& arguments) {
  using tessera::ExitCode;
  QObject::connect(window.statusBar(), &QStatusBar::messageChanged, [](const QString& text) {
    if (!text.isEmpty()) std::fprintf(stderr, "tessera-gui: %s\n", qPrintable(text));
  });
  tessera::gui::waitForPlans(window.session());
  const auto& document = window.session().document();
  if (!document.problems.empty()) {
    throw tessera::Error(document.problems);
  }
  tessera::gui::pinBest(window.session(), arguments.compared);
  const QStringList written =
      tessera::gui::exportViews(window, arguments.export_folder, arguments.formats);
  for (const QString& file : written) std::printf("%s\n", qPrintable(file));
  if (document.infeasible()) {
    std::fprintf(stderr, "%s", qPrintable(tessera::gui::saidLines(describe(*document.none_fits))));
  }
  if (!written.isEmpty()) return static_cast<int>(ExitCode::ok);
  return static_cast<int>(document.infeasible() ? ExitCode::infeasible : ExitCode::check_failed);
}

int refuse_without_display() {
  std::fputs(
      "tessera-gui: no display (neither DISPLAY nor WAYLAND_DISPLAY is set); --export FOLDER makes "
      "pictures without one\n",
      stderr);
  return static_cast<int>(tessera::ExitCode::missing);
}

void open_remote(tessera::gui::MainWindow& window, const tessera::gui::Arguments& arguments) {
  namespace gui = tessera::gui;
  const auto name = *tessera::remote_name_from(arguments.remote.toStdString());
  const std::string token = gui::token_of_environment();
  if (arguments.export_folder.isEmpty()) {
    window.openRemote(name, token);
    return;
  }
  if (token.empty()) {
    throw tessera::Error({{tessera::kTokenVariable, "", "no token", "64 hexadecimal digits"}});
  }
  const auto copy = gui::copied_once(name, token, gui::copies_folder());
  window.openRun(QString::fromStdString(copy.string()), false);
}

// Where what the window remembers is kept.
std::filesystem::path memory_file() {
  const QString folder = QStandardPaths::writableLocation(QStandardPaths::AppDataLocation);
  return (folder + "/window.json").toStdString();
}

// What was asked for, else what was chosen in the window, else what the system's user reads.
QString language_for(const tessera::gui::Arguments& arguments, bool exports) {
  if (!arguments.language.isEmpty()) return arguments.language;
  tessera::Problems unheard;  // the window tells them
  const QString chosen =
      exports ? QString() : tessera::gui::read_workspace(memory_file(), unheard).language;
  const bool known = tessera::gui::languages().contains(chosen);
  return known ? chosen : tessera::gui::languageOf(QLocale::system());
}

// What the arguments name is opened; what is wrong with it.
QString open_all(tessera::gui::MainWindow& window, const tessera::gui::Arguments& arguments,
                 bool exports) {
  QString problems;
  const auto note = [&] { problems += window.session().document().file_problems; };
  if (!arguments.plan.isEmpty() && !window.openPlan(arguments.plan)) note();
  if (!arguments.script.isEmpty() && !window.importPlan(arguments.script, arguments.query)) note();
  const auto noted =
      QObject::connect(window.session().run(), &tessera::gui::RunFollower::problemsFound,
                       [&](const QString& text) { problems += text + "\n"; });
  if (!arguments.project.isEmpty()) {
    window.openProject(arguments.project, !exports);
    note();
  }
  if (!arguments.remote.isEmpty()) open_remote(window, arguments);
  // Of a folder in which nothing has begun nothing can be exported.
  const auto opens_run = [&](const QString& run) {
    return window.openRun(run, !exports) && (!exports || window.isRun(run));
  };
  if (!arguments.run.isEmpty() && !opens_run(arguments.run)) note();
  if (!arguments.trace.isEmpty() && !window.openTrace(arguments.trace, !exports)) note();
  for (const QString& other : arguments.other_runs) {
    window.session().run()->addOther(other.toStdString(), !exports);
  }
  QObject::disconnect(noted);
  return problems;
}

}  // namespace

int main(int argc, char** argv) {
  using tessera::gui::Theme;
  // Without a display pictures can still be made, and --help read.
  const bool no_display = !qEnvironmentVariableIsSet("DISPLAY") &&
                          !qEnvironmentVariableIsSet("WAYLAND_DISPLAY") &&
                          !qEnvironmentVariableIsSet("QT_QPA_PLATFORM");
  if (no_display) qputenv("QT_QPA_PLATFORM", "offscreen");
  tessera::gui::Application application(argc, argv);
  QApplication::setApplicationName("tessera-gui");
  QApplication::setApplicationVersion(TESSERA_VERSION);
  QApplication::setStyle(QStyleFactory::create("Fusion"));
  const auto arguments = tessera::gui::parse_arguments(QApplication::arguments());
  const bool exports = !arguments.export_folder.isEmpty();
  if (no_display && !exports) return refuse_without_display();
  const QString language = language_for(arguments, exports);
  tessera::gui::speak(language);
  QApplication::setFont(tessera::gui::font_of(language, QApplication::font()));
  tessera::gui::MainWindow window(exports ? std::filesystem::path() : memory_file());
  application.tellFaults([&](const QString& what) { window.session().report(what); });
  const Theme kept = window.workspace().dark ? Theme::dark : Theme::light;
  window.setTheme(exports || arguments.has_theme ? arguments.theme : kept);
  if (!arguments.size.isEmpty()) tessera::gui::give_size(window, arguments.size);
  try {
    const QString problems = open_all(window, arguments, exports);
    // Pictures of something else than was asked for help nobody.
    if (exports && !problems.isEmpty()) {
      std::fprintf(stderr, "%s\n", qPrintable(problems));
      return static_cast<int>(tessera::ExitCode::bad_input);
    }
    const bool asked = window.session().isAsked();
    const bool imported = asked && !arguments.script.isEmpty();  // on the cluster that was named
    if ((arguments.has_query && !imported) || (exports && !asked)) {
      window.session().ask(arguments.query);
    } else if (!asked && (arguments.project.isEmpty() || !problems.isEmpty())) {
      window.askLast(arguments.query);
    }
    if (arguments.project.isEmpty()) window.takeLeft();
    if (!exports) {
      window.show();
      const int code = QApplication::exec();
      std::quick_exit(code);  // a search that still runs is not waited for
    }
    const int code = export_all(window, arguments);
    return application.fault() == tessera::ExitCode::ok ? code
                                                        : static_cast<int>(application.fault());
  } catch (const tessera::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "%s\n", fault.what());
    return static_cast<int>(tessera::ExitCode::internal);
  }
}
