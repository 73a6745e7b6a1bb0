// The time that files carry. Any thread.
#pragma once

#include <string>

namespace tessera {

/// Now, as ISO 8601 in UTC to the second: 2026-01-31T09:05:00Z.
std::string utc_now();

}  // namespace tessera
