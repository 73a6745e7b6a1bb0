// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/project.h"

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "gui/document/question_json.h"
#include "gui/document/run_folder.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"

namespace tessera::gui {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kVersion = 1;

// Where nodes keep their lines, what is wrong with a plan is told at its line of the project.
SharedPlan plan_at(const tessera::Document& project, const Node& node, Problems& problems) {
  auto plan = plan_from({project.file, project.syntax, node}, problems);
  return plan ? std::make_shared<const Plan>(*std::move(plan)) : nullptr;
}

void read_question_at(const tessera::Document& document, ObjectReader& root, Project& project) {
  if (!root.has("question")) return;
  auto reader = root.object("question");
  if (!reader) return;
  PlanQuery question;
  read_question(*reader, question);
  if (const Node* opened = reader->find("opened")) {
    question.opened = plan_at(document, *opened, root.problems());
  } else {
    const auto named = [&](const char* key, const std::string& name) {
      if (name.empty()) reader->refuse(key, "a preset or a path, where no plan is opened");
    };
    named("model", question.model);
    named("cluster", question.cluster);
    named("workload", question.workload);
  }
  reader->refuse_unknown_keys();
  project.question = std::move(question);
}

void read_pinned(const tessera::Document& document, ObjectReader& root, Project& project) {
  const Node* list = root.find("pinned");
  if (list == nullptr) return;
  if (!list->is(Node::Kind::list) || list->items.size() > Project::kMostPinned) {
    root.refuse("pinned", "a list of at most " + std::to_string(Project::kMostPinned) + " plans");
    return;
  }
  for (const Node& node : list->items) {
    if (SharedPlan plan = plan_at(document, node, root.problems())) {
      project.pinned.push_back(std::move(plan));
    }
  }
}

void read_runs(const fs::path& file, ObjectReader& root, Project& project) {
  std::vector<std::string> runs;
  root.list("runs", runs, false);
  if (runs.size() > Project::kMostRuns) {
    root.refuse("runs", "at most " + std::to_string(Project::kMostRuns) + " runs");
  }
  for (const std::string& run : runs) {
    if (!is_remote(run)) {
      if (run.empty()) root.refuse("runs", "an empty name", "names of folders", "");
      const RunPlace place = run_folder(file.parent_path() / run);
      const bool known = std::find(project.runs.begin(), project.runs.end(), place) !=
                         project.runs.end();  // by another name
      if (!known) project.runs.push_back(place);
    } else if (const auto name = remote_name_from(run); name && !name->run.empty()) {
      project.runs.emplace_back(*name);
    } else {
      root.refuse("runs", run, "remote:127.0.0.1:PORT/RUN", "");
    }
  }
}

// As the file names it.
std::string name_in(const RunPlace& place, const fs::path& file) {
  if (const auto* remote = std::get_if<RemoteName>(&place)) return to_text(*remote);
  const fs::path whole = run_folder(std::get<fs::path>(place));
  std::error_code error;
  const fs::path beside = run_folder(fs::absolute(file, error).parent_path());
  const fs::path below = whole.lexically_relative(beside);
  const bool inside = !below.empty() && *below.begin() != "..";
  return (inside ? below : whole).generic_string();
}

bool same_plan(const SharedPlan& a, const SharedPlan& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

bool same_question(const std::optional<PlanQuery>& a, const std::optional<PlanQuery>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  PlanQuery left = *a, right = *b;
  const auto plan_of = [](PlanQuery& query) { return std::exchange(query.opened, nullptr); };
  const auto first = plan_of(left), second = plan_of(right);
  return left == right && same_plan(first, second);
}

}  // namespace

void add_unreached(std::vector<RunPlace>& runs, const UnreachedRuns& unreached, std::size_t first) {
  for (const auto& [place, run] : unreached) {
    const bool known = std::find(runs.begin(), runs.end(), run) != runs.end();
    if (known || runs.size() == Project::kMostRuns) continue;
    const std::size_t at = std::min(std::max(place, first), runs.size());
    runs.insert(runs.begin() + static_cast<std::ptrdiff_t>(at), run);
  }
}

bool operator==(const Project& a, const Project& b) {
  return same_question(a.question, b.question) && a.runs == b.runs &&
         std::equal(a.pinned.begin(), a.pinned.end(), b.pinned.begin(), b.pinned.end(), same_plan);
}

std::optional<Project> read_project(const fs::path& file, Problems& problems) {
  const std::size_t before = problems.size();
  const auto text = read_text_file(file, Project::kMostBytes, problems);
  if (!text) return std::nullopt;
  const auto document = parse_json(*text, file.string(), problems, {.bytes = Project::kMostBytes});
  if (!document) return std::nullopt;
  ObjectReader root(*document, problems);
  if (problems.size() != before) return std::nullopt;
  std::int64_t version = 0;
  root.required("tessera_project", version, Whole{.least = kVersion, .most = kVersion});
  if (problems.size() != before) return std::nullopt;  // all else may be of something else
  Project project;
  read_question_at(*document, root, project);
  read_pinned(*document, root, project);
  read_runs(file, root, project);
  root.refuse_unknown_keys();
  if (problems.size() != before) return std::nullopt;
  return project;
}

void write_project(const Project& project, const fs::path& file) {
  Node root = map_node(), pinned = list_node(), runs = list_node();
  add(root, "tessera_project", node_of(kVersion));
  if (project.question) {
    Node question = map_node();
    add_question(question, *project.question);
    if (project.question->opened) add(question, "opened", to_node(*project.question->opened));
    add(root, "question", std::move(question));
  }
  for (const SharedPlan& plan : project.pinned) pinned.items.push_back(to_node(*plan));
  for (const RunPlace& run : project.runs) runs.items.push_back(node_of(name_in(run, file)));
  add(root, "pinned", std::move(pinned));
  add(root, "runs", std::move(runs));
  write_text_file(file, json_text(root));
}

}  // namespace tessera::gui
