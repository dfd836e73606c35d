typedef int svc_empty_resolve;
