typedef int svc_empty_access;
