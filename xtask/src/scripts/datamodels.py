"""Scores of training samples by dattri, for networks that Mercer trained.

python datamodels.py PLAN.json OUT

The plan names the data (x, y, t, l), the weights of the network, of checkpoints of its training and of networks trained on
random halves, and the learning rate. OUT gets a matrix per method and setting (test x train), positive where the training
sample lowers the loss of the test sample, and scores.json, which lists them with the seconds they took.
"""

import json
import struct
import sys
import time
from pathlib import Path

import numpy as np
import torch
from dattri.algorithm.influence_function import (
    IFAttributorArnoldi,
    IFAttributorCG,
    IFAttributorEKFAC,
    IFAttributorLiSSA,
)
from dattri.algorithm.tracin import TracInAttributor
from dattri.algorithm.trak import TRAKAttributor
from dattri.task import AttributionTask
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# Conjugate gradients, LiSSA and large ensembles take too long on a processor for networks with more parameters.
MOST_PARAMETERS = 20_000

DAMPINGS = (1.0, 0.1, 0.01)

# The curvature is small where the network is sure of its labels.
EK_FAC_DAMPINGS = (1e-2, 1e-4, 1e-6)


def weights(path):
    """The tensors of a safetensors file, in the order of the layers."""
    raw = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    tensors = {}
    for name, about in header.items():
        if name != "__metadata__":
            start, end = (8 + length + offset for offset in about["data_offsets"])
            tensors[name] = np.frombuffer(raw[start:end], np.float32).reshape(about["shape"]).copy()
    layers = sorted({name.rsplit(".", 1)[0] for name in tensors}, key=lambda name: (name == "output", name))
    state = {}
    for at, layer in enumerate(layers):
        for kind in ("weight", "bias"):
            state[f"{2 * at}.{kind}"] = torch.from_numpy(tensors[f"{layer}.{kind}"])
    return state


def network(state):
    """Dense layers with ReLU between them."""
    layers = []
    for name, tensor in state.items():
        if name.endswith("weight"):
            layers += [nn.ReLU()] if layers else []
            layers.append(nn.Linear(tensor.shape[1], tensor.shape[0]))
    model = nn.Sequential(*layers)
    model.load_state_dict(state)
    return model.eval()


def main():
    plan, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    load = lambda name: torch.from_numpy(np.load(plan[name]))
    x, y, t, l = load("x").flatten(1), load("y"), load("t").flatten(1), load("l")
    train, test = TensorDataset(x, y), TensorDataset(t, l)
    whole = DataLoader(train, batch_size=len(train))
    few = DataLoader(train, batch_size=min(len(train), 500))
    queries = DataLoader(test, batch_size=len(test))
    state = weights(plan["weights"])
    model = network(state)
    size = sum(tensor.numel() for tensor in state.values())

    def loss_of_one(params, pair):
        image, label = pair
        scores = torch.func.functional_call(model, params, image.unsqueeze(0))
        return nn.functional.cross_entropy(scores, label.unsqueeze(0))

    def log_odds(params, pair):
        logp = -loss_of_one(params, pair)
        return logp - torch.log(1 - torch.exp(logp))

    def probability(params, pair):
        return torch.exp(-loss_of_one(params, pair))

    # What an interrupted run has done for the same plan.
    record = out / "done.json"
    done = json.loads(record.read_text()) if record.exists() else {}
    listed = done["scores"] if done.get("plan") == plan else []

    def keep(method, setting, score):
        """Runs a method, unless that is done; dattri's matrices are train x test."""
        if any((own["method"], own["setting"]) == (method, setting) for own in listed):
            return
        start = time.time()
        try:
            found = score().detach().T.double().numpy()
        except (MemoryError, RuntimeError) as error:
            print(f"{method} {setting}: {error}", file=sys.stderr)
            return
        seconds = time.time() - start
        if not np.isfinite(found).all():
            print(f"{method} {setting}: not finite", file=sys.stderr)
            return
        file = f"{len(listed)}.npy"
        np.save(out / file, found)
        listed.append({"method": method, "setting": setting, "file": file, "seconds": round(seconds, 1)})
        record.write_text(json.dumps({"plan": plan, "scores": listed}))
        print(f"{method} {setting}: {seconds:.1f} s", file=sys.stderr, flush=True)

    def tracin(states, rates, normalised):
        task = AttributionTask(loss_func=loss_of_one, model=model, checkpoints=states)
        attributor = TracInAttributor(task=task, weight_list=torch.tensor(rates), normalized_grad=normalised)
        # All coordinates, not 512 random ones.
        attributor.projector_kwargs = None
        return lambda: attributor.attribute(few, queries)

    keep("Grad-Dot", "", tracin([state], [1.0], False))
    keep("Grad-Cos", "", tracin([state], [1.0], True))
    states = [weights(path) for path in plan["checkpoints"]]
    keep("TracIn", f"{len(states)} checkpoints", tracin(states, [plan["rate"]] * len(states), False))

    def trak(count):
        states = [weights(path) for path in plan["halves"][:count]]
        task = AttributionTask(loss_func=log_odds, model=model, checkpoints=states)
        projector = {"proj_dim": 512, "device": "cpu"}
        attributor = TRAKAttributor(task=task, correct_probability_func=probability, projector_kwargs=projector)
        attributor.cache(few)
        with torch.no_grad():
            return attributor.attribute(queries)

    small = size <= MOST_PARAMETERS
    for count in (1, 5, 10) if small else (1, 5):
        keep(f"TRAK-{count}", "", lambda count=count: trak(count))

    def influence(kind, **settings):
        # EK-FAC leaves hooks in its network.
        own = network(state)

        def loss(params, pair):
            image, label = pair
            return nn.functional.cross_entropy(torch.func.functional_call(own, params, image), label.long())

        attributor = kind(task=AttributionTask(loss_func=loss, model=own, checkpoints=state), **settings)
        attributor.cache(whole)
        with torch.no_grad():
            return attributor.attribute(whole, queries)

    for damping in EK_FAC_DAMPINGS:
        keep("IF, EK-FAC", damping, lambda damping=damping: influence(IFAttributorEKFAC, damping=damping))
    for damping in DAMPINGS:
        run = lambda damping=damping: influence(IFAttributorArnoldi, regularization=damping, max_iter=50)
        keep("IF, Arnoldi", damping, run)
    if small:
        run = lambda: influence(IFAttributorLiSSA, recursion_depth=100, batch_size=50)
        keep("IF, LiSSA", "depth 100", run)
        for damping in DAMPINGS:
            run = lambda damping=damping: influence(IFAttributorCG, regularization=damping, max_iter=10)
            keep("IF, CG", damping, run)
    listed.sort(key=lambda own: own["method"])
    (out / "scores.json").write_text(json.dumps(listed, indent=1))


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
