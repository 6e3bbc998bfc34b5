/** A second opinion on a matrix, in doubles. */

const TOLERANCE = 1e-9;

/** Return the smallest epsilon of a matrix over all pairs of secrets, and whether the guarantee holds by it. */
export function auditMatrix({ inputs, table }, { epsilon: claimed, slack, radius }) {
  const logs = Array.from({ length: table.rows }, (_, row) => table.distribution(row).map(Math.log));
  const points = Array.from({ length: table.rows }, (_, row) => inputs.points.row(row));
  let worst = 0;
  let pairs = 0;
  for (let i = 0; i < table.rows; i++) {
    for (let j = i + 1; j < table.rows; j++) {
      const apart = inputs.metric.measure(points[i], points[j]);
      if (radius !== null && apart > radius) continue;
      pairs += 1;
      let spread = 0;
      for (let k = 0; k < table.reports; k++) {
        const [a, b] = [logs[i][k], logs[j][k]];
        if (a !== b) spread = Math.max(spread, Math.abs(a - b));
      }
      if (spread > slack) worst = Math.max(worst, apart < Infinity ? (spread - slack) / apart : NaN);
    }
  }
  const decidable = pairs > 0 && Number.isFinite(claimed);
  const holds = decidable && worst <= claimed * (1 + TOLERANCE); // not so where `worst` is no number
  const verdict = holds ? "holds" : decidable && worst > claimed ? "violated" : "cannot judge";
  return { epsilon: worst, claimed, tolerance: TOLERANCE, pairs, holds, verdict };
}
