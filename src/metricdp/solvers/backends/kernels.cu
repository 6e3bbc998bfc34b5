// Kernels of the first-order method and of the repair. One signed multiplier y for each pair (i, j) and column:
// y > 0 belongs to a z_i <= b z_j, y < 0 to a z_j <= b z_i. Reductions go through shared memory only, so that
// the same text also runs one thread a block on a CPU, which is how it is tested.

extern "C" {

// x = share r + (1-share) anchor; x' = simplex(x - step_i (c + A^T y)); r = 2 x' - x. One block a row.
__global__ void primal_step(
    const long long n, const long long m, const long long *starts, const int *edge_of, const unsigned char *first_of,
    const float *small, const float *large, const float *cost, const float *dual, float *reflected,
    const float *anchor, const float share, const float *step, float *level, const int measured, float *out,
    double *error)
{
    extern __shared__ float shared[];
    float *pull = shared;                  // m numbers
    float *sums = shared + m;              // blockDim numbers
    float *counts = sums + blockDim.x;     // blockDim numbers
    const long long i = blockIdx.x;
    const float width = step[i], rest = 1.0f - share;
    const long long from = starts[i], to = starts[i + 1];
    float most = -1e30f;
    for (long long k = threadIdx.x; k < m; k += blockDim.x) {
        float total = cost[i * m + k];
        for (long long p = from; p < to; ++p) {
            const long long e = edge_of[p];
            const float value = dual[e * m + k];
            const float a = small[e], b = large[e];
            const float above = first_of[p] ? a : -b, below = first_of[p] ? b : -a;
            total += value * (value > 0.0f ? above : below);
        }
        const float x = share * reflected[i * m + k] + rest * anchor[i * m + k];
        pull[k] = x - width * total;
        most = fmaxf(most, pull[k]);
    }
    sums[threadIdx.x] = most;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] = fmaxf(sums[threadIdx.x], sums[threadIdx.x + half]);
        __syncthreads();
    }
    most = sums[0];
    __syncthreads();
    // Newton on the convex, decreasing sum_k max(v_k - t, 0) - 1
    float threshold = level[i];
    if (!(threshold < most)) threshold = most - 1.0f;
    for (int turn = 0; turn < 50; ++turn) {
        float total = 0.0f, count = 0.0f;
        for (long long k = threadIdx.x; k < m; k += blockDim.x) {
            const float over = pull[k] - threshold;
            if (over > 0.0f) { total += over; count += 1.0f; }
        }
        sums[threadIdx.x] = total;
        counts[threadIdx.x] = count;
        __syncthreads();
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) {
                sums[threadIdx.x] += sums[threadIdx.x + half];
                counts[threadIdx.x] += counts[threadIdx.x + half];
            }
            __syncthreads();
        }
        total = sums[0];
        count = counts[0];
        __syncthreads();
        if (count == 0.0f) { threshold = most - 1.0f; continue; }
        const float move = (total - 1.0f) / count;
        threshold += move;
        if (fabsf(move) <= 1e-7f || (turn > 0 && move <= 1e-7f)) break;
    }
    if (threadIdx.x == 0) level[i] = threshold;
    float distance = 0.0f;
    for (long long k = threadIdx.x; k < m; k += blockDim.x) {
        const float x = share * reflected[i * m + k] + rest * anchor[i * m + k];
        const float fresh = fmaxf(pull[k] - threshold, 0.0f);
        reflected[i * m + k] = 2.0f * fresh - x;
        if (measured) {
            out[i * m + k] = fresh;
            distance += (fresh - x) * (fresh - x);
        }
    }
    if (measured) {
        sums[threadIdx.x] = distance;
        __syncthreads();
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0) error[i] = (double)sums[0] / (double)width;
    }
}

// y' = y + step A r, both directions clamped at 0; y = share (2 y' - y) + (1 - share) anchor. One block an edge.
__global__ void dual_step(
    const long long m, const int *first, const int *second, const float *small, const float *large,
    const float *reflected, float *dual, const float *anchor, const float share, const float step,
    const int measured, float *out, double *error)
{
    extern __shared__ float shared[];
    const long long e = blockIdx.x;
    const float *p = reflected + (long long)first[e] * m, *q = reflected + (long long)second[e] * m;
    const float a = step * small[e], b = step * large[e], rest = 1.0f - share;
    float distance = 0.0f;
    for (long long k = threadIdx.x; k < m; k += blockDim.x) {
        const long long place = e * m + k;
        const float old = dual[place], x = p[k], y = q[k];
        const float up = fmaxf(0.0f, fmaxf(old, 0.0f) + a * x - b * y);
        const float down = fmaxf(0.0f, fmaxf(-old, 0.0f) + a * y - b * x);
        const float fresh = up - down;
        dual[place] = share * (2.0f * fresh - old) + rest * anchor[place];
        if (measured) {
            out[place] = fresh;
            distance += (fresh - old) * (fresh - old);
        }
    }
    if (measured) {
        shared[threadIdx.x] = distance;
        __syncthreads();
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0) error[e] = (double)shared[0] / (double)step;
    }
}

