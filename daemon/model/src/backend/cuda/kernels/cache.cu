// What is written into a cache, kept in it and copied out of it.
#include "cache.cuh"

struct StoreArgs {
    float *q; // [rows, heads, head_dim], or null
    const float *k;
    const float *v;
    const Row *rows;
    const float *cos; // [positions, head_dim / 2]
    const float *sin;
    const float *q_norm; // or null
    const float *k_norm;
    float q_eps;
    float k_eps;
    float scale; // on queries
    int heads;
    int kv_heads;
    int head_dim;
    int layer;
    int halves; // elements i and i + d/2 turn together, or else 2i and 2i + 1
};

// A block takes one head of one row, a thread one pair of elements; of a key's head its value's too.
extern "C" __global__ void store(const __grid_constant__ StoreArgs args) {
    let_next_start();
    __shared__ float sums[8];
    const Row row = args.rows[blockIdx.y];
    wait_for_others();
    const int half_dim = args.head_dim / 2, i = threadIdx.x;
    const bool query = (int)blockIdx.x < args.heads, there = i < half_dim;
    const int head = query ? blockIdx.x : blockIdx.x - args.heads;
    if (query && !args.q) return;
    const size_t from = ((size_t)blockIdx.y * (query ? args.heads : args.kv_heads) + head) * args.head_dim;
    const float *x = (query ? args.q : args.k) + from;
    const int first = args.halves ? i : 2 * i, second = args.halves ? i + half_dim : 2 * i + 1;
    float a = there ? x[first] : 0.0f, b = there ? x[second] : 0.0f;
    const float *norm = query ? args.q_norm : args.k_norm;
    if (norm) {
        float sum = a * a + b * b;
        for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(0xffffffff, sum, s);
        if (i % 32 == 0) sums[i / 32] = sum;
        __syncthreads();
        sum = 0.0f;
        for (int w = 0; w < blockDim.x / 32; w++) sum += sums[w];
        float factor = rsqrtf(sum / args.head_dim + (query ? args.q_eps : args.k_eps));
        if (there) {
            a *= factor * norm[first];
            b *= factor * norm[second];
        }
    }
    if (!there) return;
    const float cos = args.cos[(size_t)row.position * half_dim + i], sin = args.sin[(size_t)row.position * half_dim + i];
    const float turned_a = a * cos - b * sin, turned_b = a * sin + b * cos;
    if (query) {
        args.q[from + first] = turned_a * args.scale;
        args.q[from + second] = turned_b * args.scale;
    } else {
        half *key = entry(row, args.layer, 0, args.kv_heads, head, row.place, args.head_dim);
        half *value = entry(row, args.layer, 1, args.kv_heads, head, row.place, args.head_dim);
        key[first] = to_half(turned_a);
        key[second] = to_half(turned_b);
        value[first] = to_half(args.v[from + first]);
        value[second] = to_half(args.v[from + second]);
    }
}

struct KeepArgs {
    half *cache; // [lines, capacity, head_dim]
    const uint32_t *offsets;
    int count;
    int from;
    int capacity;
    int head_dim;
};

// Offsets ascend and none is below its place, so that a thread that takes them in order overwrites nothing unread.
extern "C" __global__ void keep(const __grid_constant__ KeepArgs args) {
    let_next_start();
    wait_for_others();
    half *line = args.cache + (size_t)blockIdx.x * args.capacity * args.head_dim;
    for (int i = 0; i < args.count; i++)
        for (int d = threadIdx.x; d < args.head_dim; d += blockDim.x)
            line[(size_t)(args.from + i) * args.head_dim + d] = line[(size_t)(args.from + args.offsets[i]) * args.head_dim + d];
}

struct CopyArgs {
    const half *source; // [lines, source_capacity, head_dim]
    half *target;       // [lines, target_capacity, head_dim]
    int source_capacity;
    int target_capacity;
    int positions;
    int head_dim;
};

extern "C" __global__ void copy_positions(const __grid_constant__ CopyArgs args) {
    let_next_start();
    wait_for_others();
    const half *from = args.source + (size_t)blockIdx.x * args.source_capacity * args.head_dim;
    half *to = args.target + (size_t)blockIdx.x * args.target_capacity * args.head_dim;
    for (size_t i = threadIdx.x; i < (size_t)args.positions * args.head_dim; i += blockDim.x) to[i] = from[i];
}
