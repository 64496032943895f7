// Turns queries and keys, stores keys and values, and lets every row attend to what it sees.
//
// A row's positions are cut into chunks at fixed places, by what they are in the sequence and not by where a tree stores
// them. A chunk's sums run in one order and chunks are folded in order, so that what a row gets is the same to the bit
// whatever other rows the step has.
#include "layout.cuh"

struct Row {
    half *cache; // [layers, keys and values, kv_heads, capacity, head_dim]
    int capacity;
    int place;    // where its own entry is stored
    int position; // in the sequence
    int base;     // positions that are stored in order
    int line;     // where `ancestors` lists the places, less the base, of the later ones; -1: in order too
    int pad;
};

__device__ inline half *entry(const Row &row, int layer, int values, int kv_heads, int head, int place, int head_dim) {
    return row.cache + ((((size_t)layer * 2 + values) * kv_heads + head) * row.capacity + place) * head_dim;
}

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
    wait_for_others();
    __shared__ float sums[8];
    const Row row = args.rows[blockIdx.y];
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

constexpr int CHUNK = 128; // positions of a block, and its threads
constexpr int SHARE = 4;   // query heads that a block takes at once
constexpr int WIDEST = 256;

struct AttendArgs {
    const float *q; // [rows, heads, head_dim]
    half *out;
    const Row *rows;
    const uint32_t *ancestors;
    float *partials; // [rows, heads, chunks, 2 + head_dim]
    uint32_t *done;  // [rows, blocks along y], zero before and after
    int heads;
    int kv_heads;
    int head_dim;
    int layer;
    int window; // 0: all
    int chunks; // that partials have room for
};

// Eight elements of a key or value.
__device__ inline void eight(const uint4 raw, float *out) {
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int p = 0; p < 4; p++) {
        const float2 v = __half22float2(halves(words[p]));
        out[2 * p] = v.x;
        out[2 * p + 1] = v.y;
    }
}

extern "C" __global__ void __launch_bounds__(CHUNK) attend(const __grid_constant__ AttendArgs args) {
    let_next_start();
    wait_for_others();
    __shared__ __align__(16) float q[SHARE][WIDEST], weight[CHUNK][SHARE], sums[CHUNK * 8][SHARE];
    __shared__ float warps[2][4][SHARE];
    __shared__ int places[CHUNK];
    __shared__ bool last;
    const Row row = args.rows[blockIdx.z];
    const int oldest = args.window ? max(0, row.position + 1 - args.window) : 0;
    const int first_chunk = oldest / CHUNK, chunk = first_chunk + blockIdx.x, i = threadIdx.x;
    const int chunks = row.position / CHUNK + 1 - first_chunk;
    if ((int)blockIdx.x >= chunks) return;
    const int shared = args.heads / args.kv_heads, groups = (shared + SHARE - 1) / SHARE;
    const int kv_head = blockIdx.y / groups, head0 = kv_head * shared + blockIdx.y % groups * SHARE;
    const int count = min(SHARE, (kv_head + 1) * shared - head0), dim = args.head_dim;

    // Heads that are not there are zero, so that all loops have one shape.
    for (int e = i; e < SHARE * dim; e += CHUNK)
        q[e / dim][e % dim] = e < count * dim ? args.q[((size_t)blockIdx.z * args.heads + head0) * dim + e] : 0.0f;
    const int position = chunk * CHUNK + i;
    const bool seen = position >= oldest && position <= row.position;
    int place = seen ? position : row.place;
    if (seen && position >= row.base && row.line >= 0) place = row.base + args.ancestors[row.line + position - row.base];
    places[i] = place;
    __syncthreads();

    float score[SHARE] = {0.0f, 0.0f, 0.0f, 0.0f};
    const uint4 *key = reinterpret_cast<const uint4 *>(entry(row, args.layer, 0, args.kv_heads, kv_head, place, dim));
    for (int d = 0; d < dim / 8; d += 8) {
        uint4 raw[8];
#pragma unroll
        for (int u = 0; u < 8; u++) raw[u] = d + u < dim / 8 ? key[d + u] : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int u = 0; u < 8; u++) {
            if (d + u >= dim / 8) continue;
            float k[8];
            eight(raw[u], k);
#pragma unroll
            for (int h = 0; h < SHARE; h++) {
                const float4 a = reinterpret_cast<const float4 *>(q[h])[(d + u) * 2];
                const float4 b = reinterpret_cast<const float4 *>(q[h])[(d + u) * 2 + 1];
                score[h] += k[0] * a.x + k[1] * a.y + k[2] * a.z + k[3] * a.w + k[4] * b.x + k[5] * b.y + k[6] * b.z + k[7] * b.w;
            }
        }
    }
    float most[SHARE], total[SHARE];
