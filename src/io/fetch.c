typedef int svc_empty_fetch;
