// Lets every row attend to what it sees.
//
// A row's positions are cut into chunks at fixed places, by what they are in the sequence and not by where a tree stores
// them. A chunk's sums run in one order and chunks are folded in order, so that what a row gets is the same to the bit
// whatever other rows the step has. Rows that find a chunk's positions at the same places read them once: up to sixteen
// queries, heads times rows, go through the matrix units together, each by itself.
#include "cache.cuh"

constexpr int CHUNK = 128;  // positions of a block
constexpr int THREADS = 128;
constexpr int QUERIES = 16; // that a block takes at once
constexpr int WIDEST = 256;

// Rows that find the chunk's positions at the same places.
struct Item {
    Row lead;  // the last of them, which sees all that the others see
    int first; // row
    int count; // rows, which follow each other; 0: nothing to do
    int chunk;
    int pad;
};

constexpr int STATISTICS = 4; // before a chunk's sums: the greatest score, the sum of the weights, and room

struct AttendArgs {
    const float *q; // [rows, heads, head_dim]
    half *out;      // [rows, heads * head_dim], by row_place
    const Row *rows;
    const Item *items;
    const uint32_t *ancestors;
    float *partials; // [rows, heads, chunks, STATISTICS + head_dim]
    uint32_t *done;  // [rows, blocks along y], zero before and after
    int heads;
    int kv_heads;
    int head_dim;
    int layer;
    int window; // 0: all
    int chunks; // that partials have room for
    int groups; // of eight rows
    int pad;
};

// What a block needs to know of a row.
struct Seen {
    int position;
    int oldest;
    int first_chunk;
    int chunks;
    bool here; // whether it sees something of this chunk
};

