// The bytes that a reshard of weights moves, and how they travel. Plain values.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Moves only what a destination lacks, or gathers every tensor whole and slices it there.
enum class ReshardMode { minimal, full };
std::string_view name_of(ReshardMode mode);

/// copy_engine: every rank reads its peers' memory (GPUs of one host); window: NCCL all-gather over
/// symmetric windows without multiprocessors; all_gather: NCCL or MPI in micro data-parallel
/// groups; send_recv: messages; host: shared memory between processes.
enum class ReshardTransport { automatic, copy_engine, window, all_gather, send_recv, host };
/// In the order that help texts name them.
inline constexpr std::array kTransports{ReshardTransport::automatic, ReshardTransport::copy_engine,
                                        ReshardTransport::window,    ReshardTransport::all_gather,
                                        ReshardTransport::send_recv, ReshardTransport::host};
std::string_view name_of(ReshardTransport transport);
std::optional<ReshardTransport> transport_from(std::string_view name);
std::vector<std::string> transport_names();

}  // namespace tessera
