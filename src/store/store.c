typedef int svc_empty_store;
