/* piece.c - see piece.h. */
#include "data/piece.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "util/min.h"
#include "util/sys.h"

enum {
    OBJECTS_MAX = 32,     /* open at a time for one read, with two descriptors each: of a loader's
                             eight threads half of the 1,024 that a process mostly has */
    STEP_BYTES = 1 << 20, /* decompressed at a time: so much is lost when it fails */
    LINE = 64,
    PAGE = 4096,
};

static uint64_t now_ns(void)
{
    return weir_sys->now_ns(WEIR_CLOCK_MONO);
}

static void count_read(struct weir_cost *cost, uint64_t bytes)
{
    int bucket = bytes ? 63 - __builtin_clzll(bytes) - 9 : 0;
    bucket = bucket < 0 ? 0 : bucket >= WEIR_READ_SIZES ? WEIR_READ_SIZES - 1 : bucket;
    cost->reads++;
    cost->read_bytes += bytes;
    cost->read_sizes[bucket]++;
}

/* ---- planning ---- */

static int fail_index(const struct weir_supply *supply, const char *why)
{
    return weir_fail(EBADMSG, "the index of '%s' is damaged: %s: make it anew",
                     weir_data_info_get(supply->data)->url, why);
}

/* Samples of a list begin at multiples of it: of a page where they may be read around the page
 * cache. */
static uint64_t list_step(const struct weir_supply *supply)
{
    return supply->once ? PAGE : LINE;
}

/* One more sample of a list. */
static int add_room(struct weir_piece *piece, const struct weir_supply *supply, uint64_t size)
{
    if (__builtin_add_overflow(piece->bytes, size, &piece->bytes) ||
        __builtin_add_overflow(piece->bytes, list_step(supply), &piece->bytes))
        return fail_index(supply, "its samples are too large");
    return 0;
}

int weir_piece_plan_list(struct weir_piece *piece, const struct weir_supply *supply,
                         uint64_t *numbers, uint64_t count)
{
    struct weir_piece plan = {.kind = WEIR_PIECE_LIST, .numbers = numbers, .count = count};
    plan.bytes = count * sizeof *plan.offs + list_step(supply);
    for (uint64_t i = 0; i < count; i++) {
        struct weir_place place;
        int code = weir_index_find(supply->index, numbers[i], &place);
        if (!code)
            code = add_room(&plan, supply, place.size);
        if (code)
            return code;
        plan.shard = i ? plan.shard : place.shard;
    }
    plan.bytes = weir_slab_room(plan.bytes);
    *piece = plan;
    return 0;
}

/* Every file is a sample. */
static int plan_files(struct weir_piece *piece, const struct weir_supply *supply)
{
    piece->kind = WEIR_PIECE_LIST;
    piece->bytes = piece->count * sizeof *piece->offs + list_step(supply);
    for (uint64_t i = 0; i < piece->count; i++) {
        struct weir_place place;
        int code = weir_index_find(supply->index, piece->first + i, &place);
        if (!code)
            code = add_room(piece, supply, place.size);
        if (code)
            return code;
    }
    return 0;
}

