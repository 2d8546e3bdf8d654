"""What a config says of the evidence: what is measured, which audits run, and what only its author can know.

This module is not about the other settings of a run (`config`) or about measuring anything (`evaluation`, `auditing`).
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

UNPAIRED = "unpaired"
CONTROLS = ("within", "one modality", "one-sided", "source tag")
"""Controls that train again, by their names in `audit.controls`."""


class Section(BaseModel):
    """A section of the config: frozen, and every key known."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class EvaluateConfig(Section):
    """What is measured."""

    ks: tuple[int, ...] = Field((1, 5, 10), description="The k of recall@k.")
    n_resamples: int = Field(
        1000, ge=0, le=1_000_000, description="Bootstrap resamples for the 95 % intervals; 0: none."
    )
    shuffled: int = Field(
        1,
        ge=0,
        le=100,
        description="Controls trained on shuffled links at the same budget; from 2 on, true links beside each.",
    )
    closed_form: Literal["cca", "ridge", "procrustes", "none"] = Field(
        "cca", description="The linear map without training that stands beside the trained heads."
    )
    seed: int = Field(0, ge=0, description="Seed of the bootstrap and the first shuffled control.")
    pool_a: tuple[str, ...] = Field(
        (), description="Further candidates of side a: `unpaired` items, `chemicals`, or files with the same columns."
    )
    pool_b: tuple[str, ...] = Field(
        (), description="Further candidates of side b: `unpaired` items, or files with the same columns."
    )
    candidates_a: str | None = Field(
        None, description="File with the columns query and candidate (ids): what each query of side a ranks; none: all."
    )
    candidates_b: str | None = Field(None, description="The same for queries of side b.")
    choose_among: tuple[int, ...] = Field(
        (), description="Also measure choosing the true item among so many drawn at random, such as [4, 10, 20]."
    )
    pool_sizes: tuple[int, ...] = Field(
        (100, 1000, 10_000), description="Sizes of the pool for which recall is computed from the ranks."
    )
    slices: tuple[str, ...] = Field((), description="Columns whose labels make slices of the queries (source, class).")
    folds: int | None = Field(
        None, ge=0, le=100, description="Folds of cross-validation; 0: none; left out: 5 below 3,000 entities, else 0."
    )
    repeats: int = Field(1, ge=1, le=100, description="How often the folds are drawn anew.")
    seeds: int = Field(2, ge=1, le=100, description="Trainings of each fold that differ in their seed alone.")

    @field_validator("ks", "pool_sizes", "choose_among")
    @classmethod
    def _numbers(cls, numbers: tuple[int, ...], info: Any) -> tuple[int, ...]:
        least = 2 if info.field_name == "choose_among" else 1
        if (not numbers and info.field_name == "ks") or any(number < least for number in numbers):
            raise ValueError(f"expected one or more whole numbers, each at least {least}")
        return tuple(dict.fromkeys(numbers))

    @field_validator("pool_a", "pool_b", "slices", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class AuditConfig(Section):
    """Which audits run, and what they are told."""

    skip: tuple[str, ...] = Field(
        (), description="Audits that are left out, by their names in the table that `audit` prints."
    )
    columns: tuple[str, ...] = Field(
        (), description="Columns that a shortcut could use (source, instrument); left out: those of slices and group."
    )
    controls: tuple[Literal["within", "one modality", "one-sided", "source tag"], ...] = Field(
        (), description="Controls that train again, each as long as the run: links shuffled within groups, a side "
        "without content, one direction of the loss, a tag planted on pairs."
    )  # fmt: skip
    within: tuple[Literal["length", "scaffold", "class", "group"], ...] = Field(
        ("length",), description="The groups within which the control `within` exchanges partners."
    )
    control_seeds: int = Field(1, ge=1, le=100, description="Trainings of each such control.")

    @field_validator("skip", "columns", "controls", "within", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class ContractConfig(Section):
    """What the evaluation contract asks of the author of the data: seven questions, in your own words.

    What the program knows by itself (counts, hashes, the split, the pool) it adds to each answer.
    """

    unit: str = Field("", description="What one pair is: a record, an entity with several views, a segment.")
    crossing: str = Field("", description="What may stand on both sides of the split, and why that is no leak.")
    match: str = Field("", description="When a candidate counts as right, and which right ones the links may lack.")
    pool: str = Field("", description="How the candidates came together, and how hard they are to tell apart.")
    direction: str = Field("", description="Which direction the use needs.")
    shortcuts: str = Field("", description="Which shortcuts the data offers, and which were ruled out.")
    decisions: str = Field("", description="What was decided by looking at which part of the data.")
