/** What both languages share: written by build.js from src/metricdp/constants.json and messages.json; change those. */

export const CONSTANTS = {
  "format": "metricdp-mechanism",
  "version": 2,
  "signature_purpose": "metricdp-mechanism-signature-1",
  "header_limit": 4194304,
  "licence_limit": 10000,
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
  "deepest_metric": 16,
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

export const MESSAGES = {
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
  "things": {
    "length": "places",
    "other": "secrets"
  },
  "plural": {
    "hop": "hops",
    "level": "levels"
  },
  "counted": {
    "hop": [
      1,
      2,
      3,
      5,
      10
    ]
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
  "outside": "not protected: beyond the reach of the guarantee",
  "per": {
    "unit": " per {unit}",
    "none": " per unit of distance"
  },
  "promise": {
    "whole": "epsilon {epsilon}{per} ({metric}){slack}{within}, by {basis}",
    "slack": ", plus a slack of {slack}",
    "within": ", only between secrets within {radius}",
    "within_part": ", only between secrets of one part of the policy (up to {radius} apart): reports may reveal the part"
  },
  "short": {
    "reach": "One report shifts the odds between two {things} up to {reach} apart{along} by at most a factor of two. Every further report adds to that.{outside}",
    "counted": "One report shifts the odds between two neighbours{along} by at most a factor of {factor}, and between {things} farther apart by at most that factor for every step on the way. Every further report adds to that.{outside}",
    "slack": "The slack alone allows a factor of {factor} between two {things} side by side: little protection.{outside}",
    "outside": " Two {things} farther apart than {radius} are not protected from each other.",
    "outside_part": " Two {things} in different parts of the policy, or farther apart than {radius}, are not protected from each other. This is by design: a report may reveal the part of a secret.",
    "nothing": "This gives no guarantee: it is for comparisons and must not protect data.",
    "part": "Part {number}, while the others stay the same: {sentence}"
  },
  "meaning": {
    "head": "What epsilon means: any report is at most this many times likelier from one of two {things} than from the other. Someone who must guess between them, at even odds, is right at most this often.",
    "row": "  {distance} apart: factor {factor}   {words}"
  },
  "concentrated": {
    "delta": 0.000001,
    "digits": 4,
    "per": {
      "unit": " per {unit}^2",
      "none": " per squared unit of distance"
    },
    "whole": "rho {rho}{per} ({metric}){within}, concentrated: approximate and not pure, by {basis}",
    "short": "Approximate, not pure: for two {things} up to {reach} apart{along}, any set of reports is at most twice as likely from one as from the other, plus a probability of {delta} (delta) with which a report may reveal more. Every further report adds to that.{outside}",
    "head": "What rho means: at delta {delta}, any set of reports is at most this many times likelier from one of two {things} than from the other, plus delta. Someone who must guess between them, at even odds, is right at most this often, on average over the reports.",
    "row": "  {distance} apart: factor {factor}   a guess is right at most {sure} of the time",
    "beyond": "  {distance} apart: not protected: beyond the reach of the guarantee",
    "together": "Rho adds up: {rows} x {rho} = {total}{per}. With all of them, for {things} up to {reach} apart{along}, no set of reports is more than twice as likely from one as from the other, plus delta {delta}.",
    "person": "{count} persons by {column}; the one with the most has {rows} rows. {together}",
    "twice": "A second release of this file costs every row as much again. {together}",
    "wish": "Requested: {things} {distance} apart{along} differ by at most a factor of {asked}, except for delta {delta}. Guaranteed: a factor of {kept} there, except for that delta; approximate, not pure."
  }
};