int weir_piece_plan(struct weir_piece *piece, const struct weir_supply *supply, uint64_t number,
                    uint64_t first, uint64_t count)
{
    struct weir_index_shard shard;
    struct weir_place head, tail;
    struct weir_piece plan = {.shard = number, .first = first, .count = count};
    weir_index_shard(supply->index, number, &shard);
    int code = 0;
    if (shard.codec[0] || supply->mapping == WEIR_MAPPING_ALL) {
        plan.kind = shard.codec[0] ? WEIR_PIECE_SHARD : WEIR_PIECE_MAP;
        plan.first = shard.first;
        plan.count = shard.samples;
        plan.bytes = shard.codec[0] ? shard.raw_bytes : 0;
        plan.end = shard.raw_bytes;
    } else if (shard.is_files) {
        code = plan_files(&plan, supply);
    } else {
        code = weir_index_find(supply->index, first, &head);
        if (!code)
            code = weir_index_find(supply->index, first + count - 1, &tail);
        if (code)
            return code;
        if (tail.off + tail.size < head.off)
            return weir_fail(EBADMSG,
                             "the index of '%s' is damaged: sample %" PRIu64 " lies before %" PRIu64
                             ": make it anew",
                             weir_data_info_get(supply->data)->url, first + count - 1, first);
        uint64_t block = supply->block_bytes ? supply->block_bytes : WEIR_PIECE_BLOCK;
        plan.kind = WEIR_PIECE_WINDOW;
        plan.begin = head.off - head.off % block;
        plan.end = tail.off + tail.size + block - 1;
        plan.end -= plan.end % block;
        plan.end = plan.end < shard.file_bytes ? plan.end : shard.file_bytes;
        plan.bytes = plan.end - plan.begin;
    }
    if (code)
        return code;
    plan.bytes = plan.bytes ? weir_slab_room(plan.bytes) : 0;
    *piece = plan;
    return 0;
}

/* ---- objects ---- */

/* Objects of one read, opened as it gets there. */
struct opening {
    const struct weir_supply *supply;
    weir_object *objects[OBJECTS_MAX];
    struct weir_place places[OBJECTS_MAX]; /* of any sample in each */
    struct weir_span *spans[OBJECTS_MAX];
    size_t span_counts[OBJECTS_MAX];
    size_t count, next;
};

/* NULL where every file is a sample: none is read from twice. */
static struct weir_shelf *shelf_of(const struct weir_supply *supply)
{
    return weir_index_format(supply->index)->is_files ? NULL : weir_data_shelf(supply->data);
}

static int take_object(const struct weir_supply *supply, const struct weir_place *place,
                       weir_object **out)
{
    struct weir_shelf *shelf = shelf_of(supply);
    *out = shelf ? weir_shelf_take(shelf, place->shard) : NULL;
    return *out ? 0 : weir_data_object(supply->data, place, !shelf && supply->once, out);
}

/* Whatever was wrong may be another file's the next time. */
static void give_object(const struct weir_supply *supply, const struct weir_place *place,
                        weir_object *obj, bool is_good)
{
    struct weir_shelf *shelf = shelf_of(supply);
    if (shelf && is_good)
        weir_shelf_give(shelf, place->shard, obj);
    else
        weir_object_close(obj);
}

/* What fails here fails again where it is read, and is told there. */
uint64_t weir_supply_block(const struct weir_supply *supply)
{
    struct weir_place first;
    weir_object *obj;
    if (weir_index_format(supply->index)->is_files || weir_index_find(supply->index, 0, &first) ||
        take_object(supply, &first, &obj))
        return WEIR_PIECE_BLOCK;
    uint64_t block = weir_object_check_bytes(obj);
    give_object(supply, &first, obj, true);
    if (block < WEIR_PIECE_BLOCK)
        return WEIR_PIECE_BLOCK;
    return weir_min(block, WEIR_PIECE_BLOCK_MAX);
}

static bool is_stopped(const struct weir_supply *supply)
{
    return supply->stop && *supply->stop;
}

static int fail_stopped(void)
{
    return weir_fail(ECANCELED, "the loader is closed");
}

static int next_object(void *arg, struct weir_reading *out)
{
    struct opening *opening = arg;
    size_t i = opening->next;
    if (i == opening->count)
        return 0;
    if (is_stopped(opening->supply))
        return fail_stopped();
    int code = take_object(opening->supply, &opening->places[i], &opening->objects[i]);
    if (code)
        return code;
    opening->next++;
    *out = (struct weir_reading){opening->objects[i], opening->spans[i], opening->span_counts[i]};
    return 1;
}

