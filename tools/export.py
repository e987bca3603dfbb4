#!/usr/bin/env python3
"""Writes a PyTorch model as an ONNX file that Pipewright trains, and takes trained weights back.

    from export import export, load_trained, save_onnx

    export(model, tokens, "model.onnx")                  # and model.onnx.names.json
    ...  pipewright compile model.onnx -o out; out/train ...
    load_trained(model, "out/trained.safetensors", "model.onnx.names.json")
    save_onnx("model.onnx", "out/trained.safetensors", "trained.onnx")   # for ONNX Runtime

Exporters are made for inference: by default they fold batch normalization into convolutions,
merge weights of equal value, transpose weights and forget their names. `export` calls them so
that they do not, looks whether every parameter that the model uses came through with its values,
and writes down under which name. `load_trained` gives each parameter and buffer of the module its
trained values, tied ones under all their names, by a strict `load_state_dict`. `save_onnx` writes
the exported file with these values, as it is in evaluation.

This file needs PyTorch and what its exporter needs (onnx, onnxscript), nothing else of Pipewright:
copy it beside your model.
"""

import contextlib
import copy
import hashlib
import inspect
import io
import json
import logging
import math
import os
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import torch

FORMAT = "pipewright names 1"
MOST_IN_ONE_FILE = 1_500_000_000
MOST_IN_HEADER = 100_000_000
MOST_FOLDED_BYTES = 1 << 24
# What a safetensors file may have of a trained model.
TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16, "F64": torch.float64,
         "I64": torch.int64, "I32": torch.int32, "I8": torch.int8, "U8": torch.uint8,
         "BOOL": torch.bool}


class ExportError(RuntimeError):
    """No exporter wrote the model whole."""


def export(model, example, path, *, exporter=None, input_names=None, output_names=("output",),
           opset=None, fixed_batch=False):
    """Writes `model` to `path`, and `path`.names.json with where each of its tensors is.

    example       a tensor, or a tuple of them: the arguments of `model`. Their dimension 0 is the
                  batch; it is left open in the file unless `fixed_batch`.
    exporter      "new" (torch.export) or "old" (TorchScript); unset: the first that writes the
                  model whole, the new one first.
    input_names   as in torch.onnx.export; unset: the names of `forward`'s arguments.
    opset         as opset_version there.

    It is exported to train. In a model that trains, modules whose mode is eval() stay so: batch
    normalization there keeps its running statistics. Where `pipewright` is on PATH, the way to export
    is the first that it compiles, too; if there is none, what it says of each is printed.

    Returns the map of names. Raises ExportError, which says what each exporter lost, and leaves
    what stood at `path` as it was then.
    """
    path = Path(path)
    arguments = example if isinstance(example, tuple) else (example,)
    if exporter not in (None, "new", "old"):
        raise ValueError(f"exporter: expected 'new' or 'old', but got {exporter!r}")
    names = list(input_names or _argument_names(model, len(arguments)))
    modes = [(module, module.training) for module in model.modules()]
    if not model.training:
        model.train()
    failures, second = [], None
    # What stands at `path` is replaced by a file that is whole, or not at all.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".export-") as folders:
        try:
            used = _used_parameters(model, arguments)
            for number, way in enumerate(_ways(exporter, fixed_batch, arguments)):
                title = _title(way)
                folder = Path(folders) / str(number)
                folder.mkdir()
                written = folder / path.name
                try:
                    _write(model, arguments, written, way, names, list(output_names), opset)
                    found = _names_in(model, written)
                except Exception as error:  # Exporters raise what they like.
                    failures.append(f"{title}: {_first_line(error)}")
                    continue
                lost = [name for name in used if name not in found]
                refusal = (f"{len(lost)} of {len(used)} parameters are not in the file: {_start(lost)}" if lost
                           else _refusal(written, output_names[0], arguments))
                if not refusal:
                    return _keep(model, path, folder, title, found, failures)
                failures.append(f"{title}: {refusal}")
                if not lost:  # Another way may spell the model in other operators.
                    second = second or (folder, title, found)
            if second:
                return _keep(model, path, *second, failures)
        finally:
            for module, was_training in modes:
                module.training = was_training
    raise ExportError(f"{path}: not exported.\n  " + "\n  ".join(failures))


