typedef int svc_empty_query;
