/** Types of the client: written by tools/service_client.py from the OpenAPI file; change the service instead. */

/** What was charged in one account, and what is left there. */
export interface AccountPart {
  /** What releases are charged to, such as haversine/km, or mahalanobis.37a54433c2c87d30 for a metric with parameters. Guarantees of different accounts are not added up: they stand side by side. */
  account: string;
  cost: Amount;
  left: Amount;
}

/** A distance that holds the truth with probability `level`, whatever the secret is. */
export interface Accuracy {
  columns: string[];
  radius: number;
  unit: string;
  level: number;
}

/** What was charged or is left, exactly: millionths of epsilon per unit of the account, and of slack. */
export interface Amount {
  micro_epsilon: number;
  micro_slack: number;
  unit: string;
  /** The epsilon as people write it, such as 2.5/km. */
  words: string;
}

/** The outcome of an audit. */
export interface AuditAnswer {
  kind: "pure";
  verdict: "holds" | "violated" | "not refuted" | "cannot judge";
  /** True: more leaks than was claimed. */
  refuted: boolean;
  /** The epsilon that was audited, per unit; null where none was named. */
  claimed: number | "infinity" | null;
  /** The smallest epsilon for which the guarantee holds, per unit; null where it is no number. */
  epsilon: number | "infinity" | null;
  /** Samples give a lower bound. */
  epsilon_is: "lower bound" | "upper bound";
  /** The unit of distances; empty where they have none, null where it is not known. */
  unit: string | null;
  /** claimed - epsilon. */
  margin: number | "infinity" | "-infinity" | null;
  /** Has no unit. */
  slack: number;
  basis: "proof" | "theorem" | "samples";
  /** How it was audited. */
  method: string;
  /** Of samples: the confidence of the lower bound. */
  confidence: number;
  /** How many pairs or cells were checked one by one. */
  pairs: number;
  /** How many reports of a sampler were used. */
  draws: number;
  /** Why there is no verdict, or `rounding`; else empty. */
  reason: string;
  /** Set where only rounding of the probabilities exceeds the claim. */
  rounding: string;
  /** What prevents a verdict. */
  obstacle: string;
  /** Of samples: a leak that would have been found. */
  power: string;
  /** True: there is only one secret. */
  vacuous: boolean;
  findings: FindingAnswer[];
  witness: WitnessAnswer | null;
}

/** One report for every row (null where the person's budget refused), and what each person was charged. */
export interface BatchAnswer {
  guarantee: Guarantee;
  /** The name of `guarantee` before. */
  promise: Guarantee;
  accuracy: Accuracy[];
  mechanism: string;
  repeated: boolean;
  reports: (Record<string, number | string> | null)[];
  persons: BatchPerson[];
}

/** What one person of a batch was charged; in the order in which persons first occur. */
export interface BatchPerson {
  rows: number;
  /** How many of the rows were released: the first ones. */
  released: number;
  cost: Amount;
  left: Amount;
  /** Every account: one for most metrics, several for a product, of which cost and left say the first. */
  accounts: AccountPart[];
}

/** Many secrets to be released; all rows of a person are one charge. */
export interface BatchRequest {
  /** Its name; optional where only one is served. */
  mechanism?: string | null;
  /** One the policy names, if it does. */
  purpose?: string | null;
  /** Yours, a new one for every release (a UUID for instance). The same one again, from the same key and for the same person, gives the stored report and costs nothing, whatever secret it carries. */
  request: string;
  rows: BatchRow[];
  /** fail: if the budget of one person does not suffice nothing is released. null: rows beyond a person's budget are null, all others are released. */
  on_refusal?: "fail" | "null";
}

/** One row of a batch. */
export interface BatchRow {
  /** Who the secret is about; stored as a keyed hash. */
  person: string;
  /** The true value: an object by the names that /v1/mechanisms lists, or a list in their order. It is never stored. */
  secret: Record<string, number | string> | (number | string)[] | number | string;
}

/** What is left to a person on the accounts of a mechanism's metric. */
export interface BudgetAnswer {
  mechanism: string;
  /** What releases are charged to, such as haversine/km, or mahalanobis.37a54433c2c87d30 for a metric with parameters. Guarantees of different accounts are not added up: they stand side by side. */
  account: string;
  left: Amount;
  /** What one release of the mechanism costs. */
  cost: Amount;
  /** Every account: one for most metrics, several for a product, of which cost and left say the first. */
  accounts: AccountPart[];
  /** How many of them still fit. */
  releases: number;
  limits: LimitLeft[];
}

/** Whose budget is asked for, on the account of a mechanism's metric: in the body, since paths end up in logs. */
export interface BudgetRequest {
  /** Its name; optional where only one is served. */
  mechanism?: string | null;
  /** One the policy names, if it does. */
  purpose?: string | null;
  /** Who the secret is about; stored as a keyed hash. */
  person: string;
}