static int run_opening(struct opening *opening, struct weir_cost *cost)
{
    struct weir_readings readings = {.next = next_object, .arg = opening};
    for (size_t i = 0; i < opening->count; i++)
        for (size_t k = 0; k < opening->span_counts[i]; k++)
            readings.bytes += weir_span_bytes(&opening->spans[i][k]);
    uint64_t start_ns = now_ns();
    int code = weir_readings_run(opening->supply->store, &readings, NULL, NULL, NULL);
    for (size_t i = 0; i < opening->next; i++)
        give_object(opening->supply, &opening->places[i], opening->objects[i], !code);
    opening->next = 0;
    cost->read_ns += now_ns() - start_ns;
    return code;
}

/* ---- windows ---- */

static int take_window(struct weir_piece *piece, const struct weir_supply *supply)
{
    piece->slab = weir_slab_take(supply->slabs, piece->end - piece->begin);
    if (!piece->slab)
        return -ENOMEM;
    piece->data = piece->slab->data;
    return 0;
}

static struct weir_span span_of(const struct weir_piece *piece)
{
    return (struct weir_span){.off = piece->begin,
                              .size = piece->end - piece->begin,
                              .rows = 1,
                              .to = (char *)piece->data};
}

/* Loads them in one read; when that fails, nothing of them is there. */
static int read_windows(struct weir_piece *const *pieces, size_t count,
                        const struct weir_supply *supply, struct weir_cost *cost)
{
    struct opening opening = {.supply = supply, .count = count};
    struct weir_span spans[OBJECTS_MAX];
    for (size_t i = 0; i < count; i++) {
        int code = weir_index_find(supply->index, pieces[i]->first, &opening.places[i]);
        if (code)
            return code;
        spans[i] = span_of(pieces[i]);
        opening.spans[i] = &spans[i];
        opening.span_counts[i] = 1;
        count_read(cost, spans[i].size);
    }
    return run_opening(&opening, cost);
}

static void load_windows(struct weir_piece *const *pieces, size_t count,
                         const struct weir_supply *supply, struct weir_cost *cost)
{
    if (!read_windows(pieces, count, supply, cost))
        return;
    for (size_t i = 0; i < count; i++)
        if (count == 1 || read_windows(&pieces[i], 1, supply, cost)) {
            pieces[i]->end = pieces[i]->begin;
            pieces[i]->is_broken = true;
        }
}

/* ---- shards ---- */

static int decompress(struct weir_piece *piece, const struct weir_index_shard *shard,
                      const struct weir_supply *supply, uint64_t *good)
{
    struct weir_flow *flow;
    struct weir_place place;
    int code = weir_index_find(supply->index, piece->first, &place);
    if (!code)
        code = weir_data_flow(supply->data, &place, &flow);
    if (code)
        return code;
    while (!code && *good < shard->raw_bytes) {
        uint64_t left = shard->raw_bytes - *good, step = left < STEP_BYTES ? left : STEP_BYTES;
        code = is_stopped(supply) ? fail_stopped()
                                  : weir_flow_read(flow, piece->slab->data + *good, step);
        if (!code)
            *good += step;
    }
    /* What is wrong at the end may be so anywhere: no byte of it is believed then. */
    if (!code && (code = weir_flow_finish(flow)))
        *good = 0;
    weir_flow_close(flow);
    return code;
}

/* Why not all of it is there. */
static void say(struct weir_piece *piece, int code)
{
    piece->code = code;
    free(piece->text);
    piece->text = weir_strdup(weir_fail_last());
}

static int load_shard(struct weir_piece *piece, const struct weir_supply *supply,
                      struct weir_cost *cost)
{
    struct weir_index_shard shard;
    uint64_t good = 0, start_ns = now_ns();
    weir_index_shard(supply->index, piece->shard, &shard);
    piece->slab = weir_slab_take(supply->slabs, shard.raw_bytes);
    if (!piece->slab)
        return -ENOMEM;
    piece->data = piece->slab->data;
    int code = decompress(piece, &shard, supply, &good);
    piece->end = good;
    if (code)
        say(piece, code);
    count_read(cost, shard.file_bytes);
    cost->decompress_ns += now_ns() - start_ns;
    return 0;
}

/* ---- maps ---- */

