// What leads in a row of logits, so that most of it never has to leave the device.
#include "layout.cuh"

struct LeadArgs {
    const float *logits; // [rows, vocabulary]
    float *out;          // [rows, TOLD]: logits, tokens as bits, the sum of e^(logit - highest), room
    float *partials;     // [rows, SLICES, TOLD]
    uint32_t *done;      // [rows], zero before and after
    int vocabulary;
};

constexpr int LEADING = 4;
constexpr int TOLD = 2 * LEADING + 4;
constexpr int SLICES = 8; // of a row, a block each
constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;

// A logit and its token.
struct Leader {
    float x;
    uint32_t token;
};

// The first of two: the higher logit, of equal ones the lower token.
__device__ inline Leader first(Leader a, Leader b) {
    return b.x > a.x || (b.x == a.x && b.token < a.token) ? b : a;
}

// The first of a warp, known to all its lanes.
__device__ inline Leader warp_first(Leader a) {
    for (int s = 16; s > 0; s /= 2)
        a = first(a, Leader{__shfl_xor_sync(0xffffffff, a.x, s), __shfl_xor_sync(0xffffffff, a.token, s)});
    return a;
}

__device__ inline float warp_sum(float x) {
    for (int s = 16; s > 0; s /= 2) x += __shfl_xor_sync(0xffffffff, x, s);
    return x;
}

// NaN counts as negative infinity; where nothing is above that, tokens are 0.
extern "C" __global__ void __launch_bounds__(THREADS) lead(const __grid_constant__ LeadArgs args) {
    let_next_start();
    wait_for_others();
    __shared__ Leader firsts[WARPS];
    __shared__ float sums[WARPS];
    __shared__ bool last;
    const float *logits = args.logits + (size_t)blockIdx.y * args.vocabulary;
    float *partials = args.partials + (size_t)blockIdx.y * SLICES * TOLD, *partial = partials + blockIdx.x * TOLD;
    const int i = threadIdx.x, lane = i % 32, warp = i / 32;

    // Each thread: its own leaders, in order, and its sum relative to the first of them.
    Leader top[LEADING];
#pragma unroll
    for (int h = 0; h < LEADING; h++) top[h] = {-INFINITY, 0};
    float sum = 0.0f;
    constexpr int AT_ONCE = 4; // on their way
    for (int from = blockIdx.x * THREADS + i; from < args.vocabulary; from += AT_ONCE * SLICES * THREADS) {
        float x[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int at = from + u * SLICES * THREADS;
            x[u] = at < args.vocabulary ? logits[at] : -INFINITY;
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            if (!(x[u] > -INFINITY)) continue;
            if (x[u] > top[0].x) sum *= __expf(top[0].x - x[u]);
            if (x[u] > top[LEADING - 1].x) {
                Leader put = {x[u], (uint32_t)(from + u * SLICES * THREADS)};
#pragma unroll
                for (int h = 0; h < LEADING; h++) {
                    if (put.x > top[h].x) {
                        const Leader other = top[h];
                        top[h] = put;
                        put = other;
                    }
                }
            }
            sum += __expf(x[u] - top[0].x);
        }
    }

    // The block's leaders, one after the other; who has it goes on with its next.
    const float mine = top[0].x;
    float highest = 0.0f;
    for (int place = 0; place < LEADING; place++) {
        const Leader of_warp = warp_first(top[0]);
        if (lane == 0) firsts[warp] = of_warp;
        __syncthreads();
        const Leader of_all = warp_first(firsts[lane % WARPS]);
        if (place == 0) highest = of_all.x;
        if (i == 0) {
            partial[place] = of_all.x;
            partial[LEADING + place] = __uint_as_float(of_all.token);
        }
        if (top[0].x > -INFINITY && top[0].x == of_all.x && top[0].token == of_all.token) {
#pragma unroll
            for (int h = 0; h + 1 < LEADING; h++) top[h] = top[h + 1];
            top[LEADING - 1] = {-INFINITY, 0};
        }
        __syncthreads();
    }
    // All sums are made in one order.
    float total = warp_sum(sum > 0.0f ? sum * __expf(mine - highest) : 0.0f);
    if (lane == 0) sums[warp] = total;
    __syncthreads();
    if (i == 0) {
        total = 0.0f;
        for (int w = 0; w < WARPS; w++) total += sums[w];
        partial[2 * LEADING] = total;
        __threadfence();
        last = atomicAdd(args.done + blockIdx.y, 1) == SLICES - 1;
        if (last) args.done[blockIdx.y] = 0;
    }
    __syncthreads();
    if (!last || warp > 0) return;

    // The block that ends last finds the row's among the slices': a lane has one of each.
    static_assert(SLICES * LEADING == 32, "a candidate for each lane");
    __threadfence();
    const float *from = partials + lane / LEADING * TOLD;
    Leader candidate = {__ldcg(from + lane % LEADING), __float_as_uint(__ldcg(from + LEADING + lane % LEADING))};
    const float slice_highest = __ldcg(from), slice_sum = __ldcg(from + 2 * LEADING);
    float *out = args.out + (size_t)blockIdx.y * TOLD;
    for (int place = 0; place < LEADING; place++) {
        const Leader found = warp_first(candidate);
        if (place == 0) highest = found.x;
        if (lane == 0) {
            out[place] = found.x;
            out[LEADING + place] = __uint_as_float(found.token);
        }
        if (candidate.x == found.x && candidate.token == found.token) candidate = {-INFINITY, 0};
    }
    total = warp_sum(lane % LEADING == 0 && slice_sum > 0.0f ? slice_sum * __expf(slice_highest - highest) : 0.0f);
    if (lane == 0) out[2 * LEADING] = total;
}
