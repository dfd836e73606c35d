typedef int svc_empty_status;
