// Exchanges among ranks between phases: parts of the experience, numbers, the wish to stop.
//
// Over a communicator on host memory that spans the world. Collective over the world.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "executor/comm/communicator.h"
#include "executor/rl/experience.h"
#include "simulator/timeline/timeline.h"

namespace tessera {

/// Adds every rank's `mine` with these fields to `experience` on every rank.
void share_sequences(Communicator& world, std::span<const Sequence> mine, SequenceFields fields,
                     Experience& experience);

/// Numbers of all ranks by name; where several ranks report a name the largest wins.
std::map<std::string, double> share_numbers(Communicator& world,
                                            const std::map<std::string, double>& mine);

/// Strings of all ranks in rank order.
std::vector<std::string> share_texts(Communicator& world, const std::string& mine);

/// What any rank has found wrong, each line once, sorted and alike on every rank; empty where
/// nothing is.
std::string share_problems(Communicator& world, const Problems& mine);

/// The spans of all ranks, sorted.
Timeline share_spans(Communicator& world, const Timeline& mine);

/// Fields that roles computed apart from one another and their leaders have yet to tell.
class UnsharedFields {
 public:
  /// Some role's leader holds these; `mine` = this rank is it. To be called alike on every rank.
  void add(SequenceFields fields, bool mine);
  /// One exchange of all that was added, where there is anything. Collective.
  void share(Communicator& world, Experience& experience);

 private:
  bool any_ = false;
  SequenceFields mine_ = 0;
};

/// True on every rank when any rank says so.
bool any_rank(Communicator& world, bool mine);
/// The largest of all ranks' numbers.
std::int32_t largest_of(Communicator& world, std::int32_t mine);

}  // namespace tessera