static bool take_map(struct weir_piece *piece, const struct weir_supply *supply)
{
    struct weir_place place;
    if (weir_index_find(supply->index, piece->first, &place))
        return false;
    piece->map = weir_maps_take(weir_data_maps(supply->data), supply->data, &place);
    piece->mapped_of = supply->data;
    return piece->map != NULL;
}

static void give_map(struct weir_piece *piece)
{
    if (piece->map)
        weir_maps_give(weir_data_maps(piece->mapped_of), piece->shard);
    piece->map = NULL;
}

enum weir_mapping weir_supply_mapping(const struct weir_supply *supply, bool is_buffered)
{
    const struct weir_format *format = weir_index_format(supply->index);
    struct weir_maps *maps = weir_data_maps(supply->data);
    struct weir_place first;
    if (format->is_files || !is_buffered || weir_index_find(supply->index, 0, &first) ||
        !weir_maps_take(maps, supply->data, &first))
        return WEIR_MAPPING_NONE;
    weir_maps_give(maps, first.shard);
    return format->is_flat ? WEIR_MAPPING_ALL : WEIR_MAPPING_RESIDENT;
}

/* All of the shard is at hand. */
static void use_map(struct weir_piece *piece, const struct weir_supply *supply)
{
    struct weir_index_shard shard;
    weir_index_shard(supply->index, piece->shard, &shard);
    piece->data = weir_map_data(piece->map);
    piece->begin = 0;
    piece->end = shard.file_bytes;
}

/* One that cannot be mapped after all has nothing. */
static void load_map(struct weir_piece *piece, const struct weir_supply *supply)
{
    piece->end = piece->begin;
    if (take_map(piece, supply))
        use_map(piece, supply);
    else
        piece->is_broken = true;
}

/* A window that is in the page cache needs no memory of ours. */
static bool map_window(struct weir_piece *piece, const struct weir_supply *supply,
                       struct weir_cost *cost)
{
    uint64_t size = piece->end - piece->begin;
    if (supply->mapping != WEIR_MAPPING_RESIDENT || !take_map(piece, supply))
        return false;
    if (!weir_map_is_resident(piece->map, piece->begin, size)) {
        weir_map_forget(piece->map, piece->begin, size);
        give_map(piece);
        return false;
    }
    use_map(piece, supply);
    cost->mapped_bytes += size;
    return true;
}

/* ---- lists ---- */

struct item {
    struct weir_place place;
    uint64_t row;
};

static int by_place(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->place.shard != y->place.shard)
        return x->place.shard < y->place.shard ? -1 : 1;
    int order = x->place.key == y->place.key ? 0 : strcmp(x->place.key, y->place.key);
    if (order)
        return order;
    return x->place.off == y->place.off ? 0 : x->place.off < y->place.off ? -1 : 1;
}

static uint64_t list_number(const struct weir_piece *piece, uint64_t row)
{
    return piece->numbers ? piece->numbers[row] : piece->first + row;
}

static int find_items(struct item *items, const struct weir_piece *piece,
                      const struct weir_supply *supply)
{
    for (uint64_t i = 0; i < piece->count; i++) {
        int code = weir_index_find(supply->index, list_number(piece, i), &items[i].place);
        if (code)
            return code;
        items[i].row = i;
    }
    qsort(items, piece->count, sizeof *items, by_place);
    return 0;
}

/* Reads as many items as lie in OBJECTS_MAX files; returns how many those are, or -errno. The spans
 * are all items'. */
static int64_t read_items(const struct item *items, uint64_t count, struct weir_span *spans,
                          const struct weir_supply *supply, struct weir_cost *cost)
{
    struct opening opening = {.supply = supply};
    uint64_t i = 0;
    for (; i < count; i++) {
        size_t last = opening.count;
        bool same = last && items[i].place.shard == opening.places[last - 1].shard &&
                    !strcmp(items[i].place.key, opening.places[last - 1].key);
        if (!same && last == OBJECTS_MAX)
            break;
        if (!same) {
            opening.places[last] = items[i].place;
            opening.spans[last] = &spans[i];
            opening.span_counts[last] = 0;
            opening.count++;
        }
        opening.span_counts[opening.count - 1]++;
        count_read(cost, spans[i].size);
    }
    int code = run_opening(&opening, cost);
    return code ? code : (int64_t)i;
}

