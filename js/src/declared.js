/** The fields of a mechanism file: written by build.js from fields.json, which tools/pages.py writes from the declarations. */

/** @typedef {"bag-laplace" | "direction-noise" | "gaussian-noise" | "hyperbolic-laplace" | "interpolated" | "local" | "kernel" | "vector-laplace" | "matrix" | "nearest" | "outline-laplace" | "product" | "projected-laplace" | "spherical-laplace" | "spherical-gaussian" | "streets"} Kind */

export const DECLARED = {
  "metric": {
    "Lp": {"since": 1, "fields": {"p": {"type": "number", "least": 1, "infinite": true}, "unit": {"type": "text", "longest": 100}}},
    "Mahalanobis": {"since": 1, "fields": {"covariance": {"type": "array", "sides": 2, "of": "float"}, "unit": {"type": "text", "longest": 100}}},
    "Haversine": {"since": 1, "fields": {"unit": {"type": "text", "choices": ["m", "km", "mi", "ft"], "longest": 10000}}},
    "ShortestPath": {"since": 1, "along": [" along the roads", " in the graph"], "fields": {"edges": {"type": "array", "sides": 2, "of": "whole"}, "lengths": {"type": "array", "sides": 1, "of": "float"}, "nodes": {"type": "whole", "least": 1, "most": 4194304}, "one_way": {"type": "text", "choices": ["open", "longer"], "longest": 10000}, "unit": {"type": "text", "longest": 100}}},
    "StreetPath": {"since": 1, "along": [" along the streets", " along the streets"], "fields": {"network": {"type": "part", "named": ["ShortestPath"], "of": "metric"}}},
    "PolicyGraph": {"since": 2, "along": [" along the edges of the policy", " in the policy"], "policy": true, "fields": {"network": {"type": "part", "named": ["ShortestPath"], "of": "metric"}, "apart": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "Precomputed": {"since": 1, "fields": {"distances": {"type": "array", "sides": 2, "of": "float"}, "unit": {"type": "text", "longest": 100}}},
    "Hamming": {"since": 1, "fields": {"unit": {"type": "text", "longest": 100}}},
    "Levenshtein": {"since": 1, "fields": {"unit": {"type": "text", "longest": 100}}},
    "Angular": {"since": 1, "fields": {"unit": {"type": "text", "choices": ["rad", "deg"], "longest": 10000}}},
    "Hyperbolic": {"since": 1, "fields": {"unit": {"type": "text", "longest": 100}}},
    "Temporal": {"since": 1, "fields": {"period": {"type": "maybe", "of": {"type": "number", "least": 1e-100, "most": 1e+100}}, "unit": {"type": "text", "longest": 100}}},
    "Weighted": {"since": 1, "fields": {"parts": {"type": "many", "least": 1, "most": 1024, "of": {"type": "group", "of": [{"type": "part", "of": "metric"}, {"type": "many", "least": 1, "most": 65536, "of": {"type": "whole", "least": 0, "most": 65535}}, {"type": "number", "least": 1e-100, "most": 1e+100}]}}, "unit": {"type": "text", "longest": 100}}},
    "Wasserstein": {"since": 1, "fields": {"ground": {"type": "array", "sides": 0, "of": "float"}, "unit": {"type": "text", "longest": 100}}},
    "WordMovers": {"since": 1, "fields": {"vectors": {"type": "array", "sides": 2, "of": "float"}, "ground": {"type": "part", "of": "metric"}, "unit": {"type": "text", "longest": 100}}},
    "Frechet": {"since": 1, "fields": {"ground": {"type": "part", "of": "metric"}, "dimension": {"type": "whole", "least": 1, "most": 65536}, "unit": {"type": "text", "longest": 100}}},
    "Bags": {"since": 2, "fields": {"ground": {"type": "part", "of": "metric"}, "dimension": {"type": "whole", "least": 1, "most": 65536}, "unit": {"type": "text", "longest": 100}}}
  },
  "space": {
    "finite": {"since": 1, "fields": {"metric": {"type": "part", "of": "metric"}, "points": {"type": "array", "sides": 0, "least": -1e+300, "most": 1e+300, "of": "points"}, "coordinates": {"type": "array", "sides": 0, "least": -1e+300, "most": 1e+300, "of": "points"}, "ground": {"type": "part", "of": "metric"}, "columns": {"type": "many", "least": 0, "most": 65536, "of": {"type": "text", "longest": 1000}}}},
    "box": {"since": 1, "fields": {"metric": {"type": "part", "of": "metric"}, "lower": {"type": "many", "least": 1, "most": 65536, "of": {"type": "number", "least": -1e+300, "most": 1e+300}}, "upper": {"type": "many", "least": 1, "most": 65536, "of": {"type": "number", "least": -1e+300, "most": 1e+300}}}},
    "unbounded": {"since": 1, "fields": {"metric": {"type": "part", "of": "metric"}, "dimension": {"type": "whole", "least": 1, "most": 65536}}},
    "sphere": {"since": 2, "fields": {"metric": {"type": "part", "of": "metric"}, "dimension": {"type": "whole", "least": 2, "most": 65536}, "lengths": {"type": "text", "choices": ["unit", "any"], "longest": 10000}}},
    "streets": {"since": 1, "fields": {"metric": {"type": "part", "named": ["StreetPath"], "of": "metric"}}}
  },
  "mechanism": {
    "bag-laplace": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "direction-noise": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["sphere"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "gaussian-noise": {"since": 2, "promise": "concentrated", "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "sigma": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "hyperbolic-laplace": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "interpolated": {"since": 1, "fields": {"inputs": {"type": "part", "named": ["box"], "of": "space"}, "outputs": {"type": "part", "named": ["finite"], "of": "space"}, "axes": {"type": "many", "least": 1, "most": 8, "of": {"type": "array", "sides": 1, "of": "float"}}, "ratios": {"type": "many", "least": 1, "most": 8, "of": {"type": "array", "sides": 1, "least": 0, "most": 1000000.0, "of": "float"}}, "matrix": {"type": "table"}, "rule": {"type": "text", "choices": ["exact", "direction", "log", "relaxed"], "longest": 10000}}},
    "local": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["finite"], "of": "space"}, "outputs": {"type": "part", "named": ["finite"], "of": "space"}, "lengths": {"type": "array", "sides": 2, "most": 65536, "of": "narrow"}, "columns": {"type": "array", "sides": 1, "most": 65535, "of": "narrow"}, "values": {"type": "array", "sides": 1, "least": 0, "most": 3.4028234663852886e+38, "coded": true, "of": "single"}, "background": {"type": "array", "sides": 1, "least": 0, "most": 3.4028234663852886e+38, "of": "single"}}},
    "kernel": {"since": 2, "fields": {"space": {"type": "part", "named": ["finite"], "of": "space"}, "inner": {"type": "number", "least": 1e-100, "most": 1e+100}, "cap": {"type": "maybe", "of": {"type": "number", "least": 1e-100, "most": 1e+300}}, "log_weights": {"type": "maybe", "of": {"type": "array", "sides": 1, "least": -1000000.0, "most": 1000000.0, "of": "float"}}, "log_normalisers": {"type": "array", "sides": 1, "least": -1000000.0, "most": 1000000.0, "of": "float"}, "nearest": {"type": "maybe", "of": {"type": "array", "sides": 1, "least": 0, "most": 1e+300, "of": "float"}}}},
    "vector-laplace": {"since": 1, "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "matrix": {"since": 1, "fields": {"inputs": {"type": "part", "named": ["finite"], "of": "space"}, "outputs": {"type": "part", "named": ["finite"], "of": "space"}, "matrix": {"type": "table"}}},
    "nearest": {"since": 1, "fields": {"inputs": {"type": "part", "named": ["finite"], "of": "space"}, "outputs": {"type": "part", "named": ["finite"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "outline-laplace": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "product": {"since": 2, "fields": {"parts": {"type": "many", "least": 2, "most": 64, "of": {"type": "part", "of": "mechanism"}}}},
    "projected-laplace": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}, "matrix": {"type": "array", "sides": 2, "least": -1e+300, "most": 1e+300, "of": "float"}}},
    "spherical-laplace": {"since": 1, "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "spherical-gaussian": {"since": 2, "promise": "concentrated", "fields": {"inputs": {"type": "part", "named": ["unbounded"], "of": "space"}, "sigma": {"type": "number", "least": 1e-100, "most": 1e+100}, "pitch": {"type": "number", "least": 1e-100, "most": 1e+100}}},
    "streets": {"since": 2, "fields": {"inputs": {"type": "part", "named": ["streets"], "of": "space"}, "outputs": {"type": "part", "named": ["finite"], "of": "space"}, "counts": {"type": "array", "sides": 1, "least": 1, "most": 536870912, "of": "whole"}, "ratios": {"type": "array", "sides": 1, "least": 0, "most": 1000000.0, "of": "float"}, "matrix": {"type": "table"}}}
  },
  "pure": {
    "epsilon": {"type": "number", "least": 1e-100, "most": 1e+100},
    "slack": {"type": "number", "least": 0},
    "radius": {"type": "maybe", "of": {"type": "number", "above": 0}},
    "unit": {"type": "text", "longest": 100},
    "basis": {"type": "text", "choices": ["theorem", "certificate", "none"], "longest": 10000},
    "metric": {"type": "part", "of": "metric"}
  },
  "concentrated": {
    "rho": {"type": "number", "least": 1e-100, "most": 1e+100},
    "form": {"type": "text", "choices": ["gaussian", "renyi"], "longest": 10000},
    "radius": {"type": "maybe", "of": {"type": "number", "above": 0}},
    "unit": {"type": "text", "longest": 100},
    "basis": {"type": "text", "choices": ["theorem", "certificate"], "longest": 10000},
    "metric": {"type": "part", "of": "metric"}
  },
  "certificate": {
    "loss": {"type": "number"},
    "lower_bound": {"type": "number"},
    "worst_pair": {"type": "many", "least": 0, "most": 3, "of": {"type": "whole", "least": 0, "most": 9007199254740991}},
    "verified_pairs": {"type": "whole", "least": 0, "most": 9007199254740991},
    "method": {"type": "text", "longest": 10000},
    "seconds": {"type": "number", "least": 0},
    "epsilon": {"type": "number", "least": 0, "infinite": true},
    "note": {"type": "text", "longest": 10000},
    "objective": {"type": "text", "choices": ["expected", "worst"], "longest": 10000}
  },
  "later": {
    "radius": null,
    "note": "",
    "objective": null
  }
};
