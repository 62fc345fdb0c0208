#!/usr/bin/python3
"""Makes shield.bpf and shield.xdp.bpf of shield.c with clang, and the same of sarp.c and ipsec.c: the instructions of each program as
the kernel takes them, and nothing else. One stands in front of a socket, the other in front of a card's receive path; hook.h has
the difference. onward.bpf of onward.c stands behind the socket. carry.c
is a gateway's, before its sockets and behind them. What stands around a card that stays in place and the lab's program
that makes floods are compiled here as well.

Where an instruction names a map, it says so (BPF_PSEUDO_MAP_FD) and holds the map's number, its place among the program's maps; whoever
loads the program puts the map's descriptor there. `--check` only compares.
"""

import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# The compiler of Debian 12; another version may make other instructions of the same source.
CLANG = "clang-14"
PROGRAM = "hook"
# What stands in a file's name for the hook, and what the compiler is told.
HOOKS = {"": [], ".xdp": ["-DXDP"]}
# The maps of the programs in front of IPsec, in the order of their places.
IPSEC = [b"settings", b"peers", b"known", b"windows", b"candidates", b"books", b"exchanges"]
# The maps of the programs that carry connections through a gateway.
CARRY = [b"settings", b"entries", b"pool", b"hands"]
# The sources, the hooks for which each is compiled, and its maps in the order of their places.
PROGRAMS = [
    (HERE / "shield.c", HOOKS, [b"settings", b"receivers", b"windows", b"counters", b"heard", b"peers"]),
    (HERE / "sarp.c", HOOKS, [b"settings", b"places", b"counters", b"sources", b"hosts", b"requests", b"acquainted"]),
    (HERE / "ipsec.c", HOOKS, IPSEC),
    (HERE / "onward.c", {"": ["-DINGRESS"]}, IPSEC),
    (HERE / "../../system/bpf/keep.c", {"": []}, [b"entry"]),
    (HERE / "../../system/bpf/guard.c", {"": []}, [b"entry", b"sources"]),
    (HERE / "../../scrub/bpf/carry.c", {"": [], ".onward": ["-DINGRESS"]}, CARRY),
    (HERE / "../../lab/bpf/flood.c", {"": []}, [b"settings", b"frames"]),
]
SYMBOL_TABLE, RELOCATIONS = 2, 9
PSEUDO_MAP_FD = 1


def compiled(source, defines):
    """The object file of a source."""
    with tempfile.TemporaryDirectory() as directory:
        made = pathlib.Path(directory) / "made.o"
        flags = "-O2 -Wall -Wextra -Werror -target bpf -mcpu=v3 -c".split()
        # Where Debian keeps this machine's part of the kernel's headers.
        headers = [f"-I{path}" for path in pathlib.Path("/usr/include").glob("*-linux-gnu")]
        subprocess.run([CLANG, *flags, *defines, *headers, source, "-o", made], check=True)
        return made.read_bytes()


def sections(elf):
    """Name, type, content and linked section of each section (System V ABI, chapter 4)."""
    table_at, = struct.unpack_from("<Q", elf, 0x28)
    entry_len, count, names_index = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table_at + entry_len * at) for at in range(count)]
    names = elf[headers[names_index][4]:]
    for name, kind, _, _, at, length, link, *_ in headers:
        yield names[name:].split(b"\0")[0].decode(), kind, elf[at:at + length], link


def instructions(elf, maps):
    found = list(sections(elf))
    index_of = {name: at for at, (name, *_) in enumerate(found)}
    code = bytearray(found[index_of[PROGRAM]][2])
    symbols, names = next((content, found[link][2]) for _, kind, content, link in found if kind == SYMBOL_TABLE)
    relocations = next(content for name, kind, content, _ in found if kind == RELOCATIONS and name.endswith(PROGRAM))
    for at in range(0, len(relocations), 16):
        offset, info = struct.unpack_from("<QQ", relocations, at)
        name, = struct.unpack_from("<I", symbols, 24 * (info >> 32))
        code[offset + 1] |= PSEUDO_MAP_FD << 4
        struct.pack_into("<I", code, offset + 4, maps.index(names[name:].split(b"\0")[0]))
    return bytes(code)


def main():
    for source, hooks, maps in PROGRAMS:
        for suffix, defines in hooks.items():
            kept = source.with_suffix(f"{suffix}.bpf")
            made = instructions(compiled(source, defines), maps)
            if sys.argv[1:] != ["--check"]:
                kept.write_bytes(made)
            elif made != kept.read_bytes():
                sys.exit(f"{kept} was not made of {source}: run {__file__}")
            print(f"{kept.name}: {len(made) // 8} instructions")


main()
