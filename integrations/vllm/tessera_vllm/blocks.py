"""Memory of the training ranks, mapped into this process.

A rank gives a descriptor of its memory over an abstract Unix socket (executor/vllm/block_giver.h):
8 bytes of size, and the descriptor as SCM_RIGHTS. In host memory it is a memory file; on a GPU an
allocation of cuMemCreate, which the driver's functions below map.
"""

import ctypes
import mmap
import os
import socket
import struct
import warnings

import torch

_DESCRIPTOR = 0x1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_PINNED = 0x1  # CU_MEM_ALLOCATION_TYPE_PINNED
_DEVICE = 0x1  # CU_MEM_LOCATION_TYPE_DEVICE
_READ = 0x1  # CU_MEM_ACCESS_FLAGS_PROT_READ
_RECOMMENDED = 0x1  # CU_MEM_ALLOC_GRANULARITY_RECOMMENDED


def receive_descriptor(name, timeout_s=60.0):
    """(size in bytes, file descriptor) of the block behind a socket's name."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        connection.connect("\0" + name)
        text, descriptors, _, _ = socket.recv_fds(connection, 8, 1)
    if len(text) != 8 or len(descriptors) != 1:
        raise RuntimeError(f"the rank behind {name} gave no memory")
    return struct.unpack("<q", text)[0], descriptors[0]


class HostBlock:
    """`bytes` is a uint8 tensor over the memory; it must not be written."""

    def __init__(self, descriptor, size):
        try:
            self._memory = mmap.mmap(descriptor, size, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the memory is read-only
            self.bytes = torch.frombuffer(self._memory, dtype=torch.uint8)

    def close(self):
        del self.bytes
        self._memory.close()


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Flags(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 8)]


class _Properties(ctypes.Structure):  # CUmemAllocationProp
    _fields_ = [
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", _Location),
        ("meta", ctypes.c_void_p),
        ("flags", _Flags),
    ]


class _Access(ctypes.Structure):  # CUmemAccessDesc
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class _Driver:
    """CUDA's driver; every call raises where it fails."""

    def __init__(self):
        self._library = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name):
        function = getattr(self._library, name)

        def call(*arguments):
            code = function(*arguments)
            if code != 0:
                text = ctypes.c_char_p()
                self._library.cuGetErrorString(code, ctypes.byref(text))
                words = text.value.decode() if text.value else f"error {code}"
                raise RuntimeError(f"{name}: {words}")

        return call


class DeviceBlock:
    """`bytes` is a uint8 tensor on the current device over a rank's memory, on whichever GPU."""

    def __init__(self, descriptor, size):
        device = torch.cuda.current_device()
        torch.cuda.synchronize(device)  # there is a context
        driver = self._driver = _Driver()
        self._size = _rounded(driver, size, device)
        self._handle = ctypes.c_ulonglong()
        self._address = ctypes.c_ulonglong()
        try:
            driver.cuMemImportFromShareableHandle(
                ctypes.byref(self._handle), ctypes.c_void_p(descriptor), ctypes.c_int(_DESCRIPTOR)
            )
        finally:
            os.close(descriptor)
        length = ctypes.c_size_t(self._size)
        zero = ctypes.c_ulonglong(0)
        driver.cuMemAddressReserve(
            ctypes.byref(self._address), length, ctypes.c_size_t(0), zero, zero
        )
        driver.cuMemMap(self._address, length, ctypes.c_size_t(0), self._handle, zero)
        access = _Access(_Location(_DEVICE, device), _READ)
        try:
            driver.cuMemSetAccess(self._address, length, ctypes.byref(access), ctypes.c_size_t(1))
        except RuntimeError:  # a driver that knows no reading alone
            access.flags = 0x3
            driver.cuMemSetAccess(self._address, length, ctypes.byref(access), ctypes.c_size_t(1))
        storage = torch._C._construct_storage_from_data_pointer(
            self._address.value, torch.device("cuda", device), size
        )
        self.bytes = torch.empty(0, dtype=torch.uint8, device=f"cuda:{device}").set_(
            storage, 0, (size,)
        )

    def close(self):
        torch.cuda.synchronize()
        del self.bytes
        length = ctypes.c_size_t(self._size)
        self._driver.cuMemUnmap(self._address, length)
        self._driver.cuMemAddressFree(self._address, length)
        self._driver.cuMemRelease(self._handle)


def _rounded(driver, size, device):
    """A block's size as its owner allocated it (executor/storage/device_memory.cc)."""
    wanted = _Properties(_PINNED, _DESCRIPTOR, _Location(_DEVICE, device), None, _Flags())
    step = ctypes.c_size_t()
    driver.cuMemGetAllocationGranularity(
        ctypes.byref(step), ctypes.byref(wanted), ctypes.c_int(_RECOMMENDED)
    )
    return (max(size, 1) + step.value - 1) // step.value * step.value


def map_block(name, size, device):
    """The block of `size` bytes behind a socket's name; `device` is "cpu" or "cuda"."""
    told, descriptor = receive_descriptor(name)
    if told != size:
        os.close(descriptor)
        raise RuntimeError(f"the block behind {name} has {told} bytes, expected {size}")
    return HostBlock(descriptor, size) if device == "cpu" else DeviceBlock(descriptor, size)
