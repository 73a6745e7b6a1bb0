// tessera reshard: every way to bring weights from one layout into another, side by side.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/numbers.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/model_spec.h"
#include "planner/plan/plan.h"
#include "simulator/reshard/layout_words.h"
#include "simulator/reshard/methods_report.h"

namespace tessera {
namespace {

struct ReshardOptionsGiven {
  std::string from, to, model, cluster, calibration;
  std::int64_t nodes = 0, gpus = 0, bucket_mib = 0;
  bool apart = false, curve = false, json = false, csv = false;
};

/// One end of a reshard as it was named: a plan's role, or words.
struct End {
  std::string text, name;    // name: FROM or TO
  std::optional<Plan> plan;  // then a role of it
  Role role = Role::actor;
};

End end_of(const std::string& text, const std::string& name, Role role) {
  End end{.text = text, .name = name, .plan = std::nullopt, .role = role};
  if (!std::filesystem::is_regular_file(text) && !text.ends_with(".json")) return end;
  end.plan = read_plan_or_throw(text);
  if (end.plan->find(role) != nullptr) return end;
  throw Error(ExitCode::bad_input, {Problem{.file = text,
                                            .place = "roles",
                                            .found = "no " + std::string(name_of(role)),
                                            .expected = "a plan that has one"}});
}

[[noreturn]] void refuse(const std::string& option, std::string found, std::string expected) {
  throw Error(ExitCode::usage, {Problem{.file = option,
                                        .place = "",
                                        .found = std::move(found),
                                        .expected = std::move(expected)}});
}

struct Site {
  std::string model_name;
  ModelSpec model;
  ClusterSpec cluster;
  Calibration calibration;
  RoleDTypes dtypes;
};

Site named_site(const ReshardOptionsGiven& options) {
  if (options.model.empty() || options.cluster.empty()) {
    throw Error(ExitCode::usage, "reshard needs --model and --cluster, or a plan");
  }
  Problems problems;
  const auto model = read_model_spec(options.model, problems);
  const auto named = read_cluster_spec(options.cluster, problems);
  if (!model || !named) throw Error(ExitCode::bad_input, std::move(problems));
  const ClusterSpec cluster = with_nodes(*named, options.nodes);
  Site site{options.model, *model, cluster, calibration_for(cluster, options.calibration), {}};
  site.dtypes.param = site.dtypes.wire = model->dtype;
  return site;
}

Site site_of(const ReshardOptionsGiven& options, const End& from, const End& to) {
  const End& named = from.plan ? from : to;
  if (!named.plan) return named_site(options);
  if (!options.model.empty() || !options.cluster.empty() || options.nodes > 0) {
    throw Error(ExitCode::usage, "reshard: --model, --cluster and --nodes are those of the plan");
  }
  const Plan& plan = *named.plan;
  const RolePlan& role = *plan.find(named.role);
  if (from.plan && to.plan &&
      from.plan->model_of(Role::actor) != to.plan->model_of(Role::rollout)) {
    refuse(to.text, "another model than in " + from.text, "two plans of one model");
  }
  return {std::filesystem::path(plan.models.at(role.model).path).filename().string(),
          plan.model_of(named.role), plan.cluster, calibration_of(plan, options.calibration),
          role.dtypes};
}

std::vector<int> ranks_from(std::int64_t first, std::int64_t count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), static_cast<int>(first));
  return ranks;
}

WrittenLayout read_words(const End& end, const Site& site, std::int64_t gpus) {
  Problems problems;
  auto written = read_layout_words(end.text, site.model.layers, gpus, end.name, problems);
  if (!written) throw Error(ExitCode::usage, std::move(problems));
  return *std::move(written);
}

RankMap trainer_of(const ReshardOptionsGiven& options, const End& from, const Site& site) {
  if (from.plan) return rank_map_of(*from.plan, from.role);
  const std::int64_t all = options.gpus > 0 ? options.gpus : site.cluster.gpus();
  const std::int64_t gpus = options.apart && options.gpus == 0 ? all / 2 : all;
  const WrittenLayout written = read_words(from, site, std::max<std::int64_t>(1, gpus));
  Problems problems;
  RankMap map = make_rank_map(written.order, written.layout, ranks_from(0, written.layout.ranks()),
                              nullptr, "FROM", problems);
  if (!problems.empty()) throw Error(ExitCode::usage, std::move(problems));
  return map;
}

