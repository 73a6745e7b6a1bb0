"""Ways by which weights come to a worker as messages: NCCL between GPUs, sockets between CPU ranks.

A link has receive(messages), which is given the messages of a round in order, as pairs of a sender and
a contiguous tensor to fill, and finish(timeout_s), which returns when all of them are there.
"""

import ctypes
import os
import socket
import struct
import time

import torch


class SocketLink:
    """Streams of bytes from Unix sockets of the training ranks (executor/vllm/socket_link.h). The worker
    tells its index, 4 bytes, and reads what the rank has for it."""

    def __init__(self, names, index, timeout_s):
        self._streams = {}
        try:
            for sender, name in names.items():
                stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self._streams[sender] = stream
                stream.settimeout(timeout_s)
                stream.connect("\0" + name)
                stream.sendall(struct.pack("<i", index))
        except OSError:
            self.close()
            raise

    def receive(self, messages):
        for sender, target in messages:
            left = memoryview(target.view(-1).view(torch.uint8).numpy())
            while len(left) > 0:
                count = self._streams[sender].recv_into(left)
                if count == 0:
                    raise RuntimeError(f"rank {sender} has closed its connection")
                left = left[count:]

    def finish(self, timeout_s):
        pass

    def close(self):
        for stream in self._streams.values():
            stream.close()
        self._streams = {}


class _UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class _Nccl:
    """The library that torch has loaded; every call raises where it fails (nccl.h)."""

    BYTE = 1  # ncclUint8

    def __init__(self):
        self._library = ctypes.CDLL(os.environ.get("VLLM_NCCL_SO_PATH") or "libnccl.so.2")
        self._library.ncclGetErrorString.restype = ctypes.c_char_p

    def __getattr__(self, name):
        function = getattr(self._library, name)

        def call(*arguments):
            code = function(*arguments)
            if code != 0:
                text = self._library.ncclGetErrorString(code)
                raise RuntimeError(f"{name}: {text.decode()}")

        return call


class NcclLink:
    """A communicator of the training ranks that send and of all workers. `members` maps a rank of the
    run to its place in it. Messages run on a stream of their own, which comes first: NCCL's few blocks
    would else wait for those that turn what the round before has brought."""

    def __init__(self, id_text, size, place, members):
        self._nccl = _Nccl()
        self._members = members
        self._comm = ctypes.c_void_p()
        unique = _UniqueId.from_buffer_copy(bytes.fromhex(id_text))
        self._nccl.ncclCommInitRank(
            ctypes.byref(self._comm), ctypes.c_int(size), unique, ctypes.c_int(place)
        )
        self.stream = torch.cuda.Stream(priority=-1)

    def receive(self, messages):
        stream = ctypes.c_void_p(self.stream.cuda_stream)
        self._nccl.ncclGroupStart()
        try:
            for sender, target in messages:
                self._nccl.ncclRecv(
                    ctypes.c_void_p(target.data_ptr()),
                    ctypes.c_size_t(target.numel() * target.element_size()),
                    ctypes.c_int(_Nccl.BYTE),
                    ctypes.c_int(self._members[sender]),
                    self._comm,
                    stream,
                )
        finally:
            self._nccl.ncclGroupEnd()

    def finish(self, timeout_s):
        """Gives the communicator up where a rank does not send in time."""
        done = torch.cuda.Event()
        done.record(self.stream)
        until = time.monotonic() + timeout_s
        while not done.query():
            if time.monotonic() > until:
                self._nccl.ncclCommAbort(self._comm)
                self._comm = ctypes.c_void_p()
                raise RuntimeError(f"weights did not come within {timeout_s:g} s")
            time.sleep(0.0002)

    def close(self):
        if self._comm.value is not None:
            self._nccl.ncclCommDestroy(self._comm)
            self._comm = ctypes.c_void_p()


def make_link(told, worker, timeout_s):
    """The link of worker `worker` of a server, as the table describes it (executor/vllm/
    weight_messages.h)."""
    members = {rank: place for place, rank in enumerate(told["senders"])}
    index = told["first_worker"] + worker
    if told["kind"] == "nccl":
        return NcclLink(told["id"], told["size"], len(members) + index, members)
    return SocketLink(dict(zip(told["senders"], told["sockets"])), index, timeout_s)
