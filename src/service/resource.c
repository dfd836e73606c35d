typedef int svc_empty_resource;
