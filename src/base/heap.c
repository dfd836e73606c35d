typedef int svc_empty_heap;
