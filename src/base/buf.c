typedef int svc_empty_buf;
