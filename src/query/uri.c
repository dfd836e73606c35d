typedef int svc_empty_uri;
