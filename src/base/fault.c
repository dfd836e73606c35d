typedef int svc_empty_fault;
