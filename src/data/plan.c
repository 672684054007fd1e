/* plan.c - which pieces the next batches need; see loader.h. */
#include <errno.h>
#include <stdlib.h>

#include "data/deal.h"
#include "data/loader.h"
#include "util/sys.h"

enum {
    WANTED_MIN = 32,       /* fewer in the queue, four for each thread: it is time to plan */
    TAKE_BYTES = 16 << 20, /* read at once by one thread: 16 reads of 1 MiB are under way */
};

/* ---- pieces ---- */

static struct weir_held **bucket(const struct weir_loader *loader, const struct weir_piece *piece)
{
    uint64_t hash = (piece->shard * 0x9e3779b97f4a7c15u + piece->first) * 0xd6e8feb86659fd93u;
    return &loader->table[(hash >> 32) & (loader->table_count - 1)];
}

/* One that has all that this one has: windows are cut anew in every epoch. With the lock held. */
static struct weir_held *find_same(const struct weir_loader *loader, const struct weir_held *like)
{
    const struct weir_piece *piece = &like->piece;
    for (struct weir_held *held = *bucket(loader, piece); held; held = held->next_same)
        if (held->source == like->source && held->piece.shard == piece->shard &&
            held->piece.first == piece->first && held->piece.count >= piece->count)
            return held;
    return NULL;
}

/* With the lock held: one that nobody needs any more goes to the list, for free_list(). */
static void unref(struct weir_loader *loader, struct weir_held *held, struct weir_held **list)
{
    if (--held->refs)
        return;
    if (held->is_shared) {
        struct weir_held **at = bucket(loader, &held->piece);
        while (*at != held)
            at = &(*at)->next_same;
        *at = held->next_same;
    }
    loader->bytes -= held->piece.bytes;
    held->next_wanted = *list;
    *list = held;
}

static void free_list(struct weir_held *list)
{
    for (struct weir_held *next; list; list = next) {
        next = list->next_wanted;
        weir_piece_unload(&list->piece);
        free(list);
    }
}

/* With the lock held. */
static void want(struct weir_loader *loader, struct weir_held *held)
{
    held->state = WEIR_HELD_WANTED;
    held->next_wanted = NULL;
    *loader->wanted_tail = held;
    loader->wanted_tail = &held->next_wanted;
    loader->wanted_count++;
    loader->bytes += held->piece.bytes;
    pthread_cond_signal(&loader->work);
}

size_t weir_plan_take_wanted(struct weir_loader *loader, struct weir_held **out, size_t max)
{
    uint64_t share = loader->wanted_count / loader->threads_count + 1, bytes = 0;
    size_t count = 0;
    while (loader->wanted && count < max && count < share && bytes < TAKE_BYTES) {
        struct weir_held *held = loader->wanted;
        bool is_window = held->piece.kind == WEIR_PIECE_WINDOW;
        if (count && (!is_window || held->source != out[0]->source))
            break;
        loader->wanted = held->next_wanted;
        if (!loader->wanted)
            loader->wanted_tail = &loader->wanted;
        loader->wanted_count--;
        held->state = WEIR_HELD_LOADING;
        bytes += held->piece.bytes;
        out[count++] = held;
        if (!is_window)
            break;
    }
    return count;
}

/* A slot holds one more piece; with the lock held. */
static void use(struct weir_slot *slot, struct weir_held *held)
{
    held->refs++;
    slot->uses[slot->uses_count++] = held;
}

/* What may be planned: a quarter of the bound is for memory that is kept to be used again, since
 * pieces have many sizes, and new memory is slow. */
static uint64_t bytes_max(const struct weir_loader *loader)
{
    return loader->opts.memory_bytes_max / 4 * 3;
}

/* More than the bound, and the caller does not wait for this slot. With the lock held. */
static bool is_full(struct weir_loader *loader, uint64_t more)
{
    bool full = loader->planned - 1 > loader->delivered && loader->bytes + more > bytes_max(loader);
    loader->lacking = full ? more : 0;
    return full;
}

/* ---- epochs ---- */

/* With the lock held. */
static void drop_drawn(struct weir_loader *loader, struct weir_drawn *drawn)
{
    struct weir_drawn **at = &loader->drawn;
    if (!drawn || --drawn->refs)
        return;
    while (*at != drawn)
        at = &(*at)->next;
    *at = drawn->next;
    weir_epoch_close(drawn->epoch);
    free(drawn);
}

