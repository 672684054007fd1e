/* ask_durability.c - the chance to lose data: copies and erasure codes, with repair. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "plan/answers.h"
#include "plan/device.h"
#include "util/err.h"

#define TIME(value)   weir_plan_say(WEIR_PLAN_S, value)
#define CHANCE(value) weir_plan_say(WEIR_PLAN_CHANCE, value)

static double loss_of(const struct weir_plan_in *in, uint64_t data, uint64_t parity,
                      double repair_s)
{
    double mttdl_s = weir_plan_mttdl_s(in->afr, (unsigned)data, (unsigned)parity, repair_s);
    return weir_plan_loss_a_year(mttdl_s, (double)in->groups);
}

static double nines(double loss)
{
    return loss > 0 ? -log10(loss) : INFINITY;
}

static void tell_copies(struct weir_plan_answer *a, const struct weir_plan_in *in, double repair_s)
{
    uint64_t r = in->copies;
    double loss = loss_of(in, 1, r - 1, repair_s);
    double textbook =
        weir_plan_any_fails((double)in->groups, weir_plan_loss_textbook(in->afr, (double)r));
    weir_plan_figure(a, "copies_mttdl_s", "copies: mean time to a loss", WEIR_PLAN_S,
                     weir_plan_mttdl_s(in->afr, 1, (unsigned)r - 1, repair_s) / (double)in->groups);
    weir_plan_figure(a, "copies_loss_per_year", "copies: loss within a year, by chance",
                     WEIR_PLAN_CHANCE, loss);
    weir_plan_figure(a, "copies_nines", "copies: nines", WEIR_PLAN_NUMBER, nines(loss));
    weir_plan_figure(a, "copies_overhead", "copies: bytes stored for a byte", WEIR_PLAN_NUMBER,
                     (double)r);
    weir_plan_publish(
        a, (struct weir_plan_published){"the textbook's p^r", WEIR_PLAN_CHANCE, textbook, loss,
                                        "p^r waits a year before it repairs anything"});
    weir_plan_change(a, "one copy more: a loss by %s; one less: by %s",
                     CHANCE(loss_of(in, 1, r, repair_s)),
                     CHANCE(r > 1 ? loss_of(in, 1, r - 2, repair_s) : 1));
    weir_plan_change(a, "copies repaired in half the time: %s",
                     CHANCE(loss_of(in, 1, r - 1, repair_s / 2)));
}

static void tell_code(struct weir_plan_answer *a, const struct weir_plan_in *in, double repair_s)
{
    double loss = loss_of(in, in->data, in->parity, repair_s);
    double still = weir_plan_any_fails(
        (double)in->groups,
        weir_plan_loss_unrepaired(in->afr, (unsigned)in->data, (unsigned)in->parity));
    weir_plan_figure(
        a, "code_mttdl_s", "code: mean time to a loss", WEIR_PLAN_S,
        weir_plan_mttdl_s(in->afr, (unsigned)in->data, (unsigned)in->parity, repair_s) /
            (double)in->groups);
    weir_plan_figure(a, "code_loss_per_year", "code: loss within a year, by chance",
                     WEIR_PLAN_CHANCE, loss);
    weir_plan_figure(a, "code_nines", "code: nines", WEIR_PLAN_NUMBER, nines(loss));
    weir_plan_figure(a, "code_overhead", "code: bytes stored for a byte", WEIR_PLAN_NUMBER,
                     (double)(in->data + in->parity) / (double)in->data);
    weir_plan_publish(a, (struct weir_plan_published){"the same without repair, for the code",
                                                      WEIR_PLAN_CHANCE, still, loss,
                                                      "more than the parity fail within one year"});
    weir_plan_change(a, "one parity part more: a loss by %s",
                     CHANCE(loss_of(in, in->data, in->parity + 1, repair_s)));
    weir_plan_change(a, "code repaired in half the time: %s",
                     CHANCE(loss_of(in, in->data, in->parity, repair_s / 2)));
}

int weir_plan_ask_durability(struct weir_plan_answer *a, const struct weir_plan_in *in)
{
    double repair_s = weir_plan_seconds(in->repair_ns);
    snprintf(a->question, sizeof a->question,
             "How likely is a loss: %s copies, or a code of %s+%s?",
             weir_plan_say(WEIR_PLAN_COUNT, (double)in->copies),
             weir_plan_say(WEIR_PLAN_COUNT, (double)in->data),
             weir_plan_say(WEIR_PLAN_COUNT, (double)in->parity));
    tell_copies(a, in, repair_s);
    tell_code(a, in, repair_s);
    weir_plan_bottleneck(a,
                         "how long a device stays lost, %s: with parity for m losses, half of "
                         "it makes a loss about 2^m times less likely",
                         TIME(repair_s));
    weir_plan_assume(a,
                     "devices fail on their own, at a constant rate: %g within a year is %.4g a "
                     "year",
                     in->afr, weir_plan_failures_a_year(in->afr));
    weir_plan_assume(a,
                     "every lost device is repaired in %s on average, all side by side (a Markov "
                     "chain); %s group%s of devices",
                     TIME(repair_s), weir_plan_say(WEIR_PLAN_COUNT, (double)in->groups),
                     in->groups == 1 ? "" : "s");
    weir_plan_assume(a, "failures that come together (power, firmware, people) are not in it: "
                        "beyond some ten nines they are all that is left");
    return 0;
}