def _keep(model, path, folder, title, found, failures):
    for file in sorted(folder.iterdir()):
        os.replace(file, path.parent / file.name)
    return _report(model, path, title, found, failures)


def load_trained(model, trained, names=None):
    """Gives `model` the weights in the safetensors file `trained`, by strict load_state_dict.

    names   the map that `export` wrote; unset: tensors have their names in the module.

    Tensors that did not come back (parameters that the model does not use, counters of batch
    normalization) keep their values; a warning counts and names them. Returns their names.
    """
    tensors = read_safetensors(trained)
    state = model.state_dict()
    places = {name: {"file": name} for name in state} if names is None else _read_names(names)["tensors"]
    # The module's own dictionary also has the versions of its parts.
    kept, taken = [], set()
    for name, old in list(state.items()):
        place = places.get(name)
        value = tensors.get(place["file"]) if place else None
        if value is None:
            kept.append(name)
            continue
        taken.add(place["file"])
        value = value.t() if place.get("transposed") else value
        if value.shape != old.shape:
            raise ValueError(f"{trained}: {_shown(place['file'])} is {list(value.shape)}, but "
                             f"{_shown(name)} of the module is {list(old.shape)}")
        state[name] = value.to(old.dtype)
    model.load_state_dict(state, strict=True)
    parameters = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    stayed = [name for name in kept if name in parameters]
    if stayed:
        warnings.warn(f"{len(stayed)} of {len(parameters)} parameters are not in {trained} and keep "
                      f"their values: {_start(stayed)}", stacklevel=2)
    left = sorted(set(tensors) - taken)
    if left:
        warnings.warn(f"{len(left)} of {len(tensors)} tensors of {trained} are no tensors of the "
                      f"module: {_start(left)}", stacklevel=2)
    return kept


def save_onnx(model, trained, path):
    """Writes the ONNX file `model`, which was compiled, with the weights in the safetensors file
    `trained` to `path`, for inference. `model` and `trained` stay as they are.

    All that trained is replaced, running statistics and what is tied too; dropout drops nothing and
    batch normalization takes these statistics. More than 1.5 GB of weights are in a file of
    their own, `path`.DIGEST.data; older ones stay. What stood at `path` is replaced when onnx.checker
    takes the new file. Raises ValueError where the two files do not belong together, or a node is random.
    """
    import onnx

    model, trained, path = Path(model), Path(trained), Path(path)
    if path.exists() and any(path.samefile(given) for given in (model, trained)):
        raise ValueError(f"{path}: is what is read; give the new file another name")
    file = onnx.load(str(model))
    _put_weights(file, read_safetensors(trained), model, trained)
    _use_in_inference(file.graph, model)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".export-") as folder:
        written = Path(folder) / path.name
        is_large = sum(len(t.raw_data) for t in file.graph.initializer) > MOST_IN_ONE_FILE
        data = f"{path.name}.{hashlib.sha256(trained.read_bytes()).hexdigest()[:16]}.data"
        onnx.save(file, str(written), save_as_external_data=is_large, location=data if is_large else None)
        onnx.checker.check_model(str(written), full_check=True)
        # The old file finds its own weights until the new one stands in its place.
        for name in [data, path.name][not is_large:]:
            os.replace(Path(folder) / name, path.parent / name)