extern "C" __global__ void __launch_bounds__(THREADS) attend(const __grid_constant__ AttendArgs args) {
    let_next_start();
    const int i = threadIdx.x, warp = i / 32, lane = i % 32, g = lane / 4, t = lane % 4;
    const int dim = args.head_dim, blocks = (dim + 63) / 64, shared = args.heads / args.kv_heads;
    const int parts = (shared + QUERIES - 1) / QUERIES, kv_head = blockIdx.y / parts;
    const int head0 = kv_head * shared + blockIdx.y % parts * QUERIES;
    const int width = min(QUERIES, (kv_head + 1) * shared - head0);
    extern __shared__ __align__(16) uint8_t room[];
    __shared__ Seen seen[QUERIES];
    __shared__ float greatest[4][QUERIES], totals[4][QUERIES];
    __shared__ bool last[QUERIES];
    const int q_pitch = blocks * 64 + 8, v_pitch = dim + 8, octets = dim / 8;
    half *q = reinterpret_cast<half *>(room), *p = q + QUERIES * q_pitch, *v = p + QUERIES * (CHUNK + 8);

    // What a step is told lies there before its first kernel starts.
    const Item item = args.items[blockIdx.x];
    wait_for_others();
    if (item.count == 0) return;
    const Row &lead = item.lead;
    const int queries = item.count * width;
    // A position that no row sees counts nothing, and is read where a number is.
    const auto place = [&](int at) {
        const int position = item.chunk * CHUNK + at;
        if (position > lead.position) return lead.place;
        if (lead.line < 0 || position < lead.base) return position;
        return lead.base + (int)args.ancestors[lead.line + position - lead.base];
    };

    const half *keys = entry(lead, args.layer, 0, args.kv_heads, kv_head, 0, dim);
    const half *values = entry(lead, args.layer, 1, args.kv_heads, kv_head, 0, dim);
    uint4 k[4][2];
    const half *key[4];
#pragma unroll
    for (int j = 0; j < 4; j++) key[j] = keys + (size_t)place(warp * 32 + j * 8 + g) * dim + 16 * t;
    const auto load = [&](int b) {
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                k[j][h] = b * 64 + 16 * t + 8 * h < dim ? reinterpret_cast<const uint4 *>(key[j] + b * 64)[h] : make_uint4(0, 0, 0, 0);
    };
    load(0);
    const int lanes = THREADS / octets, octet = i % octets;
    if (i < lanes * octets)
        for (int at = i / octets; at < CHUNK; at += lanes)
            copy_async<16>(v + at * v_pitch + octet * 8, values + (size_t)place(at) * dim + octet * 8);
    commit_copies();
    if (i < item.count) {
        const Row row = args.rows[item.first + i];
        const int oldest = args.window ? max(0, row.position + 1 - args.window) : 0, first_chunk = oldest / CHUNK;
        const int chunks = row.position / CHUNK + 1 - first_chunk;
        seen[i] = {row.position, oldest, first_chunk, chunks, item.chunk >= first_chunk && item.chunk < first_chunk + chunks};
    }
    {
        // Eight threads a query.
        const int m = i / 8, r = m / width;
        const float *from = args.q + ((size_t)(item.first + r) * args.heads + head0 + m - r * width) * dim;
        for (int d = i % 8 * 4; d < blocks * 64; d += 32) {
            const bool there = m < queries && d < dim;
            const float4 x = there ? *reinterpret_cast<const float4 *>(from + d) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            *reinterpret_cast<uint2 *>(q + m * q_pitch + d) =
                make_uint2(bits(__halves2half2(to_half(x.x), to_half(x.y))), bits(__halves2half2(to_half(x.z), to_half(x.w))));
        }
    }
    __syncthreads();

    // Scores of a warp's 32 positions: lane 4g + t holds, of each 64 elements, 16t..16t+15 of query g and of position g.
    float s[4][4] = {};
    for (int b = 0; b < blocks; b++) {
        if (b > 0) load(b);
        uint4 lower[2], upper[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            lower[h] = reinterpret_cast<const uint4 *>(q + g * q_pitch + b * 64 + 16 * t)[h];
            upper[h] = reinterpret_cast<const uint4 *>(q + (g + 8) * q_pitch + b * 64 + 16 * t)[h];
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                multiply(s[j], lower[h].x, upper[h].x, lower[h].y, upper[h].y, k[j][h].x, k[j][h].y);
                multiply(s[j], lower[h].z, upper[h].z, lower[h].w, upper[h].w, k[j][h].z, k[j][h].w);
            }
    }

    // Of the query g the first two of four scores, of the query g + 8 the others.
    const int of[2] = {g / width, (g + 8) / width};
#pragma unroll
    for (int u = 0; u < 2; u++) {
        const bool there = g + 8 * u < queries;
        const int newest = there ? seen[of[u]].position : -1, oldest = there ? seen[of[u]].oldest : 0;
        float most = -INFINITY;
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int c = 0; c < 2; c++) {
                const int position = item.chunk * CHUNK + warp * 32 + j * 8 + 2 * t + c;
                if (position > newest || position < oldest) s[j][2 * u + c] = -INFINITY;
                most = fmaxf(most, s[j][2 * u + c]);
            }
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 2));
        if (t == 0) greatest[warp][g + 8 * u] = most;
    }
    __syncthreads();
    float most[2];
#pragma unroll
    for (int u = 0; u < 2; u++) {
        const int m = g + 8 * u;
        most[u] = fmaxf(fmaxf(greatest[0][m], greatest[1][m]), fmaxf(greatest[2][m], greatest[3][m]));
        float total = 0.0f;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            half weight[2];
#pragma unroll
            for (int c = 0; c < 2; c++) {
                const float score = s[j][2 * u + c];
                weight[c] = __float2half(score == -INFINITY ? 0.0f : __expf(score - most[u]));
                total += __half2float(weight[c]);
            }
            *reinterpret_cast<half2 *>(p + m * (CHUNK + 8) + warp * 32 + j * 8 + 2 * t) = __halves2half2(weight[0], weight[1]);
        }
        total += __shfl_xor_sync(0xffffffff, total, 1);
        total += __shfl_xor_sync(0xffffffff, total, 2);
        if (t == 0) totals[warp][m] = total;
    }
    wait_for_copies<0>();
    __syncthreads();

    // A warp takes every fourth eight elements of the values.
    float sum[WIDEST / 32][4] = {};
#pragma unroll 2
    for (int k = 0; k < CHUNK; k += 16) {
        uint32_t a[4];
        load_matrices(a, p + lane % 16 * (CHUNK + 8) + k + lane / 16 * 8);
#pragma unroll
        for (int j = 0; j < WIDEST / 32; j++) {
            if (warp + 4 * j >= octets) break;
            uint32_t b[2];
            load_turned_matrices(b, v + (k + lane % 16) * v_pitch + (warp + 4 * j) * 8);
            multiply(sum[j], a[0], a[1], a[2], a[3], b[0], b[1]);
        }
    }
    bool several = false;