static int open_drawn(struct weir_drawn **out, const struct weir_feed *source, uint64_t number)
{
    struct weir_drawn *drawn = weir_alloc(sizeof *drawn);
    if (!drawn)
        return weir_fail_memory();
    int code = weir_epoch_open(&drawn->epoch, source->order, number);
    if (code) {
        free(drawn);
        return code;
    }
    drawn->source = source;
    drawn->number = number;
    *out = drawn;
    return 0;
}

/* The source goes on to an epoch, which the planner holds until the next. */
static int draw(struct weir_loader *loader, struct weir_feed *source, uint64_t number)
{
    pthread_mutex_lock(&loader->lock);
    struct weir_drawn *drawn = loader->drawn;
    while (drawn && (drawn->number != number || drawn->source != source))
        drawn = drawn->next;
    bool is_new = !drawn;
    if (drawn)
        drawn->refs++; /* now: meanwhile it could go */
    pthread_mutex_unlock(&loader->lock);
    int code = drawn ? 0 : open_drawn(&drawn, source, number);
    if (code)
        return code;
    pthread_mutex_lock(&loader->lock);
    if (is_new) {
        drawn->refs = 1;
        drawn->next = loader->drawn;
        loader->drawn = drawn;
    }
    drop_drawn(loader, source->drawn);
    pthread_mutex_unlock(&loader->lock);
    source->drawn = drawn;
    return 0;
}

/* The slot holds the epoch that its source is at. */
static int hold_drawn(struct weir_loader *loader, struct weir_slot *slot, struct weir_drawn *drawn)
{
    if (drawn->last == loader->planned)
        return 0;
    if (slot->drawn_count == slot->drawn_room) {
        uint64_t room = 2 * slot->drawn_room + 4;
        struct weir_drawn **more = weir_realloc(slot->drawn, room * sizeof *more);
        if (!more)
            return weir_fail_memory();
        slot->drawn = more;
        slot->drawn_room = room;
    }
    pthread_mutex_lock(&loader->lock);
    drawn->refs++;
    pthread_mutex_unlock(&loader->lock);
    slot->drawn[slot->drawn_count++] = drawn;
    drawn->last = loader->planned;
    return 0;
}

/* ---- rows ---- */

/* A new piece as planned, unless there is no room: -EAGAIN. With the lock held. */
static int add_held(struct weir_loader *loader, const struct weir_held *plan,
                    struct weir_held **out)
{
    if (is_full(loader, plan->piece.bytes))
        return -EAGAIN;
    struct weir_held *held = weir_alloc(sizeof *held);
    if (!held)
        return weir_fail_memory();
    *held = *plan;
    want(loader, held);
    *out = held;
    return 0;
}

/* A window's piece, new or one there is, for a lane and the slot; -EAGAIN if there is no room. */
static int find_window(struct weir_loader *loader, struct weir_slot *slot,
                       const struct weir_feed *source, const struct weir_window *w,
                       struct weir_held **out)
{
    struct weir_held plan = {.source = source, .is_shared = true};
    int code = weir_piece_plan(&plan.piece, &source->supply, w->shard, w->first, w->count);
    if (code)
        return code;
    pthread_mutex_lock(&loader->lock);
    struct weir_held *held = find_same(loader, &plan);
    if (!held)
        code = add_held(loader, &plan, &held);
    if (!code && !held->refs) {
        struct weir_held **at = bucket(loader, &held->piece);
        held->next_same = *at;
        *at = held;
    }
    if (!code) {
        held->refs++; /* the lane's */
        use(slot, held);
    }
    pthread_mutex_unlock(&loader->lock);
    *out = held;
    return code;
}

/* The lane goes on to the window in which the row's position is. */
static int move_lane(struct weir_loader *loader, struct weir_slot *slot, const struct weir_row *row,
                     struct weir_lane *lane)
{
    const struct weir_feed *source = &loader->sources[row->source];
    struct weir_held *held = NULL, *gone = NULL;
    struct weir_window w;
    weir_epoch_window(row->drawn->epoch, row->position % source->samples, &w);
    int code = find_window(loader, slot, source, &w, &held);
    if (code)
        return code;
    pthread_mutex_lock(&loader->lock);
    if (lane->held)
        unref(loader, lane->held, &gone);
    pthread_mutex_unlock(&loader->lock);
    free_list(gone);
    *lane = (struct weir_lane){row->drawn->number, w, held};
    return 0;
}

