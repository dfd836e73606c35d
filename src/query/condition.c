typedef int svc_empty_condition;
