typedef int svc_empty_collection;