/** Certificate.to_dict(). What was verified of a mechanism. No mechanism with the same guarantee and the same reports has a loss below `lower_bound`. */
export interface CertificateAnswer {
  /** The loss of the mechanism, in the unit of the loss function (for distances: `unit`). */
  loss: number;
  /** In the unit of `loss`. */
  lower_bound: number;
  /** (loss - lower_bound) / |loss|: a share. */
  gap: number | "infinity";
  /** The expected loss under the prior, or the loss of the secret with the largest one. */
  objective: "expected" | "worst";
  /** True: the loss is an upper bound. */
  at_most: boolean;
  /** The epsilon that the audit found, per unit; infinity where no pure guarantee holds. */
  epsilon: number | "infinity";
  /** The unit of distances; empty where they have none, null where it is not known. */
  unit: string | null;
  /** How many pairs of secrets were checked one by one. */
  pairs: number;
  /** How the mechanism was built. */
  method: string;
  note: string;
  /** How long the build took, in seconds. */
  seconds: number;
  /** True: somebody ended the search before it was done. */
  interrupted: boolean;
  witness: WitnessAnswer | null;
  /** The figures that a file states and nobody verified again. */
  not_verified: ("loss" | "lower_bound")[];
  /** The old name of `not_verified`. */
  unverified?: ("loss" | "lower_bound")[];
}

/** A mechanism to be designed on points, as a job. */
export interface DesignRequest {
  /** The secrets, one a row. */
  points: number[][];
  /** Such as l2, l1, haversine (points are then latitude, longitude). */
  metric?: string;
  /** Per unit of the metric: per km for haversine. */
  epsilon: number;
  /** Such as optimal, exponential, constopt, spanner. */
  builder?: string;
  /** How likely each point is. */
  prior?: number[] | null;
  objective?: "expected" | "worst" | null;
  /** How far from the proven optimum it may end. */
  gap?: number | null;
  /** When to stop searching and keep the best. */
  seconds?: number | null;
}

/** What an audit saw beside the numbers. */
export interface FindingAnswer {
  kind: string;
  sentence: string;
  /** True: the verdict rests on it. */
  convicts: boolean;
}

/** `ln Pr[M(x)=y] - ln Pr[M(x')=y] <= epsilon * d(x, x') + slack`, for all x, x', y. */
export interface Guarantee {
  kind: "pure";
  /** Per unit of distance. */
  epsilon: number;
  /** Has no unit. */
  slack: number;
  /** The guarantee of each part of a sum of metrics, in its own unit. Where several parts differ, their losses add up. */
  parts: Guarantee[];
  /** The unit of distances; empty where they have none. */
  unit: string;
  /** The name of the metric. */
  metric: string;
  /** The exponent of the metric; null where it has none. */
  p: number | "infinity" | null;
  /** Only secrets that are at most this far apart are protected from each other; null: all are. In `unit`. */
  radius: number | null;
  /** Why it holds: a proof covers every secret, or every pair was checked. none: it is not private. */
  basis: "theorem" | "certificate" | "none";
  /** The same for people. */
  sentence: string;
}

/** Whether the service is there. */
export interface Health {
  status: "ok" | "not ready";
  version: string;
}

/** How a design stands. */
export interface JobAnswer {
  job: string;
  state: "waiting" | "running" | "done" | "failed" | "cancelled";
  message: string;
  lower: number | null;
  upper: number | null;
  gap: number | null;
  seconds: number;
  certificate: CertificateAnswer | null;
  guarantee: Guarantee | null;
  /** The name of `guarantee` before. */
  promise: Guarantee | null;
}

/** What is left under one limit of the policy. */
export interface LimitLeft {
  /** Such as 40/km per day. */
  limit: string;
  micro_left: number;
  /** When, in UTC; null where it is for ever. */
  refreshes: string | null;
}

/** A matrix to audit: one row per secret, the probability (or weight) of every report. */
export interface MatrixAudit {
  kind: "matrix";
  matrix: number[][];
  /** The secrets, one a row. */
  points: number[][];
  /** Such as l2, l1, linf, haversine, haversine:mi. */
  metric?: string;
  /** The guarantee to audit, per unit of the metric. */
  epsilon: number;
}

/** One mechanism that is served. */
export interface MechanismAnswer {
  guarantee: Guarantee;
  /** The name of `guarantee` before. */
  promise: Guarantee;
  accuracy: Accuracy[];
  name: string;
  about: string;
  sha256: string;
  /** What releases are charged to, such as haversine/km, or mahalanobis.37a54433c2c87d30 for a metric with parameters. Guarantees of different accounts are not added up: they stand side by side. */
  account: string;
  /** All accounts that a release is charged in. */
  accounts: string[];
  secret: Part[];
  report: Part[];
  snap: number;
  certificate: CertificateAnswer;
}

/** One part of a secret or a report. */
export interface Part {
  name: string;
  kind: "number" | "text";
}

/** Why nothing is given. */
export interface Refusal {
  /** A word for programs, such as budget, busy, invalid, outside, unauthorised. */
  error: string;
  /** A sentence for people; it never holds what was sent. */
  message: string;
  /** Which rows are meant, the first is 0; at most ten. */
  rows?: number[] | null;
  /** What is left of the budget, where that is why. */
  micro_left?: number | null;
  /** When that budget refreshes, in UTC, where it does. */
  refreshes?: string | null;
}

