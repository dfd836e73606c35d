typedef int svc_empty_retry;
