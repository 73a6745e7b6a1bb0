// Keeps a local copy of a run's folder that is served on another host (run_server.h).
//
// Of files that grow only the bytes behind the copy are asked for, and the copy's last 4 KiB, which
// tell a file that was cut and grew anew; files that are rewritten are asked for again when size,
// time or identity differ. What a contact takes of those that grow is bounded: a long file comes in
// several; one that is rewritten comes whole, and counts where no other version came meanwhile. The
// folder is as any run's, with mirror.json beside (mirror_state.h). Signals go the other way, to
// the run itself. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "simulator/remote/mirror_state.h"
#include "simulator/remote/run_client.h"
#include "simulator/remote/run_listing.h"
#include "simulator/timeline/run_lock.h"
#include "simulator/timeline/run_signal.h"

namespace tessera {

/// How a contact ended. `denied`: another token is needed; `wrong`: whoever answers serves no such
/// run; `disk`: the copy cannot be written.
enum class Contact : std::uint8_t { reached, unreached, denied, wrong, disk };

struct MirrorNews {
  Contact contact = Contact::unreached;
  std::string fault;               // in words, unless reached
  bool restarted = false;          // a file began anew: readers begin at its start
  std::int64_t missing_bytes = 0;  // that the copy lacks still
};

class RunMirror {
 public:
  /// Bytes of files that one contact takes, and one request.
  static constexpr std::int64_t kContactBytes = std::int64_t{8} << 20,
                                kRequestBytes = std::int64_t{1} << 20;

  /// The folder is made below `cache`, once the run's name is known.
  RunMirror(RemoteName name, std::string token, std::filesystem::path cache);

  /// Asks once for all that is new, as far as a contact goes.
  MirrorNews contact(const std::stop_token& stop = {});
  /// Tells the run what `tessera signal` would on its host; why it was not told, in words, empty
  /// where it was.
  std::string signal(RunSignal signal, const std::stop_token& stop = {});
  /// Where the copy is; empty where the run has no name so far.
  std::filesystem::path folder() const;
  const RemoteName& name() const { return name_; }

 private:
  struct Failure;
  RunReply ask(const std::string& path, const std::optional<ByteRange>& range, std::size_t most,
               const std::stop_token& stop);
  static void check(const RunReply& reply);
  void find_run(const std::stop_token& stop);
  void hold();
  RunListing list(const std::stop_token& stop);
  void copy(const RunListing& listing, MirrorNews& news, const std::stop_token& stop);
  void copy_ranks(const RunListing& listing) const;
  void copy_grown(const RunFile& file, const RunFile* had, MirrorNews& news,
                  const std::stop_token& stop);
  bool copy_whole(const RunFile& file, const std::stop_token& stop);
  std::string part(const RunFile& file, std::int64_t first, std::int64_t size,
                   const std::stop_token& stop);
  void tell(const std::string& fault);

  RemoteName name_;
  std::filesystem::path cache_;
  RunClient client_;
  std::optional<std::size_t> number_;  // of the run at the server, since the last fault
  std::optional<RunLock> lock_;        // of the copy, from the first contact on that finds the run
  MirrorState state_;
  std::int64_t budget_ = 0;
};

}  // namespace tessera
