// SPDX-License-Identifier: GPL-3.0-or-later
// What the window works on: its document, the ranked plans, pinned ones, the run.
//
// One per window. Pages call its methods and hear its signals; none of them holds state that
// another needs. Every edit goes through here, so that it can be undone. Searches run in the
// background.
#pragma once

#include <QObject>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/document/document.h"
#include "gui/document/front_search.h"
#include "gui/document/history.h"
#include "gui/document/plan_job.h"
#include "gui/document/planner_job.h"
#include "gui/document/project.h"
#include "gui/document/view_state.h"
#include "gui/models/memory_model.h"
#include "gui/models/mesh_model.h"
#include "gui/models/phase_model.h"
#include "gui/models/pinned_model.h"
#include "gui/models/plan_table_model.h"
#include "gui/models/run_follower.h"
#include "gui/plans/plan_apart.h"
#include "gui/plans/plan_parts.h"
#include "gui/plans/planned_fixes.h"
#include "gui/remote/remote_copy.h"
#include "gui/reshard/reshard_facts.h"
#include "gui/samples/sample_follower.h"
#include "gui/threads/newest.h"
#include "gui/timeline/timeline_index.h"
#include "gui/trace/opened_trace.h"

namespace tessera::gui {

class Session : public QObject {
  Q_OBJECT

 public:
  explicit Session(QObject* parent = nullptr);

  /// An edit: another question, planned in the background; the last one wins. Nothing happens
  /// where it is the question already.
  void ask(const PlanQuery& query);
  /// Goes on with the last edit: both are undone at once.
  void askOn(const PlanQuery& query);
  /// The question once more, as after cancel().
  void askAgain();
  /// Ends waiting: what is still worked out is not heard of.
  void cancel();
  void undo();
  void redo();
  bool canUndo() const { return edits_.can_undo(); }
  bool canRedo() const { return edits_.can_redo(); }

  /// Shows the plan of a row; a runner-up is planned in full first.
  void selectRow(int row);
  /// The row that is shown, or that will be when it is planned.
  int selectedRow() const { return wanted_row_; }
  /// The row that document().plan is of; -1 = none.
  int shownRow() const { return row_; }
  /// The Pareto front of the question becomes rows of the plans; once for an answer, and not while
  /// another question is planned.
  void wantFront();
  /// Every row is planned in full, one after the other; likewise.
  void wantEveryPlan();
  const FrontSearch& front() const { return front_; }
  /// As PlanWatch (plan_job.h) has them.
  void cancelFront() { front_.cancel(); }
  void goOnWithFront() { front_.goOn(); }
  /// What the question's fixed settings cost, where no answer without them is known; once for an
  /// answer.
  void wantFreer();
  /// What a plan is slower for than the one that it is held against is on its way.
  bool isComparing() const { return free_search_.isBusy() || parts_.isBusy(); }
  /// Keeps the plan that is looked at beside others.
  void pin();
  /// What all views look at: one of them chose it.
  void look(const ViewState& view);
  const ViewState& view() const { return view_; }

  /// False and the document's file_problems when the file is no plan: all else stays as it is.
  bool openPlan(const QString& file);
  /// The same of a script or configuration of another program (gui/plans/imported_plan.h), whose
  /// plan is in no file then.
  /// `question`: whose cluster it runs on.
  bool importPlan(const QString& file, const PlanQuery& question);
  /// False where there is no valid plan, or the file cannot be written.
  bool savePlan(const QString& file);
  /// The question, the pinned plans and the runs that are followed; and those of the project that
  /// was opened which could not be reached.
  Project project() const;
  /// The project that is open has the run that is followed alone.
  void keepOneRun() {
    unreached_.clear();
    run_.clearOthers();
  }
  /// Asks its question and pins its plans; `live`: its runs are followed in the background. Says
  /// which of its runs are no folders. Of runs on other hosts the copies are shown that are here.
  void openProject(const Project& project, bool live = true);
  /// Follows a run of another host: the copy that is here at once, and what comes from there.
  void followRemote(const RemoteName& name, const std::string& token);
  /// The run that is followed can be told something: it is here, or its host answers.
  bool canTell() const;
  /// What it was told last is not done yet.
  bool isTelling() const { return run_.isTelling() || remote_.isTelling(); }
  /// As `tessera signal` does, here or on the run's host. Precondition: canTell().
  void tell(RunSignal signal);
  /// A question was asked, or a plan opened.
  bool isAsked() const { return began_; }
  /// The question or the row was changed, and no file has what is shown since.
  bool hasEdits() const { return edited_ && !document_.saved(); }
  /// Says what is wrong with a file or a folder; empty = nothing any more.
  void report(const QString& problems);

