typedef int svc_empty_negotiate;
