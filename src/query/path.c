typedef int svc_empty_path;
