typedef int svc_empty_must;
