/* plan.c - which pieces the next batches need; see loader.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/loader.h"
#include "util/sys.h"

enum {
    WANTED_MIN = 16,       /* fewer in the queue: it is time to plan */
    TAKE_BYTES = 16 << 20, /* read at once by one thread: 16 reads of 1 MiB are under way */
};

/* ---- pieces ---- */

static struct weir_held **bucket(const struct weir_loader *loader, uint64_t shard, uint64_t first)
{
    uint64_t hash = (shard * 0x9e3779b97f4a7c15u + first) * 0xd6e8feb86659fd93u;
    return &loader->table[(hash >> 32) & (loader->table_count - 1)];
}

/* With the lock held. */
static struct weir_held *find_held(const struct weir_loader *loader, uint64_t shard, uint64_t first)
{
    struct weir_held *held = *bucket(loader, shard, first);
    while (held && (held->piece.shard != shard || held->first != first))
        held = held->next_same;
    return held;
}

/* With the lock held: one that nobody needs any more goes to the list, for free_list(). */
static void unref(struct weir_loader *loader, struct weir_held *held, struct weir_held **list)
{
    if (--held->refs)
        return;
    if (held->is_shared) {
        struct weir_held **at = bucket(loader, held->piece.shard, held->first);
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
        if (count && !is_window)
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

/* ---- epochs ---- */

static void drop_drawn(struct weir_loader *loader, struct weir_drawn *drawn)
{
    struct weir_drawn **at = &loader->drawn;
    if (--drawn->refs)
        return;
    while (*at != drawn)
        at = &(*at)->next;
    *at = drawn->next;
    weir_epoch_close(drawn->epoch);
    free(drawn);
}

/* The newest one is at the front, and has the planner's own reference. */
static int draw(struct weir_loader *loader, uint64_t number, struct weir_drawn **out)
{
    pthread_mutex_lock(&loader->lock);
    struct weir_drawn *drawn = loader->drawn;
    while (drawn && drawn->number != number)
        drawn = drawn->next;
    if (drawn)
        drawn->refs++;
    pthread_mutex_unlock(&loader->lock);
    if (drawn) {
        *out = drawn;
        return 0;
    }
    drawn = weir_alloc(sizeof *drawn);
    if (!drawn)
        return weir_fail_memory();
    int code = weir_epoch_open(&drawn->epoch, loader->order, number);
    if (code) {
        free(drawn);
        return code;
    }
    drawn->number = number;
    drawn->refs = 2;
    pthread_mutex_lock(&loader->lock);
    struct weir_drawn *old = loader->drawn;
    drawn->next = old;
    loader->drawn = drawn;
    if (old)
        drop_drawn(loader, old);
    pthread_mutex_unlock(&loader->lock);
    *out = drawn;
    return 0;
}

static int draw_all(struct weir_loader *loader, struct weir_slot *slot)
{
    uint64_t first = slot->positions[0], last = first;
    for (uint64_t i = 1; i < slot->rows; i++) {
        first = slot->positions[i] < first ? slot->positions[i] : first;
        last = slot->positions[i] > last ? slot->positions[i] : last;
    }
    slot->first_epoch = first / loader->samples;
    uint64_t count = last / loader->samples - slot->first_epoch + 1;
    if (count > slot->drawn_room) {
        struct weir_drawn **more = weir_realloc(slot->drawn, count * sizeof *more);
        if (!more)
            return weir_fail_memory();
        slot->drawn = more;
        slot->drawn_room = count;
    }
    while (slot->drawn_count < count) {
        int code =
            draw(loader, slot->first_epoch + slot->drawn_count, &slot->drawn[slot->drawn_count]);
        if (code)
            return code;
        slot->drawn_count++;
    }
    return 0;
}

/* ---- rows ---- */

/* More than the bound, and the caller does not wait for this slot. With the lock held. */
static bool is_full(struct weir_loader *loader, uint64_t more)
{
    bool full = loader->planned - 1 > loader->delivered &&
                loader->bytes + more > loader->opts.memory_bytes_max;
    loader->lacking = full ? more : 0;
    return full;
}

/* A new piece, unless there is no room: then -EAGAIN. */
static int new_held(struct weir_loader *loader, struct weir_slot *slot, const struct weir_window *w,
                    struct weir_held **out)
{
    struct weir_held *held = weir_alloc(sizeof *held);
    if (!held)
        return weir_fail_memory();
    int code = weir_piece_plan(&held->piece, &loader->supply, w->shard, w->first, w->count);
    if (code) {
        free(held);
        return code;
    }
    held->first = held->piece.first;
    pthread_mutex_lock(&loader->lock);
    struct weir_held *same = find_held(loader, held->piece.shard, held->first);
    if (!same && is_full(loader, held->piece.bytes)) {
        pthread_mutex_unlock(&loader->lock);
        free(held);
        return -EAGAIN;
    }
    if (!same) {
        struct weir_held **at = bucket(loader, held->piece.shard, held->first);
        held->next_same = *at;
        held->is_shared = true;
        *at = held;
        want(loader, held);
    }
    *out = same ? same : held;
    (*out)->refs++; /* the lane's */
    use(slot, *out);
    pthread_mutex_unlock(&loader->lock);
    if (same)
        free(held);
    return 0;
}

/* The lane goes on to the window in which item `item` is. */
static int move_lane(struct weir_loader *loader, struct weir_slot *slot, struct weir_lane *lane,
                     uint64_t position)
{
    struct weir_held *held = NULL, *gone = NULL;
    struct weir_window w;
    uint64_t number = position / loader->samples;
    weir_epoch_window(slot->drawn[number - slot->first_epoch]->epoch, position % loader->samples,
                      &w);
    int code = new_held(loader, slot, &w, &held);
    if (code)
        return code;
    pthread_mutex_lock(&loader->lock);
    if (lane->held)
        unref(loader, lane->held, &gone);
    pthread_mutex_unlock(&loader->lock);
    free_list(gone);
    *lane = (struct weir_lane){number, w.item, w.item + w.count, held};
    return 0;
}

static int plan_rows(struct weir_loader *loader, struct weir_slot *slot)
{
    for (; slot->row < slot->rows; slot->row++) {
        uint64_t position = slot->positions[slot->row], k = position % loader->samples;
        uint64_t epoch = position / loader->samples, item = k / loader->lanes_count;
        struct weir_lane *lane = &loader->lanes[k % loader->lanes_count];
        bool stays = lane->held && lane->epoch == epoch && item >= lane->item && item < lane->end;
        if (!stays) {
            int code = move_lane(loader, slot, lane, position);
            if (code)
                return code;
        } else if (!slot->row || slot->helds[slot->row - 1] != lane->held) {
            pthread_mutex_lock(&loader->lock);
            use(slot, lane->held);
            pthread_mutex_unlock(&loader->lock);
        }
        slot->helds[slot->row] = lane->held;
    }
    return 0;
}

/* A full shuffle: a list of this slot's own. */
static int plan_list(struct weir_loader *loader, struct weir_slot *slot)
{
    for (uint64_t i = 0; i < slot->rows; i++) {
        uint64_t position = slot->positions[i], epoch = position / loader->samples;
        slot->numbers[i] = weir_epoch_sample(slot->drawn[epoch - slot->first_epoch]->epoch,
                                             position % loader->samples);
    }
    struct weir_held *held = weir_alloc(sizeof *held);
    if (!held)
        return weir_fail_memory();
    int code = weir_piece_plan_list(&held->piece, &loader->supply, slot->numbers, slot->rows);
    if (code) {
        free(held);
        return code;
    }
    pthread_mutex_lock(&loader->lock);
    if (is_full(loader, held->piece.bytes)) {
        pthread_mutex_unlock(&loader->lock);
        free(held);
        return -EAGAIN;
    }
    want(loader, held);
    use(slot, held);
    pthread_mutex_unlock(&loader->lock);
    for (uint64_t i = 0; i < slot->rows; i++)
        slot->helds[i] = held;
    slot->row = slot->rows;
    return 0;
}

/* ---- slots ---- */

/* Where batch i of this worker begins. */
static uint64_t position_of(const struct weir_loader *loader, uint64_t i)
{
    const weir_loader_options *opts = &loader->opts;
    uint64_t batch = i * opts->workers + opts->worker;
    return opts->position + batch * loader->batch_size;
}

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
        position_of(loader, next) >= loader->opts.end)
        return false;
    if (next == loader->delivered)
        return true;
    return loader->wanted_count < WANTED_MIN &&
           loader->bytes + loader->lacking < loader->opts.memory_bytes_max;
}