def read_safetensors(path):
    """The tensors of a safetensors file by their names."""
    data = Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, MOST_IN_HEADER):
        raise ValueError(f"{path}: is no safetensors file")
    header = _parse_json(data[8:8 + length], path)
    body = memoryview(data)[8 + length:]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        shown = _shown(name)
        if not isinstance(entry, dict) or not _are_sizes(entry.get("shape")) or \
                not _are_sizes(entry.get("data_offsets")) or len(entry["data_offsets"]) != 2:
            raise ValueError(f"{path}: {shown}: expected a dtype, a shape and two data_offsets")
        begin, end = entry["data_offsets"]
        dtype = TYPES.get(entry.get("dtype")) if isinstance(entry.get("dtype"), str) else None
        if dtype is None:
            raise ValueError(f"{path}: {shown} has type {_shown(entry.get('dtype'))}, expected one of "
                             + ", ".join(TYPES))
        if not begin <= end <= len(body):
            raise ValueError(f"{path}: {shown} ends behind the file")
        if end - begin != math.prod(entry["shape"]) * dtype.itemsize:
            raise ValueError(f"{path}: {shown} has {end - begin} bytes, but {entry['shape']} of "
                             f"{entry['dtype']} take {math.prod(entry['shape']) * dtype.itemsize}")
        flat = torch.frombuffer(bytearray(body[begin:end]) or bytearray(dtype.itemsize), dtype=dtype)
        tensors[name] = flat[:flat.numel() if end > begin else 0].reshape(entry["shape"])
    return tensors


def _parse_json(text, path):
    """A JSON object; what is none is a ValueError that names the file."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: is no JSON: {_first_line(error)}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected a JSON object, but got {type(value).__name__}")
    return value


def _are_sizes(value):
    return isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)


def _shown(name):
    """A name in quotes; what a terminal would obey is escaped."""
    text = str(name)
    return "'" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode()
                         for c in text[:200]) + ("..." if len(text) > 200 else "") + "'"


# -- A file for inference


def _put_weights(file, tensors, model, trained):
    """Gives initializers the values of the tensors of their names; copies that are transposed, too."""
    arrays = {tensor.name: tensor for tensor in file.graph.initializer}
    if strange := sorted(set(tensors) - set(arrays)):
        raise ValueError(f"{trained}: has {_start(strange)}, but {model} does not")
    for name, value in tensors.items():
        if (dims := list(arrays[name].dims)) != list(value.shape):
            raise ValueError(f"{trained}: {_shown(name)} is {list(value.shape)}, but {dims} in {model}")
    copies = _transposed_copies(arrays, tensors)
    if stale := sorted(_parameters_in(file, model) - set(tensors) - set(copies)):
        raise ValueError(f"{trained}: has no {_start(stale)}, but these are parameters of {model}")
    for name, value in [*tensors.items(), *((copy, tensors[of].t()) for copy, of in copies.items())]:
        _set_value(arrays[name], value)


def _transposed_copies(arrays, tensors):
    """Which initializers, under names of the exporter's own, are transposed copies of which others."""
    from onnx import numpy_helper

    def value(name):
        return torch.from_numpy(numpy_helper.to_array(arrays[name]).copy())

    copies = {}
    for name, array in arrays.items():
        if name in tensors or len(array.dims) != 2 or array.data_type != 1:
            continue
        fits = [other for other, new in tensors.items() if list(new.shape) == [*array.dims][::-1]
                and arrays[other].data_type == 1 and _equal(value(other).t(), value(name))]
        if len(fits) == 1:
            copies[name] = fits[0]
    return copies


def _parameters_in(file, model):
    """Names of initializers that are parameters, if there is a map of names beside the file."""
    if not Path(f"{model}.names.json").exists():
        return set()
    places = _read_names(f"{model}.names.json")["tensors"]
    notes = {entry.key: entry.value.splitlines() for entry in file.metadata_props}
    buffers = {places[name]["file"] for name in notes.get("pipewright.buffers", []) if name in places}
    return {place["file"] for place in places.values()} - buffers


