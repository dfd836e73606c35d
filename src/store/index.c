typedef int svc_empty_index;
