// What estimators that score whole responses share: the score of a row, the rows of a group, and
// one number per row spread over its tokens.
//
// Pure functions, fp64. Source: verl 0.9.1, trainer/ppo/core_algos.py.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "executor/estimators/estimators.h"

namespace tessera {

/// Sum of each reward row, holes and padding included.
Array scores_of(const Rows& rows, View rewards);

/// Rows with equal uid, groups in the order of their first rows. Precondition: a uid per row.
using Group = std::vector<std::size_t>;
std::vector<Group> groups_of(const Rows& rows, std::span<const std::string> uid);

/// The mean of a group's scores; 0 for a group of one, as verl has it.
double group_mean(View scores, const Group& group);
/// Their unbiased standard deviation; 1 for a group of one.
double group_deviation(View scores, const Group& group);

/// (score - mean) / (deviation + 1e-6) of each row in its group, or score - mean.
Array relative_scores(View scores, std::span<const Group> groups, bool divide);

/// One number per row, on its valid entries; 0 elsewhere.
Array spread(const Rows& rows, View per_row);
/// The same as advantages and as returns.
Advantages outcome(const Rows& rows, View per_row);

/// Sum of the valid rewards from each valid entry to the end of its row; 0 elsewhere.
Array rewards_to_go(const Rows& rows, View rewards);

/// 0 where an entry is not valid.
void zero_invalid(const Rows& rows, Array& values);

}  // namespace tessera