def _set_value(array, value):
    """Replaces the elements of an initializer, which keeps its type."""
    # Integers do not train.
    dtype = {1: torch.float32, 10: torch.float16, 11: torch.float64, 16: torch.bfloat16}.get(array.data_type)
    if dtype:
        array.CopyFrom(type(array)(name=array.name, dims=array.dims, data_type=array.data_type,
                                   raw_data=_bytes(value.to(dtype)).numpy().tobytes()))


def _use_in_inference(graph, model):
    """Makes batch normalization and dropout what they are in evaluation."""
    for node in list(graph.node):
        is_random = node.op_type.startswith("Random") or node.op_type in ("Bernoulli", "Multinomial")
        if is_random and not _drop_nothing(graph, node):
            raise ValueError(f"{model}: node {_shown(node.name)} ({node.op_type}) draws random numbers; "
                             "load_trained, and export model.eval() with torch.onnx.export")
        if node.op_type == "BatchNormalization":
            del node.output[1:]
        if node.op_type == "Dropout":
            del node.input[2:]
        for attribute in node.attribute:
            if attribute.name == "training_mode":
                attribute.i = 0
            if attribute.HasField("g"):
                _use_in_inference(attribute.g, model)


def _drop_nothing(graph, node):
    """Makes ones of a mask of random numbers below a rate, divided by it; False if it is no such mask."""
    def readers(nodes):
        return [other for node in nodes for other in graph.node if node.output[0] in other.input[:1]]

    kept, masks = readers([node]), readers(readers([node]))
    steps = [{other.op_type.removesuffix("Like") for other in nodes}
             for nodes in ([node], kept, masks, readers(masks))]
    if steps != [{"RandomUniform"}, {"Less"}, {"Cast"}, {"Div"}] or not node.input:
        return False
    node.op_type = "Identity"
    del node.attribute[:]
    for other in kept + readers(masks):  # All equal, hence ones, divided by themselves.
        other.input[1] = other.input[0]
        other.op_type = "Equal" if other in kept else "Div"
    return True


# -- Ways to export


def _ways(exporter, fixed_batch, arguments):
    """Which exporter, whether with an open batch, and whether constants are folded: in the order
    in which they are tried."""
    # The new exporter takes a dimension of size 1 for fixed.
    is_open = not fixed_batch and all(torch.is_tensor(a) and a.dim() > 0 for a in arguments)
    for name in [exporter] if exporter else ["new", "old"]:
        if is_open:
            yield name, True, False
        yield name, False, False
        if name == "new":
            yield name, False, True


def _title(way):
    name, is_open, folds = way
    return (("the new exporter (dynamo=True, optimize=False" + (", constants folded)" if folds else ")")
             if name == "new" else
             "the old exporter (dynamo=False, training=PRESERVE, do_constant_folding=False)")
            + (", open batch" if is_open else ", fixed batch"))


def _write(model, arguments, path, way, input_names, output_names, opset):
    name, is_open, folds = way
    options = {"input_names": input_names, "output_names": output_names}
    if opset:
        options["opset_version"] = opset
    # Exporting runs the model, which moves running statistics.
    original, model = model, copy.deepcopy(model)
    _spell_experts_out(model)
    if name == "new":
        # One file where protobuf can hold it.
        size = sum(tensor.nbytes for _, tensor in _tensors(model))
        options.update(dynamo=True, optimize=False)
        if is_open:
            batch = torch.export.Dim("batch")
            options["dynamic_shapes"] = tuple({0: batch} for _ in arguments)
        with _quiet(), torch.random.fork_rng():
            program = torch.onnx.export(model, arguments, **options)
            constants = _fold_constants(program.model, model) if folds else []
            program.save(str(path), external_data=size > MOST_IN_ONE_FILE)
    else:
        options.update(dynamo=False, training=torch.onnx.TrainingMode.PRESERVE,
                       do_constant_folding=False)
        if is_open:
            names = input_names + output_names
            options["dynamic_axes"] = {name: {0: "batch"} for name in names}
        with _quiet(), torch.random.fork_rng():
            torch.onnx.export(model, arguments, str(path), **options)
        _restore_buffers(original, path)
        constants = []
    _note_facts(original, path, constants)


