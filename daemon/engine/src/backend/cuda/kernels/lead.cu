// What leads in a row of logits, so that most of it never has to leave the device.
#include "layout.cuh"

struct LeadArgs {
    const float *logits; // [rows, vocabulary]
    float *out;          // [rows, 2 * LEADING + 4]: logits, tokens as bits, the sum of e^(logit - highest), room
    int vocabulary;
};

constexpr int LEADING = 4;
constexpr int THREADS = 1024;

// Whether a comes before b: the higher logit, of equal ones the lower token.
__device__ inline bool before(float a, uint32_t token_a, float b, uint32_t token_b) {
    return a > b || (a == b && token_a < token_b);
}

// A block takes a row. NaN counts as negative infinity; where nothing is above that, tokens are 0.
extern "C" __global__ void __launch_bounds__(THREADS) lead(const __grid_constant__ LeadArgs args) {
    let_next_start();
    wait_for_others();
    __shared__ float highs[32], sums[32];
    __shared__ uint32_t tokens[32];
    const float *logits = args.logits + (size_t)blockIdx.x * args.vocabulary;
    float *out = args.out + (size_t)blockIdx.x * (2 * LEADING + 4);
    const int i = threadIdx.x, lane = i % 32, warp = i / 32;

    // Each thread: its own leaders, in order, and its sum relative to the highest of them.
    float top[LEADING], sum = 0.0f;
    uint32_t token[LEADING];
#pragma unroll
    for (int h = 0; h < LEADING; h++) {
        top[h] = -INFINITY;
        token[h] = 0;
    }
    constexpr int AT_ONCE = 8; // on their way
    for (int from = i; from < args.vocabulary; from += AT_ONCE * THREADS) {
        float x[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) x[u] = from + u * THREADS < args.vocabulary ? logits[from + u * THREADS] : -INFINITY;
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            if (!(x[u] > -INFINITY)) continue;
            if (x[u] > top[0]) sum *= __expf(top[0] - x[u]);
            if (x[u] > top[LEADING - 1]) {
                float v = x[u];
                uint32_t t = from + u * THREADS;
#pragma unroll
                for (int h = 0; h < LEADING; h++) {
                    if (v > top[h]) {
                        const float other = top[h];
                        const uint32_t other_token = token[h];
                        top[h] = v;
                        token[h] = t;
                        v = other;
                        t = other_token;
                    }
                }
            }
            sum += __expf(x[u] - top[0]);
        }
    }

    // The block's leaders, one after the other; who has it goes on with its next.
    const float mine = top[0];
    float highest = 0.0f;
#pragma unroll
    for (int place = 0; place < LEADING; place++) {
        float v = top[0];
        uint32_t t = token[0];
        for (int s = 16; s > 0; s /= 2) {
            const float other = __shfl_xor_sync(0xffffffff, v, s);
            const uint32_t other_token = __shfl_xor_sync(0xffffffff, t, s);
            if (before(other, other_token, v, t)) {
                v = other;
                t = other_token;
            }
        }
        if (lane == 0) {
            highs[warp] = v;
            tokens[warp] = t;
        }
        __syncthreads();
        v = highs[lane];
        t = tokens[lane];
        for (int s = 16; s > 0; s /= 2) {
            const float other = __shfl_xor_sync(0xffffffff, v, s);
            const uint32_t other_token = __shfl_xor_sync(0xffffffff, t, s);
            if (before(other, other_token, v, t)) {
                v = other;
                t = other_token;
            }
        }
        if (place == 0) highest = v;
        if (i == 0) {
            out[place] = v;
            out[LEADING + place] = __uint_as_float(t);
        }
        if (v > -INFINITY && top[0] == v && token[0] == t) {
#pragma unroll
            for (int h = 0; h + 1 < LEADING; h++) {
                top[h] = top[h + 1];
                token[h] = token[h + 1];
            }
            top[LEADING - 1] = -INFINITY;
            token[LEADING - 1] = 0;
        }
        __syncthreads();
    }

    // Sums of all threads, in one order.
    float total = sum > 0.0f ? sum * __expf(mine - highest) : 0.0f;
    for (int s = 16; s > 0; s /= 2) total += __shfl_xor_sync(0xffffffff, total, s);
    if (lane == 0) sums[warp] = total;
    __syncthreads();
    total = sums[lane];
    for (int s = 16; s > 0; s /= 2) total += __shfl_xor_sync(0xffffffff, total, s);
    if (i == 0) out[2 * LEADING] = total;
}