  const Document& document() const { return document_; }
  const SharedPlan& plan() const { return document_.plan; }
  /// Where nothing fits: changes that help, once they are known; empty before.
  const std::vector<PlannedFix>& fixes() const { return fixes_; }
  /// The run is held against the plan that is shown, and that does not answer the question.
  bool isHeldAgainstStale() const {
    return document_.stale() && run_.plan() == document_.plan.get() && !run_.isPlanChosen();
  }
  /// The constants that the plan was made with, where they can be found.
  const std::optional<Calibration>& calibration() const { return calibration_; }
  bool isBusy() const { return search_.isBusy() || detail_.isBusy(); }

  /// What the search of the plan that is shown left no choice of: what the question fixes, and of
  /// another row than the first all that makes it that row.
  std::vector<std::string> fixed() const;

  /// What was asked to be worked out of the plan, or to be read of the run, is on its way.
  bool isWorking() const {
    return timeline_.isBusy() || reshard_.isBusy() || peaks_.isBusy() || front_.isBusy() ||
           samples_.isBusy() || fix_search_.isBusy() || trace_.isBusy() || isComparing();
  }

  /// What the plan that is shown is held against, and that plan: the first row, of another row; of
  /// the first the nearest answer with less fixed. nullopt where there is nothing of the kind.
  struct Compared {
    NamedPlan other, shown;
  };
  std::optional<Compared> compared() const;

  PlanTableModel* plans() { return &plans_; }
  PinnedModel* pinned() { return &pinned_; }
  MeshModel* mesh() { return &mesh_; }
  MemoryModel* memory() { return &memory_; }
  PhaseModel* phases() { return &phases_; }
  RunFollower* run() { return &run_; }
  /// Keeps the copy up where that run is one of another host.
  RemoteCopy* remote() { return &remote_; }
  /// Of that run.
  SampleFollower* samples() { return &samples_; }
  PlanJob<TimelineIndex>* timeline() { return &timeline_; }
  /// Looked at instead of that, while one is open.
  OpenedTrace* trace() { return &trace_; }
  PlanJob<ReshardFacts>* reshard() { return &reshard_; }
  /// What every rank holds at most; the mesh is told.
  PlanJob<std::vector<RankMemory>>* peaks() { return &peaks_; }

 signals:
  /// After every change of document().
  void documentChanged();
  /// A search that was wanted of the front began, ended or is of no use any more.
  void frontChanged();
  /// A project follows a run of another host, whose token it does not have.
  void remoteWanted(const tessera::RemoteName& name);
  void planSelected(const tessera::Plan& plan);
  void viewChanged(const tessera::gui::ViewState& view);

 private:
  void goTo(const Edit& edit);
  void comeBackTo(Edit edit);
  void search();
  void followCopy();
  void tellMesh();
  void takeAnswer(const PlanQuery& query, const PlanAnswer& answer);
  void searchFixes();
  void forgetFixes();
  void forgetFreer();
  void takeDetail(int row, const PlanAnswer& answer);
  void wantParts();
  void setWinner(const SharedPlan& winner, bool certified);
  void show(int row, const SharedPlan& plan, const std::string& uncertified = {});
  void changed();

  Document document_;
  History<Edit> edits_{Edit{}};
  std::optional<Calibration> calibration_;
  PlanTableModel plans_;
  PinnedModel pinned_;
  MeshModel mesh_;
  MemoryModel memory_;
  PhaseModel phases_;
  RunFollower run_;
  RemoteCopy remote_;
  SampleFollower samples_;
  PlanJob<TimelineIndex> timeline_{simulated};
  OpenedTrace trace_;
  PlanJob<ReshardFacts> reshard_{reshard_facts};
  PlanJob<std::vector<RankMemory>> peaks_{memory_of_ranks};
  ViewState view_;
  FrontSearch front_;
  std::vector<PlannedFix> fixes_;
  UnreachedRuns unreached_;           // of the project that is open
  std::filesystem::path of_project_;  // its run that is followed, its first that was there
  Newest<std::vector<PlannedFix>> fix_search_;
  Newest<PlanAnswer> free_search_;
  PlanParts parts_;  // of the plans that are compared
  KeptPlanner planner_;
  int row_ = -1, wanted_row_ = -1;
  bool freer_wanted_ = false;   // of this answer
  bool began_ = false;          // a question was asked
  bool edited_ = false;         // since it began, or since a plan was opened or saved
  PlannerJob search_, detail_;  // last: their work ends before anything else goes
};

}  // namespace tessera::gui
