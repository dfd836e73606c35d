typedef int svc_empty_arena;