static void deal_slot(struct weir_loader *loader, struct weir_slot *slot)
{
    const weir_loader_options *opts = &loader->opts;
    uint64_t left = opts->end - slot->position;
    uint64_t count = left < loader->batch_size ? left : loader->batch_size;
    slot->rows = weir_deal_count(count, opts->rank, opts->ranks);
    slot->row = slot->uses_count = slot->loaded = slot->drawn_count = 0;
    slot->code = 0;
    slot->batch = NULL;
    if (slot->rows)
        weir_deal(loader->order, slot->position, count, opts->rank, opts->ranks, slot->positions);
}

/* Begins the next slot, or goes on with the last. With the lock held. */
static struct weir_slot *next_slot(struct weir_loader *loader)
{
    if (is_halfway(loader))
        return &loader->slots[(loader->planned - 1) % loader->slots_count];
    struct weir_slot *slot = &loader->slots[loader->planned % loader->slots_count];
    slot->position = position_of(loader, loader->planned);
    slot->state = WEIR_SLOT_PLANNING;
    slot->rows = UINT64_MAX; /* not dealt yet */
    slot->bytes = loader->batch_size / loader->opts.ranks * loader->row_bytes;
    loader->bytes += slot->bytes;
    loader->planned++;
    return slot;
}

/* Lanes that this rank left, because others have them now, keep no piece that is behind us. */
static void sweep_lanes(struct weir_loader *loader, uint64_t position)
{
    struct weir_held *gone = NULL;
    if (position < loader->sweep_at)
        return;
    loader->sweep_at = position + loader->lanes_count;
    pthread_mutex_lock(&loader->lock);
    for (uint32_t i = 0; i < loader->lanes_count; i++) {
        struct weir_lane *lane = &loader->lanes[i];
        uint64_t end = lane->epoch * loader->samples + (lane->end - 1) * loader->lanes_count + i;
        if (!lane->held || end >= position)
            continue;
        unref(loader, lane->held, &gone);
        lane->held = NULL;
    }
    pthread_mutex_unlock(&loader->lock);
    free_list(gone);
}

