typedef int svc_empty_timer;