/// The rollout's layout and ranks; also how a plan deals them, where both ends are of one plan.
void set_rollout(const ReshardOptionsGiven& options, const End& from, const End& to,
                 const Site& site, ReshardQuestion& question) {
  if (to.plan) {
    const RolePlan& role = *to.plan->find(to.role);
    question.to = role.layout;
    question.to_ranks = role.ranks;
    if (from.text == to.text) {
      question.planned = rank_map_of(*to.plan, to.role);
      question.gather = planned_gather(*to.plan);
    }
    return;
  }
  const std::vector<int>& trained = question.from.ranks;
  const std::int64_t first =
      options.apart ? *std::max_element(trained.begin(), trained.end()) + 1 : 0;
  const std::int64_t gpus =
      options.apart ? site.cluster.gpus() - first : static_cast<std::int64_t>(trained.size());
  if (gpus < 1) refuse("--apart", "no GPU beside FROM's", "a larger cluster, or fewer --gpus");
  const WrittenLayout written = read_words(to, site, gpus);
  question.to = written.layout;
  question.to_ranks = options.apart ? ranks_from(first, gpus) : trained;
}

// The methods know ranks that are all shared, or none.
void check_ranks(const RankMap& from, const std::vector<int>& to, const std::string& name) {
  const auto shared = static_cast<std::size_t>(
      std::count_if(to.begin(), to.end(), [&](int rank) { return from.index_of(rank) >= 0; }));
  if (shared == 0 || (shared == to.size() && to.size() == from.ranks.size())) return;
  refuse(name, std::to_string(shared) + " of " + std::to_string(to.size()) + " ranks are FROM's",
         "the trainer's ranks, or none of them");
}

void compare_reshards(const ReshardOptionsGiven& options) {
  const End from = end_of(options.from, "FROM", Role::actor);
  if (options.to.empty() && !from.plan) {
    throw Error(ExitCode::usage, "reshard needs TO where FROM is no plan");
  }
  const End to = end_of(options.to.empty() ? options.from : options.to, "TO", Role::rollout);
  const Site site = site_of(options, from, to);
  ReshardQuestion question{.table = parameter_table(site.model),
                           .from = trainer_of(options, from, site),
                           .to = {},
                           .to_ranks = {},
                           .planned = std::nullopt,
                           .gather = std::nullopt,
                           .weights = site.dtypes.wire,
                           .master = site.dtypes.master,
                           .cluster = site.cluster,
                           .calibration = site.calibration,
                           .bucket = Bytes{options.bucket_mib << 20}};
  set_rollout(options, from, to, site, question);
  check_ranks(question.from, question.to_ranks, to.name);
  const ReshardComparison comparison(std::move(question));
  const std::string text = options.json  ? reshard_json(comparison, site.model_name)
                           : options.csv ? reshard_csv(comparison, options.curve)
                                         : reshard_text(comparison, site.model_name, options.curve);
  std::printf("%s", text.c_str());
}

}  // namespace

void add_reshard(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("reshard", "Compare every way to reshard weights between two layouts");
  auto options = std::make_shared<ReshardOptionsGiven>();
  command
      ->add_option("FROM", options->from,
                   "The trainer's layout (tp=8,pp=4 or fsdp), or a plan.json: its actor")
      ->required();
  command->add_option("TO", options->to,
                      "The rollout's layout, or a plan.json: its rollout; default: FROM's");
  command->add_option("--model", options->model, "config.json, folder or preset; not with a plan");
  command->add_option("--cluster", options->cluster, "YAML or preset; not with a plan");
  add_nodes(*command, options->nodes);
  command
      ->add_option("--gpus", options->gpus,
                   "GPUs of the trainer; default: the cluster's, with --apart half of them")
      ->check(whole_number(1, 1 << 18));
  command->add_flag("--apart", options->apart, "The rollout has the cluster's other GPUs");
  command
      ->add_option("--bucket-mib", options->bucket_mib,
                   "Bucket of every method that has buckets; default: each one's own")
      ->check(whole_number(1, 1 << 20));
  command->add_option("--calibration", options->calibration,
                      "Calibration JSON or preset; default: the plan's, or the device's");
  command->add_flag("--curve", options->curve, "Also bucket sizes against time and peak memory");
  auto* const json = command->add_flag("--json", options->json, "Print JSON, with the curve");
  command->add_flag("--csv", options->csv, "Print CSV: methods, or with --curve buckets")
      ->excludes(json);
  command->callback([options] { compare_reshards(*options); });
}

}  // namespace tessera
