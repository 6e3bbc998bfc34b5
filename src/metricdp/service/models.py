"""What goes in and comes out, as the OpenAPI file describes it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from metricdp.service.refusals import FIELDS

Text = Annotated[str, Field(min_length=1, max_length=200)]
Person = Annotated[
    str, Field(min_length=1, max_length=200, description="Who the secret is about; stored as a keyed hash.")
]
RequestId = Annotated[
    str,
    Field(
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="Yours, a new one for every release (a UUID for instance). The same one again, from the same key "
        "and for the same person, gives the stored report and costs nothing, whatever secret it carries.",
    ),
]
Value = FiniteFloat | Annotated[str, Field(max_length=1000)]
Secret = Annotated[
    dict[Annotated[str, Field(max_length=200)], Value]
    | list[Value]
    | FiniteFloat
    | Annotated[str, Field(max_length=1000)],
    Field(
        description="The true value: an object by the names that /v1/mechanisms lists, or a list in their order. It is "
        "never stored.",
    ),
]


class Sent(BaseModel):
    """What is sent: unknown fields are refused, and no error quotes a value."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        FIELDS.update(cls.__annotations__)


class ForMechanism(Sent):
    """What is asked of a mechanism."""

    mechanism: Text | None = Field(None, description="Its name; optional where only one is served.")
    purpose: Annotated[str, Field(max_length=64)] | None = Field(None, description="One the policy names, if it does.")


class ReleaseRequest(ForMechanism):
    """One secret to be released."""

    person: Person
    request: RequestId
    secret: Secret


class BatchRow(Sent):
    """One row of a batch."""

    person: Person
    secret: Secret


class BatchRequest(ForMechanism):
    """Many secrets to be released; all rows of a person are one charge."""

    request: RequestId
    rows: Annotated[list[BatchRow], Field(min_length=1)]
    on_refusal: Literal["fail", "null"] = Field(
        "fail",
        description="fail: if the budget of one person does not suffice nothing is released. null: rows beyond a "
        "person's budget are null, all others are released.",
    )


class BudgetRequest(ForMechanism):
    """Whose budget is asked for, on the account of a mechanism's metric: in the body, since paths end up in logs."""

    person: Person


class MatrixAudit(Sent):
    """A matrix to audit: one row per secret, the probability (or weight) of every report."""

    kind: Literal["matrix"]
    matrix: Annotated[list[list[FiniteFloat]], Field(min_length=1)]
    points: Annotated[list[list[FiniteFloat]], Field(min_length=1, description="The secrets, one a row.")]
    metric: Text = Field("l2", description="Such as l2, l1, linf, haversine, haversine:mi.")
    epsilon: FiniteFloat = Field(gt=0, description="The guarantee to audit, per unit of the metric.")


class SamplesAudit(Sent):
    """Recorded pairs of a secret and the report it got, one row each."""

    kind: Literal["samples"]
    secrets: Annotated[list[list[FiniteFloat]], Field(min_length=1)]
    reports: Annotated[list[list[FiniteFloat]], Field(min_length=1)]
    metric: Text = "l2"
    epsilon: FiniteFloat = Field(gt=0)
    slack: FiniteFloat = Field(0.0, ge=0)
    confidence: FiniteFloat = Field(0.99, gt=0, lt=1)


AuditRequest = Annotated[MatrixAudit | SamplesAudit, Field(discriminator="kind")]


class DesignRequest(Sent):
    """A mechanism to be designed on points, as a job."""

    points: Annotated[list[list[FiniteFloat]], Field(min_length=2, description="The secrets, one a row.")]
    metric: Text = Field("l2", description="Such as l2, l1, haversine (points are then latitude, longitude).")
    epsilon: FiniteFloat = Field(gt=0, description="Per unit of the metric: per km for haversine.")
    builder: Text = Field("optimal", description="Such as optimal, exponential, constopt, spanner.")
    prior: list[Annotated[FiniteFloat, Field(ge=0)]] | None = Field(None, description="How likely each point is.")
    objective: Literal["expected", "worst"] | None = None
    gap: FiniteFloat | None = Field(None, gt=0, le=1, description="How far from the proven optimum it may end.")
    seconds: FiniteFloat | None = Field(None, gt=0, description="When to stop searching and keep the best.")


