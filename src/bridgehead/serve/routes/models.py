"""What goes in and out as JSON, with examples: the source of the OpenAPI document.

Requests are strict: types as they are, no further fields, no NaN. Answers are written by `content`; tests hold them
to these models. Not about what requests mean.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bridgehead.serve.settings import MAX_ITEMS, MAX_K, MAX_LABELS, MAX_OFFSET, MAX_TEMPLATES, MAX_TEXT

ReadAs = Literal["id", "name", "inchikey", "smiles", "text"]
Mode = Literal["space", "words", "hybrid"]
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
SideName = Annotated[str, Field(min_length=1, max_length=200, description="shown name of a side, or `a` or `b`")]


class Given(BaseModel):
    """A request's body: strict, without fields that are not known."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)


class SearchRequest(Given):
    """A question to the space."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"q": "inhibits cyclooxygenase", "k": 5, "of": "molecule"}]}
    )

    q: Text = Field(description="an id, a name, an InChIKey, a SMILES or words", examples=["inhibits cyclooxygenase"])
    k: int = Field(10, ge=1, le=MAX_K, description="how many hits")
    offset: int = Field(0, ge=0, le=MAX_OFFSET, description="how many hits to leave out before the first")
    filter: Text | dict[str, Any] | None = Field(
        None, description="a condition on payload fields, as text or as a typed expression", examples=["ic50_nM < 100"]
    )
    of: SideName | None = Field(None, description="the side to find; by default the one that the query is not on")
    read_as: ReadAs | None = Field(None, description="how `q` is read; by default the first that fits")
    mode: Mode = Field("space", description="by the space, by words, or by both ranks fused")
    distinct: bool = Field(False, description="one hit an entity; the others stand in its `also`")
    substructure: Text | None = Field(
        None, description="a SMILES or SMARTS that hits must contain", examples=["c1ccccc1"]
    )
    similar_to: Text | None = Field(
        None, description="a SMILES that hits must resemble", examples=["CC(=O)Oc1ccccc1C(=O)O"]
    )
    least_similarity: float = Field(0.7, ge=0, le=1, description="how much (Tanimoto) hits must resemble `similar_to`")
    explain: bool = Field(False, description="say for each hit why it was found")


class ClassifyRequest(Given):
    """Items to put to the nearest of described classes."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"items": ["CC(=O)Oc1ccccc1C(=O)O"], "labels": ["inhibits an enzyme", "blocks a channel"]}]
        }
    )

    items: list[Text] = Field(min_length=1, max_length=MAX_ITEMS, description="raw items of one side")
    labels: list[Text] = Field(min_length=1, max_length=MAX_LABELS, description="names of the classes")
    templates: list[Text] = Field(
        ["{}"], min_length=1, max_length=MAX_TEMPLATES, description="`{}` is where a name goes"
    )
    synonyms: dict[str, Annotated[list[Text], Field(max_length=MAX_LABELS)]] | None = Field(
        None, description="further names of labels"
    )
    k: int | None = Field(None, ge=1, le=MAX_K, description="how many labels an item gets")
    abstain_below: float | None = Field(None, ge=-1, le=1, description="a cosine; items below it get no answer")
    of: SideName | None = Field(None, description="the side that labels are on; by default that of texts")


class EncodeRequest(Given):
    """Items to turn into rows of the space."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": ["inhibits cyclooxygenase"], "of": "text"}]})

    items: list[Text] = Field(min_length=1, max_length=MAX_ITEMS, description="raw items of one side")
    of: SideName = Field(description="the side that they are on")


class Fault(BaseModel):
    """What is wrong: a class of error, and a sentence that says what came, what was expected and what to do."""

    type: str
    message: str


class ErrorAnswer(BaseModel):
    """The one form of every error."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"error": {"type": "ArgumentError", "message": "the query is empty"}}]}
    )

    error: Fault


class ReadingAnswer(BaseModel):
    """How a query was read."""

    kind: str
    value: str
    side: str | None
    explanation: str


class NearestPairAnswer(BaseModel):
    """The pair of the training that is nearest to a query and its hit."""

    id_a: str
    item_a: str
    id_b: str
    item_b: str
    to_query: float
    to_hit: float


class ExplanationAnswer(BaseModel):
    """Why a hit was found."""

    similarity: float | None
    percentile: float | None
    nearest_pair: NearestPairAnswer | None
    matched_words: list[str]
    ranks: dict[str, int]


class HitAnswer(BaseModel):
    """An item that was found."""

    rank: int
    id: str
    side: str
    score: float
    percentile: float | None
    item: str
    name: str | None
    payload: dict[str, Any]
    read_as: str
    has_picture: bool
    also: list[str]
    explanation: ExplanationAnswer | None


class SearchAnswer(BaseModel):
    """Hits with how they came about."""

    query: str
    reading: ReadingAnswer
    readings: list[str]
    of: str
    kind: str
    note: str
    k: int
    offset: int
    n_searched: int
    more: bool
    took_ms: float
    hits: list[HitAnswer]


class ItemAnswer(BaseModel):
    """An item as it is stored."""

    id: str
    side: str
    of: str
    kind: str
    item: str
    name: str | None
    names: list[str]
    key: str | None
    payload: dict[str, Any]
    has_picture: bool


class LabelAnswer(BaseModel):
    """A class as an answer for an item."""

    label: str
    score: float
    share_among_candidates: float


class ClassifiedAnswer(BaseModel):
    """What an item was put to; `answer` is null for none of these."""

    position: int
    item: str
    answer: str | None
    labels: list[LabelAnswer]
    n_tied: int


class UnreadAnswer(BaseModel):
    """An item without an answer, and why."""

    position: int
    item: str
    reason: str


class ClassifyAnswer(BaseModel):
    """Answers with all that they are conditional on."""

    items: list[ClassifiedAnswer]
    unread: list[UnreadAnswer]
    items_are: str
    labels_are: str
    candidates: dict[str, list[str]]
    templates: list[str]
    logit_scale: float
    abstain_below: float | None
    sensitivity: list[dict[str, Any]]
    notes: list[str]


class FailureAnswer(BaseModel):
    """An item that has no row, and why."""

    position: int
    reason: str


class EncodeAnswer(BaseModel):
    """Rows of the space, one an item in order, of unit length; zero for the items in `failures`."""

    of: str
    dim: int
    rows: list[list[float]]
    failures: list[FailureAnswer]


class FieldAnswer(BaseModel):
    """A payload field, as filters can use it."""

    name: str
    kind: str
    n_items: int
    least: Any
    most: Any
    common: list[tuple[Any, int]]


class SideAnswer(BaseModel):
    """A side of the space."""

    side: str
    name: str
    kind: str
    n_items: int
    method: str
    recall: dict[str, float]
    fields: list[FieldAnswer]
    partners: str | None = Field(description="payload field with an item's partners: on side a whole, on side b ids")


class MeasuredRow(BaseModel):
    """One measured figure."""

    direction: str
    metric: str
    value: float
    low: float | None
    high: float | None
    chance: float | None
    n_queries: int
    n_candidates: int


class MeasuredAnswer(BaseModel):
    """What the evaluation says, and a sentence on how it is to be read."""

    text: str
    rows: list[MeasuredRow]


class AboutAnswer(BaseModel):
    """What is being served."""

    name: str
    version: str
    heads: str
    sides: list[SideAnswer]
    readings: list[str]
    modes: list[str]
    max_k: int
    examples: list[str]
    measured: MeasuredAnswer | None
    report: str | None
    attribution: str


class StateAnswer(BaseModel):
    """Whether the service is alive or ready."""

    status: str