#pragma unroll
    for (int h = 0; h < SHARE; h++) {
        float v = seen ? score[h] : -INFINITY;
        for (int s = 16; s > 0; s /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, s));
        if (i % 32 == 0) warps[0][i / 32][h] = v;
    }
    __syncthreads();
#pragma unroll
    for (int h = 0; h < SHARE; h++) {
        most[h] = fmaxf(fmaxf(warps[0][0][h], warps[0][1][h]), fmaxf(warps[0][2][h], warps[0][3][h]));
        float v = seen ? __expf(score[h] - most[h]) : 0.0f;
        weight[i][h] = v;
        for (int s = 16; s > 0; s /= 2) v += __shfl_xor_sync(0xffffffff, v, s);
        if (i % 32 == 0) warps[1][i / 32][h] = v;
    }
    __syncthreads();
#pragma unroll
    for (int h = 0; h < SHARE; h++)
        total[h] = (warps[1][0][h] + warps[1][1][h]) + (warps[1][2][h] + warps[1][3][h]);

    // Each thread takes eight elements of every so-manieth position.
    const int octets = dim / 8, lanes = CHUNK / octets, lane = i / octets, octet = i % octets;
    float sum[8][SHARE];
#pragma unroll
    for (int e = 0; e < 8; e++)
#pragma unroll
        for (int h = 0; h < SHARE; h++) sum[e][h] = 0.0f;
    const uint4 *values = reinterpret_cast<const uint4 *>(entry(row, args.layer, 1, args.kv_heads, kv_head, 0, dim));
    for (int p0 = lane; p0 < CHUNK && lane < lanes; p0 += 8 * lanes) {
        uint4 raw[8];
#pragma unroll
        for (int u = 0; u < 8; u++) {
            const int p = p0 + u * lanes;
            raw[u] = p < CHUNK ? values[(size_t)places[p] * octets + octet] : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (int u = 0; u < 8; u++) {
            const int p = p0 + u * lanes;
            if (p >= CHUNK) continue;
            float v[8];
            eight(raw[u], v);
            const float4 w = *reinterpret_cast<const float4 *>(weight[p]);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                sum[e][0] = fmaf(w.x, v[e], sum[e][0]);
                sum[e][1] = fmaf(w.y, v[e], sum[e][1]);
                sum[e][2] = fmaf(w.z, v[e], sum[e][2]);
                sum[e][3] = fmaf(w.w, v[e], sum[e][3]);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < 8; e++)
        *reinterpret_cast<float4 *>(sums[i * 8 + e]) = make_float4(sum[e][0], sum[e][1], sum[e][2], sum[e][3]);
    if (i == 0)
        for (int h = 0; h < SHARE; h++) {
            warps[0][0][h] = most[h];
            warps[1][0][h] = total[h];
        }
    __syncthreads();
    for (int e = i; e < count * dim; e += CHUNK) {
        const int h = e / dim, d = e % dim;
        float value = 0.0f;
        for (int l = 0; l < lanes; l++) value += sums[l * dim + d][h];
        const size_t at = (size_t)blockIdx.z * args.heads + head0 + h;
        if (chunks == 1) {
            args.out[at * dim + d] = to_half(value / warps[1][0][h]);
        } else {
            float *partial = args.partials + (at * args.chunks + blockIdx.x) * (2 + dim);
            if (d == 0) {
                partial[0] = warps[0][0][h];
                partial[1] = warps[1][0][h];
            }
            partial[2 + d] = value;
        }
    }
    if (chunks == 1) return;

    // The block that ends last folds all of them.
    __threadfence();
    __syncthreads();
    uint32_t *done = args.done + (size_t)blockIdx.z * gridDim.y + blockIdx.y;
    if (i == 0) last = atomicAdd(done, 1) == (uint32_t)chunks - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    if (i == 0) *done = 0;
    for (int e = i; e < count * dim; e += CHUNK) {
        const int h = e / dim, d = e % dim;
        const size_t at = (size_t)blockIdx.z * args.heads + head0 + h;
        const float *partial = args.partials + at * args.chunks * (2 + dim);
        float top = -INFINITY, sum = 0.0f, value = 0.0f;
        for (int c = 0; c < chunks; c++) top = fmaxf(top, __ldcg(partial + c * (2 + dim)));
        for (int c = 0; c < chunks; c++) {
            const float *p = partial + c * (2 + dim);
            const float factor = __expf(__ldcg(p) - top);
            sum = fmaf(factor, __ldcg(p + 1), sum);
            value = fmaf(factor, __ldcg(p + 2 + d), value);
        }
        args.out[at * dim + d] = to_half(value / sum);
    }
}
