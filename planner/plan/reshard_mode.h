// A plan's reshards in another mode than it was made for.
#pragma once

#include "cost_models/layout/reshard_transport.h"

namespace tessera {

struct Plan;

/// Every reshard in the mode: its bytes and digests change with it.
void set_reshard_mode(Plan& plan, ReshardMode mode);

}  // namespace tessera
