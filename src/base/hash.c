typedef int svc_empty_hash;
