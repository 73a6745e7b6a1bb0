#include "tests/executor/train/layout_cases.h"

#include <utility>

#include "cost_models/spec/context_parallel.h"
#include "tests/executor/train/small_models.h"

namespace tessera::testing_models {

ParallelLayout layout(const ModelSpec& model, int tp, int pp, int replicate, int shard, int zero,
                      bool sequence, int vpp) {
  return {{.tp = tp, .pp = pp, .vpp = vpp, .dp = replicate * shard, .dp_shard = shard},
          zero,
          even_stages(model.layers, pp, vpp),
          sequence};
}

std::vector<LayoutCase> layouts() {
  std::vector<LayoutCase> all;
  for (const auto& [name, m] : {std::pair{std::string("Qwen2"), qwen2()}, {"Llama", llama()}}) {
    all.push_back({name + "Zero2", m, layout(m, 1, 1, 2, 1, 2), 25});
    all.push_back({name + "Fsdp2", m, layout(m, 1, 1, 1, 2, 3), 25});
    all.push_back({name + "Fsdp3", m, layout(m, 1, 1, 1, 3, 3)});
    all.push_back({name + "Hsdp2x2", m, layout(m, 1, 1, 2, 2, 3), 25});
    all.push_back({name + "Tp2Fsdp2", m, layout(m, 2, 1, 1, 2, 3), 30});
    all.push_back({name + "Tp2Sequence", m, layout(m, 2, 1, 1, 1, 0, true), 30});
    all.push_back({name + "Tp2SequenceFsdp2", m, layout(m, 2, 1, 1, 2, 3, true), 30});
    all.push_back({name + "Pp2Virtual2", m, layout(m, 1, 2, 1, 1, 0, false, 2), 12});
    all.push_back({name + "Pp2Zero2", m, layout(m, 1, 2, 2, 1, 2), 25});
  }
  const ModelSpec m = qwen2(), q3 = qwen3(), value = critic();
  all.push_back({"Tp4Sequence", m, layout(m, 4, 1, 1, 1, 0, true)});
  all.push_back({"Qwen3Tp2SequencePp2", q3, layout(q3, 2, 2, 1, 1, 1, true), 30});
  all.push_back({"Tp2SequenceZero2", m, layout(m, 2, 1, 2, 1, 2, true), 25});
  all.push_back({"Tp2Pp2Fsdp2", m, layout(m, 2, 2, 1, 2, 3, true), 30});
  all.push_back({"Pp2Fsdp2", m, layout(m, 1, 2, 1, 2, 3), 25});
  all.push_back({"Pp2Virtual2Fsdp2Sequence", m, layout(m, 1, 2, 1, 2, 3, false, 2), 20});
  all.push_back({"Tp2Pp2Virtual2Sequence", m, layout(m, 2, 2, 1, 1, 0, true, 2), 20});
  all.push_back({"FsdpWithoutReshard", m, layout(m, 1, 1, 1, 2, 3), 25, Recompute::none, false});
  all.push_back({"FullRecompute", m, layout(m, 2, 1, 1, 1, 0), 25, Recompute::full});
  all.push_back({"SelectiveRecompute", m, layout(m, 2, 1, 1, 1, 0), 25, Recompute::selective});
  all.push_back({"FsdpFullRecompute", m, layout(m, 1, 1, 1, 2, 3), 25, Recompute::full});
  all.push_back(
      {"SequencePp2FullRecompute", m, layout(m, 2, 2, 1, 1, 0, true), 25, Recompute::full});
  all.push_back({"FsdpOffload", m, layout(m, 1, 1, 1, 2, 3), 25, Recompute::none, true, true});
  all.push_back({"Zero1Offload", m, layout(m, 1, 1, 2, 1, 1), 25, Recompute::none, true, true});
  all.push_back({"CriticFsdp2Tp2Sequence", value, layout(value, 2, 1, 1, 2, 3, true), 30});
  all.push_back({"FewerSequencesThanShards", m, layout(m, 1, 1, 1, 3, 3), 0, Recompute::none, true,
                 false, 2});
  return all;
}

/// With experts: cut as the rest is, into fewer parts, or whole (etp 1); dealt to data-parallel
/// ranks, to tensor-parallel ranks with tokens of their own, to both.
std::vector<LayoutCase> expert_layouts() {
  std::vector<LayoutCase> all;
  const auto add = [&](const std::string& name, const ModelSpec& model, ParallelLayout layout,
                       int ep, int etp, Recompute recompute = Recompute::none) {
    layout.ep = ep;
    layout.etp = etp;
    all.push_back({name, model, layout, layout.tp > 1 ? 30 : 25, recompute});
    all.back().z_loss = 0.3;
  };
  const ModelSpec mix = mixtral(), q2 = qwen2_moe(), q3 = qwen3_moe();
  for (const auto& [name, m] :
       {std::pair{std::string("Mixtral"), mix}, {"Qwen2Moe", q2}, {"Qwen3Moe", q3}}) {
    add(name + "Dp2", m, layout(m, 1, 1, 2, 1, 0), 1, 1);
    add(name + "Zero1", m, layout(m, 1, 1, 2, 1, 1), 1, 1);
    add(name + "Fsdp3", m, layout(m, 1, 1, 1, 3, 3), 1, 1);
    add(name + "Tp2SequenceFsdp2", m, layout(m, 2, 1, 1, 2, 3, true), 1, 2);
    add(name + "Tp2", m, layout(m, 2, 1, 1, 1, 0), 1, 2);
    add(name + "Ep2", m, layout(m, 1, 1, 2, 1, 0), 2, 1);
    add(name + "Ep2Dp4", m, layout(m, 1, 1, 4, 1, 0), 2, 1);
    add(name + "Ep2Tp2Etp2Dp2", m, layout(m, 2, 1, 2, 1, 0), 2, 2);
    add(name + "Ep2Tp2SequenceDp2", m, layout(m, 2, 1, 2, 1, 0, true), 2, 1);
    add(name + "Ep4Tp2SequenceDp2", m, layout(m, 2, 1, 2, 1, 0, true), 4, 1);
    add(name + "Ep2Pp2Dp2", m, layout(m, 1, 2, 2, 1, 0), 2, 1);
    add(name + "Tp4Etp2", m, layout(m, 4, 1, 1, 1, 0, true), 1, 2);
    add(name + "Ep2Tp4Etp2", m, layout(m, 4, 1, 1, 1, 0, true), 2, 2);
    add(name + "Ep2Tp4Etp2Dp2", m, layout(m, 4, 1, 2, 1, 0, true), 2, 2);
    add(name + "Ep4Tp4Etp2Dp2", m, layout(m, 4, 1, 2, 1, 0, true), 4, 2);
  }
  for (const auto& [name, m] : {std::pair{std::string("Mixtral"), mix}, {"Qwen2Moe", q2}}) {
    add(name + "Ep2Fsdp2", m, layout(m, 1, 1, 1, 2, 3), 2, 1);
    add(name + "Ep4Fsdp4", m, layout(m, 1, 1, 1, 4, 3), 4, 1);
    add(name + "Ep2Hsdp2x2", m, layout(m, 1, 1, 2, 2, 3), 2, 1);
    add(name + "Ep2Zero1", m, layout(m, 1, 1, 2, 1, 1), 2, 1);
    add(name + "Ep2Zero2", m, layout(m, 1, 1, 2, 1, 2), 2, 1);
    add(name + "Ep4Tp2SequenceFsdp2", m, layout(m, 2, 1, 1, 2, 3, true), 4, 1);
    add(name + "Ep2Tp2Etp2Zero1", m, layout(m, 2, 1, 2, 1, 1), 2, 2);
    add(name + "Ep4Tp4Etp2Zero1", m, layout(m, 4, 1, 2, 1, 1, true), 4, 2);
    add(name + "Ep4Tp4Etp2Fsdp2", m, layout(m, 4, 1, 1, 2, 3, true), 4, 2);
  }
  add("Qwen3MoeTp4Whole", q3, layout(q3, 4, 1, 1, 1, 0, true), 1, 1);
  add("Qwen3MoeTp2WholeDp2", q3, layout(q3, 2, 1, 2, 1, 0, true), 1, 1);
  add("Qwen3MoeEp2Tp4Whole", q3, layout(q3, 4, 1, 1, 1, 0, true), 2, 1);
  add("Qwen3MoeTp4Etp2Dp2", q3, layout(q3, 4, 1, 2, 1, 0, true), 1, 2);
  add("Qwen3MoeEp2Tp4Etp2Pp2", q3, layout(q3, 4, 2, 1, 1, 0, true), 2, 2, Recompute::full);
  add("Qwen3MoeEp2Fsdp2Pp2", q3, layout(q3, 1, 2, 1, 2, 3), 2, 1, Recompute::full);
  add("Qwen3MoeZero2", q3, layout(q3, 1, 1, 2, 1, 2), 1, 1);
  add("Qwen2MoeHsdp2x2", q2, layout(q2, 1, 1, 2, 2, 3), 1, 1);
  add("Qwen2MoeEp4Uneven", q2, layout(q2, 1, 1, 4, 1, 0), 4, 1);
  add("Qwen3MoeEp2Pp2Virtual2", q3, layout(q3, 1, 2, 2, 1, 0, false, 2), 2, 1);
  add("Qwen3MoeEp2Full", q3, layout(q3, 1, 1, 2, 1, 0), 2, 1, Recompute::full);
  add("Qwen3MoeEp2Selective", q3, layout(q3, 1, 1, 2, 1, 0), 2, 1, Recompute::selective);
  add("Qwen2MoeTp2SequenceEtp2Ep2", q2, layout(q2, 2, 1, 2, 1, 0, true), 2, 2);
  ParallelLayout ring = layout(q3, 1, 1, 1, 1, 0);
  ring.cp = 2;
  add("Qwen3MoeCp2Ep2", q3, ring, 2, 1);
  ring = layout(q3, 4, 1, 1, 1, 0, true);
  ring.cp = 2;
  add("Qwen3MoeCp2Ep2Tp4Etp2", q3, ring, 2, 2);
  return all;
}

/// With the load-balancing loss of micro-batches. Replicas make others than one rank does, unless
/// each is one sequence.
std::vector<LayoutCase> balanced_layouts() {
  std::vector<LayoutCase> all;
  const auto add = [&](const std::string& name, const ModelSpec& model, ParallelLayout layout,
                       int cp, int ep, int etp, Recompute recompute = Recompute::none) {
    layout.cp = cp;
    layout.ep = ep;
    layout.etp = etp;
    all.push_back({name, model, layout, layout.dp > 1 ? 1 : 25, recompute});
    all.back().balance = 0.4;
  };
  const ModelSpec mix = mixtral(), q2 = qwen2_moe(), q3 = qwen3_moe();
  add("Qwen3MoeTp2", q3, layout(q3, 2, 1, 1, 1, 0), 1, 1, 2);
  add("Qwen2MoeTp2Sequence", q2, layout(q2, 2, 1, 1, 1, 0, true), 1, 1, 2);
  add("Qwen3MoeEp2Tp2Sequence", q3, layout(q3, 2, 1, 1, 1, 0, true), 1, 2, 1);
  add("Qwen3MoeTp4Etp2", q3, layout(q3, 4, 1, 1, 1, 0, true), 1, 1, 2);
  add("Qwen2MoeEp2Tp4Etp2Dp2", q2, layout(q2, 4, 1, 2, 1, 0, true), 1, 2, 2);
  add("MixtralDp2", mix, layout(mix, 1, 1, 2, 1, 0), 1, 1, 1);
  add("Qwen2MoeFsdp3", q2, layout(q2, 1, 1, 1, 3, 3), 1, 1, 1);
  add("Qwen3MoeFull", q3, layout(q3, 2, 1, 1, 1, 0), 1, 1, 2, Recompute::full);
  for (const auto& [name, m] :
       {std::pair{std::string("Mixtral"), mix}, {"Qwen2Moe", q2}, {"Qwen3Moe", q3}}) {
    add(name + "Pp2", m, layout(m, 1, 2, 1, 1, 0), 1, 1, 1);
    add(name + "Cp2", m, layout(m, 1, 1, 1, 1, 0), 2, 1, 1);
    add(name + "Cp2Ulysses", m, layout(m, 1, 1, 1, 1, 0), 2, 1, 1);
    all.back().layout.ulysses = true;
    add(name + "Cp2Pp2", m, layout(m, 1, 2, 1, 1, 0), 2, 1, 1);
    add(name + "Ep2Pp2Dp2", m, layout(m, 1, 2, 2, 1, 0), 1, 2, 1);
    add(name + "Cp2Pp2Tp2SequenceEp4", m, layout(m, 2, 2, 1, 1, 0, true), 2, 4, 1);
  }
  add("Qwen2MoePp4", q2, layout(q2, 1, 4, 1, 1, 0), 1, 1, 1);
  add("Qwen3MoePp2Virtual2", q3, layout(q3, 1, 2, 1, 1, 0, false, 2), 1, 1, 1);
  add("Qwen2MoeCp2Pp2Virtual2Tp2", q2, layout(q2, 2, 2, 1, 1, 0, false, 2), 2, 1, 2);
  add("Qwen3MoePp2Full", q3, layout(q3, 1, 2, 1, 1, 0), 1, 1, 1, Recompute::full);
  add("Qwen2MoeCp2Selective", q2, layout(q2, 1, 1, 1, 1, 0), 2, 1, 1, Recompute::selective);
  add("Qwen3MoeEp2Fsdp2Pp2Full", q3, layout(q3, 1, 2, 1, 2, 3), 1, 2, 1, Recompute::full);
  add("MixtralCp2Dp2Zero1", mix, layout(mix, 1, 1, 2, 1, 1), 2, 1, 1);
  add("Qwen3MoeCp2Ep2", q3, layout(q3, 1, 1, 1, 1, 0), 2, 2, 1);
  return all;
}

/// Sequences are 2 to 15 tokens long: many are shorter than twice the ring.
std::vector<LayoutCase> context_layouts() {
  std::vector<LayoutCase> all;
  const ModelSpec q2 = qwen2(), l = llama(), q3 = qwen3(), value = critic();
  const auto add = [&](const std::string& name, const ModelSpec& model, ParallelLayout layout,
                       int cp, std::int64_t limit = 0, Recompute recompute = Recompute::none) {
    layout.cp = cp;
    all.push_back({name + "Ring", model, layout, limit, recompute});
    layout.ulysses = true;
    if (context_refusal(model, layout).empty())
      all.push_back({name + "Ulysses", model, layout, limit, recompute});
  };
  add("Cp2", q2, layout(q2, 1, 1, 1, 1, 0), 2, 25);
  add("Cp4", q2, layout(q2, 1, 1, 1, 1, 0), 4);
  add("LlamaCp2", l, layout(l, 1, 1, 1, 1, 0), 2, 25);
  add("LlamaCp3", l, layout(l, 1, 1, 1, 1, 0), 3);
  add("LlamaCp6", l, layout(l, 1, 1, 1, 1, 0), 6);
  add("Qwen3Cp2Tp2", q3, layout(q3, 2, 1, 1, 1, 0), 2, 25);
  add("Cp2Tp2Sequence", q2, layout(q2, 2, 1, 1, 1, 0, true), 2, 25);
  add("LlamaTp4Cp2Sequence", l, layout(l, 4, 1, 1, 1, 0, true), 2);
  add("Cp2Pp2", q2, layout(q2, 1, 2, 1, 1, 0), 2, 25);
  add("Cp2Pp2Virtual2Tp2Sequence", q2, layout(q2, 2, 2, 1, 1, 0, true, 2), 2, 25);
  add("Cp2Fsdp2", q2, layout(q2, 1, 1, 1, 2, 3), 2, 25);
  add("Cp2Hsdp2x2", q2, layout(q2, 1, 1, 2, 2, 3), 2, 25);
  add("Cp2Dp2", q2, layout(q2, 1, 1, 2, 1, 0), 2, 25);
  add("Cp2Zero1", q2, layout(q2, 1, 1, 1, 1, 1), 2, 25);
  add("Cp2Dp2Zero1", q2, layout(q2, 1, 1, 2, 1, 1), 2, 25);
  add("Cp2Dp2Zero2Pp2", q2, layout(q2, 1, 2, 2, 1, 2), 2, 25);
  add("Cp2FullRecompute", q2, layout(q2, 1, 1, 1, 1, 0), 2, 25, Recompute::full);
  add("Cp2SelectiveRecomputeFsdp2", q2, layout(q2, 1, 1, 1, 2, 3), 2, 25, Recompute::selective);
  add("CriticCp2Tp2", value, layout(value, 2, 1, 1, 1, 0), 2, 25);
  return all;
}

}  // namespace tessera::testing_models
