// How long ago the command was given that started this rank: what its start took so far.
#pragma once

namespace tessera {

/// Seconds since the launcher, or this process where there is none, was started (proc(5)); a
/// command that became the launcher by exec counts from its own start. 0 where the system does not
/// say.
double seconds_since_launch();

}  // namespace tessera
