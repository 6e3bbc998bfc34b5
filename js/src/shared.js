/** What both languages share: written by build.js from src/metricdp/shared.json and wording.json; change those. */

export const SHARED = {
  "format": "metricdp-mechanism",
  "version": 2,
  "signature_purpose": "metricdp-mechanism-signature-1",
  "header_limit": 67108864,
  "licence_limit": 10000,
  "kinds": [
    "matrix",
    "interpolated",
    "streets",
    "spherical-laplace",
    "vector-laplace",
    "nearest",
    "product"
  ],
  "metrics": [
    "Lp",
    "Haversine",
    "Mahalanobis",
    "Precomputed",
    "ShortestPath",
    "StreetPath",
    "Temporal",
    "Hamming",
    "Levenshtein",
    "Angular",
    "Hyperbolic",
    "Weighted",
    "Wasserstein",
    "WordMovers",
    "Frechet"
  ],
  "bases": [
    "theorem",
    "certificate",
    "none"
  ],
  "rules": [
    "exact",
    "direction",
    "log",
    "relaxed"
  ],
  "storages": [
    "dense",
    "sparse",
    "quantised"
  ],
  "fewest_bits": 8,
  "most_bits": 52,
  "largest_matrix": 536870912,
  "largest_count": 1024,
  "largest_parts": 64,
  "largest_metric_terms": 1024,
  "largest_dimension": 65536,
  "largest_nodes": 4194304,
  "largest_coordinate": 1e+300,
  "largest_rate": 1e+100,
  "largest_ratio": 1000000,
  "smallest_ratio": 1e-290,
  "largest_cell": 2251799813685248,
  "largest_drawing_error": 0.01,
  "rounding": 1e-9,
  "earth_radius_km": 6371.009,
  "metres": {
    "m": "1",
    "km": "1000",
    "mi": "1609.344",
    "ft": "0.3048"
  },
  "weak_keys": [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"
  ]
};

export const WORDING = {
  "digits": {
    "metres": 3,
    "distance": 4,
    "epsilon": 6,
    "audited": 9,
    "slack": 4,
    "factor": 3,
    "loss": 4
  },
  "largest_factor": 1000000,
  "beyond_largest": "more than a million",
  "lengths": [
    "m",
    "km",
    "mi",
    "ft"
  ],
  "along": {
    "ShortestPath": " along the roads",
    "StreetPath": " along the streets"
  },
  "things": {
    "length": "places",
    "other": "secrets"
  },
  "shares": [
    0.1,
    0.5,
    1,
    2,
    5,
    10
  ],
  "scale": [
    {
      "below": 1.13,
      "words": "hardly better than a coin toss: a guess is right at most {sure} of the time"
    },
    {
      "below": 9,
      "words": "a guess is right at most {sure} of the time"
    },
    {
      "below": 65,
      "words": "a guess may be right {sure} of the time: little protection"
    },
    {
      "below": null,
      "words": "may be told apart: by design"
    }
  ],
  "outside": "not protected: farther apart than the promise reaches",
  "per": {
    "unit": " per {unit}",
    "none": " per unit of distance"
  },
  "promise": {
    "whole": "epsilon {epsilon}{per} ({metric}){slack}{within}, by {basis}",
    "slack": ", plus a slack of {slack}",
    "within": ", only between secrets within {radius}"
  },
  "short": {
    "reach": "One report shifts the odds between two {things} up to {reach} apart{along} by at most a factor of two. Every further report adds to that.{outside}",
    "slack": "Its slack alone allows more than a factor of two between any two {things}.{outside}",
    "outside": " Two {things} farther apart than {radius} are not protected from each other.",
    "nothing": "This promises nothing: it is for comparisons and must not protect data.",
    "part": "Part {number}, while the others stay the same: {sentence}"
  },
  "lead": "Whatever is reported, two {things} {near} apart{along} would have given that report with probabilities at most a factor of {times} apart. Closer {things} are harder still to tell apart.{outside}",
  "lead_slack": "Whatever is reported, two {things} {near} apart{along} would have given that report with probabilities at most a factor of {times} apart.{outside}",
  "wish": "Asked for: {things} {distance} apart{along} differ by at most a factor of {asked}. Kept: at most a factor of {kept} there, slack included.",
  "meaning": {
    "head": "What epsilon means: any report is at most so many times likelier from one of two {things} than from the other, and whoever has to guess between them at even odds is right at most so often.",
    "row": "  {distance} apart: factor {factor}   {words}"
  },
  "loss": {
    "expected": "On average a report lies {loss} from the truth.",
    "worst": "For the secret that fares worst a report lies {loss} from the truth on average; for every other no farther.",
    "average": "With all secrets equally likely a report lies {loss} from the truth on average.",
    "snapped": "From the value in the table it lies up to {snap} farther: that far values were put on a secret.",
    "expected_cost": "On average a report costs {loss}, in the loss and under the prior it was made for.",
    "worst_cost": "For the secret that fares worst a report costs {loss} on average, in the loss it was made for; for every other no more."
  },
  "objective": {
    "expected": "expected loss",
    "worst": "worst loss of any secret"
  },
  "fact": {
    "expected": "expected distance between truth and report",
    "worst": "expected distance between truth and report for the secret that fares worst"
  },
  "compared": {
    "expected": "Expected distance between the true place and the reported one, under the same prior.",
    "worst": "Expected distance between the true place and the reported one, for the place that fares worst."
  },
  "bound": "no mechanism can go below {bound} under this promise",
  "certificate": {
    "proven": "Certificate: {method}; audited epsilon {epsilon} over {pairs} pairs; {objective} {loss}, {bound} (gap {gap}).",
    "stated": "Certificate: {method}."
  },
  "rows": {
    "promise": "Promise per row: {promise}.",
    "snap": "Snapping up to {snap} put 2 x {epsilon} x {value} = {slack} into the slack.",
    "unknown": "Rows of one person add up; name the person's column with --id to have them counted.",
    "person": "{count} persons by {column}; the one with the most has {rows} rows. Rows add up, so that person's whole history is protected at {rows} x {epsilon} = {total}{slack}.",
    "without": "{rows} rows have no {column} and are not part of that count.",
    "twice": "Protecting this file a second time and releasing both costs 2 x {epsilon} = {total}{slack} for every row.",
    "kept": "Kept as they were, not protected: {columns}.",
    "not_carried_over": "Not carried over, since it may hold values: {what}.",
    "revealing": "Look at {columns}: such columns can give away where somebody was. Remove or coarsen them before release.",
    "simulated": "SIMULATION ONLY: drawn from a seed, whoever knows it can undo the noise. Do not release."
  }
};
