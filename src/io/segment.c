typedef int svc_empty_segment;
