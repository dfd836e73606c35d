typedef int svc_empty_meta;
