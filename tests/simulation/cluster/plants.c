/* Where each of them is: etcd_store.c, gateway.c, visit.c and machine.c look at `planted`. */
#include "plants.h"

const struct plant_info plant_infos[PLANT_COUNT] = {
#define PLANT_AS_INFO(symbol, name, text, promise, seed) [symbol] = {name, text, promise, seed},
    PLANTS(PLANT_AS_INFO)
#undef PLANT_AS_INFO
};

enum plant planted;

bool plant_find(struct span name, enum plant *out_plant)
{
    for (unsigned i = 0; i < PLANT_COUNT; i++)
        if (span_eq(span_str(plant_infos[i].name), name)) {
            *out_plant = i;
            return true;
        }
    return false;
}
