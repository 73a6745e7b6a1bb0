// SPDX-License-Identifier: GPL-3.0-or-later
// What the window works on, as one value: a question, what answers it, and where it is kept.
//
// The form shows `question`; pictures show `plan`. They belong together only while `answered`
// equals the question: else the pictures are stale, and nothing is there to be saved. Pure.
#pragma once

#include <QString>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "gui/document/history.h"
#include "gui/document/plan_query.h"
#include "gui/document/shared_plan.h"

namespace tessera::gui {

/// The answer to a question that leaves more open: beside it stands what a fixed choice costs.
struct FreerAnswer {
  PlanQuery question;
  SharedPlan plan;
};

struct Document {
  PlanQuery question;
  bool planning = false;                // a search for `question`, or for a row, is under way
  std::optional<PlanQuery> answered;    // the question that what follows answers
  SharedPlan plan;                      // that is looked at; stays when nothing fits
  std::string uncertified;              // why no search certifies it; empty = one does
  std::optional<Infeasible> none_fits;  // the answer where there is no plan
  Problems problems;                    // why `answered` has no answer
  double seconds = 0;                   // that the search took; 0 = read from a file
  std::vector<FreerAnswer> freer;       // to `answered` with less fixed, the least first

  QString file;        // that the question's plan is kept in; empty = none
  SharedPlan in_file;  // that it holds; null where `file` is empty

  QString file_problems;  // of the last file or run that could not be read or written

  /// A plan is shown that does not answer the question.
  bool stale() const;
  /// A plan that answers the question is there.
  bool valid() const { return plan != nullptr && !stale(); }
  /// No plan answers the question, and why is there.
  bool infeasible() const { return none_fits.has_value() && answered == question; }
  /// The file holds the plan that is looked at.
  bool saved() const { return plan != nullptr && plan == in_file; }
  /// It is in no file.
  bool dirty() const { return valid() && !saved(); }
};

/// When a file was written last, and how long it is then; of none zeros.
struct FileStamp {
  std::int64_t time_ns = 0, bytes = 0;
  bool operator==(const FileStamp&) const = default;
};
FileStamp stamp_of(const QString& file);

/// A step of the history: a question, or a plan that was opened or saved, which is its own answer.
struct Edit {
  PlanQuery question;
  SharedPlan opened;  // null: the question is asked
  QString file;       // that holds this plan; empty = none any more
  FileStamp written;  // of the file, when it was known to hold it
};

/// The file holds the plan that is shown, and no longer what it held before. `answers`: that plan
/// is the present edit's, so that who comes back to it has it saved.
void say_saved(Document& document, History<Edit>& edits, const QString& file, bool answers);

/// Those of the known answers whose question differs from `question` in fixing less of it.
std::vector<FreerAnswer> freer_than(const PlanQuery& question, std::vector<FreerAnswer> known);

/// What `question` fixes and `freer` leaves open: "actor.tp=8".
QStringList fixed_beyond(const PlanQuery& question, const PlanQuery& freer);

/// Those settings of the answered question that every known freer answer fixes, too: what they cost
/// is not known.
std::vector<std::string> fixed_everywhere(const Document& document);

/// "plan.json*": the file, with a star while it lacks the plan that is shown.
QString title_of(const Document& document);

}  // namespace tessera::gui
