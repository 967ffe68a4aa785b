"""What a distributed training script does at its start: rendezvous at MASTER_ADDR:MASTER_PORT, all-reduce a vector."""

import os
import socket
import struct
import sys
import time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
vector = [float(rank + 1), float(rank) ** 2, 1.0]
pack = lambda v: struct.pack("3d", *v)


def read(peer):
    data = b""
    while len(data) < 24:
        data += peer.recv(24 - len(data))
    return struct.unpack("3d", data)


if rank == 0:
    with socket.create_server(address) as server:
        peers = [server.accept()[0] for _ in range(world - 1)]
        total = [sum(column) for column in zip(vector, *(read(peer) for peer in peers))]
        for peer in peers:
            peer.sendall(pack(total))
    print("sum", total)
else:
    for _ in range(200):
        try:
            peer = socket.create_connection(address)
            break
        except OSError:
            time.sleep(0.05)
    else:
        sys.exit("rank 0 was not found")
    peer.sendall(pack(vector))
    total = list(read(peer))

assert int(os.environ["SLURM_PROCID"]) == rank and int(os.environ["SLURM_LOCALID"]) == int(os.environ["LOCAL_RANK"])
print("rank", rank, "local", os.environ["LOCAL_RANK"], "node", os.environ["SLURMD_NODENAME"], "gpus", os.environ["CUDA_VISIBLE_DEVICES"], "sum", total[0])
