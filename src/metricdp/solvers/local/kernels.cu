// Iterations and repair on windows, one block of threads per row or per column. Entries lie row by row; `places` lists
// them column by column. The window of a block lies in shared memory, or in `spill` where it is too wide for that.

typedef unsigned short half_t;

// Where the sum over a warp begins: at half of it, or of the block where that is smaller (a power of two).
__device__ int first_offset() { return blockDim.x < 32 ? blockDim.x >> 1 : 16; }

template <typename T> __device__ T block_sum(T value, T* scratch) {
    for (int offset = first_offset(); offset > 0; offset >>= 1) value += __shfl_down_sync(0xffffffffu, value, offset);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    __syncthreads();
    if (lane == 0) scratch[warp] = value;
    __syncthreads();
    T total = 0;
    for (int w = 0; w < (int)((blockDim.x + 31) >> 5); ++w) total += scratch[w];
    return total;
}

__device__ float block_max(float value, float* scratch) {
    for (int offset = first_offset(); offset > 0; offset >>= 1)
        value = fmaxf(value, __shfl_down_sync(0xffffffffu, value, offset));
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    __syncthreads();
    if (lane == 0) scratch[warp] = value;
    __syncthreads();
    float largest = scratch[0];
    for (int w = 1; w < (int)((blockDim.x + 31) >> 5); ++w) largest = fmaxf(largest, scratch[w]);
    return largest;
}

extern "C" __global__ void row_step(const long long* starts, const float* cost, const float* step, float price,
                                    float weight, float share, float* exchange, float* state, const float* anchor,
                                    float* level, int measured, float* point, double* error) {
    extern __shared__ float held[];
    __shared__ float scratch[32], counts[32];
    long long i = blockIdx.x, begin = starts[i];
    int count = (int)(starts[i + 1] - begin);
    float pace = step[i] / weight, largest = -1e30f;
    for (int j = threadIdx.x; j < count; j += blockDim.x) {
        float value = state[begin + j] - pace * (price * cost[begin + j] + exchange[begin + j]);
        held[j] = value;
        largest = fmaxf(largest, value);
    }
    largest = block_max(largest, scratch);
    float lowest = fmaxf(fminf(level[i], largest - 1e-6f), largest - 1.0f);
    for (int turn = 0; turn < 30; ++turn) {  // Newton's method for sum max(0, value - level) = 1
        float total = 0.0f, above = 0.0f;
        for (int j = threadIdx.x; j < count; j += blockDim.x) {
            float excess = held[j] - lowest;
            if (excess > 0.0f) { total += excess; above += 1.0f; }
        }
        total = block_sum(total, scratch);
        above = block_sum(above, counts);
        float move = above > 0.0f ? (total - 1.0f) / above : largest - 1.0f - lowest;
        lowest += move;
        if (fabsf(move) < 1e-7f) break;
    }
    float moved = 0.0f;
    for (int j = threadIdx.x; j < count; j += blockDim.x) {
        float here = fmaxf(held[j] - lowest, 0.0f), before = state[begin + j];
        float reflected = here + here - before;
        exchange[begin + j] = reflected;
        state[begin + j] = share * reflected + (1.0f - share) * anchor[begin + j];
        if (measured) { point[begin + j] = here; moved += (here - before) * (here - before); }
    }
    if (measured) moved = block_sum(moved, scratch);
    if (threadIdx.x == 0) {
        level[i] = lowest;
        if (measured) error[i] = (double)moved * weight / step[i];
    }
}

extern "C" __global__ void column_step(const long long* column_starts, const int* places, const long long* edge_starts,
                                       const half_t* first, const half_t* second, const float* small, float* exchange,
                                       float* state, const float* anchor, float share, float weight, int measured,
                                       float* point, double* error) {
    extern __shared__ float window[];
    __shared__ float scratch[32];
    long long k = blockIdx.x, begin = column_starts[k];
    int count = (int)(column_starts[k + 1] - begin);
    float *values = window, *slope = window + count;
    for (int j = threadIdx.x; j < count; j += blockDim.x) {
        values[j] = exchange[places[begin + j]];
        slope[j] = 0.0f;
    }
    __syncthreads();
    float moved = 0.0f;
    for (long long t = edge_starts[k] + threadIdx.x; t < edge_starts[k + 1]; t += blockDim.x) {
        int u = first[t], v = second[t];
        float a = small[t], y = state[t], one = values[u], two = values[v], both = a * (one + two);
        float up = fmaxf(fmaxf(y, 0.0f) + weight * (both - two), 0.0f);
        float down = fmaxf(fmaxf(-y, 0.0f) + weight * (both - one), 0.0f);
        float here = up - down;
        if (measured) { point[t] = here; moved += (here - y) * (here - y); }
        y = share * (here + here - y) + (1.0f - share) * anchor[t];
        state[t] = y;
        up = fmaxf(y, 0.0f); down = fmaxf(-y, 0.0f); both = a * (up + down);
        if (both != 0.0f) { atomicAdd(slope + u, both - down); atomicAdd(slope + v, both - up); }
    }
    __syncthreads();
    for (int j = threadIdx.x; j < count; j += blockDim.x) exchange[places[begin + j]] = slope[j];
    if (measured) {
        moved = block_sum(moved, scratch);
        if (threadIdx.x == 0) error[k] = (double)moved / weight;
    }
}

