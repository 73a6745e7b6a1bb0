// The end of work whose result nobody wants any more.
//
// Long work takes a std::stop_token, by default one that never stops it, and asks it between its
// parts. Any thread may request the stop.
#pragma once

#include <exception>
#include <stop_token>

namespace tessera {

/// What work that was stopped throws instead of a result.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped: nobody wants the result"; }
};

inline void end_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Stopped();
}

}  // namespace tessera
