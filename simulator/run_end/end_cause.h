// What ended a run, from the marks that its ranks left and from those that died without one.
//
// One answer for the command line and the window, which have words of their own for it. Pure.
#pragma once

#include <span>
#include <vector>

#include "cost_models/documents/problem.h"
#include "simulator/timeline/rank_status.h"

namespace tessera {

/// It ended with an error, its own or that of a rank that it waited for; not as it was asked to.
bool ended_by_error(const RankStatus& rank);

enum class EndCause {
  none,       // nothing that a rank left or suffered: all ended well, or go on
  failed,     // an error of a rank's own; whatever else befell ranks came of it
  killed,     // when it was to end anyway
  lost,       // a rank died without a mark
  lost_peer,  // a rank waited in vain for another, whose death nobody saw
  requeued,   // saved, to be queued again
  asked,      // to end, and it did
  by_rule,    // that a rule of the run's own asks for
};

/// The code of a run that ends because of `reason`, which is not none.
ExitCode exit_code_of(StopReason reason);

struct RunCause {
  EndCause cause = EndCause::none;
  const RankStatus* rank = nullptr;  // that it is of, one of those that were given; may be none
};

/// `dead`: ranks without a mark whose processes are gone, in the order in which that was seen;
/// numbers of others count for nothing. `stopped`: what the run was asked; `killed`: its processes
/// ended by a signal then.
RunCause cause_of_end(const std::vector<RankStatus>& ranks, std::span<const int> dead,
                      StopReason stopped, bool killed = false);

}  // namespace tessera