/** A report, its guarantee, its cost and what is left. */
export interface ReleaseAnswer {
  guarantee: Guarantee;
  /** The name of `guarantee` before. */
  promise: Guarantee;
  accuracy: Accuracy[];
  mechanism: string;
  repeated: boolean;
  report: Record<string, number | string>;
  cost: Amount;
  left: Amount;
  /** Every account: one for most metrics, several for a product, of which cost and left say the first. */
  accounts: AccountPart[];
}

/** One secret to be released. */
export interface ReleaseRequest {
  /** Its name; optional where only one is served. */
  mechanism?: string | null;
  /** One the policy names, if it does. */
  purpose?: string | null;
  /** Who the secret is about; stored as a keyed hash. */
  person: string;
  /** Yours, a new one for every release (a UUID for instance). The same one again, from the same key and for the same person, gives the stored report and costs nothing, whatever secret it carries. */
  request: string;
  /** The true value: an object by the names that /v1/mechanisms lists, or a list in their order. It is never stored. */
  secret: Record<string, number | string> | (number | string)[] | number | string;
}

/** Recorded pairs of a secret and the report it got, one row each. */
export interface SamplesAudit {
  kind: "samples";
  secrets: number[][];
  reports: number[][];
  metric?: string;
  epsilon: number;
  slack?: number;
  confidence?: number;
}

/** The two secrets and the report at which most leaks. */
export interface WitnessAnswer {
  /** The code of the secret; -1 where it has none. */
  secret: number;
  /** The code of the other secret. */
  other: number;
  /** The code of the report. */
  report: number;
  /** p(report | secret) / p(report | other); null where samples show a difference and not its size at this report. */
  ratio: number | "infinity" | null;
  /** Where the secret is. */
  secret_at: (number | string)[] | null;
  /** Where the other secret is. */
  other_at: (number | string)[] | null;
  /** Where the report is. */
  report_at: (number | string)[] | null;
}

/** Something that happened to a design. */
export interface ServiceEvent {
  id: string;
  event: "waiting" | "running" | "progress" | "done" | "failed" | "cancelled";
  data: Record<string, unknown>;
}

/** The service gave nothing: `status` and `error` are for programs, the message is its sentence. */
export declare class ServiceError extends Error {
  readonly status: number;
  readonly error: string;
  readonly details: Record<string, unknown>;
}

/** A new request id, for one release: the same one again gives the stored report and costs nothing. */
export declare function requestId(): string;

export interface ServiceOptions {
  /** How often a request is sent that got no answer or found the service busy; 5 unless said. */
  tries?: number;
  /** How long to wait for one answer, in seconds; 30 unless said. */
  seconds?: number;
  /** Another `fetch`, for tests. */
  fetch?: typeof fetch;
}

/**
 * A service at an address, asked with a key. A request that got no answer, or found the service busy, is sent again as
 * it was: with its request id, so that nothing is charged twice.
 */
export declare class ServiceClient {
  constructor(url: string, token: string, options?: ServiceOptions);

  /** Draw a report, charge the person, commit both, answer. The same request id again gives the stored report. */
  release(body: ReleaseRequest): Promise<ReleaseAnswer>;

  /** Tell what is left to a person under the policy, and how many releases of a mechanism that is. */
  budget(body: BudgetRequest): Promise<BudgetAnswer>;

  /** List the mechanisms with their guarantees and certificates. */
  mechanisms(): Promise<MechanismAnswer[]>;

  /** Draw one report for every row; all rows of a person are one charge, committed before the answer leaves. */
  releaseBatch(body: BatchRequest): Promise<BatchAnswer>;

  /** Say what a mechanism really leaks: exactly for a matrix, by evidence for samples. */
  audit(body: MatrixAudit | SamplesAudit): Promise<AuditAnswer>;

  /** Begin to design a mechanism on points; what is asked for is checked now, the search runs as a job. */
  design(body: DesignRequest): Promise<JobAnswer>;

  /** Tell how a job stands: its bounds so far, and its certificate when it is done. */
  designState(job: string): Promise<JobAnswer>;

  /** End a job that runs; forget one that has ended, its file included. */
  designCancel(job: string): Promise<JobAnswer>;

  /** Send what happens as server-sent events until the job ends; Last-Event-ID goes on where one left off. */
  designEvents(job: string): AsyncGenerator<ServiceEvent>;

  /** Give the mechanism file of a design that is done. */
  designResult(job: string): Promise<Uint8Array>;

  /** Answer as long as the process runs; no key is needed and nothing else is said. */
  health(): Promise<Health>;

  /** Tell whether releases can be made: the ledger answers and the service does not stop. */
  ready(): Promise<Health>;

  /** Give counts and times in the text form of Prometheus; no person, key, secret or report is in them. */
  metrics(): Promise<string>;
}