#pragma unroll
    for (int u = 0; u < 2; u++) {
        const int m = g + 8 * u, r = of[u];
        if (m >= queries || !seen[r].here) continue;
        const int row = item.first + r, head = head0 + m - r * width;
        const float total = (totals[0][m] + totals[1][m]) + (totals[2][m] + totals[3][m]);
        const bool alone = seen[r].chunks == 1;
        several |= !alone;
        float *partial = args.partials + (((size_t)row * args.heads + head) * args.chunks + item.chunk - seen[r].first_chunk) * (STATISTICS + dim);
        if (!alone && warp == 0 && t == 0) *reinterpret_cast<float2 *>(partial) = make_float2(most[u], total);
#pragma unroll
        for (int j = 0; j < WIDEST / 32; j++) {
            if (warp + 4 * j >= octets) break;
            const float x = sum[j][2 * u], y = sum[j][2 * u + 1];
            const int d = (warp + 4 * j) * 8 + 2 * t;
            if (alone) {
                *reinterpret_cast<half2 *>(args.out + row_place(row, head * dim + d, args.groups)) =
                    __halves2half2(to_half(x / total), to_half(y / total));
            } else {
                *reinterpret_cast<float2 *>(partial + STATISTICS + d) = make_float2(x, y);
            }
        }
    }
    if (!__syncthreads_or(several)) return;

    // The block that ends a row's last chunk folds all of them.
    __threadfence();
    __syncthreads();
    if (i < item.count) {
        last[i] = false;
        if (seen[i].here && seen[i].chunks > 1) {
            uint32_t *done = args.done + (size_t)(item.first + i) * gridDim.y + blockIdx.y;
            last[i] = atomicAdd(done, 1) == (uint32_t)seen[i].chunks - 1;
            if (last[i]) *done = 0;
        }
    }
    __syncthreads();
    __threadfence();
    // Sixteen threads a query, four elements each; eight chunks are on their way at once.
    constexpr int AT_ONCE = 8;
    for (int m = i / 16; m < queries; m += THREADS / 16) {
        const int r = m / width, row = item.first + r, head = head0 + m - r * width, chunks = seen[r].chunks;
        if (!last[r]) continue;
        const float *partial = args.partials + ((size_t)row * args.heads + head) * args.chunks * (STATISTICS + dim);
        for (int d = i % 16 * 4; d < dim; d += 64) {
            float top = -INFINITY, total = 0.0f;
            float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            for (int c0 = 0; c0 < chunks; c0 += AT_ONCE) {
                float2 of_chunk[AT_ONCE];
                float4 x[AT_ONCE];
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    of_chunk[u] = make_float2(-INFINITY, 0.0f);
                    x[u] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                    if (c0 + u >= chunks) continue;
                    const float *from = partial + (c0 + u) * (STATISTICS + dim);
                    of_chunk[u] = __ldcg(reinterpret_cast<const float2 *>(from));
                    x[u] = __ldcg(reinterpret_cast<const float4 *>(from + STATISTICS + d));
                }
                float high = top;
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) high = fmaxf(high, of_chunk[u].x);
                const float kept = __expf(top - high);
                total *= kept;
                value = make_float4(value.x * kept, value.y * kept, value.z * kept, value.w * kept);
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    const float factor = __expf(of_chunk[u].x - high);
                    total = fmaf(factor, of_chunk[u].y, total);
                    value.x = fmaf(factor, x[u].x, value.x);
                    value.y = fmaf(factor, x[u].y, value.y);
                    value.z = fmaf(factor, x[u].z, value.z);
                    value.w = fmaf(factor, x[u].w, value.w);
                }
                top = high;
            }
            *reinterpret_cast<uint2 *>(args.out + row_place(row, head * dim + d, args.groups)) =
                make_uint2(bits(__halves2half2(to_half(value.x / total), to_half(value.y / total))),
                           bits(__halves2half2(to_half(value.z / total), to_half(value.w / total))));
        }
    }
}
