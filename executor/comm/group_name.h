// What a group is for ("actor tp"), in what is recorded of its operations.
//
// Beside Communicator because few callers need it. On this rank alone; the thread of the group.
#pragma once

#include <string>

#include "executor/comm/communicator.h"

namespace tessera {

/// An ability that a communicator has besides, if somebody records what it does.
class NamedGroup {
 public:
  virtual ~NamedGroup() = default;
  virtual void name_group(const std::string& name) = 0;
};

/// Nothing where the communicator records nothing.
inline void name_group(Communicator& group, const std::string& name) {
  if (auto* named = dynamic_cast<NamedGroup*>(&group)) named->name_group(name);
}

}  // namespace tessera