// result_i = min_k [c_ik + sum lam - sum g lam] in double, less its rounding error; lam = factor_e y. One block a row.
__global__ void bound_rows(
    const long long m, const long long *starts, const int *edge_of, const unsigned char *first_of,
    const double *factor, const double *ratio, const double *cost, const float *dual, double *result)
{
    extern __shared__ double least[];
    const long long i = blockIdx.x;
    const double unit = 1.1102230246251565e-16;
    const double rounding = (2.0 * (double)(starts[i + 1] - starts[i]) + 8.0) * unit;
    double best = 1e300;
    for (long long k = threadIdx.x; k < m; k += blockDim.x) {
        double total = cost[i * m + k], size = fabs(total);
        for (long long p = starts[i]; p < starts[i + 1]; ++p) {
            const long long e = edge_of[p];
            const double raw = (double)dual[e * m + k];
            const double value = first_of[p] ? raw : -raw;
            const double part = value > 0.0 ? value * factor[e] : value * (factor[e] * ratio[e]);
            total += part;
            size += fabs(part);
        }
        best = fmin(best, total - rounding * size);
    }
    least[threadIdx.x] = best;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) least[threadIdx.x] = fmin(least[threadIdx.x], least[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) result[i] = least[0];
}

// result_ik = max_j decay_ij matrix_jk. A block does 8 rows and blockDim columns.
__global__ void max_times(
    const long long n, const long long inner, const long long m, const double *decay, const double *matrix,
    double *result)
{
    extern __shared__ double tile[];       // 8 x 64 numbers of decay
    const long long top = (long long)blockIdx.y * 8, k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    double best[8];
    for (int r = 0; r < 8; ++r) best[r] = 0.0;
    for (long long base = 0; base < inner; base += 64) {
        for (int place = threadIdx.x; place < 512; place += blockDim.x) {
            const long long row = top + place / 64, column = base + place % 64;
            tile[place] = (row < n && column < inner) ? decay[row * inner + column] : 0.0;
        }
        __syncthreads();
        if (k < m) {
            const int width = inner - base < 64 ? (int)(inner - base) : 64;
            for (int j = 0; j < width; ++j) {
                const double value = matrix[(base + j) * m + k];
                for (int r = 0; r < 8; ++r) best[r] = fmax(best[r], tile[r * 64 + j] * value);
            }
        }
        __syncthreads();
    }
    if (k < m)
        for (int r = 0; r < 8; ++r)
            if (top + r < n) result[(top + r) * m + k] = best[r];
}

// result_ij = max_k |logs_ki - logs_kj| - weights_ij for logs stored column by column (m x n); -1 where i = j.
__global__ void worst_ratio(
    const long long n, const long long m, const double *logs, const double *weights, double *result)
{
    extern __shared__ double tile[];       // 8 x 64 logarithms
    const long long top = (long long)blockIdx.y * 8, j = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    double best[8];
    for (int r = 0; r < 8; ++r) best[r] = 0.0;
    for (long long base = 0; base < m; base += 64) {
        for (int place = threadIdx.x; place < 512; place += blockDim.x) {
            const long long row = top + place / 64, column = base + place % 64;
            tile[place] = (row < n && column < m) ? logs[column * n + row] : 0.0;
        }
        __syncthreads();
        if (j < n) {
            const int width = m - base < 64 ? (int)(m - base) : 64;
            for (int k = 0; k < width; ++k) {
                const double value = logs[(base + k) * n + j];
                for (int r = 0; r < 8; ++r) best[r] = fmax(best[r], fabs(tile[r * 64 + k] - value));
            }
        }
        __syncthreads();
    }
    if (j < n)
        for (int r = 0; r < 8; ++r)
            if (top + r < n) result[(top + r) * n + j] = top + r == j ? -1.0 : best[r] - weights[(top + r) * n + j];
}

// highest_ik = min over neighbours of ratio v_jk, lowest_ik = max over neighbours of v_jk / ratio. One block a row.
__global__ void room(
    const long long m, const long long *starts, const int *neighbour, const double *ratio, const double *columns,
    double *highest, double *lowest)
{
    const long long i = blockIdx.x;
    for (long long k = threadIdx.x; k < m; k += blockDim.x) {
        double high = 1e300, low = 0.0;
        for (long long p = starts[i]; p < starts[i + 1]; ++p) {
            const double value = columns[(long long)neighbour[p] * m + k];
            high = fmin(high, value * ratio[p]);
            low = fmax(low, value / ratio[p]);
        }
        highest[i * m + k] = high;
        lowest[i * m + k] = low;
    }
}

}
