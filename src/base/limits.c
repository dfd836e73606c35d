typedef int svc_empty_limits;
