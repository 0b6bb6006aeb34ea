"""What each optimizer costs: state kept, bytes moved, passes over memory."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.compiler import Paths, build
from solvergen.emit.unit import Unit
from solvergen.ir.evaluate import evaluate
from solvergen.ir.program import Role
from solvergen.spec.model import Reference

FLOAT32 = 4


@dataclass(frozen=True, slots=True)
class Summary:
    """An optimizer at a glance; bytes are for each float32 parameter under the default options.

    ``source`` is where the rule was published, in short; ``file`` is its spec; ``base`` the spec that it is
    derived from, if it is.
    """

    name: str
    class_name: str
    summary: str
    source: str
    file: str
    state_bytes: int
    moved_bytes: int
    passes: int
    base: str = ""


def summarise(paths: Paths) -> tuple[Summary, ...]:
    """A summary of each spec at ``paths``, by name. Raises SpecError."""
    return tuple(summary_of(unit) for unit in build(paths).units)


def summary_of(unit: Unit) -> Summary:
    """What ``unit`` costs."""
    setting = default_setting(unit)
    state = [s for s in unit.typed.with_role(Role.STATE) if s.guard.holds(setting)]
    moved = 0
    for sweep in unit.schedule.passes:
        moved += sum(FLOAT32 for load in sweep.loads if load.guard.holds(setting))
        moved += sum(FLOAT32 for store in sweep.stores if store.guard.holds(setting))
    spec = unit.spec
    return Summary(
        name=spec.name,
        class_name=spec.class_name,
        summary=" ".join(spec.summary.split()),
        source=_source(spec.references[0]) if spec.references else "",
        file=spec.path,
        state_bytes=FLOAT32 * len(state),
        moved_bytes=moved,
        passes=sum(sweep.walk != "none" for sweep in unit.schedule.passes),
        base=spec.base,
    )


def _source(reference: Reference) -> str:
    """The first author and the year, and where to find it: ``Kingma 2015, arXiv:1412.6980``."""
    author = (reference.authors or "").split(",")[0].split(";")[0].strip()
    name = " ".join(part for part in (author or reference.title, reference.year) if part)
    place = f"arXiv:{reference.arxiv}" if reference.arxiv else reference.doi or reference.url
    return ", ".join(part for part in (name, place) if part)


def default_setting(unit: Unit) -> dict[str, bool]:
    """The options as an optimizer made with nothing but defaults has them."""
    values = {h.name: h.default for h in unit.spec.hyperparameters}
    derived = dict(unit.surroundings.derived_options)
    return {
        o.name: bool(evaluate(derived[o.name], values)) if o.name in derived else bool(o.default)
        for o in unit.spec.options
    }
