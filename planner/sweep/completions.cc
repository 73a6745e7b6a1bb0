#include "planner/sweep/completions.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "planner/plan/recompute.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/sweep/row_request.h"

namespace tessera {
namespace {

std::vector<int> divisors(std::int64_t number) {
  std::vector<int> all;
  for (std::int64_t d = 1; d <= number; ++d) {
    if (number % d == 0) all.push_back(static_cast<int>(d));
  }
  return all;
}

std::vector<int> degrees(const SweepRow::Count& fixed, std::int64_t whole) {
  if (fixed) return {static_cast<int>(*fixed)};
  return divisors(whole);
}

std::string degree_text(const char* name, int value) {
  return std::string(name) + std::to_string(value) + " ";
}

std::string product_text(const SweepRow& row) {
  std::string text;
  const auto add = [&](const char* name, const SweepRow::Count& value) {
    if (value)
      text += (text.empty() ? "" : " x ") + std::string(name) + " " + std::to_string(*value);
  };
  add("tp", row.tp);
  add("pp", row.pp);
  add("cp", row.cp);
  add("dp", row.dp);
  return text;
}

// Embedding and head may have a chunk of their own (Llama 3: 128 chunks for 126 layers).
bool fills(const ModelSpec& model, std::int64_t pp, int chunks) {
  return pp * chunks <= model.layers + (chunks > 1 ? 2 : 0);
}

// Layers' worth that the last stage holds less where the cut is uneven anyway: the head's.
std::vector<int> head_layers(const ModelSpec& model, int pp, int chunks) {
  if (pp == 1 || model.layers % (static_cast<std::int64_t>(pp) * chunks) == 0) return {0};
  return {0, 1};
}

std::vector<int> chunk_counts(const SweepRow& row, const ModelSpec& model, int pp) {
  if (row.vpp) return {static_cast<int>(*row.vpp)};
  if (pp == 1) return {1};
  // Chunks may be uneven (Llama 3's 126 layers on 16 stages): the fullest stage's layers count.
  const std::int64_t per_stage = (model.layers + pp - 1) / pp;
  std::vector<int> counts;
  for (const int chunks : divisors(per_stage)) {
    if (fills(model, pp, chunks)) counts.push_back(chunks);
  }
  return counts;
}

std::vector<std::int64_t> micro_batches(const SweepRow& row, std::int64_t share) {
  if (row.micro_batch) return {*row.micro_batch};
  std::vector<std::int64_t> sizes;
  constexpr std::int64_t kMost = 32;
  for (std::int64_t size = 1; size <= std::min(share, kMost); size *= 2) {
    if (share % size == 0) sizes.push_back(size);
  }
  if (sizes.empty()) sizes.push_back(1);
  return sizes;
}

// Sequences of one optimizer step per replica, rounded up where dp does not divide them.
std::int64_t share_of(const SweepRow& row, std::int64_t dp) {
  const std::int64_t batch = row.global_batch.value_or(dp);
  const std::int64_t step = std::min(batch, row.mini_batch.value_or(batch));
  return std::max<std::int64_t>(1, (step + dp - 1) / dp);
}

std::vector<Recompute> modes(const SweepRow& row) {
  if (row.recompute) return {*row.recompute};
  if (row.kind == SweepKind::logprob) return {Recompute::none};
  return {Recompute::none, Recompute::selective, Recompute::full};
}

// Experts alone on their ranks are cut as the rest is; those of groups stay whole.
int expert_tp(const SweepRow& row, int tp) {
  return static_cast<int>(row.etp.value_or(row.ep.value_or(1) == 1 ? tp : 1));
}

// Rows of kind rollout without gen_ columns state the rollout's degrees as others the actor's.
bool says_plainly(const SweepRow& row) {
  return row.kind == SweepKind::rollout && !row.gen_tp && !row.gen_pp && !row.gen_dp;
}

}  // namespace

std::int64_t train_ranks(const SweepRow& row) {
  if (row.train_gpus) return *row.train_gpus;
  if (row.gpus) return *row.gpus;
  return row.tp.value_or(1) * row.pp.value_or(1) * row.dp.value_or(1) * row.cp.value_or(1);
}

std::int64_t gen_ranks(const SweepRow& row) {
  if (row.gen_gpus) return *row.gen_gpus;
  if (row.gpus) return *row.gpus;
  const bool plain = says_plainly(row);
  return (plain ? row.tp : row.gen_tp).value_or(1) * (plain ? row.pp : row.gen_pp).value_or(1) *
         (plain ? row.dp : row.gen_dp).value_or(1);
}

Candidate candidate_of(const TrainLayout& layout, std::int64_t longest) {
  Candidate candidate{layout.degrees(), Role::actor, layout.gpus(), layout.zero,
                      layout.micro_batch * longest};
  candidate.dp_shard = layout.zero == 3 ? layout.dp : 1;
  candidate.head_layers = layout.head_layers;
  candidate.sequence_parallel = layout.sequence_parallel;
  candidate.ulysses = layout.zero == 3 && layout.cp > 1;  // as verl's FSDP
  candidate.recompute = layout.recompute;
  return candidate;
}

Candidate candidate_of(const GenLayout& layout) {
  Candidate candidate{layout.degrees(), Role::rollout, layout.gpus()};
  candidate.etp = layout.ep == 1 ? layout.tp : 1;
  return candidate;
}

Completions<TrainLayout> train_completions(const SweepRow& row, const ModelSpec& model,
                                           const ClusterSpec& cluster) {
  Completions<TrainLayout> result;
  const std::int64_t ranks = train_ranks(row);
  for (const int tp : degrees(row.tp, std::gcd(ranks, cluster.gpus_per_node))) {
    // ZeRO-2 and 3 (FSDP) go without a pipeline unless the row says otherwise.
    const bool fsdp = row.zero.value_or(0) >= 2;
    for (const int pp : fsdp && !row.pp ? std::vector<int>{1} : degrees(row.pp, ranks)) {
      if (pp > model.layers || tp > model.query_heads) continue;
      const int cp = static_cast<int>(row.cp.value_or(1));
      const std::int64_t inner = static_cast<std::int64_t>(tp) * pp * cp;
      if (inner > ranks || ranks % inner != 0) continue;
      const auto dp = static_cast<int>(ranks / inner);
      if (row.dp && *row.dp != dp) continue;
      if (!row.dp && row.global_batch && dp > *row.global_batch) continue;
      for (const int chunks : chunk_counts(row, model, pp)) {
        if (!fills(model, pp, chunks)) continue;
        for (const std::int64_t zero : {0, 1, 2, 3}) {
          if (row.zero.value_or(dp > 1 ? 1 : 0) != zero) continue;
          for (const Recompute mode : modes(row)) {
            for (const std::int64_t size : micro_batches(row, share_of(row, dp))) {
              TrainLayout layout{{.tp = tp,
                                  .cp = cp,
                                  .pp = pp,
                                  .vpp = chunks,
                                  .dp = dp,
                                  .ep = static_cast<int>(row.ep.value_or(1)),
                                  .etp = expert_tp(row, tp)},
                                 static_cast<int>(zero),
                                 mode,
                                 row.sequence_parallel.value_or(tp > 1)};
              layout.micro_batch = size;
              for (const int head : head_layers(model, pp, chunks)) {
                layout.head_layers = head;
                result.layouts.push_back(layout);
              }
            }
          }
        }
      }
    }
  }
  if (result.layouts.empty()) {
    result.why = "no layout of " + std::to_string(model.layers) + " layers and " +
                 std::to_string(model.query_heads) + " heads on " + std::to_string(ranks) +
                 " GPUs has " + (product_text(row).empty() ? "such degrees" : product_text(row));
  }
  return result;
}

Completions<GenLayout> gen_completions(const SweepRow& row, const ModelSpec& model,
                                       const ClusterSpec& cluster) {
  Completions<GenLayout> result;
  const bool plain = says_plainly(row);
  const auto& fixed_tp = plain ? row.tp : row.gen_tp;
  const auto& fixed_pp = plain ? row.pp : row.gen_pp;
  const auto& fixed_dp = plain ? row.dp : row.gen_dp;
  const std::int64_t ranks = gen_ranks(row);
  for (const int tp : degrees(fixed_tp, std::gcd(ranks, cluster.gpus_per_node))) {
    for (const int pp : fixed_pp ? std::vector<int>{static_cast<int>(*fixed_pp)} : std::vector{1}) {
      const std::int64_t inner = static_cast<std::int64_t>(tp) * pp;
      if (tp > model.query_heads || pp > model.layers || inner > ranks || ranks % inner != 0) {
        continue;
      }
      const auto dp = static_cast<int>(ranks / inner);
      if (fixed_dp && *fixed_dp != dp) continue;
      const auto ep = row.gen_ep.value_or(plain ? row.ep.value_or(1) : 1);
      result.layouts.push_back({{.tp = tp, .pp = pp, .dp = dp, .ep = static_cast<int>(ep)}});
    }
  }
  if (result.layouts.empty()) {
    result.why = "no generation layout on " + std::to_string(ranks) + " GPUs with these degrees";
  }
  return result;
}

std::string chosen_text(const SweepRow& row, const TrainLayout& layout) {
  std::string text;
  if (!row.tp) text += degree_text("tp", layout.tp);
  if (!row.pp) text += degree_text("pp", layout.pp);
  if (!row.dp) text += degree_text("dp", layout.dp);
  if (!row.vpp && layout.pp > 1) text += degree_text("vpp", layout.vpp);
  if (!row.zero && layout.dp > 1) text += degree_text("zero", layout.zero);
  if (!row.recompute && row.kind != SweepKind::logprob) {
    text += "recompute=" + std::string(name_of(layout.recompute)) + " ";
  }
  if (!row.micro_batch) text += "micro_batch=" + std::to_string(layout.micro_batch) + " ";
  if (!text.empty()) text.pop_back();
  return text;
}

std::string chosen_text(const SweepRow& row, const GenLayout& layout) {
  const bool plain = says_plainly(row);
  std::string text;
  if (!(plain ? row.tp : row.gen_tp)) text += degree_text("gen_tp", layout.tp);
  if (!(plain ? row.dp : row.gen_dp)) text += degree_text("gen_dp", layout.dp);
  if (!text.empty()) text.pop_back();
  return text;
}

std::string chosen_text(const SweepRow& row, const Solution& solution, std::int64_t longest) {
  const Candidate& actor = solution.choice.at(Role::actor);
  const Candidate& rollout = solution.choice.at(Role::rollout);
  std::string text;
  const auto word = [&](bool open, const std::string& more) {
    if (open) text += (text.empty() || text.back() == ' ' ? "" : " ") + more;
  };
  const auto degree = [&](const char* name, const SweepRow::Count& cell, int value, int usual) {
    word(!cell && value != usual, name + std::to_string(value));
  };
  degree("tp", row.tp, actor.tp, 0);
  degree("pp", row.pp, actor.pp, 0);
  degree("dp", row.dp, actor.dp, 0);
  degree(actor.ulysses ? "ulysses" : "cp", row.cp, actor.cp, 1);
  degree("ep", row.ep, actor.ep, 1);
  degree("vpp", row.vpp, actor.vpp, 1);
  degree("zero", row.zero, actor.zero, actor.dp > 1 ? -1 : 0);
  word(!row.recompute, "recompute=" + std::string(name_of(actor.recompute)));
  const std::int64_t update = actor.update_tokens > 0 ? actor.update_tokens : actor.tokens;
  word(!row.micro_batch, "micro_batch=" + std::to_string(update / longest));
  word(update != actor.tokens, "log_prob_micro_batch=" + std::to_string(actor.tokens / longest));
  word(actor.offload.parameters, "offload=all");
  word(actor.offload.optimizer && !actor.offload.parameters, "offload=optimizer");
  std::string gen;
  std::swap(text, gen);
  degree("gen_tp", row.gen_tp, rollout.tp, 0);
  degree("gen_pp", row.gen_pp, rollout.pp, 1);
  degree("gen_dp", row.gen_dp, rollout.dp, 0);
  degree("gen_ep", row.gen_ep, rollout.ep, 1);
  std::string all = std::move(gen);
  append(all, text);
  if (solution.placement.size() == 1) {
    append(all, std::string("rollout ") + (rollout.offload.parameters ? "unmapped" : "kept"));
  }
  append(all, std::to_string(rollout.max_sequences) + " sequences decoded at once");
  return all;
}

}  // namespace tessera
