typedef int svc_empty_uuid;