static void read_list(struct weir_piece *piece, const struct item *items, struct weir_span *spans,
                      const struct weir_supply *supply, struct weir_cost *cost)
{
    uint64_t done = 0;
    while (done < piece->count) {
        int64_t more = read_items(items + done, piece->count - done, spans + done, supply, cost);
        if (more < 0)
            break;
        done += (uint64_t)more;
    }
    for (; done < piece->count; done++) /* something is damaged: one by one shows what */
        if (read_items(items + done, 1, spans + done, supply, cost) < 0) {
            piece->offs[items[done].row] = UINT64_MAX;
            piece->is_broken = true;
        }
}

/* Where each goes: behind the table of that. What they take was found when the piece was planned,
 * but is not believed again. */
static int lay_out(struct weir_piece *piece, const struct item *items, struct weir_span *spans,
                   const struct weir_supply *supply)
{
    uint64_t step = list_step(supply);
    uint64_t at = (piece->count * sizeof *piece->offs + step - 1) / step * step;
    uint64_t room = piece->slab->room;
    uint64_t *offs = (uint64_t *)piece->slab->data;
    for (uint64_t i = 0; i < piece->count; i++) {
        const struct weir_place *place = &items[i].place;
        if (at > room || place->size > room - at || step > room - at - place->size)
            return fail_index(supply, "its samples have other sizes than before");
        spans[i] = (struct weir_span){.off = place->off,
                                      .size = place->size,
                                      .rows = 1,
                                      .is_padded = supply->once,
                                      .to = (char *)piece->slab->data + at};
        offs[items[i].row] = at;
        at = (at + place->size + step - 1) / step * step;
    }
    piece->offs = offs;
    piece->data = piece->slab->data;
    return 0;
}

static int load_list(struct weir_piece *piece, const struct weir_supply *supply,
                     struct weir_cost *cost)
{
    struct item *items = weir_alloc(piece->count * sizeof *items + 1);
    struct weir_span *spans = weir_alloc(piece->count * sizeof *spans + 1);
    piece->slab = weir_slab_take(supply->slabs, piece->bytes);
    int code = items && spans && piece->slab ? 0 : weir_fail_memory();
    if (!code)
        code = find_items(items, piece, supply);
    if (!code)
        code = lay_out(piece, items, spans, supply);
    if (!code)
        read_list(piece, items, spans, supply, cost);
    free(items);
    free(spans);
    return code;
}

/* ---- the interface ---- */

static int load_others(struct weir_piece *piece, const struct weir_supply *supply,
                       struct weir_cost *cost)
{
    if (piece->kind == WEIR_PIECE_SHARD)
        return load_shard(piece, supply, cost);
    if (piece->kind == WEIR_PIECE_LIST)
        return load_list(piece, supply, cost);
    load_map(piece, supply);
    return 0;
}

int weir_pieces_load(struct weir_piece *const *pieces, size_t count,
                     const struct weir_supply *supply, struct weir_cost *cost)
{
    struct weir_piece *windows[OBJECTS_MAX];
    size_t found = 0;
    int code = 0;
    for (size_t i = 0; i < count && !code; i++) {
        if (pieces[i]->kind != WEIR_PIECE_WINDOW) {
            code = load_others(pieces[i], supply, cost);
            continue;
        }
        if (map_window(pieces[i], supply, cost))
            continue;
        code = take_window(pieces[i], supply);
        windows[found++] = pieces[i];
        if (!code && found == OBJECTS_MAX) {
            load_windows(windows, found, supply, cost);
            found = 0;
        }
    }
    if (!code && found)
        load_windows(windows, found, supply, cost);
    return code;
}

