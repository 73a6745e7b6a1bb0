// One page over HTTP on the loopback interface, for programs of this host that ask for it.
//
// Threads of its own answer; whoever owns it changes the page at any time. No page but its path is
// answered (404).
#pragma once

#include <memory>
#include <string>

namespace tessera {

class PageServer {
 public:
  /// Answers GET `path` at 127.0.0.1:`port` with `type` from now on; the page is empty at first.
  /// Throws Error (io) where it cannot listen there.
  PageServer(int port, const std::string& path, const std::string& type);
  ~PageServer();

  void set(std::string page);

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace tessera