static int plan_row(struct weir_loader *loader, struct weir_slot *slot, struct weir_row *row)
{
    const struct weir_feed *source = &loader->sources[row->source];
    uint64_t k = row->position % source->samples, item = k / source->lanes_count;
    struct weir_lane *lane = &source->lane[k % source->lanes_count];
    bool stays = lane->held && lane->epoch == row->drawn->number &&
                 item - lane->window.item < lane->window.count;
    if (!stays) {
        int code = move_lane(loader, slot, row, lane);
        if (code)
            return code;
    } else if (row == slot->rows || row[-1].held != lane->held) {
        pthread_mutex_lock(&loader->lock);
        use(slot, lane->held);
        pthread_mutex_unlock(&loader->lock);
    }
    row->held = lane->held;
    row->number = weir_window_sample(&lane->window, item);
    return 0;
}

static int plan_rows(struct weir_loader *loader, struct weir_slot *slot)
{
    for (; slot->row < slot->rows_count; slot->row++) {
        struct weir_row *row = &slot->rows[slot->row];
        struct weir_feed *source = &loader->sources[row->source];
        uint64_t epoch = row->position / source->samples;
        int code = loader->stop ? weir_fail(ECANCELED, "the loader is closed") : 0;
        if (code)
            return code;
        if (!source->drawn || source->drawn->number != epoch)
            code = draw(loader, source, epoch);
        if (!code)
            code = hold_drawn(loader, slot, source->drawn);
        row->drawn = source->drawn;
        if (!code && !source->is_scattered)
            code = plan_row(loader, slot, row);
        if (code)
            return code;
    }
    return 0;
}

/* ---- lists ---- */

/* Numbers the rows that are of a source, behind those of the sources before it. */
static uint64_t number_rows(const struct weir_loader *loader, struct weir_slot *slot,
                            uint64_t first)
{
    const struct weir_feed *source = &loader->sources[slot->source];
    uint64_t count = 0;
    for (uint64_t i = 0; i < slot->rows_count; i++) {
        struct weir_row *row = &slot->rows[i];
        if (row->source != slot->source)
            continue;
        row->at = count++;
        row->number = weir_epoch_sample(row->drawn->epoch, row->position % source->samples);
        slot->numbers[first + row->at] = row->number;
    }
    return count;
}

static int plan_list(struct weir_loader *loader, struct weir_slot *slot)
{
    const struct weir_feed *source = &loader->sources[slot->source];
    uint64_t first = slot->numbers_count, count = number_rows(loader, slot, first);
    if (!count)
        return 0;
    struct weir_held plan = {.source = source}, *held;
    int code = weir_piece_plan_list(&plan.piece, &source->supply, slot->numbers + first, count);
    if (code)
        return code;
    pthread_mutex_lock(&loader->lock);
    code = add_held(loader, &plan, &held);
    if (!code)
        use(slot, held);
    pthread_mutex_unlock(&loader->lock);
    if (code)
        return code;
    for (uint64_t i = 0; i < slot->rows_count; i++)
        if (slot->rows[i].source == slot->source)
            slot->rows[i].held = held;
    slot->numbers_count += count;
    return 0;
}

static int plan_lists(struct weir_loader *loader, struct weir_slot *slot)
{
    for (; slot->source < loader->sources_count; slot->source++) {
        int code = loader->sources[slot->source].is_scattered ? plan_list(loader, slot) : 0;
        if (code)
            return code;
    }
    return 0;
}

/* ---- slots ---- */

/* The last slot is planned in part. With the lock held. */
static bool is_halfway(const struct weir_loader *loader)
{
    uint64_t planned = loader->planned;
    return planned &&
           loader->slots[(planned - 1) % loader->slots_count].state == WEIR_SLOT_PLANNING;
}

bool weir_plan_can(const struct weir_loader *loader)
{
    uint64_t next = is_halfway(loader) ? loader->planned - 1 : loader->planned;
    if (loader->planning || next - loader->delivered >= loader->slots_count ||
        weir_loader_position(loader, next) >= loader->opts.end)
        return false;
    if (next == loader->delivered)
        return true;
    return loader->wanted_count < WANTED_MIN && loader->bytes + loader->lacking < bytes_max(loader);
}

/* The slot's positions, in every source. */
static void deal_slot(const struct weir_loader *loader, struct weir_slot *slot)
{
    const weir_loader_options *opts = &loader->opts;
    uint64_t left = opts->end - slot->position;
    uint64_t end = slot->position + (left < loader->batch_size ? left : loader->batch_size);
    struct weir_deal_part parts[WEIR_MIX_PARTS_MAX];
    struct weir_dealing dealing;
    for (uint32_t i = 0; i < loader->sources_count; i++)
        parts[i] = (struct weir_deal_part){
            .order = loader->sources[i].order,
            .first = weir_source_position(loader, i, slot->position),
            .end = weir_source_position(loader, i, end),
        };
    slot->rows_count = 0;
    weir_deal_begin(&dealing, parts, loader->sources_count, opts->rank, opts->ranks);
    struct weir_row row = {0};
    while (weir_deal_next(&dealing, &row.source, &row.position))
        slot->rows[slot->rows_count++] = row;
}

