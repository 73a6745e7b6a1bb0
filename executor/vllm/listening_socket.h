// A Unix socket by which processes of the same user on the same host find this one.
//
// Its name is abstract (no file) and cannot be guessed, so that it tells who may ask. One owner;
// accept() from one thread.
#pragma once

#include <string>

namespace tessera {

class ListeningSocket {
 public:
  /// Throws Error(io) where there are no sockets.
  ListeningSocket();
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  /// Without the NUL that it begins with.
  const std::string& name() const { return name_; }
  int descriptor() const { return socket_; }
  /// The next connection, of a process of the same user, which the caller closes; -1: there is none
  /// after all. Waits for one.
  int accept() const;

 private:
  std::string name_;
  int socket_ = -1;
};

}  // namespace tessera
