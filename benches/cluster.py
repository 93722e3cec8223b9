"""A kernel matrix by one process and by the workers of a local Dask cluster: seconds, processor seconds, blocks.

    python benches/cluster.py MODEL.onnx [IMAGES] [KERNEL] [WORKERS]
"""

import resource
import sys
import tempfile
import time

import numpy as np

import mercer as mc


def spent():
    """Processor seconds of this process and of its children that have ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)


def worker_seconds():
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def main(model, images=5000, kernel="pseudo", workers=4):
    import distributed

    net = mc.Network(model)
    x = np.random.default_rng(0).normal(size=(int(images), 3, 32, 32)).astype("f4")
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", x)
        start, before = time.perf_counter(), spent()
        alone = mc.gram(kernel, f"{folder}/x.npy", net=net, out=f"{folder}/alone.zarr", progress=False)
        seconds, cpu = time.perf_counter() - start, spent() - before
        print(f"one process: {seconds:.1f} s, {cpu:.1f} processor seconds", flush=True)
        settings = {"n_workers": int(workers), "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
            before = sum(client.run(worker_seconds).values())
            start = time.perf_counter()
            shared = mc.gram(kernel, f"{folder}/x.npy", net=net, out=f"{folder}/shared.zarr", client=client)
            both = time.perf_counter() - start
            own = sum(client.run(worker_seconds).values()) - before
        print(f"{workers} workers: {both:.1f} s, {own:.1f} processor seconds")
        blocks = -(-int(images) // shared.info()["layout"]["tile"])
        print(f"{both / seconds:.2f} times as long, {own / cpu:.2f} times the processor time")
        print(f"{blocks} blocks; the workers prepared {shared.shared.prepared_blocks}, {shared.shared.prepared_blocks - blocks} again")
        print("same bits" if (shared.numpy() == alone.numpy()).all() else "OTHER BITS")


if __name__ == "__main__":
    main(*sys.argv[1:])
