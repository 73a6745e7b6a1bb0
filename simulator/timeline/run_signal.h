// What a person tells a run that goes on, through files in its folder: the command line and the
// window say it alike.
//
// Blocks for about a second where the run's lock is free (ranks that were killed are told from
// those on a file system without locks by their signs of life). Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// `pause` holds the run after its step, saved; `go` ends that; `stop` ends the run, saved;
/// `requeue` does, too, for whoever queues it again.
enum class RunSignal : std::uint8_t { pause, go, stop, requeue };
inline constexpr std::array kEveryRunSignal{RunSignal::pause, RunSignal::go, RunSignal::stop,
                                            RunSignal::requeue};
std::string_view name_of(RunSignal signal);
/// The signal of that name; nullopt where there is none.
std::optional<RunSignal> run_signal_from(std::string_view name);

/// Gives the signal; `who` says so in a pause. Throws Error (bad_input) where nobody would hear of
/// it: ranks that have all ended or were killed, no pause to end; Error (io) where a file cannot be
/// written.
void send_signal(const std::filesystem::path& run, RunSignal signal, std::string_view who);

}  // namespace tessera
