// SPDX-License-Identifier: GPL-3.0-or-later
// The window: the pages, the menu, what opens and saves, what is remembered.
#pragma once

#include <QMainWindow>
#include <QMenu>
#include <QTabWidget>
#include <QTimer>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gui/document/setting_checks.h"
#include "gui/export/file_writing.h"
#include "gui/kept/workspace.h"
#include "gui/models/colours.h"
#include "gui/models/session.h"
#include "gui/pages/explore_page.h"
#include "gui/pages/run_page.h"
#include "gui/pages/understand_page.h"
#include "gui/pages/work_status.h"
#include "gui/plans/why_not_answer.h"
#include "gui/threads/newest.h"

namespace tessera::gui {

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  /// `memory`: the file of what is remembered (workspace.h); empty = nothing is.
  explicit MainWindow(std::filesystem::path memory = {}, QWidget* parent = nullptr);

  Session& session() { return session_; }
  ExplorePage& explore() { return *explore_; }
  UnderstandPage& understand() { return *understand_; }
  RunPage& run() { return *run_; }
  /// Long tables and traces that are written.
  FileWriting& writing() { return writing_; }
  void showPage(QWidget* page) { pages_->setCurrentWidget(page); }
  /// Shows the page Explore, where it stands why something could not be done.
  void tell(const QString& problems);
  /// Says it on whatever page is shown: of what was to be written.
  void tellHere(const QString& problems);
  const Workspace& workspace() const { return workspace_; }

  /// Asks what was asked last, or this where nothing is remembered.
  void askLast(const PlanQuery& otherwise);
  /// Pins what windows had pinned that were killed, and follows the runs that they compared.
  void takeLeft();
  /// False, and as tell(), where it is no plan.
  bool openPlan(const QString& file);
  /// The same of a script or configuration of verl, Megatron-LM, vLLM or SGLang, on the cluster of
  /// the question, else of that in the form.
  bool importPlan(const QString& file, const std::optional<PlanQuery>& question = {});
  /// Shows a Chrome trace instead of the simulated step once it has been read; what is wrong with
  /// it is told. False: it was read before this returns (not `live`), and is none.
  bool openTrace(const QString& file, bool live = true);
  /// Follows the folder; a plan.json in it is opened unless a plan is.
  bool openRun(const QString& folder, bool live = true);
  /// Something of a run is there; what is missing is told.
  bool isRun(const QString& folder);
  /// Follows a run of another host; without a token, or where several runs are served there and the
  /// name has none, a dialog asks.
  bool openRemote(const RemoteName& name, const std::string& token);
  /// Its question, pinned plans and runs take the place of those that are there; false, and
  /// nothing changes, where the file is no project.
  bool openProject(const QString& file, bool live = true);
  /// The same, and asks before pinned plans, or what a project's file lacks, go: undo does not
  /// bring them back.
  bool changeProject(const QString& file);
  bool saveProject(const QString& file);
  /// For as long as the window is open: only what is chosen in the window is remembered.
  void setTheme(Theme theme);

 protected:
  void closeEvent(QCloseEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void openLast(const PlanQuery& otherwise);
  /// What of the user's work is in no file.
  enum class Unsaved { nothing, plan, project };

  void addFileActions();
  void addProjectActions(QMenu* file);
  void addRunActions(QMenu* file);
  void addEditActions();
  void addParts(QMenu* menu);
  void addViewActions();
  void addLanguages(QMenu* view);
  void addRecent(QMenu* menu, const QStringList& paths, bool (MainWindow::*open)(const QString&));
  /// As openRun(), and whoever looks at another page stays there.
  bool followRun(const QString& folder, bool live);
  bool openLiveRun(const QString& place);
  void openPlanOf(const QString& run);
  std::optional<Project> readProject(const QString& file);
  std::vector<BackgroundWork> backgroundWork();
  void hearWork();
  void hearForm();
  void cancelWork();
  void documentChanged();
  void rememberSoon();
  /// The metrics that are drawn and their smoothing, which are remembered from then on.
  void restoreMetrics();
  void rememberNow();
  void keepOpenWork();
  /// Where it stays in sight, whatever else is told.
  void tellNotKept(const QString& why);
  void choosePlan();
  void chooseImport();
  void chooseTrace();
  bool save();
  bool chooseWhereToSave();
  bool savePlan(const QString& file);
  void chooseProject();
  bool keepProject();
  bool chooseWhereToKeepProject();
  Unsaved unsaved() const;
  bool mayGo(Unsaved what, const QString& title);
  QString titleOfAll() const;
  void chooseRun();
  void chooseLog();
  void chooseRemote(const RemoteName& name);
  void remoteContacted();
  std::string tokenOf(const RemoteName& name) const;
  void chooseOtherRun();
  void chooseExport();
  QWidget* viewLookedAt() const;
  void allowViewExport();
  void exportOneView();
  void chooseJob();
  void planForJob(const QString& engine, const QString& target);
  void goOnWithJob();
  void askWhyNot();
  void showKeys();
  void showPalette();

  Session session_;
  Workspace workspace_, kept_;  // kept_: as the file has it
  Project kept_work_;           // likewise
  QString plan_file_;           // that was opened or saved last, absolute; empty = none
  QString project_file_;        // empty = none
  Project project_;             // as that file has it
  std::filesystem::path memory_;
  std::map<int, std::string> tokens_;  // that were given here, by port
  QTimer remembering_;
  ExplorePage* explore_;
  UnderstandPage* understand_;
  RunPage* run_;
  FileWriting writing_;
  QTabWidget* pages_;
  WorkStatus* work_;
  QAction *save_ = nullptr, *save_as_ = nullptr, *undo_ = nullptr, *redo_ = nullptr,
          *cancel_ = nullptr, *pin_ = nullptr, *report_ = nullptr, *job_ = nullptr,
          *why_not_ = nullptr, *one_view_ = nullptr;
  std::optional<PlanQuery> job_question_;     // whose plan is to be exported once it is there
  QString job_target_;                        // for whom
  bool exporting_ = false;                    // views
  SettingChecks why_not_checks_;              // of that dialog
  Newest<WhyNotAnswer> why_not_searches_{4};  // last: they end before anything else goes
};

}  // namespace tessera::gui
