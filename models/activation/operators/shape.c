#include "models/activation/operators/trace.h"

ZpTraceShape
zp_shape(int rank, const gint64 *sizes)
{
    ZpTraceShape shape = {.rank = rank};
    gint64 stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        shape.size[i] = sizes[i];
        shape.stride[i] = stride;
        stride *= MAX(sizes[i], 1);
    }
    return shape;
}

gint64
zp_shape_elements(const ZpTraceShape *shape)
{
    gint64 elements = 1;
    for (int i = 0; i < shape->rank; i++)
        elements *= shape->size[i];
    return elements;
}

gboolean
zp_shape_equal(const ZpTraceShape *a, const ZpTraceShape *b)
{
    if (a->rank != b->rank)
        return FALSE;
    for (int i = 0; i < a->rank; i++)
        if (a->size[i] != b->size[i])
            return FALSE;
    return TRUE;
}

gboolean
zp_shape_contiguous(const ZpTraceShape *shape)
{
    gint64 expected = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        if (shape->size[i] == 1)
            continue;
        if (shape->stride[i] != expected)
            return FALSE;
        expected *= shape->size[i];
    }
    return TRUE;
}

/* Strides of one input seen at the result's rank; broadcast dimensions have stride 0. */
static void
aligned_strides(const ZpTraceShape *input, const ZpTraceShape *result, gint64 *strides)
{
    int shift = result->rank - input->rank;
    for (int i = 0; i < result->rank; i++) {
        gboolean broadcast = i < shift || (input->size[i - shift] == 1 && result->size[i] != 1);
        strides[i] = broadcast ? 0 : input->stride[i - shift];
    }
}

/* TensorIteratorBase::reorder_dimensions: positive when dimension a should lie outside b. */
static int
compare_dimensions(gint64 strides[][ZP_TRACE_RANK], int count, const ZpTraceShape *result, int a,
                   int b)
{
    for (int i = 0; i < count; i++) {
        gint64 first = strides[i][a], second = strides[i][b];
        if (first == 0 || second == 0)
            continue;
        if (first != second)
            return first < second ? -1 : 1;
        if (result->size[a] > result->size[b])
            return 1;
    }
    return 0;
}

static void
sort_dimensions(gint64 strides[][ZP_TRACE_RANK], int count, const ZpTraceShape *result, int *order)
{
    for (int i = 0; i < result->rank; i++)
        order[i] = result->rank - 1 - i;
    for (int i = 1; i < result->rank; i++) {
        int moved = i;
        for (int j = i - 1; j >= 0; j--) {
            int comparison = compare_dimensions(strides, count, result, order[j], order[moved]);
            if (comparison < 0)
                break;
            if (comparison == 0)
                continue;
            int other = order[j];
            order[j] = order[moved];
            order[moved] = other;
            moved = j;
        }
    }
}

ZpTraceShape
zp_shape_elementwise(ZpTensor *const *tensors, int count)
{
    ZpTraceShape result = {0};
    gboolean contiguous = TRUE;
    for (int i = 0; i < count; i++)
        result.rank = MAX(result.rank, tensors[i]->shape.rank);
    for (int d = 0; d < result.rank; d++) {
        result.size[d] = 1;
        for (int i = 0; i < count; i++) {
            int own = d - (result.rank - tensors[i]->shape.rank);
            if (own >= 0 && tensors[i]->shape.size[own] != 1)
                result.size[d] = tensors[i]->shape.size[own];
        }
    }
    gint64 strides[ZP_TRACE_INPUTS][ZP_TRACE_RANK];
    for (int i = 0; i < count; i++) {
        aligned_strides(&tensors[i]->shape, &result, strides[i]);
        contiguous = contiguous && zp_shape_equal(&tensors[i]->shape, &result) &&
                     zp_shape_contiguous(&tensors[i]->shape);
    }
    if (contiguous)
        return zp_shape(result.rank, result.size);
    int order[ZP_TRACE_RANK];
    sort_dimensions(strides, count, &result, order);
    gint64 stride = 1;
    for (int i = 0; i < result.rank; i++) {
        result.stride[order[i]] = stride;
        stride *= MAX(result.size[order[i]], 1);
    }
    return result;
}

gboolean
zp_shape_view(const ZpTraceShape *from, int rank, const gint64 *sizes, ZpTraceShape *view)
{
    *view = (ZpTraceShape){.rank = rank};
    memcpy(view->size, sizes, (gsize)rank * sizeof *sizes);
    if (from->rank == 0 || zp_shape_elements(from) == 0) {
        *view = zp_shape(rank, sizes);
        return TRUE;
    }
    int to = rank - 1;
    gint64 base = from->stride[from->rank - 1], have = 1, want = 1;
    for (int d = from->rank - 1; d >= 0; d--) {
        have *= from->size[d];
        gboolean chunk_ends =
            d == 0 || (from->size[d - 1] != 1 && from->stride[d - 1] != have * base);
        if (!chunk_ends)
            continue;
        while (to >= 0 && (want < have || view->size[to] == 1)) {
            view->stride[to] = want * base;
            want *= view->size[to];
            to--;
        }
        if (want != have)
            return FALSE;
        if (d > 0) {
            base = from->stride[d - 1];
            have = want = 1;
        }
    }
    return to < 0;
}
