typedef int svc_empty_json;
