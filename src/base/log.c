typedef int svc_empty_log;
