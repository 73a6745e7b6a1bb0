// Serves runs' folders to whoever has the token, over HTTP/1.1 on the loopback interface.
//
// GET /runs, /runs/K (a listing, run_listing.h) and /runs/K/NAME with or without one Range: bytes;
// POST /runs/K/signals/WORD tells the run what `tessera signal` would (409 with the reason where no
// rank would hear of it, 403 where runs are served for reading alone); "Authorization: Bearer
// TOKEN" on each. What fails here (a disk, say) is answered with 500 and the reason. A request has
// at most 8 KiB and no body, and comes within 10 s; who takes 30 s for a piece of an answer, or
// asks nothing for 60 s, is cut off. Of 32 connections the oldest that has not shown the token
// makes room for a new one. A signal holds the others for about a second (run_signal.h). One
// thread: the one that calls run().
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>  // boost/asio.hpp lacks it
#include <vector>

namespace tessera {

struct ServedRun {
  std::string name;
  std::filesystem::path folder;
};

/// What the token allows.
enum class ServeRights : std::uint8_t { read, read_and_signal };

class RunServer {
 public:
  /// Listens at 127.0.0.1:`port` from now on; 0 = a free port. Throws Error (io) where it cannot.
  RunServer(int port, std::string token, std::vector<ServedRun> runs, ServeRights rights);
  ~RunServer();

  int port() const;
  /// Answers until stop(), SIGINT or SIGTERM.
  void run();
  /// From any thread.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