extern "C" __global__ void dual_slopes(const long long* column_starts, const int* places, const long long* edge_starts,
                                       const half_t* first, const half_t* second, const float* small,
                                       const float* dual, float* exchange) {
    extern __shared__ float slope[];
    long long k = blockIdx.x, begin = column_starts[k];
    int count = (int)(column_starts[k + 1] - begin);
    for (int j = threadIdx.x; j < count; j += blockDim.x) slope[j] = 0.0f;
    __syncthreads();
    for (long long t = edge_starts[k] + threadIdx.x; t < edge_starts[k + 1]; t += blockDim.x) {
        float up = fmaxf(dual[t], 0.0f), down = fmaxf(-dual[t], 0.0f), both = small[t] * (up + down);
        atomicAdd(slope + first[t], both - down);
        atomicAdd(slope + second[t], both - up);
    }
    __syncthreads();
    for (int j = threadIdx.x; j < count; j += blockDim.x) exchange[places[begin + j]] = slope[j];
}

// A^T lambda of every entry in doubles, less `slack` times the size of its terms: whatever the order of the sum.
extern "C" __global__ void column_slopes(const long long* column_starts, const int* places,
                                         const long long* edge_starts, const half_t* first, const half_t* second,
                                         const int* edge, const double* factor, const double* ratio, const float* dual,
                                         double slack, double* slopes, double* spill) {
    extern __shared__ double sums[];
    long long k = blockIdx.x, begin = column_starts[k];
    int count = (int)(column_starts[k + 1] - begin);
    double *slope = spill ? spill + 2 * begin : sums, *terms = slope + count;
    for (int j = threadIdx.x; j < count; j += blockDim.x) { slope[j] = 0.0; terms[j] = 0.0; }
    __syncthreads();
    for (long long t = edge_starts[k] + threadIdx.x; t < edge_starts[k + 1]; t += blockDim.x) {
        double y = (double)dual[t];
        if (!isfinite(y) || y == 0.0) continue;
        double multiplier = factor[edge[t]] * fabs(y), other = ratio[edge[t]] * multiplier;
        int u = y > 0.0 ? first[t] : second[t], v = y > 0.0 ? second[t] : first[t];
        atomicAdd(slope + u, multiplier);
        atomicAdd(terms + u, multiplier);
        atomicAdd(slope + v, -other);
        atomicAdd(terms + v, other);
    }
    __syncthreads();
    for (int j = threadIdx.x; j < count; j += blockDim.x) slopes[places[begin + j]] = slope[j] - slack * terms[j];
}

extern "C" __global__ void least_reduced(const long long* starts, const double* cost, const double* slopes,
                                         double slack, const double* beyond, double* least) {
    __shared__ double scratch[32];
    long long i = blockIdx.x;
    double lowest = beyond[i];
    for (long long at = starts[i] + threadIdx.x; at < starts[i + 1]; at += blockDim.x)
        lowest = fmin(lowest, cost[at] + slopes[at] - slack * fabs(cost[at]));
    for (int offset = first_offset(); offset > 0; offset >>= 1)
        lowest = fmin(lowest, __shfl_down_sync(0xffffffffu, lowest, offset));
    if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = lowest;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < (int)((blockDim.x + 31) >> 5); ++w) lowest = fmin(lowest, scratch[w]);
        least[i] = lowest;
    }
}