class Refusal(BaseModel):
    """Why nothing is given."""

    error: str = Field(description="A word for programs, such as budget, busy, invalid, outside, unauthorised.")
    message: str = Field(description="A sentence for people; it never holds what was sent.")
    rows: list[int] | None = Field(None, description="Which rows are meant, the first is 0; at most ten.")
    micro_left: int | None = Field(None, description="What is left of the budget, where that is why.")
    refreshes: str | None = Field(None, description="When that budget refreshes, in UTC, where it does.")


class Published(BaseModel):
    """A record of metricdp.schema.json; `app` writes what is there into the OpenAPI file."""

    model_config = ConfigDict(extra="allow")


class Guarantee(Published):
    """What one report guarantees."""


class CertificateAnswer(Published):
    """What was verified."""


class AuditAnswer(Published):
    """What an audit found."""


PUBLISHED = {  # names in metricdp.schema.json and here
    "pure_guarantee": "Guarantee",
    "certificate": "CertificateAnswer",
    "pure_audit": "AuditAnswer",
    "witness": "WitnessAnswer",
    "finding": "FindingAnswer",
}
OF_COMMANDS = ("lower_bound_says", "stated_not_verified")  # fields that the service does not write
OLD_GUARANTEE = Field(description="The name of `guarantee` before.", deprecated=True)


class Accuracy(BaseModel):
    """A distance that holds the truth with probability `level`, whatever the secret is."""

    columns: list[str]
    radius: float
    unit: str
    level: float


class Amount(BaseModel):
    """What was charged or is left, exactly: millionths of epsilon per unit of the account, and of slack."""

    micro_epsilon: int
    micro_slack: int
    unit: str
    words: str = Field(description="The epsilon as people write it, such as 2.5/km.")


Account = Annotated[
    str,
    Field(
        description="What releases are charged to, such as haversine/km, or mahalanobis.37a54433c2c87d30 for a metric "
        "with parameters. Guarantees of different accounts are not added up: they stand side by side."
    ),
]


class AccountPart(BaseModel):
    """What was charged in one account, and what is left there."""

    account: Account
    cost: Amount
    left: Amount


Accounts = Annotated[
    list[AccountPart],
    Field(
        description="Every account: one for most metrics, several for a product, of which cost and left say the first."
    ),
]


class Promised(BaseModel):
    """What a mechanism guarantees."""

    guarantee: Guarantee
    promise: Guarantee = OLD_GUARANTEE
    accuracy: list[Accuracy]


class FromMechanism(Promised):
    """What is the same for all reports of a mechanism, and whether the request had been answered before."""

    mechanism: str
    repeated: bool


class ReleaseAnswer(FromMechanism):
    """A report, its guarantee, its cost and what is left."""

    report: dict[str, float | str]
    cost: Amount
    left: Amount
    accounts: Accounts


class BatchPerson(BaseModel):
    """What one person of a batch was charged; in the order in which persons first occur."""

    rows: int
    released: int = Field(description="How many of the rows were released: the first ones.")
    cost: Amount
    left: Amount
    accounts: Accounts


class BatchAnswer(FromMechanism):
    """One report for every row (null where the person's budget refused), and what each person was charged."""

    reports: list[dict[str, float | str] | None]
    persons: list[BatchPerson]


class LimitLeft(BaseModel):
    """What is left under one limit of the policy."""

    limit: str = Field(description="Such as 40/km per day.")
    micro_left: int
    refreshes: str | None = Field(description="When, in UTC; null where it is for ever.")


class BudgetAnswer(BaseModel):
    """What is left to a person on the accounts of a mechanism's metric."""

    mechanism: str
    account: Account
    left: Amount
    cost: Amount = Field(description="What one release of the mechanism costs.")
    accounts: Accounts
    releases: int = Field(description="How many of them still fit.")
    limits: list[LimitLeft]


class Part(BaseModel):
    """One part of a secret or a report."""

    name: str
    kind: Literal["number", "text"]


class MechanismAnswer(Promised):
    """One mechanism that is served."""

    name: str
    about: str
    sha256: str
    account: Account
    accounts: list[Account] = Field(description="All accounts that a release is charged in.")
    secret: list[Part]
    report: list[Part]
    snap: float
    certificate: CertificateAnswer


class JobAnswer(BaseModel):
    """How a design stands."""

    job: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    message: str
    lower: float | None
    upper: float | None
    gap: float | None
    seconds: float
    certificate: CertificateAnswer | None
    guarantee: Guarantee | None
    promise: Guarantee | None = OLD_GUARANTEE


class Health(BaseModel):
    """Whether the service is there."""

    status: Literal["ok", "not ready"]
    version: str
