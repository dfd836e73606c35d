typedef int svc_empty_err;