/* Begins the next slot, or goes on with the last. With the lock held. */
static struct weir_slot *next_slot(struct weir_loader *loader)
{
    if (is_halfway(loader))
        return &loader->slots[(loader->planned - 1) % loader->slots_count];
    struct weir_slot *slot = &loader->slots[loader->planned % loader->slots_count];
    slot->position = weir_loader_position(loader, loader->planned);
    slot->state = WEIR_SLOT_PLANNING;
    slot->row = slot->uses_count = slot->loaded = slot->drawn_count = slot->numbers_count = 0;
    slot->source = 0;
    slot->code = 0;
    slot->rows_count = UINT64_MAX; /* not dealt yet */
    slot->bytes = weir_slab_room(loader->opts.batch_size * loader->row_bytes);
    slot->batch = NULL;
    loader->bytes += slot->bytes;
    loader->planned++;
    return slot;
}

/* Lanes that this rank left, because others have them now, keep no piece that is behind us. */
static void sweep_source(struct weir_loader *loader, struct weir_feed *source, uint64_t position)
{
    struct weir_held *gone = NULL;
    pthread_mutex_lock(&loader->lock);
    for (uint32_t i = 0; i < source->lanes_count; i++) {
        struct weir_lane *lane = &source->lane[i];
        if (!lane->held)
            continue;
        uint64_t last = lane->window.item + lane->window.count - 1;
        if (lane->epoch * source->samples + last * source->lanes_count + i >= position)
            continue;
        unref(loader, lane->held, &gone);
        lane->held = NULL;
    }
    pthread_mutex_unlock(&loader->lock);
    free_list(gone);
}

static void sweep(struct weir_loader *loader, uint64_t position)
{
    uint64_t lanes = 0;
    if (position < loader->sweep_at)
        return;
    for (uint32_t i = 0; i < loader->sources_count; i++) {
        sweep_source(loader, &loader->sources[i], weir_source_position(loader, i, position));
        lanes += loader->sources[i].lanes_count;
    }
    loader->sweep_at = position + lanes;
}

static int plan_slot(struct weir_loader *loader, struct weir_slot *slot)
{
    if (slot->rows_count == UINT64_MAX) {
        deal_slot(loader, slot);
        sweep(loader, slot->position);
    }
    int code = plan_rows(loader, slot);
    return code ? code : plan_lists(loader, slot);
}

void weir_plan_more(struct weir_loader *loader)
{
    struct weir_slot *slot = next_slot(loader);
    uint64_t start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    loader->planning = true;
    loader->lacking = 0;
    weir_work_wake(loader);
    pthread_mutex_unlock(&loader->lock);
    int code = plan_slot(loader, slot);
    if (code && code != -EAGAIN)
        weir_slot_fail(slot, code);
    uint64_t took_ns = weir_sys->now_ns(WEIR_CLOCK_MONO) - start_ns;
    pthread_mutex_lock(&loader->lock);
    loader->planning = false;
    loader->stats.plan_ns += took_ns;
    if (code != -EAGAIN)
        slot->state = WEIR_SLOT_PLANNED;
}

void weir_plan_let_go(struct weir_loader *loader, struct weir_slot *slot)
{
    struct weir_held *gone = NULL;
    for (uint64_t i = 0; i < slot->uses_count; i++)
        unref(loader, slot->uses[i], &gone);
    for (uint64_t i = 0; i < slot->drawn_count; i++)
        drop_drawn(loader, slot->drawn[i]);
    slot->uses_count = slot->drawn_count = 0;
    pthread_mutex_unlock(&loader->lock);
    free_list(gone);
    pthread_mutex_lock(&loader->lock);
}

void weir_plan_close(struct weir_loader *loader)
{
    struct weir_held *gone = NULL;
    pthread_mutex_lock(&loader->lock);
    loader->wanted = NULL;
    for (uint64_t i = 0; i < loader->slots_count; i++)
        weir_plan_let_go(loader, &loader->slots[i]);
    for (uint32_t s = 0; s < loader->sources_count; s++) {
        struct weir_feed *source = &loader->sources[s];
        for (uint32_t i = 0; source->lane && i < source->lanes_count; i++)
            if (source->lane[i].held)
                unref(loader, source->lane[i].held, &gone);
        drop_drawn(loader, source->drawn);
    }
    pthread_mutex_unlock(&loader->lock);
    free_list(gone);
}