void weir_piece_lost(struct weir_piece *piece, int code)
{
    weir_slab_give(piece->slab);
    give_map(piece);
    piece->slab = NULL;
    piece->offs = NULL;
    piece->end = piece->begin;
    say(piece, code);
}

void weir_piece_unload(struct weir_piece *piece)
{
    weir_slab_give(piece->slab);
    give_map(piece);
    free(piece->text);
    piece->slab = NULL;
    piece->text = NULL;
}

int weir_sample_fail(const struct weir_supply *supply, uint64_t number, int code)
{
    struct weir_index_shard shard;
    struct weir_place place;
    const char *url = weir_data_info_get(supply->data)->url;
    if (weir_index_format(supply->index)->is_files) { /* a shard is a thousand of them */
        const char *why = strdupa(weir_fail_last());
        bool is_known = !weir_index_find(supply->index, number, &place);
        weir_fail_text(code, why);
        return weir_fail_in(code, "sample %" PRIu64 " of '%s' ('%s')", number, url,
                            is_known ? place.key : "?");
    }
    weir_index_shard(supply->index, weir_index_shard_of(supply->index, number), &shard);
    return weir_fail_in(code, "sample %" PRIu64 " of '%s' (number %" PRIu64 " in '%s')", number,
                        url, number - shard.first, shard.key);
}

/* Reads one sample that did not come with its piece. */
static int read_alone(const struct weir_supply *supply, const struct weir_place *place,
                      struct weir_arena **scratch, const uint8_t **out)
{
    weir_object *obj;
    size_t got = 0;
    uint8_t *data = weir_arena_take(scratch, place->size + 1);
    if (!data)
        return weir_fail_memory();
    int code = weir_data_object(supply->data, place, false, &obj);
    if (code)
        return code;
    code = weir_object_read(obj, data, place->size, place->off, &got);
    weir_object_close(obj);
    if (!code && got < place->size)
        code = weir_fail(EBADMSG, "the file ends within it");
    *out = data;
    return code;
}

/* Where it is in the piece; NULL if it is not there. */
static const uint8_t *find_in(const struct weir_piece *piece, const struct weir_place *place,
                              uint64_t row)
{
    if (piece->kind == WEIR_PIECE_LIST)
        return !piece->offs || piece->offs[row] == UINT64_MAX ? NULL
                                                              : piece->data + piece->offs[row];
    bool inside = place->off >= piece->begin && place->off + place->size <= piece->end;
    return inside ? piece->data + (place->off - piece->begin) : NULL;
}

bool weir_piece_lacks(const struct weir_piece *piece, const struct weir_supply *supply,
                      uint64_t number)
{
    struct weir_place place;
    if (piece->kind != WEIR_PIECE_MAP || !piece->map || weir_map_is_whole(piece->map) ||
        weir_index_find(supply->index, number, &place) || !find_in(piece, &place, 0))
        return false;
    return !weir_map_is_checked(piece->map, place.off, place.size) &&
           !weir_map_is_resident(piece->map, place.off, place.size);
}

int weir_piece_sample(const struct weir_piece *piece, const struct weir_supply *supply,
                      uint64_t number, uint64_t row, struct weir_arena **scratch,
                      struct weir_sample *out)
{
    struct weir_place place;
    int code = weir_index_find(supply->index, number, &place);
    if (code)
        return weir_sample_fail(supply, number, code);
    if (!piece->numbers)
        row = number - piece->first;
    const uint8_t *data = find_in(piece, &place, row);
    if (data && piece->map && (code = weir_map_check(piece->map, place.off, place.size)))
        return weir_sample_fail(supply, number, code);
    if (!data && piece->code)
        code = weir_fail_text(piece->code, piece->text ? piece->text : "there is no memory");
    else if (!data && piece->kind == WEIR_PIECE_SHARD)
        code = weir_fail(EBADMSG, "it lies outside its shard");
    else if (!data)
        code = read_alone(supply, &place, scratch, &data);
    if (code)
        return weir_sample_fail(supply, number, code);
    *out = (struct weir_sample){data, place.size, place.key, place.off, place.marks};
    return 0;
}
