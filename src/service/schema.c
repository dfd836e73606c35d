typedef int svc_empty_schema;