def _spell_experts_out(model):
    """No exporter knows the kernels that transformers computes mixtures of experts with."""
    for module in model.modules():
        if hasattr(module, "set_experts_implementation"):
            module.set_experts_implementation("batched_mm")


def _fold_constants(graph, model):
    """Computes what depends on no parameter: masks and positions, mostly. Nothing is fused. Returns
    the names of what was computed."""
    from onnxscript import optimizer

    before = set(graph.graph.initializers)
    names = {name for name, _ in model.named_parameters(remove_duplicate=False)}

    def may_fold(node):
        return all(value is None or value.name not in names for value in node.inputs)

    optimizer.fold_constants(graph, should_fold=may_fold, input_size_limit=MOST_FOLDED_BYTES,
                             output_size_limit=MOST_FOLDED_BYTES)
    optimizer.remove_unused_nodes(graph)
    return sorted(set(graph.graph.initializers) - before)


def _refusal(path, output, arguments):
    """What `pipewright` says of a file that it does not compile; none where it does, or is not on
    PATH."""
    program = shutil.which("pipewright")
    sizes = [a.shape[0] for a in arguments if torch.is_tensor(a) and a.dim() > 0]
    if not program or not sizes:
        return None
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "compile", str(path), "--emit=import", "-o", str(Path(folder) / "text.mlir"),
                   "--loss", "mse", "--loss-output", output, "--micro-batch-size", str(sizes[0])]
        try:
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    errors="replace", timeout=600)
        except (OSError, subprocess.TimeoutExpired):
            return None
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    return errors[0].replace(f"{path}: ", "") if result.returncode != 0 and errors else None


def _note_facts(model, path, constants):
    """Notes in the file which tensors are buffers or constants, which parameters do not train, and
    which rows of tables are for padding: exporters forget."""
    import onnx

    file = onnx.load(str(path), load_external_data=False)
    buffers = [name for name, _ in model.named_buffers(remove_duplicate=False)] + constants
    rows = {}
    for name, part in model.named_modules(remove_duplicate=False):
        if isinstance(part, torch.nn.Embedding) and part.padding_idx is not None:
            for other, tensor in model.named_parameters(remove_duplicate=False):
                if tensor is part.weight:
                    rows[other] = part.padding_idx
    frozen = [name for name, tensor in model.named_parameters(remove_duplicate=False)
              if not tensor.requires_grad]
    for key, lines in (("pipewright.buffers", buffers), ("pipewright.frozen", frozen),
                       ("pipewright.padding_idx", [f"{row} {name}" for name, row in rows.items()])):
        if lines:
            file.metadata_props.add(key=key, value="\n".join(lines))
    onnx.save(file, str(path))


def _restore_buffers(model, path):
    """Writes the module's buffers over those that the old exporter's run of it left."""
    import onnx
    from onnx import numpy_helper

    file = onnx.load(str(path), load_external_data=False)
    buffers = dict(model.named_buffers(remove_duplicate=False))
    for tensor in file.graph.initializer:
        buffer = buffers.get(tensor.name)
        if buffer is not None and not tensor.external_data and list(tensor.dims) == list(buffer.shape):
            value = buffer.detach().cpu().numpy()
            if onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type) == value.dtype:
                tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
    onnx.save(file, str(path))


