#include "shapes.h"

/* One declared property of each type, and below that anything but in Dog. */
static const struct property shapes_dog_properties[] = {
    {.name = SPAN_INIT("Name"), .type = TYPE_STRING},
    {.name = SPAN_INIT("Legs"), .type = TYPE_INTEGER},
};
static const struct shape shapes_dog = {shapes_dog_properties, 2, .name = SPAN_INIT("Dog")};

static const struct property shapes_properties[] = {
    {.name = SPAN_INIT("Id"), .type = TYPE_STRING},
    {.name = SPAN_INIT("Name"), .type = TYPE_STRING},
    {.name = SPAN_INIT("Age"), .type = TYPE_INTEGER},
    {.name = SPAN_INIT("Weight"), .type = TYPE_NUMBER},
    {.name = SPAN_INIT("Tame"), .type = TYPE_BOOLEAN},
    {.name = SPAN_INIT("Born"), .type = TYPE_DATETIME},
    {.name = SPAN_INIT("Home"), .type = TYPE_OBJECT},
    {.name = SPAN_INIT("Dog"), .type = TYPE_OBJECT, .members = &shapes_dog},
    {.name = SPAN_INIT("Dogs"), .type = TYPE_ARRAY, .members = &shapes_dog},
    {.name = SPAN_INIT("Tags"), .type = TYPE_ARRAY},
    {.name = SPAN_INIT("Visits"), .type = TYPE_INTEGER, .flags = PROPERTY_HIDDEN},
};
const struct shape shapes_declared = {shapes_properties, ARRAY_LEN(shapes_properties),
                                      .name = SPAN_INIT("Zoo.Animal")};
const struct shape shapes_dynamic = {shapes_properties, 1, .dynamic = true,
                                     .name = SPAN_INIT("Zoo.Note")};
