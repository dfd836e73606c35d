typedef int svc_empty_method;
