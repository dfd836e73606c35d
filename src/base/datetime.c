typedef int svc_empty_datetime;
