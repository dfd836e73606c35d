typedef int svc_empty_map;
