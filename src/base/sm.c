typedef int svc_empty_sm;
