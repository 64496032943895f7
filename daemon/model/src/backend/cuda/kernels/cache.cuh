// A row's sequence and where its keys and values lie.
#pragma once
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
