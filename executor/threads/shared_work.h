// Work that several threads share: ranges of items, each done by whichever thread is free.
//
// torch's own parallel_for needs OpenMP in the code that calls it and is serial without: this room
// needs no more than the standard library.
#pragma once

#include <cstdint>
#include <functional>

namespace tessera {

/// Calls `work(begin, end)` for ranges of at most `chunk` items that together are [0, count), each
/// item in one of them, on up to `threads` threads, the caller's among them, and on fewer where the
/// system gives no more. Returns when all is done. Of what they throw the first is thrown again,
/// and ranges not begun by then are left out. Preconditions: count >= 0, chunk >= 1, threads >= 1.
void share_work(std::int64_t count, std::int64_t chunk, int threads,
                const std::function<void(std::int64_t begin, std::int64_t end)>& work);

}  // namespace tessera