@contextlib.contextmanager
def _quiet():
    """Exporters print their progress and warn of themselves; failures are raised."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


# -- What a file has


def _names_in(model, path):
    """Where each tensor of the module is in the file; those that are nowhere are left out."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    arrays = {tensor.name: tensor for tensor in graph.initializer}
    read = {name for node in graph.node for name in node.input} | {o.name for o in graph.output}
    values = {}

    def value(name):
        if name not in values:
            values[name] = torch.from_numpy(numpy_helper.to_array(arrays[name]).copy())
        return values[name]

    owners = {}
    for name, tensor in _tensors(model):
        owners.setdefault(id(tensor), []).append(name)  # Tied tensors are one object.
    found = {}
    for name, tensor in _tensors(model):
        for candidate in owners[id(tensor)]:
            if candidate not in arrays or candidate not in read:
                continue
            if _equal(value(candidate), tensor):
                found[name] = {"file": candidate}
                break
    # Under a name of the exporter's own: the same values, once in the file and in the module.
    taken = {place["file"] for place in found.values()}
    for name, tensor in _tensors(model):
        if name in found or tensor.dim() != 2:
            continue
        same = [other for other in arrays if other not in taken and other in read
                and sorted(arrays[other].dims) == sorted(tensor.shape)]
        fits = [(other, transposed) for other in same for transposed in (False, True)
                if _equal(value(other).t() if transposed and value(other).dim() == 2
                          else value(other), tensor)]
        if len({other for other, _ in fits}) == 1:
            other, transposed = fits[0]
            found[name] = {"file": other, "transposed": True} if transposed else {"file": other}
    return found


def _tensors(model):
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)


def _equal(a, b):
    """To the bit, so that NaN equals itself."""
    b = b.detach().cpu().contiguous()
    return a.shape == b.shape and torch.equal(_bytes(a.to(b.dtype)), _bytes(b))


def _bytes(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _used_parameters(model, arguments):
    """Names of parameters that the model's results depend on, by a backward."""
    twin = copy.deepcopy(model)
    with torch.random.fork_rng(), torch.enable_grad():
        results = twin(*arguments)
        leaves = [r for r in _flat(results) if torch.is_tensor(r) and r.requires_grad]
        if leaves:
            sum(r.float().sum() for r in leaves).backward()
    return [name for name, parameter in twin.named_parameters(remove_duplicate=False)
            if parameter.grad is not None]


def _flat(results):
    if isinstance(results, dict):
        results = list(results.values())
    if isinstance(results, (list, tuple)):
        return [leaf for result in results for leaf in _flat(result)]
    if hasattr(results, "values") and not torch.is_tensor(results):
        return _flat(list(results.values()))
    return [results]


def _argument_names(model, count):
    names = [p.name for p in inspect.signature(model.forward).parameters.values()
             if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return names[:count] if len(names) >= count else [f"input{i}" for i in range(count)]


# -- What is said


def _report(model, path, title, found, failures):
    state = list(model.state_dict())
    missing = [name for name in state if name not in found]
    names = {"format": FORMAT, "model": path.name, "exporter": title,
             "tensors": {name: found[name] for name in state if name in found}, "missing": missing}
    Path(f"{path}.names.json").write_text(json.dumps(names, indent=1) + "\n")
    for failure in failures:
        print(f"note: {failure}")
    parameters = [name for name, _ in model.named_parameters()]
    unused = [name for name in missing if name in parameters]
    print(f"wrote {path} by {title}: {len(parameters) - len(unused)} of {len(parameters)} "
          f"parameters" + (f"; not used by the model: {_start(unused)}" if unused else ""))
    return names


def _read_names(path):
    names = _parse_json(Path(path).read_bytes(), path)
    tensors = names.get("tensors")
    if names.get("format") != FORMAT or not isinstance(tensors, dict) or not all(
            isinstance(place, dict) and isinstance(place.get("file"), str)
            for place in tensors.values()):
        raise ValueError(f"{path}: expected a map of names that export() wrote ('{FORMAT}')")
    return names


def _start(names):
    return ", ".join(map(_shown, names[:5])) + (", ..." if len(names) > 5 else "")


def _first_line(error):
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]
