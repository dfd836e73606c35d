typedef int svc_empty_tcp;
