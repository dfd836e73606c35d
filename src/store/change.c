typedef int svc_empty_change;
