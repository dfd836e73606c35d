typedef int svc_empty_clock;
