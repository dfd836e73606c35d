typedef int svc_empty_mem;
