typedef int svc_empty_payload;
