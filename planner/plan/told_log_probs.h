// Whether a rollout's server tells the log-prob of each token that it draws.
//
// A plain value and its names. Where the trainer computes old log-probs itself they change nothing
// that is learned: they show how far the server's probabilities are from the trainer's.
#pragma once

#include <array>
#include <string_view>

#include "cost_models/spec/enum_names.h"

namespace tessera {

enum class ToldLogProbs {
  as_engine,  // what the engine does by itself; a search takes the quicker
  told,
  untold,
};
inline constexpr std::array kEveryToldLogProbs{ToldLogProbs::as_engine, ToldLogProbs::told,
                                               ToldLogProbs::untold};
inline constexpr auto kToldLogProbsNames =
    enum_names<ToldLogProbs>({{ToldLogProbs::as_engine, "as_engine"},
                              {ToldLogProbs::told, "told"},
                              {ToldLogProbs::untold, "untold"}});

constexpr std::string_view name_of(ToldLogProbs told) { return kToldLogProbsNames[told]; }

}  // namespace tessera