static int plan_slot(struct weir_loader *loader, struct weir_slot *slot)
{
    int code = 0;
    if (slot->rows == UINT64_MAX) {
        deal_slot(loader, slot);
        sweep_lanes(loader, slot->position);
        code = slot->rows ? draw_all(loader, slot) : 0;
    }
    if (code || !slot->rows)
        return code;
    return loader->is_scattered ? plan_list(loader, slot) : plan_rows(loader, slot);
}

void weir_plan_more(struct weir_loader *loader)
{
    struct weir_slot *slot = next_slot(loader);
    uint64_t start_ns = weir_sys->now_ns(WEIR_CLOCK_MONO);
    loader->planning = true;
    pthread_mutex_unlock(&loader->lock);
    int code = plan_slot(loader, slot);
    if (code && code != -EAGAIN) {
        slot->code = code;
        memcpy(slot->text, weir_fail_last(), sizeof slot->text);
    }
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
    pthread_mutex_lock(&loader->lock);
    loader->wanted = NULL;
    for (uint64_t i = 0; i < loader->slots_count; i++)
        weir_plan_let_go(loader, &loader->slots[i]);
    struct weir_held *gone = NULL;
    for (uint32_t i = 0; i < loader->lanes_count; i++)
        if (loader->lanes[i].held)
            unref(loader, loader->lanes[i].held, &gone);
    if (loader->drawn)
        drop_drawn(loader, loader->drawn);
    pthread_mutex_unlock(&loader->lock);
    free_list(gone);
}