// Raise every column until z_i >= decay z_j along all edges, then to its largest value across the rim.
extern "C" __global__ void close_columns(const long long* column_starts, const int* places,
                                         const long long* edge_starts, const half_t* first, const half_t* second,
                                         const int* edge, const long long* rim_starts, const half_t* rim,
                                         const int* rim_edge, const double* decay, double* values, double* background,
                                         double* spill) {
    extern __shared__ double held_window[];
    __shared__ int changed;
    __shared__ unsigned long long across;
    long long k = blockIdx.x, begin = column_starts[k];
    int count = (int)(column_starts[k + 1] - begin);
    double* cells = spill ? spill + begin : held_window;
    volatile double* held = cells;
    unsigned long long* bits = (unsigned long long*)cells;
    for (int j = threadIdx.x; j < count; j += blockDim.x) held[j] = values[places[begin + j]];
    if (threadIdx.x == 0) across = (unsigned long long)__double_as_longlong(1e-30);
    do {
        __syncthreads();
        if (threadIdx.x == 0) changed = 0;
        __syncthreads();
        for (long long t = edge_starts[k] + threadIdx.x; t < edge_starts[k + 1]; t += blockDim.x) {
            int u = first[t], v = second[t];
            double keep = decay[edge[t]], one = held[u], two = held[v];
            if (keep * two > one * (1.0 + 1e-15)) {
                atomicMax(bits + u, (unsigned long long)__double_as_longlong(keep * two));
                changed = 1;
            } else if (keep * one > two * (1.0 + 1e-15)) {
                atomicMax(bits + v, (unsigned long long)__double_as_longlong(keep * one));
                changed = 1;
            }
        }
        __syncthreads();
    } while (changed);
    for (long long t = rim_starts[k] + threadIdx.x; t < rim_starts[k + 1]; t += blockDim.x)
        atomicMax(&across, (unsigned long long)__double_as_longlong(decay[rim_edge[t]] * held[rim[t]]));
    __syncthreads();
    double floor = __longlong_as_double((long long)across);
    if (threadIdx.x == 0) background[k] = floor;
    for (int j = threadIdx.x; j < count; j += blockDim.x) values[places[begin + j]] = fmax(held[j], floor);
}

extern "C" __global__ void row_sums(const long long* starts, const int* columns, const double* values,
                                    const double* background, const double* loss, double all_background,
                                    double* totals, double* losses) {
    __shared__ double scratch[32];
    long long i = blockIdx.x;
    double near = 0.0, hidden = 0.0, paid = 0.0;
    for (long long at = starts[i] + threadIdx.x; at < starts[i + 1]; at += blockDim.x) {
        near += values[at];
        hidden += background[columns[at]];
        paid += values[at] * loss[at];
    }
    near = block_sum(near, scratch);
    hidden = block_sum(hidden, scratch);
    paid = block_sum(paid, scratch);
    if (threadIdx.x == 0) { totals[i] = near + (all_background - hidden); losses[i] = paid; }
}

// Scale rows towards a sum, every entry within what the rows of neighbours allow: no two nodes are neighbours.
extern "C" __global__ void balance_rows(const long long* nodes, const long long* starts, const int* columns,
                                        double* values, const double* background, const double* far, double target,
                                        const long long* neighbour_starts, const int* neighbours, const int* edge_of,
                                        const double* decay, double* lows, double* highs) {
    __shared__ double scratch[32];
    long long i = nodes[blockIdx.x], begin = starts[i];
    int size = (int)(starts[i + 1] - begin);
    const double* held = values + begin;
    double *low = lows + begin, *high = highs + begin;
    for (int j = threadIdx.x; j < size; j += blockDim.x) {
        int k = columns[begin + j];
        double least = 1e-32, most = 1e300;
        for (long long q = neighbour_starts[i]; q < neighbour_starts[i + 1]; ++q) {
            double keep = decay[edge_of[q]], other = background[k];
            long long first = starts[neighbours[q]], last = starts[neighbours[q] + 1], end = last;
            while (first < last) {  // the first entry from k on
                long long middle = (first + last) >> 1;
                if (columns[middle] < k) first = middle + 1; else last = middle;
            }
            if (first < end && columns[first] == k) other = values[first];
            least = fmax(least, keep * other);
            most = fmin(most, other / keep);
        }
        low[j] = least;
        high[j] = most;
    }
    double scale = 1.0, best = 1.0, closest = 1e300, below = 0.0, above = 1e300;
    for (int turn = 0; turn < 10; ++turn) {
        double total = 0.0, open = 0.0;
        for (int j = threadIdx.x; j < size; j += blockDim.x) {
            double value = scale * held[j];
            if (value <= low[j]) total += low[j];
            else if (value >= high[j]) total += high[j];
            else { total += value; open += held[j]; }
        }
        total = block_sum(total, scratch) + far[i];
        open = block_sum(open, scratch);
        if (fabs(total - target) < closest) { best = scale; closest = fabs(total - target); }
        if (closest < 1e-13 * target || open <= 0.0) break;
        if (total < target) below = scale; else above = scale;
        scale = fmin(fmax(scale + (target - total) / open, 0.7 * scale), 1.4 * scale);
        if (!(below < scale && scale < above)) scale = above < 1e300 ? 0.5 * (below + above) : 1.2 * below;
    }
    for (int j = threadIdx.x; j < size; j += blockDim.x)
        values[begin + j] = fmin(fmax(best * held[j], low[j]), high[j]);
}
