typedef int svc_empty_blob;
