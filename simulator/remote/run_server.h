// Serves runs' folders to whoever has the token, read only, over HTTP/1.1 on the loopback
// interface.
//
// GET /runs, /runs/K (a listing, run_listing.h) and /runs/K/NAME with or without one Range: bytes;
// "Authorization: Bearer TOKEN" on each. A request has at most 8 KiB and no body, and comes within
// 10 s; who takes 30 s for a piece of an answer, or asks nothing for 60 s, is cut off. Of 32
// connections the oldest that has not shown the token makes room for a new one.
// One thread: the one that calls run().
#pragma once

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

class RunServer {
 public:
  /// Listens at 127.0.0.1:`port` from now on; 0 = a free port. Throws Error (io) where it cannot.
  RunServer(int port, std::string token, std::vector<ServedRun> runs);
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
