typedef int svc_empty_record;
