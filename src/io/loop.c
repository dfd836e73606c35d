typedef int svc_empty_loop;
